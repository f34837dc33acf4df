#include "shard/shard_reader.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include "base/bytes.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "format/shard/shard_reader_impl.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard {

ShardReader::ShardReader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ShardReader::ShardReader(ShardReader&&) noexcept = default;
ShardReader& ShardReader::operator=(ShardReader&&) noexcept = default;
ShardReader::~ShardReader() = default;

const std::filesystem::path& ShardReader::path() const noexcept { return impl_->path; }
const ShardHeader& ShardReader::header() const noexcept { return impl_->header; }
std::uint64_t ShardReader::size() const noexcept { return impl_->header.samples; }
std::uint64_t ShardReader::file_size_bytes() const noexcept { return impl_->identity.size_bytes; }
const FileIdentity& ShardReader::identity() const noexcept { return impl_->identity; }
std::span<const std::byte> ShardReader::mapping() const noexcept {
  const auto bytes = impl_->bytes();
  return impl_->remote ? bytes.first(static_cast<std::size_t>(impl_->header.head_end)) : bytes;
}
bool ShardReader::is_remote() const noexcept { return impl_->remote != nullptr; }
bool ShardReader::is_unconverted() const noexcept { return impl_->maker != nullptr; }
const std::map<std::string, Column>& ShardReader::columns() const noexcept { return impl_->columns; }
const Column& ShardReader::column(std::string_view name) const {
  const auto found = impl_->columns.find(std::string(name));
  if (found != impl_->columns.end()) return found->second;
  std::string known;
  for (const auto& entry : impl_->columns)
    known += (known.empty() ? "" : ", ") + std::string(quoted_excerpt(entry.first));
  throw Error(ErrorCode::not_found, fmt::format("shard {} has no column {}; it has {}", quoted(impl_->path),
                                                quoted_excerpt(name), known));
}

std::string ShardReader::change() const { return impl_->change(); }
int ShardReader::reopen(int flags) const noexcept {
  if (!impl_->remote && !impl_->maker) return impl_->reopen(flags).release();
  errno = impl_->remote ? EREMOTE : ENOENT;
  return -1;
}
void ShardReader::check_unchanged() const { impl_->check_unchanged(); }

std::string ShardReader::key(std::uint64_t sample) const {
  impl_->check_index(sample);
  return impl_->key(sample);
}

void ShardReader::read_rows(const Column& column, std::uint64_t first, std::span<std::byte> out) const {
  if (column.kind != ColumnKind::fixed)
    throw Error(ErrorCode::unsupported,
                fmt::format("a column of shard {} is {}: its samples have different numbers of rows",
                            quoted(impl_->path), to_string(column.kind)));
  const std::uint64_t rows = column.row_bytes == 0 ? 0 : out.size() / column.row_bytes;
  if (rows * column.row_bytes != out.size() || first > size() || rows > size() - first) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} bytes of rows of {} bytes from sample {} of shard {}: it has {}", out.size(),
                            column.row_bytes, first, quoted(impl_->path), size()));
  }
  impl_->copy(out, column.bytes.subspan(static_cast<std::size_t>(first * column.row_bytes), out.size()));
}

std::int64_t ShardReader::label(std::uint64_t sample) const {
  impl_->check_index(sample);
  const Column& labels = impl_->columns.at("labels");
  if (labels.dtype != DType::i64 || !labels.row_shape.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("labels of shard {} are {} values per sample, not class ids: use columns()",
                            quoted(impl_->path), labels.row_bytes / size_bytes(labels.dtype)));
  }
  std::array<std::byte, 8> bytes{};
  read_rows(labels, sample, bytes);
  return static_cast<std::int64_t>(load_u64(bytes));
}

std::uint64_t ShardReader::stored_bytes(std::uint64_t sample) const {
  std::uint64_t bytes = 0;
  for (const StoredImages& field : impl_->images) bytes += field.frame_bytes(sample);
  return bytes;
}

const StoredImages& ShardReader::images(std::optional<std::size_t> field) const {
  if (!field) return impl_->images.front();
  if (*field < header().fields.size()) return impl_->images[*field + 1];
  throw Error(ErrorCode::invalid_argument, fmt::format("image field {} of shard {}: it has {} further ones",
                                                       *field, quoted(path()), header().fields.size()));
}

std::uint64_t ShardReader::stored_samples() const noexcept { return impl_->images.size() * size(); }
StoredSampleRange ShardReader::stored_sample(std::uint64_t number) const {
  return impl_->stored_sample(number);
}
std::uint64_t ShardReader::first_stored_from(std::uint64_t offset) const {
  return impl_->first_stored_from(offset);
}
std::vector<FileRange> ShardReader::damaged_ranges(int file,
                                                   const std::function<bool(std::uint64_t)>& proven) const {
  return impl_->damaged_ranges(file, proven);
}

bool ShardReader::has_head(int file) const { return impl_->has_head(file); }
bool ShardReader::has_samples() const noexcept { return impl_->has_copy(); }
bool ShardReader::samples_mapped() const noexcept {
  if (impl_->maker) return false;
  return impl_->remote == nullptr || impl_->copied.load(std::memory_order_acquire) == CopyState::proven;
}
void ShardReader::adopt(int file, CopyState state) const {
  if (const std::uint64_t found = regular_file_size(file, impl_->path); found != file_size_bytes())
    throw Error(ErrorCode::io, fmt::format("the copy of shard {} has {} bytes, not {}", quoted(impl_->path),
                                           found, file_size_bytes()));
  impl_->mapping->replace(impl_->samples_begin(), file, impl_->path);
  impl_->copied.store(state, std::memory_order_release);
}
void ShardReader::adopt_named(int file, std::shared_ptr<const UniqueFd> folder, std::string name,
                              CopyState state) const {
  struct stat now {};
  if (::fstat(file, &now) != 0) throw_errno("cannot look at", name, errno);
  impl_->named_copy.emplace(NamedCopy{std::move(folder), std::move(name), now});
  adopt(file, state);
}
void ShardReader::abandon() const {
  impl_->copied.store(CopyState::none, std::memory_order_release);
  ++impl_->abandoned;
  impl_->mapping->clear(impl_->samples_begin());
}

std::size_t ShardReader::field_index(std::string_view name) const {
  const std::vector<FieldSpec>& fields = impl_->header.fields;
  if (const auto found = find_field(fields, name)) return *found;
  std::string known;
  for (const FieldSpec& field : fields)
    known += (known.empty() ? "" : ", ") + std::string(quoted_excerpt(field.name));
  throw Error(ErrorCode::not_found,
              fmt::format("shard {} has no image field {} beside the main one; it has {}",
                          quoted(impl_->path), quoted_excerpt(name), known.empty() ? "none" : known));
}

ShardReader::Rows ShardReader::rows_of(const Column& column, std::uint64_t sample) const {
  impl_->check_index(sample);
  if (column.kind == ColumnKind::fixed) return {sample, 1};
  const auto [begin, end] = impl_->offsets_at(
      "offsets of a column", static_cast<std::uint64_t>(column.offsets.data() - mapping().data()), sample,
      column.bytes.size() / column.row_bytes);
  return {begin, end - begin};
}

void ShardReader::read_column(const Column& column, std::uint64_t sample, std::vector<std::byte>& out) const {
  const Rows rows = rows_of(column, sample);
  out.resize(static_cast<std::size_t>(rows.count * column.row_bytes));
  impl_->copy(out, column.bytes.subspan(static_cast<std::size_t>(rows.first * column.row_bytes), out.size()));
}

std::string ShardReader::text(const Column& column, std::uint64_t sample) const {
  if (column.kind != ColumnKind::text)
    throw Error(ErrorCode::unsupported, fmt::format("a column of shard {} is {}, not text",
                                                    quoted(impl_->path), to_string(column.kind)));
  std::vector<std::byte> bytes;
  read_column(column, sample, bytes);
  if (!is_utf8(as_text(bytes))) impl_->corrupt_sample(sample, "the text of a column is not UTF-8");
  return std::string(as_text(bytes));
}

void ShardReader::verify_head() const {
  if (impl_->maker) return;  // it is in memory
  impl_->check_unchanged();
  std::vector<std::byte> head(static_cast<std::size_t>(impl_->header.head_end));
  impl_->copy(head, impl_->mapped(0, head.size()));
  impl_->check_head(head);
  impl_->check_padding();
  impl_->check_keys(head);
  impl_->check_texts(head);
}

void ShardReader::verify_sample(std::uint64_t sample, std::vector<std::byte>& scratch) const {
  impl_->check_index(sample);
  for (auto field = impl_->images.rbegin(); field != impl_->images.rend(); ++field)
    field->verify(sample, scratch);
}

}  // namespace shard
