// Rows of a Writer: checked when they are added, decoded and stored by its threads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "convert/engine/writer_impl.hpp"
#include "shard/image/wide.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

// Of a path that systems know, four times. Tables and receipts have it in each row.
constexpr std::size_t kMaxKeyBytes = 16'384;

}  // namespace

std::uint64_t bytes_of(const WriterRow& row) {
  std::uint64_t bytes = row.image.size() + row.key.size();
  for (const auto& column : row.columns) bytes += column.size();
  for (const auto& image : row.images) bytes += image.size();
  return bytes;
}

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

void Writer::Impl::check(const WriterRow& row) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(row.key), why));
  };
  if (row.key.empty()) throw Error(ErrorCode::invalid_argument, "a row has an empty key");
  if (row.key.size() > kMaxKeyBytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the key {} has {} bytes: at most {}", quoted_excerpt(row.key), row.key.size(),
                            kMaxKeyBytes));
  check_columns_of(row);
  if (row.images.size() != spec.fields.size())
    refuse(fmt::format("{} further images, but the data set has {} such fields", row.images.size(),
                       spec.fields.size()));
  for (std::size_t i = 0; i < row.images.size(); ++i)
    if (row.images[i].size() != spec.fields[i].spec.size_bytes())
      refuse(fmt::format("field {} has {} bytes, but {} has {}", quoted(spec.fields[i].name),
                         row.images[i].size(), to_string(spec.fields[i]), spec.fields[i].spec.size_bytes()));
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

void Writer::Impl::decode(WriterTask& task, WriterTools& tools, InputRow& input, image::WarningSet& found) {
  const WriterRow& row = task.row;
  if (options.tensor) {
    input.size_bytes = row.image.size();
    input.digest = xxh3(row.image);
    std::copy(row.image.begin(), row.image.end(), tools.sample.begin());
    return;
  }
  if (row.pixels && row.file.empty()) {
    input.size_bytes = row.image.size();
    input.digest = xxh3(row.image);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(row.image.data());
    const Pixels& pixels = *row.pixels;
    const std::size_t count = std::size_t{pixels.width} * pixels.height;
    if (count > options.max_pixels)
      throw Error(ErrorCode::unsupported,
                  fmt::format("has {} pixels, more than {}", count, options.max_pixels));
    // Samples with channels of their own have those of the pixels, but for alpha where they are not four.
    const bool wide = options.preprocess.wide();
    const std::uint32_t kept =
        pixels.channels == 4 && options.sample_spec().channels != 4 ? 3 : pixels.channels;
    const std::uint32_t wanted = wide ? kept : 3;
    if (pixels.channels != wanted) {
      tools.rgb.resize(count * wanted);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < wanted; ++c)
          tools.rgb[wanted * i + c] = bytes[pixels.channels == 1 ? i : pixels.channels * i + c];
      bytes = tools.rgb.data();
    }
    if (wide)
      return tools.preprocessor.run(image::WideView{reinterpret_cast<const std::byte*>(bytes), DType::u8,
                                                    wanted, pixels.width, pixels.height},
                                    tools.sample);
    tools.preprocessor.run({bytes, pixels.width, pixels.height, std::size_t{pixels.width} * 3}, tools.sample);
    return;
  }
  const std::span<const std::byte> file =
      row.file.empty() ? std::span<const std::byte>(row.image) : tools.reader.read(row.file.string());
  input.size_bytes = file.size();
  input.digest = xxh3(file);
  found = tools.preprocessor.run_file(tools.decoder, file, tools.decode, tools.sample);
}

void Writer::Impl::convert(WriterTask& task, WriterTools& tools) {
  WriterShard& shard = *task.shard;
  InputRow& input = *task.input;
  input.key = task.row.key;
  image::WarningSet found;
  try {
    decode(task, tools, input, found);
  } catch (const Error& failed) {
    const bool ours = failed.code() == ErrorCode::cancelled || failed.code() == ErrorCode::invalid_argument ||
                      (failed.code() == ErrorCode::resource && !input.digest &&
                       dynamic_cast<const UnreadableInput*>(&failed) == nullptr);
    if (ours) throw;
    const std::string reason = reject_reason(failed);
    if (options.on_error == OnError::fail)
      throw Error(ErrorCode::corrupt, fmt::format("{}: {} (`on_error` fail)", quoted_key(input.key), reason));
    shard.writer.skip(task.index);
    const std::lock_guard lock(shard.mutex);
    shard.rejects.emplace_back(task.index, Reject{input.key, escape_key(reason)});
    return;
  }
  tools.columns.assign(task.row.columns.begin(), task.row.columns.end());
  tools.images.assign(task.row.images.begin(), task.row.images.end());
  shard.writer.put(task.index, input.key, tools.columns, tools.sample, tools.images);
  ++shard.stored;
  if (found.empty()) return;
  const std::lock_guard lock(shard.mutex);
  shard.warnings.add(found);
}

void Writer::Impl::work() noexcept {
  try {
    WriterTools tools(options, memory, stop);
    std::unique_lock lock(mutex);
    for (;;) {
      has_work.wait(lock, [&] { return stop || !queue.empty(); });
      if (stop) return;
      WriterTask task = std::move(queue.front());
      queue.pop_front();
      queue_bytes -= bytes_of(task.row);
      lock.unlock();
      has_room.notify_all();
      convert(task, tools);
      task.row = WriterRow();
      lock.lock();
      ahead[task.number - handled] = true;
      const bool oldest = task.number == handled;
      while (!ahead.empty() && ahead.front()) {
        ahead.pop_front();
        ++handled;
      }
      if (oldest) has_room.notify_all();
      if (++task.shard->done == task.shard->added && task.shard->full) may_publish.notify_all();
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

void Writer::Impl::publish(WriterShard& shard) {
  Receipt receipt;
  if (shard.stored > 0)
    receipt.shard = shard.writer.publish();
  else
    receipt.shard.file = shard_name(shard.shard);
  std::sort(shard.rejects.begin(), shard.rejects.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [row, reject] : shard.rejects) receipt.rejects.push_back(std::move(reject));
  receipt.warnings = shard.warnings;
  for (const InputRow& row : shard.rows) receipt.inputs += serialize_row(row);
  replace_file(receipt_path(options.out, shard.shard), serialize_receipt(receipt, record, shard.shard));
}

// In order, so that the shards of a run that is stopped are the first ones.
void Writer::Impl::publish_loop() noexcept {
  try {
    std::unique_lock lock(mutex);
    for (;;) {
      may_publish.wait(lock, [&] {
        return stop || (!open.empty() && open.front()->full && open.front()->done == open.front()->added);
      });
      if (stop) return;
      WriterShard& shard = *open.front();
      lock.unlock();
      const Stopwatch watch;
      publish(shard);
      lock.lock();
      summary.stages.publish += watch.seconds();
      summary.converted += shard.stored;
      for (const InputRow& row : shard.rows) summary.bytes_read += row.size_bytes.value_or(0);
      ++summary.converted_shards;
      open.pop_front();
      has_room.notify_all();
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

}  // namespace shard::convert
