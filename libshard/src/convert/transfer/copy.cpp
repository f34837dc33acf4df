#include "shard/convert/copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <system_error>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/transfer/copy_source.hpp"
#include "convert/transfer/copy_steps.hpp"
#include "format/dataset/dataset_json.hpp"
#include "remote/s3/s3_store.hpp"
#include "shard/remote.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

constexpr int kReadAttempts = 3;  // of dataset.json on a server, until it matches its digest
constexpr unsigned kTablesAtOnce = 16;
constexpr std::uint64_t kCopyPieceBytes = std::uint64_t{8} << 20U;

[[noreturn]] void refuse_part(const std::string& path) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is part of a data set: only whole ones can be copied", quoted(path)));
}

}  // namespace

CopySource::CopySource(const std::string& path) {
  if (!parse_dataset_path(path).selection.empty()) refuse_part(path);
  const bool on_server = shard::is_remote(path);
  if (!on_server && folder_state(path) == FolderState::complete) guard_.emplace(path);
  part_ = DatasetPart::open(path);
  if (part_->is_lone_shard()) refuse_part(path);
  if (on_server) remote_ = RemoteFolder::open(path);
  read_document();
  if (remote_) before_bytes_ = remote_->client().stats().bytes;
}

void CopySource::read_document() {
  for (int attempt = 1;; ++attempt) {
    document_ = part_->read_document(kDatasetFile, kMaxDatasetBytes);
    try {
      const DatasetInfo info = parse_dataset(as_text(document_));
      if (serialize_dataset(info) == serialize_dataset(this->info())) return;
      throw Error(
          ErrorCode::resource,
          fmt::format("{} was replaced while it was opened: run the same command again", quoted(path())));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt || attempt == kReadAttempts || !remote_) throw;
    }
  }
}

std::uint64_t CopySource::shards_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const ShardSummary& shard : info().shards) bytes += shard.size_bytes;
  return bytes;
}

std::vector<std::string> CopySource::selections_here() const {
  std::vector<std::string> names = names_in(path());
  std::erase_if(names, [&](const std::string& name) {
    std::error_code error;
    return !name.ends_with(kSelectionSuffix) || name.starts_with('.') ||
           !fs::is_regular_file(fs::path(path()) / name, error);
  });
  return names;
}

std::vector<std::string> CopySource::selections_there(std::vector<std::string>& notes) const {
  std::string why = "this server does not list its files";
  try {
    if (path().native().starts_with("s3://"))
      return S3Store(path().native()).names(std::string(kSelectionSuffix));
  } catch (const HttpRefused& error) {
    why = fmt::format("{} (keys with s3:ListBucket tell)", error.what());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    why = error.what();
  }
  notes.push_back(fmt::format("which parts `shardctl split` made in {} is not known, so none is copied: {}",
                              quoted(path()), why));
  return {};
}

// Asks the server, whose answer also says how many bytes there are.
bool CopySource::is_there(Table& table, std::vector<std::string>& notes) const {
  try {
    std::array<std::byte, 1> first{};
    remote_->client().read(*table.object, 0, first);
    return true;
  } catch (const HttpRefused& error) {
    notes.push_back(fmt::format("whether {} has {} is not known, so it is not copied: {}", quoted(path()),
                                table.name, error.what()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
  }
  return false;
}

CopySource::Tables CopySource::tables(const std::function<bool(const std::string& name)>& has) const {
  Tables found;
  std::vector<std::string> names = remote_ ? selections_there(found.notes) : selections_here();
  for (const char* const name : {kRejectsFile, kInputsFile})
    if (remote_ || has_table(path(), name)) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  std::vector<Table> asked;
  for (std::string& name : names) {
    std::unique_ptr<HttpObject> there = object(name);
    asked.push_back({std::move(name), std::move(there)});
  }
  // Not for a vector of bool, whose elements share bytes.
  std::vector<std::vector<std::string>> notes(asked.size());
  std::vector<char> keep(asked.size());
  parallel_for(kTablesAtOnce, asked.size(), [&](unsigned, std::uint64_t i) {
    keep[i] = !asked[i].object || has(asked[i].name) || is_there(asked[i], notes[i]);
  });
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (keep[i] != 0) found.tables.push_back(std::move(asked[i]));
    std::move(notes[i].begin(), notes[i].end(), std::back_inserter(found.notes));
  }
  // A server that does not say has a note already.
  for (const TableSummary& table : info().tables) {
    const auto is_it = [&](const Table& one) { return one.name == table.file; };
    if (!std::any_of(found.tables.begin(), found.tables.end(), is_it) && !has(table.file) &&
        (!remote_ || found.notes.empty()))
      found.notes.push_back(
          fmt::format("{} has no {} any more, so the copy has none, either: restore it there", quoted(path()),
                      table.file));
  }
  return found;
}

std::unique_ptr<HttpObject> CopySource::object(const std::string& name, std::uint64_t size_bytes) const {
  return remote_ ? remote_->object(name, size_bytes) : nullptr;
}

void CopySource::read(HttpObject* object, const std::string& name, std::uint64_t begin,
                      std::uint64_t size_bytes, int fd) const {
  if (object != nullptr) return remote_->client().copy_to(*object, begin, size_bytes, fd, begin);
  const fs::path file = path() / name;
  const UniqueFd from = open_read(file);
  std::vector<std::byte> piece;
  for (std::uint64_t at = begin; at < begin + size_bytes; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(kCopyPieceBytes, begin + size_bytes - at)));
    pread_all(from.get(), piece, at, file);
    pwrite_all(fd, piece, at, file);
    read_bytes_ += piece.size();
  }
}

std::uint64_t CopySource::moved_bytes() const noexcept {
  return read_bytes_ + (remote_ ? remote_->client().stats().bytes - before_bytes_ : 0);
}

void CopySource::check_tables() const {
  if (guard_) guard_->check();
}

void prove_shard(const ShardReader& reader, int fd) {
  reader.verify_head();
  const std::vector<FileRange> damaged = reader.damaged_ranges(fd);
  if (damaged.empty()) return;
  throw Error(
      ErrorCode::corrupt,
      fmt::format(
          "shard {}: {} ranges of it, the first at byte {}, do not match their digests: it is damaged; "
          "restore it or convert again",
          quoted(reader.path()), damaged.size(), damaged.front().begin));
}

std::unique_ptr<Copy> Copy::open(const std::string& from, const std::string& to) {
  if (!shard::is_remote(to)) return copy_to_folder(from, to);
  if (shard::is_remote(from))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} and {} are both on servers: copy to a folder first, and from there",
                            quoted(from), quoted(to)));
  return copy_to_store(from, to);
}

}  // namespace shard::convert
