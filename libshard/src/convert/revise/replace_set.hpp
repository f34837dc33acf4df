// --overwrite and --refresh: a new data set takes the place of the one in OUT (replace.hpp).
#pragma once

#include "convert/plan/plan.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

// For an OUT that holds a data set or an unfinished conversion. A run that was stopped goes on where it was
// if it is started with the same options and inputs. Errors: those of run().
Summary replace_dataset(const Plan& plan, const Options& options, const PlanRecord& record,
                        const Hooks& hooks);

}  // namespace shard::convert
