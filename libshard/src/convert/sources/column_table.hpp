// The values of columns for all inputs of a conversion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/dataset_spec.hpp"

namespace shard::convert {

class ColumnTable {
 public:
  explicit ColumnTable(ColumnSpec spec) : spec_(std::move(spec)) {}

  const ColumnSpec& spec() const noexcept { return spec_; }
  // The rows of the next input. Those of a fixed column are one row.
  void add(std::span<const std::byte> rows);
  // The number of inputs that have their rows.
  std::size_t size() const noexcept;
  // Of all rows.
  std::size_t size_bytes() const noexcept { return values_.size(); }
  std::span<const std::byte> rows(std::size_t input) const;
  // Rows of the inputs [first, first + count).
  std::uint64_t row_count(std::size_t first, std::size_t count) const;
  // Over all values and where those of each input begin.
  std::uint64_t digest() const;

 private:
  ColumnSpec spec_;
  std::vector<std::byte> values_;
  std::vector<std::uint64_t> ends_;  // of each input, in values_; not used if the column is fixed
};

// The rows that a field of a table of text stands for. Numbers are separated by spaces: one for each element
// of a row, and for each row if the column is ragged; no numbers are no rows. Throws invalid_argument, saying
// what is wrong with the field.
std::vector<std::byte> parse_rows(const ColumnSpec& column, std::string_view field);

}  // namespace shard::convert
