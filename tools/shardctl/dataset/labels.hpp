// Labels and their names as text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardctl/dataset/source.hpp"

namespace shard::ctl {

// The element `index` of a tensor's bytes, as a number's shortest text.
std::string element_text(DType dtype, std::span<const std::byte> bytes, std::uint64_t index);

// Class id when labels are whole numbers, one per sample.
std::optional<std::int64_t> class_id(const ShardReader& reader, std::uint64_t sample);
// The row of `labels`: one number, or several joined by `separator`. Empty when there is no such column.
std::string label_row_text(const ShardReader& reader, std::uint64_t sample, char separator);
// What a column has for a sample: its text, or its numbers, row by row, joined by spaces.
std::string column_text(const ShardReader& reader, const Column& column, std::uint64_t sample);
// The class name where there is one, else the row.
std::string label_name(const Source& source, const ShardReader& reader, std::uint64_t sample);

// [3, 224, 224]
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace shard::ctl
