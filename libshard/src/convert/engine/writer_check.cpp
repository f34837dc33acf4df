// The rows that a Writer takes: each is checked when it is added.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "convert/engine/writer_impl.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

// Of a path that systems know, four times. Tables and receipts have it in each row.
constexpr std::size_t kMaxKeyBytes = 16'384;

}  // namespace

// What the row takes in the head of its shard.
std::uint64_t Writer::Impl::head_bytes_of(const WriterRow& row, const std::string& key) const {
  std::uint64_t bytes = head_row + key.size();
  for (std::size_t i = 0; i < row.columns.size(); ++i)
    if (spec.columns[i].kind != ColumnKind::fixed) bytes += row.columns[i].size();
  if (bytes > kMaxHeadRowBytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: its key and columns have {} bytes: a shard holds {} at most",
                            quoted(row.key), bytes, kMaxHeadRowBytes));
  return bytes;
}

void Writer::Impl::check_columns_of(const WriterRow& row) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(row.key), why));
  };
  if (row.columns.size() != spec.columns.size())
    refuse(fmt::format("{} columns, but the data set has {}", row.columns.size(), spec.columns.size()));
  for (std::size_t i = 0; i < row.columns.size(); ++i) {
    const ColumnSpec& column = spec.columns[i];
    const std::uint64_t bytes = row.columns[i].size();
    const bool fits =
        column.kind == ColumnKind::fixed ? bytes == column.row_bytes() : bytes % column.row_bytes() == 0;
    if (!fits)
      refuse(fmt::format("column {} has {} bytes, but a row is {} of {} bytes", quoted(column.name), bytes,
                         to_string(column), column.row_bytes()));
    if (column.kind == ColumnKind::text && !is_utf8(as_text(row.columns[i])))
      refuse(fmt::format("the text of column {} is not UTF-8", quoted(column.name)));
  }
  const ColumnSpec& labels = spec.columns.front();
  if (!options.classes.empty() && labels.dtype == DType::i64 && labels.row_shape.empty()) {
    const auto label = static_cast<std::int64_t>(load_u64(row.columns.front(), 0));
    if (label < 0 || static_cast<std::uint64_t>(label) >= options.classes.size())
      refuse(fmt::format("label {}, but there are {} classes", label, options.classes.size()));
  }
}

image::Size Writer::Impl::size_of_image(const WriterRow& row, std::size_t field) const {
  const SampleSpec& of = spec.fields[field].spec;
  if (!of.is_free()) return {of.width, of.height};
  return field < row.image_sizes.size() ? row.image_sizes[field] : image::Size{};
}

void Writer::Impl::check(const WriterRow& row) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(row.key), why));
  };
  if (row.key.empty()) throw Error(ErrorCode::invalid_argument, "a row has an empty key");
  if (row.key.size() > kMaxKeyBytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the key {} has {} bytes: at most {}", quoted_excerpt(row.key), row.key.size(),
                            kMaxKeyBytes));
  if (row.file.native().find('\0') != std::string::npos)
    refuse(fmt::format("the path {} has a zero byte, and no file has such a name: give the path without it",
                       quoted(row.file)));
  check_columns_of(row);
  if (row.images.size() != spec.fields.size())
    refuse(fmt::format("{} further images, but the data set has {} such fields", row.images.size(),
                       spec.fields.size()));
  for (std::size_t i = 0; i < row.images.size(); ++i) {
    SampleSpec of = spec.fields[i].spec;
    if (of.is_free()) {
      const image::Size size = size_of_image(row, i);
      of = of.sized(size.height, size.width);
      if (size == image::Size{})
        refuse(fmt::format("field {} has samples of any size: give the rows and columns of this one",
                           quoted(spec.fields[i].name)));
      of.check();
    }
    if (row.images[i].size() != of.size_bytes())
      refuse(fmt::format("field {} has {} bytes, but {} of {} rows and {} columns has {}",
                         quoted(spec.fields[i].name), row.images[i].size(), to_string(spec.fields[i]),
                         of.height, of.width, of.size_bytes()));
  }
  if (options.tensor && (row.pixels || !row.file.empty() || row.image.size() != options.tensor->size_bytes()))
    refuse(fmt::format("the sample has {} bytes, but the samples are tensors of {}: {} [{}]",
                       row.image.size(), options.tensor->size_bytes(), to_string(options.tensor->dtype),
                       fmt::join(options.tensor->shape(), ", ")));
  if (!row.pixels) return;
  const Pixels& pixels = *row.pixels;
  if (pixels.width == 0 || pixels.height == 0 ||
      (pixels.channels != 1 && pixels.channels != 3 && pixels.channels != 4) ||
      row.image.size() != std::uint64_t{pixels.width} * pixels.height * pixels.channels)
    refuse(fmt::format("{} bytes are not {}x{} pixels of 1, 3 or 4 channels (channels: {})", row.image.size(),
                       pixels.width, pixels.height, pixels.channels));
}

}  // namespace shard::convert
