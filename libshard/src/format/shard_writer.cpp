#include "shard/shard_writer.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/file_io.hpp"
#include "base/publish.hpp"
#include "base/quote.hpp"
#include "base/temp_file.hpp"
#include "base/utf8.hpp"
#include "format/shard_profile.hpp"
#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kGuessedKeyBytes = 48;
constexpr std::size_t kMoveBytes = std::size_t{4} << 20;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

// Moves [from, from + size) of a file to `to`; the ranges may overlap.
void move_range(int fd, std::uint64_t from, std::uint64_t to, std::uint64_t size,
                std::vector<std::byte>& buffer, const std::filesystem::path& path) {
  if (from == to) return;
  buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, kMoveBytes)));
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t step = std::min<std::uint64_t>(size - done, kMoveBytes);
    const std::uint64_t at = to < from ? done : size - done - step;  // towards the overlap last
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(step));
    pread_all(fd, piece, from + at, path);
    pwrite_all(fd, piece, to + at, path);
    done += step;
  }
}

}  // namespace

// The states of a planned sample: open, then claimed by the one call that may store it, then stored or
// skipped. With codec none, its row is written to its planned place at once. With other codecs, its frame
// follows the frames of all samples before it. Frames that come too early wait in `waiting`, and one thread
// at a time (`draining`) writes those that can be written.
struct ShardWriter::Impl {
  enum class State : std::uint8_t { open, claimed, stored, skipped };

  ShardWriterOptions options;
  Codec codec;
  std::uint64_t planned;
  std::uint64_t columns_bytes = 0;  // one row of each fixed column
  TempFile file;
  std::uint64_t images_begin = 0;  // planned; the published shard's may differ

  std::mutex
      mutex;  // guards all below, except that the call which claimed a sample owns the sample's elements
  std::vector<State> states;
  std::uint64_t done = 0;
  std::exception_ptr failure;
  bool published = false;

  std::vector<std::string> keys;
  std::vector<std::byte> columns;  // [planned][columns_bytes]
  // Of each column that is not fixed: [planned], the bytes of its rows. Empty for the others.
  std::vector<std::vector<std::vector<std::byte>>> ragged;
  std::vector<std::uint64_t> checksums;
  std::vector<std::uint64_t> frame_checksums;
  std::vector<std::uint64_t> frame_sizes;

  std::map<std::uint64_t, std::vector<std::byte>> waiting;
  std::uint64_t next_frame = 0;  // first planned sample whose frame has not been written
  std::uint64_t frames_bytes = 0;
  bool draining = false;

  Impl(const std::filesystem::path& path, std::uint64_t planned_samples, ShardWriterOptions&& opts);

  bool framed() const noexcept { return options.codec.kind != CodecSpec::Kind::none; }
  const std::filesystem::path& path() const noexcept { return file.target(); }

  void check_size(std::uint64_t index, std::string_view what, std::size_t size, std::uint64_t expected) const;
  void check_row(std::uint64_t index, const ColumnSpec& column, std::span<const std::byte> row) const;
  void claim(std::uint64_t index);
  void finish(std::uint64_t index, State state);
  void remember_failure() noexcept;
  void drain(std::unique_lock<std::mutex>& lock);
  void store_frame(std::uint64_t index, std::vector<std::byte>&& frame);

  std::uint64_t real_key_bytes() const;
  // Of each column that is not fixed.
  std::vector<std::uint64_t> real_rows() const;
  void write_ragged(std::vector<std::byte>& head, const HeadLayout& layout, std::size_t column) const;
  void place_rows(std::uint64_t begin, std::uint64_t samples);
  void place_frames(std::uint64_t begin);
  std::uint64_t write_head(const HeadLayout& layout, std::uint64_t samples);
};

ShardWriter::Impl::Impl(const std::filesystem::path& path, std::uint64_t planned_samples,
                        ShardWriterOptions&& opts)
    : options(std::move(opts)),
      codec(options.codec, options.spec, options.normalization),
      planned(planned_samples),
      file(path) {
  for (const ColumnSpec& column : options.columns)
    if (column.kind == ColumnKind::fixed) columns_bytes += column.row_bytes();
  const std::uint64_t key_bytes =
      options.planned_key_bytes != 0 ? options.planned_key_bytes : planned * kGuessedKeyBytes;
  const auto images = checked_mul(planned, options.spec.size_bytes());
  const auto column_total = checked_mul(planned, columns_bytes);
  if (!images || *images > std::uint64_t{1} << 62 || !column_total || *column_total > kMaxHeadBytes) {
    refuse(fmt::format("shard {}: {} samples of {} bytes are too much for one shard", quoted(path), planned,
                       options.spec.size_bytes()));
  }
  options.planned_rows.resize(options.columns.size());
  images_begin =
      lay_out_head(options, planned, options.planned_rows, key_bytes, framed() ? *images / 2 : *images)
          .images_begin;
  if (!framed() && options.preallocate) preallocate(file.fd(), images_begin + *images, path);
  const auto count = static_cast<std::size_t>(planned);
  states.resize(count);
  keys.resize(count);
  checksums.resize(count);
  columns.resize(static_cast<std::size_t>(*column_total));
  ragged.resize(options.columns.size());
  for (std::size_t c = 0; c < options.columns.size(); ++c)
    if (options.columns[c].kind != ColumnKind::fixed) ragged[c].resize(count);
  if (framed()) {
    frame_checksums.resize(count);
    frame_sizes.resize(count);
  }
}

void ShardWriter::Impl::claim(std::uint64_t index) {
  if (index >= planned)
    refuse(fmt::format("sample {} of shard {}: {} are planned", index, quoted(path()), planned));
  const std::lock_guard lock(mutex);
  if (failure) std::rethrow_exception(failure);
  if (published) refuse(fmt::format("sample {} of shard {}: the shard was published", index, quoted(path())));
  State& state = states[static_cast<std::size_t>(index)];
  if (state != State::open)
    refuse(fmt::format("sample {} of shard {} was stored or skipped before", index, quoted(path())));
  state = State::claimed;
}

void ShardWriter::Impl::finish(std::uint64_t index, State state) {
  std::unique_lock lock(mutex);
  states[static_cast<std::size_t>(index)] = state;
  ++done;
  if (framed()) drain(lock);
}

void ShardWriter::Impl::remember_failure() noexcept {
  const std::lock_guard lock(mutex);
  if (!failure) failure = std::current_exception();
}

// Writes the frames before which no other frame is missing. The file is written without the lock, so that
// other threads can add their frames meanwhile.
void ShardWriter::Impl::drain(std::unique_lock<std::mutex>& lock) {
  if (draining) return;  // that thread will look again before it leaves
  draining = true;
  while (!failure && next_frame < planned) {
    const State state = states[static_cast<std::size_t>(next_frame)];
    if (state == State::skipped) {
      ++next_frame;
      continue;
    }
    if (state != State::stored) break;
    const auto node = waiting.extract(next_frame++);
    const std::vector<std::byte>& frame = node.mapped();
    const std::uint64_t at = images_begin + frames_bytes;
    frames_bytes += frame.size();
    lock.unlock();
    std::exception_ptr error;
    try {
      pwrite_all(file.fd(), frame, at, path());
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !failure) failure = error;
  }
  draining = false;
  if (failure) std::rethrow_exception(failure);
}

void ShardWriter::Impl::store_frame(std::uint64_t index, std::vector<std::byte>&& frame) {
  frame_checksums[static_cast<std::size_t>(index)] = xxh3(frame);
  frame_sizes[static_cast<std::size_t>(index)] = frame.size();
  const std::lock_guard lock(mutex);
  waiting.emplace(index, std::move(frame));
}

std::uint64_t ShardWriter::Impl::real_key_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::string& key : keys) bytes += key.size();
  return bytes;
}

std::vector<std::uint64_t> ShardWriter::Impl::real_rows() const {
  std::vector<std::uint64_t> rows(options.columns.size());
  for (std::size_t c = 0; c < rows.size(); ++c) {
    for (const std::vector<std::byte>& of : ragged[c]) rows[c] += of.size();
    rows[c] /= options.columns[c].row_bytes();
  }
  return rows;
}

void ShardWriter::Impl::write_ragged(std::vector<std::byte>& head, const HeadLayout& layout,
                                     std::size_t column) const {
  const ColumnSpec& spec = options.columns[column];
  auto offsets_at = static_cast<std::size_t>(layout.file_begin(offsets_name(spec)));
  auto at = static_cast<std::size_t>(layout.file_begin(spec.name));
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < planned; ++i) {
    if (states[i] != State::stored) continue;
    const std::vector<std::byte>& of = ragged[column][i];
    std::copy(of.begin(), of.end(), head.begin() + static_cast<std::ptrdiff_t>(at));
    at += of.size();
    rows += of.size() / spec.row_bytes();
    store_u64(head, offsets_at += 8, rows);
  }
}

// Rows stand at images_begin + planned index * row: close the gaps of skipped samples, and start at `begin`.
void ShardWriter::Impl::place_rows(std::uint64_t begin, std::uint64_t samples) {
  const std::uint64_t row = options.spec.size_bytes();
  const std::uint64_t target = std::min(begin, images_begin);  // closing gaps only moves down
  std::vector<std::byte> buffer;
  std::uint64_t placed = 0;
  for (std::uint64_t i = 0; i < planned;) {
    std::uint64_t run = 0;  // neighbours move together
    while (i + run < planned && states[static_cast<std::size_t>(i + run)] == State::stored) ++run;
    if (run > 0)
      move_range(file.fd(), images_begin + i * row, target + placed * row, run * row, buffer, path());
    placed += run;
    i += run + 1;
  }
  if (target != begin) move_range(file.fd(), target, begin, samples * row, buffer, path());
}

void ShardWriter::Impl::place_frames(std::uint64_t begin) {
  std::vector<std::byte> buffer;
  move_range(file.fd(), images_begin, begin, frames_bytes, buffer, path());
}

// Fills and writes everything before the images; returns its digest.
std::uint64_t ShardWriter::Impl::write_head(const HeadLayout& layout, std::uint64_t samples) {
  std::vector<std::byte> head(static_cast<std::size_t>(layout.images_begin));
  std::memcpy(head.data(), layout.text.data(), layout.text.size());
  const auto at = [&](std::string_view tensor) {
    return static_cast<std::size_t>(layout.file_begin(tensor));
  };
  const std::size_t checksums_at = at("checksums");
  const std::size_t key_offsets_at = at("key_offsets");
  const std::size_t keys_at = at("keys");
  std::size_t sample = 0;
  std::size_t key_end = 0;
  std::uint64_t frame_end = 0;
  for (std::size_t i = 0; i < planned; ++i) {
    if (states[i] != State::stored) continue;
    store_u64(head, checksums_at + sample * 8, checksums[i]);
    std::memcpy(head.data() + keys_at + key_end, keys[i].data(), keys[i].size());
    key_end += keys[i].size();
    store_u64(head, key_offsets_at + (sample + 1) * 8, key_end);
    if (framed()) {
      frame_end += frame_sizes[i];
      store_u64(head, at("frame_offsets") + (sample + 1) * 8, frame_end);
      store_u64(head, at("frame_checksums") + sample * 8, frame_checksums[i]);
    }
    const std::byte* row = columns.data() + i * columns_bytes;
    for (const ColumnSpec& column : options.columns) {
      if (column.kind != ColumnKind::fixed) continue;
      const auto size = static_cast<std::size_t>(column.row_bytes());
      std::memcpy(head.data() + at(column.name) + sample * size, row, size);
      row += size;
    }
    ++sample;
  }
  if (sample != samples) throw Error(ErrorCode::invalid_argument, "sample count changed while publishing");
  for (std::size_t c = 0; c < options.columns.size(); ++c)
    if (options.columns[c].kind != ColumnKind::fixed) write_ragged(head, layout, c);
  const std::size_t digits_at = 8 + find_digest_digits(std::string_view(layout.text).substr(8)).value();
  const std::uint64_t digest = digest_head(head, digits_at);
  std::memcpy(head.data() + digits_at, to_hex(digest).data(), kDigestDigits);
  pwrite_all(file.fd(), head, 0, path());
  return digest;
}

ShardWriter::ShardWriter(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ShardWriter::ShardWriter(ShardWriter&&) noexcept = default;
ShardWriter& ShardWriter::operator=(ShardWriter&&) noexcept = default;
ShardWriter::~ShardWriter() = default;

ShardWriter ShardWriter::create(const std::filesystem::path& path, std::uint64_t planned,
                                ShardWriterOptions options) {
  check_writer_options(options);
  if (planned < 1 || planned > kMaxSamples)
    refuse(fmt::format("{} samples planned for shard {}: it must be 1 to {}", planned, quoted(path),
                       kMaxSamples));
  std::error_code error;
  if (!options.may_exist && std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    refuse(fmt::format("shard {} exists: a published shard is not overwritten", quoted(path)));
  }
  return ShardWriter(std::make_unique<Impl>(path, planned, std::move(options)));
}

void ShardWriter::Impl::check_size(std::uint64_t index, std::string_view what, std::size_t size,
                                   std::uint64_t expected) const {
  if (size != expected)
    refuse(fmt::format("sample {} of shard {}: {} of {} bytes: they must be {}", index, quoted(path()), what,
                       size, expected));
}

void ShardWriter::Impl::check_row(std::uint64_t index, const ColumnSpec& column,
                                  std::span<const std::byte> row) const {
  if (column.kind == ColumnKind::fixed)
    return check_size(index, fmt::format("column {}", quoted(column.name)), row.size(), column.row_bytes());
  if (row.size() % column.row_bytes() != 0)
    refuse(fmt::format("sample {} of shard {}: column {} of {} bytes: a multiple of {} is needed", index,
                       quoted(path()), quoted(column.name), row.size(), column.row_bytes()));
  if (column.kind == ColumnKind::text && !is_utf8(as_text(row)))
    refuse(fmt::format("sample {} of shard {}: the text of column {} is not UTF-8", index, quoted(path()),
                       quoted(column.name)));
}

void ShardWriter::put(std::uint64_t index, std::string_view key, std::span<const std::byte> columns,
                      std::span<const std::byte> sample) {
  impl_->check_size(index, "columns", columns.size(), impl_->columns_bytes);
  std::vector<std::span<const std::byte>> rows;
  for (const ColumnSpec& column : impl_->options.columns) {
    if (column.kind != ColumnKind::fixed)
      refuse(fmt::format("sample {} of shard {}: column {} is {}: give the rows of each column", index,
                         quoted(impl_->path()), quoted(column.name), to_string(column.kind)));
    const auto size = static_cast<std::size_t>(column.row_bytes());
    rows.push_back(columns.first(size));
    columns = columns.subspan(size);
  }
  put(index, key, rows, sample);
}

void ShardWriter::put(std::uint64_t index, std::string_view key,
                      std::span<const std::span<const std::byte>> rows, std::span<const std::byte> sample) {
  Impl& self = *impl_;
  const std::vector<ColumnSpec>& columns = self.options.columns;
  self.check_size(index, "image", sample.size(), self.options.spec.size_bytes());
  if (rows.size() != columns.size())
    refuse(fmt::format("sample {} of shard {}: rows of {} columns: it has {}", index, quoted(self.path()),
                       rows.size(), columns.size()));
  for (std::size_t c = 0; c < columns.size(); ++c) self.check_row(index, columns[c], rows[c]);
  unescape_key(key);  // throws unless it is an escaped key
  self.claim(index);
  try {
    const auto i = static_cast<std::size_t>(index);
    self.keys[i] = key;
    auto at = self.columns.begin() + static_cast<std::ptrdiff_t>(i * self.columns_bytes);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].kind == ColumnKind::fixed)
        at = std::copy(rows[c].begin(), rows[c].end(), at);
      else
        self.ragged[c][i].assign(rows[c].begin(), rows[c].end());
    }
    self.checksums[i] = xxh3(sample);
    if (self.framed()) {
      self.store_frame(index, self.codec.encode(sample));
    } else {
      pwrite_all(self.file.fd(), sample, self.images_begin + index * sample.size(), self.path());
    }
    self.finish(index, Impl::State::stored);
  } catch (...) {
    self.remember_failure();
    throw;
  }
}

void ShardWriter::skip(std::uint64_t index) {
  impl_->claim(index);
  impl_->finish(index, Impl::State::skipped);
}

ShardSummary ShardWriter::publish(const ShardSummary* expected) {
  Impl& self = *impl_;
  const std::lock_guard lock(self.mutex);
  if (self.failure) std::rethrow_exception(self.failure);
  if (self.published) refuse(fmt::format("shard {} was published before", quoted(self.path())));
  if (self.done != self.planned)
    refuse(fmt::format("shard {}: {} of {} samples are neither stored nor skipped", quoted(self.path()),
                       self.planned - self.done, self.planned));
  const auto samples =
      static_cast<std::uint64_t>(std::count(self.states.begin(), self.states.end(), Impl::State::stored));
  if (samples == 0)
    refuse(fmt::format("shard {}: every sample was skipped, a shard has at least one", quoted(self.path())));
  try {
    const std::uint64_t images_bytes =
        self.framed() ? self.frames_bytes : samples * self.options.spec.size_bytes();
    const HeadLayout layout =
        lay_out_head(self.options, samples, self.real_rows(), self.real_key_bytes(), images_bytes);
    if (self.framed()) {
      self.place_frames(layout.images_begin);
    } else {
      self.place_rows(layout.images_begin, samples);
    }
    const std::uint64_t digest = self.write_head(layout, samples);
    const std::uint64_t size_bytes = layout.images_begin + images_bytes;
    truncate(self.file.fd(), size_bytes, self.path());
    const ShardSummary summary{self.path().filename().native(), samples, size_bytes, digest};
    if (expected != nullptr && summary != *expected)
      throw Error(
          ErrorCode::corrupt,
          fmt::format("shard {}, made again, has {} samples, {} bytes and head digest {}; {}, {} and {} "
                      "are expected",
                      quoted(self.path()), samples, size_bytes, to_hex(digest), expected->samples,
                      expected->size_bytes, to_hex(expected->head_digest)));
    if (self.options.may_exist)
      self.file.publish_same();
    else
      self.file.publish();
    self.published = true;
    return summary;
  } catch (...) {
    self.failure = std::current_exception();
    self.file.discard();
    throw;
  }
}

std::uint64_t remove_stale_temporaries(const std::filesystem::path& folder) {
  return remove_temporaries(folder);
}

}  // namespace shard
