#include "shard/convert/join.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/files/temp_file.hpp"
#include "base/text/quote.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/folder_lock.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/journal.hpp"
#include "convert/publish/tables.hpp"
#include "convert/sources/inside.hpp"
#include "format/dataset/relabel.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

struct Part {
  fs::path path;
  TableGuard guard;  // made before `data`
  Dataset data;
  std::shared_ptr<const LabelMap> labels;  // null: they stay as they are
};

Dataset open_folder(const fs::path& path) {
  if (!parse_dataset_path(path).selection.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is part of a data set: only whole ones can be joined; Dataset::open of several "
                    "paths, in Python concat, takes parts",
                    quoted(path)));
  if (is_remote(path))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{} is on a server: only data sets in folders can be joined; bring it here with `shardctl copy` "
            "first, or use all of them as they are with Dataset::open of several paths, in Python concat",
            quoted(path)));
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_directory(status))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is a file: give folders of data sets, shards alone cannot be joined", quoted(path)));
  if (!fs::exists(status)) throw Error(ErrorCode::not_found, fmt::format("{}: no such folder", quoted(path)));
  return Dataset::open(path);
}

std::vector<Part> open_parts(const std::vector<fs::path>& paths) {
  if (paths.size() < 2) throw Error(ErrorCode::invalid_argument, "give at least two data sets to join");
  std::vector<Part> parts;
  ClassList classes;
  for (const fs::path& path : paths) {
    for (const Part& before : parts) {
      std::error_code error;
      if (fs::equivalent(before.path, path, error))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} and {} are the same data set: give each once", quoted(before.path),
                                quoted(path)));
    }
    if (folder_state(path) != FolderState::complete) open_folder(path);  // its error says what is wrong
    TableGuard guard(path);
    Part part{path, std::move(guard), open_folder(path), nullptr};
    refuse_wrong_pages(part.data.info().provenance, path);
    if (!parts.empty())
      require_joinable(parts.front().data.info(), parts.front().path, part.data.info(), path);
    part.labels = classes.add(part.data.info().classes);
    parts.push_back(std::move(part));
  }
  return parts;
}

// New, empty, or with files of a join that was stopped.
void prepare_folder(const fs::path& folder, std::uint64_t shards) {
  remove_stale_temporaries(folder);
  if (dataset_is_there(folder)) return;
  for (const std::string& name : names_in(folder)) {
    const auto number = shard_number(name);
    const bool known = name == kDatasetFile || name == kRejectsFile || name == kInputsFile ||
                       is_temporary_name(name) || (number && *number < shards);
    if (!known)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is not empty ({} is in it), and it is not from this join: give a new or "
                              "empty folder",
                              quoted(folder), quoted(name)));
  }
}

[[noreturn]] void refuse_other(const fs::path& path) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is not what this join writes there: give a new or empty folder", quoted(path)));
}

[[noreturn]] void changed(const ShardReader& from) {
  throw Error(ErrorCode::resource,
              fmt::format("{} was replaced while it was joined: run the same command again, if need be with "
                          "a new folder",
                          quoted(from.path())));
}

// What stands at `to` must be this shard, by the digest of its head, which has those of all samples.
void require_shard(const fs::path& to, const ShardSummary& expected) {
  std::optional<ShardReader> there;
  try {
    there.emplace(ShardReader::open(to));
    there->verify_head();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) throw;
    refuse_other(to);
  }
  if (there->header().head_digest != expected.head_digest || there->file_size_bytes() != expected.size_bytes)
    refuse_other(to);
}

enum class Made : std::uint8_t { linked, copied, there };

// False: this file system, or these two, cannot do it.
bool try_link(const ShardReader& from, const fs::path& to) {
  // What a symbolic link leads to, as in the cache of a hub: not the link,
  // which leads elsewhere from another folder.
  if (::linkat(AT_FDCWD, from.path().c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    const int error = errno;
    if (error == EXDEV || error == EPERM || error == EMLINK || error == EOPNOTSUPP || error == ENOSYS ||
        error == EEXIST)
      return false;
    throw_errno("cannot make the hard link", to, error);
  }
  struct stat status {};
  const FileIdentity& of = from.identity();
  if (::stat(to.c_str(), &status) == 0 && status.st_dev == of.device && status.st_ino == of.inode)
    return true;
  remove_file(to);
  changed(from);
}

// The file of a shard, with another head if one is given.
Made copy_shard(const ShardReader& from, const RelabelledHead* head, const fs::path& to) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20U;
  const UniqueFd source(from.reopen(O_RDONLY));
  if (!source) throw_errno("cannot open", from.path(), errno);
  if (!(file_identity(source.get(), from.path()) == from.identity())) changed(from);
  const std::uint64_t size = from.file_size_bytes();
  TempFile file(to);
  preallocate(file.fd(), size, to);
  std::vector<std::byte> piece;
  std::uint64_t at = 0;
  if (head != nullptr) {
    pwrite_all(file.fd(), head->bytes, 0, to);
    at = head->bytes.size();
  }
  for (; at < size; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, size - at)));
    pread_all(source.get(), piece, at, from.path());
    pwrite_all(file.fd(), piece, at, to);
  }
  return file.publish_new() ? Made::copied : Made::there;
}

// Joins into a locked folder.
class Joining {
 public:
  Joining(const JoinOptions& options, const std::vector<Part>& parts)
      : options_(options), parts_(parts), info_(described(parts)) {
    for (const Part& part : parts) total_ += part.data.info().shards.size();
  }

  JoinSummary run() {
    prepare_folder(options_.folder, total_);
    const fs::path file = options_.folder / kDatasetFile;
    std::optional<DatasetInfo> complete;
    if (dataset_is_there(options_.folder)) {
      complete = read_dataset_info(options_.folder);
      info_.targets = complete->targets;  // versions before this one recorded none
      if (complete->source_digest != info_.source_digest || complete->parts != info_.parts ||
          complete->fingerprint != info_.fingerprint || complete->classes != info_.classes)
        refuse_other(file);
    }
    for (const Part& part : parts_)
      for (std::uint32_t i = 0; i < part.data.info().shards.size(); ++i) add_shard(part, i);
    flush_folder(options_.folder);
    summary_.was_complete = complete && summary_.linked + summary_.copied + summary_.relabelled == 0;
    write_tables();
    if (complete && complete->tables.empty()) info_.tables.clear();  // joined by an earlier version
    const std::string json = serialize_dataset(info_);
    if (complete && serialize_dataset(*complete) != json) refuse_other(file);
    if (!complete && !publish_new_file(file, json) &&
        serialize_dataset(read_dataset_info(options_.folder)) != json)
      refuse_other(file);
    summary_.info = std::move(info_);
    return std::move(summary_);
  }

 private:
  static DatasetInfo described(const std::vector<Part>& parts) {
    DatasetInfo info = parts.front().data.info();
    ClassList classes;
    classes.add(info.classes);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      add_part(info, parts[i].data.info());
      classes.add(parts[i].data.info().classes);
    }
    info.shards.clear();
    info.tables.clear();
    info.classes = classes.names();
    return info;
  }

  void add_shard(const Part& part, std::uint32_t index) {
    if (options_.progress) options_.progress(info_.shards.size(), total_);
    const ShardReader& from = part.data.shard(index);
    from.verify_head();
    std::optional<RelabelledHead> head;
    if (part.labels) head = relabelled_head(from, *part.labels);
    ShardSummary shard = part.data.info().shards[index];
    shard.file = shard_name(info_.shards.size());
    if (head) shard.head_digest = head->digest;
    const fs::path to = options_.folder / shard.file;
    Made made = Made::there;
    if (!is_present(to)) {
      if (!head && !options_.copy && try_link(from, to))
        made = Made::linked;
      else
        made = copy_shard(from, head ? &*head : nullptr, to);
    }
    if (made == Made::there)
      require_shard(to, shard);
    else
      ++(made == Made::linked ? summary_.linked : head ? summary_.relabelled : summary_.copied);
    info_.shards.push_back(std::move(shard));
  }

  void write_tables() {
    TableFile rejects(options_.folder, kRejectsFile, kRejectsHeader);
    TableFile inputs(options_.folder, kInputsFile, kInputsHeader);
    bool all_inputs = true;  // data sets of earlier versions do not have this file
    for (const Part& part : parts_) {
      const DatasetInfo& of = part.data.info();
      const TableSummary* const recorded = of.table(kInputsFile);
      if (of.rejects != 0 || has_table(part.path, kRejectsFile))
        append_rows(part.guard, rejects, part.path / kRejectsFile, kRejectsHeader, of.table(kRejectsFile));
      all_inputs = all_inputs && (recorded != nullptr || has_table(part.path, kInputsFile));
      if (all_inputs) append_rows(part.guard, inputs, part.path / kInputsFile, kInputsHeader, recorded);
      part.guard.check();
    }
    if (all_inputs) info_.tables.push_back(inputs.summary());
    info_.tables.push_back(rejects.summary());
    if (summary_.was_complete && has_table(options_.folder, kRejectsFile) &&
        has_table(options_.folder, kInputsFile) == all_inputs)
      return;
    rejects.publish();
    if (all_inputs) inputs.publish();
  }

  const JoinOptions& options_;
  const std::vector<Part>& parts_;
  DatasetInfo info_;
  std::uint64_t total_ = 0;
  JoinSummary summary_;
};

SourcePart alone(const DatasetInfo& info) {
  return {info.source_digest, info.inputs, info.rejects, info.shards.size()};
}

std::string advice(const std::string& what, const DatasetInfo& first, const DatasetInfo& other) {
  constexpr auto kJpeg = CodecSpec::Kind::jpeg;
  if (what == "codec" && first.codec.kind == kJpeg && other.codec.kind == kJpeg)
    return "convert one of them again with the same quality; Dataset::open of both, in Python concat, also "
           "takes different ones";
  if (what == "codec")
    return "`shardctl repack` writes one of them with the codec of the other; Dataset::open of both, in "
           "Python concat, also takes different codecs";
  if (what == "fingerprint")
    return "the number of samples per shard differs: convert one again with the same option, or use both as "
           "they are with Dataset::open of both, in Python concat";
  if (what == "provenance")
    return "convert one of them again with the same options and the same version of shardify, or use both as "
           "they are with Dataset::open of both, in Python concat";
  return "convert one of them again with the same options of shardify";
}

}  // namespace

void require_joinable(const DatasetInfo& first, const fs::path& first_path, const DatasetInfo& other,
                      const fs::path& other_path) {
  const auto refuse = [&](const std::string& what, const std::string& instead) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} and {} cannot be joined: {}: {}", quoted(first_path), quoted(other_path),
                            what, instead));
  };
  if (const auto it = difference(other, first))
    refuse(fmt::format("the {} of the first is {}, of the second {}", it->what, it->stated, it->found),
           advice(it->what, first, other));
  if (first.classes.empty() != other.classes.empty())
    refuse(fmt::format("{} has classes, the other has numbers for labels",
                       quoted(first.classes.empty() ? other_path : first_path)),
           "convert one of them again with labels of the same kind");
}

void add_part(DatasetInfo& whole, const DatasetInfo& part) {
  if (whole.parts.empty()) whole.parts.push_back(alone(whole));
  if (part.parts.empty())
    whole.parts.push_back(alone(part));
  else
    whole.parts.insert(whole.parts.end(), part.parts.begin(), part.parts.end());
  whole.targets = common_targets(known_targets(whole), known_targets(part));
  whole.inputs += part.inputs;
  whole.rejects += part.rejects;
  whole.samples_per_shard = std::max(whole.samples_per_shard, part.samples_per_shard);
  std::string digests;
  for (const SourcePart& of : whole.parts) digests += of.source_digest + ' ';
  whole.source_digest = to_hex(xxh3(digests));
}

std::uint64_t next_shard(const DatasetInfo& info) {
  std::uint64_t next = info.shards.size();
  for (const ShardSummary& shard : info.shards)
    if (const auto number = shard_number(shard.file)) next = std::max(next, *number + 1);
  return next;
}

JoinSummary join(const JoinOptions& options) {
  const std::vector<Part> parts = open_parts(options.parts);
  for (const Part& part : parts) refuse_inside(options.folder, part.path);
  make_folders(options.folder);
  FolderLock lock;
  if (lock.try_lock(options.folder, true) == LockResult::busy) refuse_busy(options.folder, lock.holder(), "");
  return Joining(options, parts).run();
}

}  // namespace shard::convert
