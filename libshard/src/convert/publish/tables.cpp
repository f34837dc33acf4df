#include "convert/publish/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

std::uint64_t digest_of(const fs::path& file) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32U;
  return xxh3(read_file(file, kMaxBytes));
}

}  // namespace

TableGuard::TableGuard(fs::path folder)
    : folder_(std::move(folder)), digest_(digest_of(folder_ / kDatasetFile)) {}

void TableGuard::check() const {
  // In this order: an append that ends in between has replaced dataset.json.
  if (!append_is_pending(folder_) && digest_of(folder_ / kDatasetFile) == digest_) return;
  throw Error(ErrorCode::resource,
              fmt::format("{} is being changed: images are being appended, or the run that did was stopped; "
                          "run that `append` again if it does not run any more, then this command",
                          quoted(folder_)));
}

TableFile::TableFile(const fs::path& folder, const char* name, std::string_view header)
    : file_(folder / name), name_(name) {
  append(header);
}

void TableFile::append(std::string_view text) { append(std::as_bytes(std::span(text))); }

void TableFile::append(std::span<const std::byte> bytes) {
  file_.append(bytes);
  digest_.update(bytes);
  size_bytes_ += bytes.size();
}

namespace {

void append_rows_of(TableFile& to, const fs::path& from, std::string_view header,
                    const TableSummary* recorded) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;
  const UniqueFd file = open_read(from);
  const std::uint64_t size = regular_file_size(file.get(), from);
  std::vector<std::byte> piece;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::corrupt, fmt::format("{} {}: restore it", quoted(from), why));
  };
  piece.resize(header.size());
  if (size < header.size()) refuse("is cut short");
  pread_all(file.get(), piece, 0, from);
  if (std::string_view(reinterpret_cast<const char*>(piece.data()), piece.size()) != header)
    refuse(fmt::format("does not start with the line {}", header.substr(0, header.size() - 1)));
  Xxh3Stream digest;
  digest.update(piece);
  for (std::uint64_t at = header.size(); at < size; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, size - at)));
    pread_all(file.get(), piece, at, from);
    digest.update(piece);
    to.append(std::span<const std::byte>(piece));
  }
  if (piece.back() != std::byte{'\n'}) refuse("is cut short");
  if (recorded != nullptr && (recorded->size_bytes != size || recorded->digest != digest.digest()))
    refuse(fmt::format("is not as {} says: it was edited or damaged", kDatasetFile));
}

}  // namespace

void append_rows(const TableGuard& guard, TableFile& to, const fs::path& from, std::string_view header,
                 const TableSummary* recorded) {
  try {
    append_rows_of(to, from, header, recorded);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt) guard.check();  // while images are appended, tables are ahead
    throw;
  }
}

bool append_is_pending(const fs::path& folder) { return has_table(folder / kAppendLog, kDatasetFile); }

bool has_table(const fs::path& folder, const char* name) {
  std::error_code error;
  const bool there = fs::exists(folder / name, error);
  if (error)
    throw Error(ErrorCode::io, fmt::format("cannot look at {}: {}", quoted(folder / name), error.message()));
  return there;
}

}  // namespace shard::convert
