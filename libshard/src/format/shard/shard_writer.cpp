#include "shard/shard_writer.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/files/temp_file.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "format/shard/sample_store.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kGuessedKeyBytes = 48;
[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

}  // namespace

struct ShardWriter::Impl {
  // The images of a further field go to a temporary file of their own, from which publish() copies them.
  struct FieldStore {
    FieldStore(const FieldSpec& field, std::uint64_t planned, const std::filesystem::path& path)
        : store(field.codec, field.spec, field.normalization, planned), file(path) {}
    SampleStore store;
    TempFile file;
  };

  ShardWriterOptions options;
  std::uint64_t planned;
  std::uint64_t columns_bytes = 0;  // one row of each fixed column
  TempFile file;

  std::mutex
      mutex;  // guards all below, except that the call which claimed a sample owns the sample's elements
  std::vector<SampleState> states;
  std::uint64_t done = 0;
  std::exception_ptr failure;
  bool published = false;

  std::vector<std::string> keys;
  std::vector<std::byte> columns;  // [planned][columns_bytes]
  // Of each column that is not fixed: [planned], the bytes of its rows. Empty for the others.
  std::vector<std::vector<std::vector<std::byte>>> ragged;
  SampleStore images;
  std::deque<FieldStore> fields;

  Impl(const std::filesystem::path& path, std::uint64_t planned_samples, ShardWriterOptions&& opts);

  const std::filesystem::path& path() const noexcept { return file.target(); }

  void check_size(std::uint64_t index, std::string_view what, std::size_t size, std::uint64_t expected) const;
  void check_sample(std::uint64_t index, const SampleStore& store, std::string_view what,
                    const SampleValues& sample) const;
  void check_row(std::uint64_t index, const ColumnSpec& column, std::span<const std::byte> row) const;
  void claim(std::uint64_t index);
  void finish(std::uint64_t index, SampleState state);
  void remember_failure() noexcept;

  std::uint64_t real_key_bytes() const;
  // Of each column that is not fixed.
  std::vector<std::uint64_t> real_rows() const;
  // When every sample was stored or skipped.
  ShardContents contents(std::uint64_t samples) const;
  void write_ragged(std::vector<std::byte>& head, const HeadLayout& layout, std::size_t column) const;
  void write_keys_and_rows(std::vector<std::byte>& head, const HeadLayout& layout) const;
  std::uint64_t write_head(const HeadLayout& layout);
  ShardSummary place_all(std::uint64_t samples);
};

ShardWriter::Impl::Impl(const std::filesystem::path& path, std::uint64_t planned_samples,
                        ShardWriterOptions&& opts)
    : options(std::move(opts)),
      planned(planned_samples),
      file(path),
      images(options.codec, options.spec, options.normalization, planned) {
  for (const ColumnSpec& column : options.columns)
    if (column.kind == ColumnKind::fixed) columns_bytes += column.row_bytes();
  const std::uint64_t key_bytes =
      options.planned_key_bytes != 0 ? options.planned_key_bytes : planned * kGuessedKeyBytes;
  const auto column_total = checked_mul(planned, columns_bytes);
  // Frames are taken for half as long as samples.
  const auto planned_bytes = [&](const SampleSpec& spec, const CodecSpec& codec) {
    const auto bytes = checked_mul(planned, spec.size_bytes());
    if (!bytes || *bytes > std::uint64_t{1} << 54 || !column_total || *column_total > kMaxHeadBytes)
      refuse(fmt::format("shard {}: {} samples of {} bytes are too much for one shard", quoted(path), planned,
                         spec.size_bytes()));
    return codec.framed(spec) ? *bytes / 2 : *bytes;
  };
  options.planned_rows.resize(options.columns.size());
  ShardContents contents{planned, key_bytes, options.planned_rows, {}, {}};
  contents.largest.resize(options.fields.size() + 1);
  contents.images_bytes.push_back(planned_bytes(options.spec, options.codec));
  for (const FieldSpec& field : options.fields)
    contents.images_bytes.push_back(planned_bytes(field.spec, field.codec));
  const HeadLayout layout = lay_out_head(options, contents);
  if (!images.framed() && options.preallocate)
    preallocate(file.fd(), layout.images_begin + contents.images_bytes.front(), path);
  // That is where they are planned to be. In the published shard they may be elsewhere.
  images.write_to(file.fd(), layout.images_begin, path);
  for (const FieldSpec& field : options.fields) {
    fields.emplace_back(field, planned, path);
    fields.back().store.write_to(fields.back().file.fd(), 0, path);
  }
  const auto count = static_cast<std::size_t>(planned);
  states.resize(count);
  keys.resize(count);
  columns.resize(static_cast<std::size_t>(*column_total));
  ragged.resize(options.columns.size());
  for (std::size_t c = 0; c < options.columns.size(); ++c)
    if (options.columns[c].kind != ColumnKind::fixed) ragged[c].resize(count);
}

void ShardWriter::Impl::claim(std::uint64_t index) {
  if (index >= planned)
    refuse(fmt::format("sample {} of shard {}: {} are planned", index, quoted(path()), planned));
  const std::lock_guard lock(mutex);
  if (failure) std::rethrow_exception(failure);
  if (published) refuse(fmt::format("sample {} of shard {}: the shard was published", index, quoted(path())));
  SampleState& state = states[static_cast<std::size_t>(index)];
  if (state != SampleState::open)
    refuse(fmt::format("sample {} of shard {} was stored or skipped before", index, quoted(path())));
  state = SampleState::claimed;
}

void ShardWriter::Impl::finish(std::uint64_t index, SampleState state) {
  std::unique_lock lock(mutex);
  states[static_cast<std::size_t>(index)] = state;
  ++done;
  images.drain(lock, states, failure);
  for (FieldStore& field : fields) field.store.drain(lock, states, failure);
  if (failure) std::rethrow_exception(failure);
}

void ShardWriter::Impl::remember_failure() noexcept {
  const std::lock_guard lock(mutex);
  if (!failure) failure = std::current_exception();
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
    if (states[i] != SampleState::stored) continue;
    const std::vector<std::byte>& of = ragged[column][i];
    std::copy(of.begin(), of.end(), head.begin() + static_cast<std::ptrdiff_t>(at));
    at += of.size();
    rows += of.size() / spec.row_bytes();
    store_u64(head, offsets_at += 8, rows);
  }
}

void ShardWriter::Impl::write_keys_and_rows(std::vector<std::byte>& head, const HeadLayout& layout) const {
  const auto at = [&](std::string_view tensor) {
    return static_cast<std::size_t>(layout.file_begin(tensor));
  };
  const std::size_t key_offsets_at = at("key_offsets");
  const std::size_t keys_at = at("keys");
  std::vector<std::size_t> columns_at;
  for (const ColumnSpec& column : options.columns) columns_at.push_back(at(column.name));
  std::size_t sample = 0;
  std::size_t key_end = 0;
  for (std::size_t i = 0; i < planned; ++i) {
    if (states[i] != SampleState::stored) continue;
    std::memcpy(head.data() + keys_at + key_end, keys[i].data(), keys[i].size());
    key_end += keys[i].size();
    store_u64(head, key_offsets_at + (sample + 1) * 8, key_end);
    const std::byte* row = columns.data() + i * columns_bytes;
    for (std::size_t c = 0; c < options.columns.size(); ++c) {
      if (options.columns[c].kind != ColumnKind::fixed) continue;
      const auto size = static_cast<std::size_t>(options.columns[c].row_bytes());
      std::memcpy(head.data() + columns_at[c] + sample * size, row, size);
      row += size;
    }
    ++sample;
  }
}

// Fills and writes everything before the images; returns its digest.
std::uint64_t ShardWriter::Impl::write_head(const HeadLayout& layout) {
  std::vector<std::byte> head(static_cast<std::size_t>(layout.head_end));
  std::memcpy(head.data(), layout.text.data(), layout.text.size());
  const auto at = [&](const std::string& tensor) {
    return static_cast<std::size_t>(layout.file_begin(tensor));
  };
  const auto write_tables = [&](const SampleStore& store, const std::string& prefix) {
    SampleStore::Tables tables{at(prefix + "checksums")};
    if (store.framed())
      tables = {tables.checksums, at(prefix + "frame_offsets"), at(prefix + "frame_checksums")};
    if (store.is_free()) tables.shapes = at(prefix + std::string(kShapes));
    if (store.has_files()) tables.jpeg_files = at(prefix + std::string(kJpegFiles));
    store.write_tables(head, tables, states);
  };
  write_keys_and_rows(head, layout);
  write_tables(images, {});
  for (std::size_t i = 0; i < fields.size(); ++i) write_tables(fields[i].store, options.fields[i].name + '.');
  for (std::size_t c = 0; c < options.columns.size(); ++c)
    if (options.columns[c].kind != ColumnKind::fixed) write_ragged(head, layout, c);
  const std::size_t digits_at = 8 + find_digest_digits(std::string_view(layout.text).substr(8)).value();
  const std::uint64_t digest = digest_head(head, digits_at);
  std::memcpy(head.data() + digits_at, to_hex(digest).data(), kDigestDigits);
  pwrite_all(file.fd(), head, 0, path());
  return digest;
}

ShardContents ShardWriter::Impl::contents(std::uint64_t samples) const {
  ShardContents contents{samples, real_key_bytes(), real_rows(), {}, {}};
  const auto add = [&](const SampleStore& store) {
    contents.images_bytes.push_back(store.stored_bytes(samples));
    contents.largest.push_back(store.largest(states));
  };
  add(images);
  for (const FieldStore& field : fields) add(field.store);
  return contents;
}

// Puts everything to its final place. The main images first: they stand where others are to be.
ShardSummary ShardWriter::Impl::place_all(std::uint64_t samples) {
  const ShardContents contents = this->contents(samples);
  const HeadLayout layout = lay_out_head(options, contents);
  images.place(file.fd(), layout.images_begin, states);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const FieldSpec& field = options.fields[i];
    fields[i].store.place(file.fd(), layout.file_begin(field_images(field)), states);
    const std::uint64_t padding_at = layout.file_begin(field_tensor(field, "padding"));
    const std::uint64_t padding = round_up(padding_at, kImagesAlignment) - padding_at;
    pwrite_all(file.fd(), std::vector<std::byte>(static_cast<std::size_t>(padding)), padding_at, path());
  }
  const std::uint64_t digest = write_head(layout);
  const std::uint64_t size_bytes = layout.images_begin + contents.images_bytes.front();
  truncate(file.fd(), size_bytes, path());
  for (FieldStore& field : fields) field.file.discard();
  ShardSummary summary{path().filename().native(), samples, size_bytes, digest};
  if (images.is_free()) summary.largest.push_back(contents.largest.front());
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].store.is_free()) summary.largest.push_back(contents.largest[i + 1]);
  return summary;
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
  if (!options.may_exist && is_present(path))
    refuse(fmt::format("shard {} exists: a published shard is not overwritten", quoted(path)));
  return ShardWriter(std::make_unique<Impl>(path, planned, std::move(options)));
}

void ShardWriter::Impl::check_size(std::uint64_t index, std::string_view what, std::size_t size,
                                   std::uint64_t expected) const {
  if (size != expected)
    refuse(fmt::format("sample {} of shard {}: {} of {} bytes: they must be {}", index, quoted(path()), what,
                       size, expected));
}

void ShardWriter::Impl::check_sample(std::uint64_t index, const SampleStore& store, std::string_view what,
                                     const SampleValues& sample) const {
  try {
    store.spec_of(sample);
  } catch (const Error& error) {
    refuse(fmt::format("sample {} of shard {}: {} of {}", index, quoted(path()), what, error.what()));
  }
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
                      const SampleValues& sample) {
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
                      std::span<const std::span<const std::byte>> rows, const SampleValues& sample,
                      std::span<const SampleValues> fields) {
  Impl& self = *impl_;
  const std::vector<ColumnSpec>& columns = self.options.columns;
  self.check_sample(index, self.images, "image", sample);
  if (fields.size() != self.fields.size())
    refuse(fmt::format("sample {} of shard {}: {} further images: it has {} such fields", index,
                       quoted(self.path()), fields.size(), self.fields.size()));
  for (std::size_t i = 0; i < fields.size(); ++i)
    self.check_sample(index, self.fields[i].store,
                      fmt::format("field {}", quoted(self.options.fields[i].name)), fields[i]);
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
    self.images.put(index, sample, self.mutex);
    for (std::size_t f = 0; f < fields.size(); ++f) self.fields[f].store.put(index, fields[f], self.mutex);
    self.finish(index, SampleState::stored);
  } catch (...) {
    self.remember_failure();
    throw;
  }
}

std::uint64_t ShardWriter::waiting_bytes() const noexcept {
  std::uint64_t bytes = impl_->images.waiting_bytes();
  for (const Impl::FieldStore& field : impl_->fields) bytes += field.store.waiting_bytes();
  return bytes;
}

void ShardWriter::skip(std::uint64_t index) {
  impl_->claim(index);
  impl_->finish(index, SampleState::skipped);
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
      static_cast<std::uint64_t>(std::count(self.states.begin(), self.states.end(), SampleState::stored));
  if (samples == 0)
    refuse(fmt::format("shard {}: every sample was skipped, a shard has at least one", quoted(self.path())));
  try {
    const ShardSummary summary = self.place_all(samples);
    if (expected != nullptr && summary != *expected)
      throw Error(
          ErrorCode::corrupt,
          fmt::format("shard {}, made again, has {} samples, {} bytes and head digest {}; {}, {} and {} "
                      "are expected",
                      quoted(self.path()), samples, summary.size_bytes, to_hex(summary.head_digest),
                      expected->samples, expected->size_bytes, to_hex(expected->head_digest)));
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
