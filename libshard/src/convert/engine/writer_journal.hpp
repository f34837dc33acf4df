// What a Writer finds in OUT, and what it records there beside the receipts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convert/publish/journal.hpp"
#include "shard/convert/writer.hpp"

namespace shard::convert {

// Columns as JSON text, and back. Errors: corrupt.
std::string serialize_columns(const std::vector<ColumnSpec>& columns);
std::vector<ColumnSpec> parse_columns(const std::string& json);

// What the data set of a Writer with these options and columns is.
DatasetSpec writer_spec(const WriterOptions& options, const std::vector<ColumnSpec>& columns);
PlanRecord writer_record(const WriterOptions& options, const std::vector<ColumnSpec>& columns);

// The rows of an unfinished data set that a Writer may keep: those of the first shards, as far as every
// one before them is finished, and the last of them is full. The files of the others are removed. Returns
// the number of shards.
std::uint64_t keep_full_shards(const std::filesystem::path& out, const PlanRecord& record);

}  // namespace shard::convert
