#include "convert/sources/column_table.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/text/json.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "convert/sources/number_text.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr std::string_view kSpaces = " \t";

template <class T>
std::optional<T> number_from(std::string_view text) {
  const auto value = parse_number<T>(text);
  if constexpr (std::floating_point<T>) {
    if (value && !std::isfinite(*value)) return std::nullopt;
  }
  return value;
}

// The bits of a number, or nothing if it is none of this type.
template <class T>
std::optional<std::uint64_t> integer_bits(std::string_view text) {
  const auto value = number_from<T>(text);
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(*value));
}

std::optional<std::uint64_t> half_bits(std::string_view text, std::uint16_t (*round)(float) noexcept,
                                       float (*widen)(std::uint16_t) noexcept) {
  const auto value = number_from<float>(text);
  if (!value || !std::isfinite(widen(round(*value)))) return std::nullopt;
  return round(*value);
}

std::optional<std::uint64_t> element_bits(DType dtype, std::string_view text) {
  switch (dtype) {
    case DType::boolean:
      if (text == "0" || text == "false") return 0;
      if (text == "1" || text == "true") return 1;
      return std::nullopt;
    case DType::u8:
      return integer_bits<std::uint8_t>(text);
    case DType::i8:
      return integer_bits<std::int8_t>(text);
    case DType::u16:
      return integer_bits<std::uint16_t>(text);
    case DType::i16:
      return integer_bits<std::int16_t>(text);
    case DType::u32:
      return integer_bits<std::uint32_t>(text);
    case DType::i32:
      return integer_bits<std::int32_t>(text);
    case DType::u64:
      return integer_bits<std::uint64_t>(text);
    case DType::i64:
      return integer_bits<std::int64_t>(text);
    case DType::f16:
      return half_bits(text, f32_to_f16, f16_to_f32);
    case DType::bf16:
      return half_bits(text, f32_to_bf16, bf16_to_f32);
    case DType::f32:
      if (const auto value = number_from<float>(text)) return std::bit_cast<std::uint32_t>(*value);
      return std::nullopt;
    case DType::f64:
      if (const auto value = number_from<double>(text)) return std::bit_cast<std::uint64_t>(*value);
      return std::nullopt;
  }
  return std::nullopt;
}

// What a floating-point type makes of a number with these bits.
double value_of_bits(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::f16:
      return f16_to_f32(static_cast<std::uint16_t>(bits));
    case DType::bf16:
      return bf16_to_f32(static_cast<std::uint16_t>(bits));
    case DType::f32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

template <class T>
std::string whole_numbers() {
  return fmt::format("is not a whole number of {} to {} without a point", +std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max());
}

// Why a word is no number of this type.
std::string why_unfit(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return "is not true, false, 1 or 0 (write it so)";
    case DType::u8:
      return whole_numbers<std::uint8_t>();
    case DType::i8:
      return whole_numbers<std::int8_t>();
    case DType::u16:
      return whole_numbers<std::uint16_t>();
    case DType::i16:
      return whole_numbers<std::int16_t>();
    case DType::u32:
      return whole_numbers<std::uint32_t>();
    case DType::i32:
      return whole_numbers<std::int32_t>();
    case DType::u64:
      return whole_numbers<std::uint64_t>();
    case DType::i64:
      return whole_numbers<std::int64_t>();
    default:
      return "is not a finite number";
  }
}

std::vector<std::byte> text_rows(std::string_view field) {
  if (!is_utf8(field)) throw Error(ErrorCode::invalid_argument, "text that is not UTF-8");
  const auto bytes = as_byte_span(field);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void ColumnTable::add(std::span<const std::byte> rows) {
  values_.insert(values_.end(), rows.begin(), rows.end());
  if (spec_.kind != ColumnKind::fixed) ends_.push_back(values_.size());
}

std::size_t ColumnTable::size() const noexcept {
  return spec_.kind == ColumnKind::fixed ? values_.size() / spec_.row_bytes() : ends_.size();
}

std::span<const std::byte> ColumnTable::rows(std::size_t input) const {
  if (spec_.kind == ColumnKind::fixed) {
    const auto size = static_cast<std::size_t>(spec_.row_bytes());
    return std::span(values_).subspan(input * size, size);
  }
  const std::uint64_t begin = input == 0 ? 0 : ends_[input - 1];
  return std::span(values_).subspan(begin, ends_[input] - begin);
}

std::uint64_t ColumnTable::row_count(std::size_t first, std::size_t count) const {
  if (spec_.kind == ColumnKind::fixed || count == 0) return count;
  const std::uint64_t begin = first == 0 ? 0 : ends_[first - 1];
  return (ends_[first + count - 1] - begin) / spec_.row_bytes();
}

std::uint64_t ColumnTable::digest() const {
  Xxh3Stream stream;
  stream.update(fmt::format("{} {}\n", json_quote(spec_.name), to_string(spec_)));
  stream.update(std::as_bytes(std::span(ends_)));
  stream.update(values_);
  return stream.digest();
}

std::vector<std::byte> parse_rows(const ColumnSpec& column, std::string_view field) {
  if (column.kind == ColumnKind::text) return text_rows(field);
  const std::size_t element = size_bytes(column.dtype);
  std::vector<std::byte> rows;
  for (std::size_t at = field.find_first_not_of(kSpaces); at != std::string_view::npos;) {
    const std::size_t end = std::min(field.find_first_of(kSpaces, at), field.size());
    const std::string_view word = field.substr(at, end - at);
    const auto bits = element_bits(column.dtype, word);
    if (!bits)
      throw Error(ErrorCode::invalid_argument, fmt::format("{} {}: the type is {}", quoted_excerpt(word),
                                                           why_unfit(column.dtype), to_string(column.dtype)));
    if (is_floating(column.dtype) && is_whole_text(word) &&
        !is_exactly(word, value_of_bits(column.dtype, *bits)))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} is a whole number that {} holds only as {}: choose a type that holds it, or "
                      "write it with a fraction (.0) if it may be rounded",
                      quoted_excerpt(word), to_string(column.dtype), value_of_bits(column.dtype, *bits)));
    for (std::size_t i = 0; i < element; ++i) rows.push_back(static_cast<std::byte>(*bits >> (8 * i)));
    at = field.find_first_not_of(kSpaces, end);
  }
  const std::uint64_t row = column.row_bytes();
  const bool fits = column.kind == ColumnKind::fixed ? rows.size() == row : rows.size() % row == 0;
  if (!fits)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} numbers: {}{} are needed", rows.size() / element,
                            column.kind == ColumnKind::fixed ? "" : "a multiple of ", row / element));
  return rows;
}

}  // namespace shard::convert
