#include "convert/annotations/label_column.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

#include "base/text/quote.hpp"
#include "convert/sources/number_text.hpp"

namespace shard::convert {

namespace {

[[noreturn]] void refuse_label(const LabelField& field, const std::string& file, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: line {}: {} {}", file, field.line, quoted_excerpt(field.text), why));
}

// Also one that is too large or too small for a double.
bool is_number_text(std::string_view text) {
  if (is_whole_text(text)) return true;
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

}  // namespace

LabelKind label_kind(std::span<const LabelField> fields, const std::string& file) {
  std::size_t whole = 0;
  std::size_t numbers = 0;  // the whole ones too
  const LabelField* first_fraction = nullptr;
  const LabelField* first_word = nullptr;
  for (const LabelField& field : fields) {
    const auto value = parse_number<double>(field.text);
    if (value && !std::isfinite(*value))
      refuse_label(field, file,
                   "is not a finite number: leave the cell empty if the image has no label (it becomes a "
                   "reject), or give the class another name");
    if (is_whole_text(field.text))
      ++whole;
    else if (is_number_text(field.text))
      first_fraction = first_fraction == nullptr ? &field : first_fraction;
    else
      first_word = first_word == nullptr ? &field : first_word;
    if (is_number_text(field.text)) ++numbers;
  }
  if (first_word != nullptr && 2 * numbers < fields.size()) return LabelKind::names;
  if (first_word != nullptr)
    refuse_label(*first_word, file,
                 fmt::format("is not a number, but {} of the {} labels are: correct it, or leave the cell "
                             "empty (the image becomes a reject). If all are names of classes, put a letter "
                             "in front of the numbers",
                             numbers, fields.size()));
  if (first_fraction != nullptr && 2 * whole < fields.size()) return LabelKind::values;
  if (first_fraction != nullptr)
    refuse_label(*first_fraction, file,
                 fmt::format("is not a whole number, but {} of the {} labels are: correct it, or write the "
                             "others with a fraction (3.0) if the labels are numbers of float32",
                             whole, fields.size()));
  for (const LabelField& field : fields)
    if (!parse_number<std::int64_t>(field.text))
      refuse_label(field, file,
                   "is beyond 64 bits with a sign: labels are whole numbers from -2^63 to 2^63 - 1. Number "
                   "the classes, and store these with `columns` NAME:u64 (or NAME:text)");
  return LabelKind::whole;
}

float label_value(const LabelField& field, const std::string& file) {
  const auto value = parse_number<float>(field.text);
  if (!value || !std::isfinite(*value)) refuse_label(field, file, "is not a finite number of float32");
  if (is_whole_text(field.text) && !is_exactly(field.text, static_cast<double>(*value)))
    refuse_label(field, file,
                 "is a whole number that float32 cannot hold: store it with `columns` NAME:i64, or write it "
                 "with a fraction (.0) if it may be rounded");
  return *value;
}

}  // namespace shard::convert
