// --append: adds images to a finished data set. Its shards stay, the new ones get the next numbers, and
// dataset.json is replaced in one step. Whoever has the data set open goes on with what was opened.
//
//   convert into OUT/.shardify-next, with the labels of the joined classes
//     -> a folder in it: rejects.csv, inputs.csv and dataset.json of both
//     -> rename that folder to .shardify-next/joined, which fails if there is one
//     -> move the shards to OUT, under their new names; then rejects.csv and inputs.csv
//     -> move dataset.json
//     -> remove .shardify-next, joined last
//
// As soon as `joined` exists, the append is decided: the next run that changes the data set finishes it
// first. Until then, OUT is as it was. In between, dataset.json of OUT is the old one, and shards that it
// does not name belong to nobody. A `joined` without dataset.json is that of a finished append. Readers that
// need rejects.csv or inputs.csv to fit ask a TableGuard (tables.hpp).
//
// Where locks exclude nobody, two appends may run at once: one rename decides,
// and one puts dataset.json in place.
#pragma once

#include <filesystem>

#include "convert/plan/plan.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

// `plan` is that of the new images alone. The summary describes these images. Nothing is done if they were
// appended before. Errors: those of run(); not_found (there is no data set), invalid_argument (options, kind
// of labels, or keys that are in the data set already).
Summary append_to(Plan plan, const Options& options, const PlanRecord& record, const Hooks& hooks);

// Throws invalid_argument, naming what differs, if the data set in `out` was converted with other options
// than those of `record`.
void require_same_options(const DatasetInfo& info, const PlanRecord& record,
                          const std::filesystem::path& out);

}  // namespace shard::convert
