// A copy from a folder or a server to a folder.
//
//   .NAME.part, as long as the shard
//     --> the ranges that do not match their digests are fetched --> all match --> NAME
//
// There is no other state: which bytes of a part are there already follows from the digests in
// the head of the shard.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/files/temp_file.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/folder_lock.hpp"
#include "convert/sources/inside.hpp"
#include "convert/transfer/copy_source.hpp"
#include "convert/transfer/copy_steps.hpp"
#include "format/dataset/dataset_json.hpp"
#include "format/dataset/shard_match.hpp"
#include "shard/remote.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 3;  // until bytes match their digests
constexpr std::string_view kPart = ".part";
constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 32U;

std::string part_name(const std::string& name) { return '.' + name + std::string(kPart); }

// Ranges that follow each other become one.
std::vector<FileRange> merged(std::vector<FileRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const FileRange& a, const FileRange& b) { return a.begin < b.begin; });
  std::vector<FileRange> joined;
  for (const FileRange& range : ranges) {
    if (!joined.empty() && joined.back().begin + joined.back().size_bytes == range.begin)
      joined.back().size_bytes += range.size_bytes;
    else
      joined.push_back(range);
  }
  return joined;
}

class CopyToFolder : public Copy {
 public:
  CopyToFolder(const std::string& from, fs::path to) : from_(from), to_(std::move(to)) {
    if (!from_.is_remote()) refuse_inside(to_, from_.path());
  }

  CopySummary run() override {
    CopySummary summary;
    summary.info = from_.info();
    make_folders(to_);
    FolderLock lock;
    if (lock.try_lock(to_, true) == LockResult::busy) refuse_busy(to_, lock.holder(), "");
    const bool there = is_there();
    remove_stale_temporaries(to_);
    require_room();
    // Before anything is moved: what is refused is known then.
    const auto has = [&](const std::string& name) { return there && fs::exists(to_ / name); };
    CopySource::Tables tables = from_.tables(has);
    summary.notes = std::move(tables.notes);
    std::atomic<std::uint64_t> copied{0};
    parallel_for(kShardsAtOnce, from_.info().shards.size(), [&](unsigned, std::uint64_t i) {
      if (bring(static_cast<std::uint32_t>(i), there))
        ++copied;
      else
        kept_bytes_ += from_.info().shards[i].size_bytes;
    });
    summary.bytes = progress();
    for (const CopySource::Table& table : tables.tables) {
      if (!has(table.name)) bring_table(table);
      summary.files.push_back(table.name);
    }
    from_.check_tables();
    if (!there) publish();
    summary.copied_shards = copied;
    summary.kept_shards = from_.info().shards.size() - copied;
    summary.was_complete = there && copied == 0;
    if (const HttpStats* const stats = from_.stats()) {
      summary.requests = stats->requests;
      summary.retries = stats->retries;
    }
    return summary;
  }

  CopyProgress progress() const override { return {from_.shards_bytes(), from_.moved_bytes(), kept_bytes_}; }

 private:
  bool is_known(const std::string& name) const {
    if (name == kRejectsFile || name == kInputsFile || name.ends_with(kSelectionSuffix)) return true;
    return std::any_of(
        from_.info().shards.begin(), from_.info().shards.end(),
        [&](const ShardSummary& shard) { return name == shard.file || name == part_name(shard.file); });
  }

  // Whether dataset.json is there already. Throws if the folder holds another data set or other files.
  bool is_there() const {
    if (dataset_is_there(to_)) {
      if (read_file(to_ / kDatasetFile, kMaxDatasetBytes) == from_.document()) return true;
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} holds another data set than {}: nothing is overwritten; choose another folder",
                      quoted(to_), quoted(from_.path())));
    }
    for (const std::string& name : names_in(to_))
      if (!is_known(name) && !is_temporary_name(name))
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format(
                "{} is not empty ({} is in it), and it is not of this copy: give a new or empty folder",
                quoted(to_), quoted(name)));
    return false;
  }

  // A regular file under the name of the shard, with its size.
  bool has_file(const ShardSummary& shard) const {
    struct stat status {};
    if (::lstat((to_ / shard.file).c_str(), &status) != 0) return false;
    if (!S_ISREG(status.st_mode))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is not a regular file: remove it", quoted(to_ / shard.file)));
    return static_cast<std::uint64_t>(status.st_size) == shard.size_bytes;
  }

  // Before anything is moved: that all of it will fit.
  void require_room() const {
    std::uint64_t needed = 0;
    for (const ShardSummary& shard : from_.info().shards) {
      if (has_file(shard)) continue;
      struct stat status {};
      const bool begun = ::stat((to_ / part_name(shard.file)).c_str(), &status) == 0;
      const std::uint64_t has = begun ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
      needed += shard.size_bytes - std::min(shard.size_bytes, has);
    }
    std::error_code error;
    const fs::space_info space = fs::space(to_, error);
    if (!error && needed > space.available)
      throw Error(
          ErrorCode::resource,
          fmt::format("{} has {} bytes free, but the shards that are not there yet need {}: free some "
                      "space, or choose another disk",
                      quoted(to_), space.available, needed));
  }

  // False: the shard was there. `there`: dataset.json is, so the size of a shard is enough.
  bool bring(std::uint32_t index, bool there) {
    const ShardSummary& shard = from_.info().shards[index];
    if (there && has_file(shard)) return false;
    const ShardReader& reader = from_.shard(index);
    if (!from_.is_remote()) reader.verify_head();
    if (has_file(shard) && reader.damaged_ranges(open_read(to_ / shard.file).get()).empty()) return false;
    const fs::path part = to_ / part_name(shard.file);
    UniqueFd fd(::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) throw_errno("cannot create", part, errno);
    fill(reader, shard, fd.get(), part);
    sync_file(fd.get(), part);
    rename_file(part, to_ / shard.file);
    return true;
  }

  // Until every byte matches its digest.
  void fill(const ShardReader& reader, const ShardSummary& shard, int fd, const fs::path& part) {
    const std::unique_ptr<HttpObject> object = from_.object(shard.file, shard.size_bytes);
    std::vector<FileRange> missing{{0, shard.size_bytes}};
    if (regular_file_size(fd, part) == shard.size_bytes) {
      missing = merged(reader.damaged_ranges(fd));
    } else {
      truncate(fd, 0, part);
      try {
        preallocate(fd, shard.size_bytes, part);
      } catch (...) {
        ::unlink(part.c_str());
        throw;
      }
    }
    std::uint64_t has = shard.size_bytes;
    for (const FileRange& range : missing) has -= range.size_bytes;
    kept_bytes_ += has;
    for (int attempt = 1; !missing.empty(); ++attempt) {
      if (attempt > kAttempts)
        throw Error(
            ErrorCode::corrupt,
            fmt::format("shard {}: {} ranges of it, the first at byte {}, do not match their digests in {} "
                        "attempts: it is damaged there, or is being changed; upload it again, or restore it",
                        quoted(reader.path()), missing.size(), missing.front().begin, kAttempts));
      for (const FileRange& range : missing)
        from_.read(object.get(), shard.file, range.begin, range.size_bytes, fd);
      missing = merged(reader.damaged_ranges(fd));
    }
  }

  void bring_table(const CopySource::Table& table) {
    const fs::path here = from_.path() / table.name;
    const std::uint64_t size =
        table.object ? table.object->size_bytes() : regular_file_size(open_read(here).get(), here);
    if (table.object && size > kMostTableBytes)
      throw Error(
          ErrorCode::resource,
          fmt::format("{}: the server says that it has {} bytes; tables of a data set have at most {}",
                      quoted(table.object->name()), size, kMostTableBytes));
    TempFile file(to_ / table.name);
    const TableSummary* const recorded = table.object ? from_.info().table(table.name) : nullptr;
    for (int attempt = 1; attempt <= kAttempts; ++attempt) {
      from_.read(table.object.get(), table.name, 0, size, file.fd());
      if (recorded == nullptr || digest_of_table(file.fd(), size) == recorded->digest) {
        file.publish_same();
        return;
      }
    }
    throw Error(ErrorCode::corrupt,
                fmt::format("{} does not match its digest in {} attempts: it is damaged there, or is being "
                            "changed; upload it again, or restore it",
                            quoted(here), kAttempts));
  }

  static std::uint64_t digest_of_table(int fd, std::uint64_t size) {
    Xxh3Stream digest;
    std::vector<std::byte> piece;
    for (std::uint64_t at = 0; at < size; at += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(std::uint64_t{1} << 20U, size - at)));
      pread_all(fd, piece, at, "the copy of a table");
      digest.update(piece);
    }
    return digest.digest();
  }

  void publish() const {
    if (publish_new_file(to_ / kDatasetFile, as_text(from_.document()))) return;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} was written by another process at the same time: use one folder for each copy",
                    quoted(to_ / kDatasetFile)));
  }

  CopySource from_;
  fs::path to_;
  std::atomic<std::uint64_t> kept_bytes_{0};
};

}  // namespace

std::unique_ptr<Copy> copy_to_folder(const std::string& from, const std::string& to) {
  return std::make_unique<CopyToFolder>(from, to);
}

}  // namespace shard::convert
