// What the labels of a table are: whole numbers, numbers with fractions, or names of classes.
// Pure functions of their text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shard/error.hpp"

namespace shard::convert {

enum class LabelKind : std::uint8_t { whole, values, names };

struct LabelField {
  std::uint64_t line = 0;
  std::string_view text;  // without blanks at its ends, not empty
};

// Decided by all labels together, and only if they leave no doubt. Throws invalid_argument, naming `file` and
// the first line that does not fit: labels most of which are numbers and one is a word; most of which are
// whole and one has a fraction; a whole number beyond 64 bits; "nan" and "inf".
LabelKind label_kind(std::span<const LabelField> fields, const std::string& file);

// One value of a label as float32. Throws invalid_argument, naming `file` and line: it is none that float32
// holds, which whole numbers beyond 2^24 may not be.
float label_value(const LabelField& field, const std::string& file);

}  // namespace shard::convert
