#include "convert/publish/replace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <system_error>

#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "convert/publish/append_log.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/open_folder.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_replace(const char* what, const fs::path& path, int error) {
  throw Error(ErrorCode::io,
              fmt::format("cannot {} {}: {}", what, quoted(path), std::generic_category().message(error)));
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error));
}

fs::path real_path(const fs::path& out) {
  std::error_code error;
  fs::path real = fs::canonical(out, error);
  if (error) fail_replace("look at", out, error.value());
  return real;
}

// The path beside OUT that first the new folder has, for a moment, and then the old one.
fs::path side_of(const fs::path& real) {
  return real.parent_path() / fmt::format(".{}.shardify-old", real.filename().string());
}

// Whether the folder has a conversion.json with this stage.
bool has_stage(const fs::path& folder, Stage stage) {
  try {
    return read_plan(folder).stage == stage;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw;
    return false;
  }
}

void move_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_replace("move a file to", to, errno);
}

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) fail_replace("remove", folder, error.value());
}

// Removes the old folder, `side`. Files that no conversion wrote are moved to the new one.
void remove_old(const fs::path& side, const fs::path& real) {
  for (const std::string& name : names_in(side)) {
    if (is_ours(name) || is_temporary_name(name) || name == kStagingFolder || is_present(real / name))
      continue;
    move_file(side / name, real / name);
  }
  flush_folder(real);
  remove_dataset_files(side);
  for (const std::string& name : names_in(side))
    if (is_temporary_name(name)) remove_file(side / name);
  if (is_folder(side / kStagingFolder)) remove_folder(side / kStagingFolder);
  ::rmdir(side.c_str());  // fails, and the folder stays, if it still has files of others
  flush_folder(side.parent_path());
}

// Whether the error means that names cannot be exchanged here, although nothing is broken.
bool cannot_exchange(int error) {
  return error == EXDEV || error == EACCES || error == EPERM || error == EROFS || error == EBUSY ||
         error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == ENAMETOOLONG;
}

bool works_inside(const fs::path& real) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error) return false;
  for (fs::path folder = here;; folder = folder.parent_path()) {
    if (folder == real) return true;
    if (folder == folder.parent_path()) return false;
  }
}

// Gives the new folder the owner and the mode of the old one.
void copy_rights(const fs::path& from, const fs::path& to) {
  struct stat status {};
  if (::stat(from.c_str(), &status) != 0) fail_replace("look at", from, errno);
  // Only root can change the owner. Failure is not an error, because the folder can be used all the same.
  const int owned = ::chown(to.c_str(), status.st_uid, status.st_gid);
  static_cast<void>(owned);
  if (::chmod(to.c_str(), status.st_mode & 07777U) != 0) fail_replace("set the mode of", to, errno);
}

void flush_parent(const fs::path& real) {
  try {
    flush_folder(real.parent_path());
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} is not replaced: {}", quoted(real), error.what()));
  }
}

// Exchanges the two folders and removes the old one. False: this is not possible here, and nothing has
// changed.
bool exchange(const fs::path& real) {
  const fs::path staging = real / kStagingFolder;
  const fs::path side = side_of(real);
  if (works_inside(real)) return false;
  const OpenFolder finished(staging);
  if (::rename(staging.c_str(), side.c_str()) != 0) {
    if (cannot_exchange(errno)) return false;
    fail_replace("move a finished data set to", side, errno);
  }
  if (finished.is_there() && !finished.is_at(side)) {  // what another process stages meanwhile
    move_file(side, staging);
    refuse_changed(real);
  }
  flush_parent(real);
  if (::renameat2(AT_FDCWD, side.c_str(), AT_FDCWD, real.c_str(), RENAME_EXCHANGE) != 0) {
    const int error = errno;
    move_file(side, staging);
    if (cannot_exchange(error)) return false;
    fail_replace("put a finished data set in the place of", real, error);
  }
  try {
    flush_folder(real.parent_path());
    remove_old(side, real);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format(
            "{} holds the new data set, but the old one could not be removed: {}; the next run removes it",
            quoted(real), error.what()));
  }
  return true;
}

// Moves the files of the staged data set into OUT, whose conversion.json has the stage `replacing`.
void move_up(const fs::path& real) {
  const fs::path staging = real / kStagingFolder;
  const OpenFolder staged(staging);
  if (dataset_is_there(staging)) {
    const DatasetInfo info = read_dataset_info(staging);
    remove_file(real / kDatasetFile);
    flush_folder(real);
    std::set<std::string> files{kRejectsFile, kInputsFile};
    for (const ShardSummary& shard : info.shards) files.insert(shard.file);
    for (const std::string& name : names_in(real))
      if (is_ours(name) && name != kPlanFile && files.count(name) == 0) remove_file(real / name);
    for (const std::string& name : files) staged.move(name, real / name);
    flush_folder(real);
    if (!staged.move(kDatasetFile, real / kDatasetFile)) refuse_changed(real);
    flush_folder(real);
  } else if (!dataset_is_there(real)) {
    // The staged data set was removed by somebody, so this folder is converted again.
    PlanRecord plan = read_plan(real);
    plan.stage = Stage::converting;
    return publish_file(real / kPlanFile, serialize_plan(plan));
  }
  if (is_folder(staging)) remove_folder(staging);
  remove_file(real / kPlanFile);
}

}  // namespace

void put_in_place(const fs::path& out) {
  const fs::path real = real_path(out);
  const fs::path staging = real / kStagingFolder;
  copy_rights(real, staging);
  if (exchange(real)) return;
  PlanRecord plan = read_plan(staging);
  plan.stage = Stage::replacing;
  publish_file(real / kPlanFile, serialize_plan(plan));
  move_up(real);
}

void prepare_replacement(const fs::path& out) {
  finish_replacement(out);
  finish_append(out);
  // The staged folder is recognised by its conversion.json, so the old folder must not have one too.
  if (dataset_is_there(out) && has_leftovers(out)) remove_journal(out);
}

void prepare_staging(const fs::path& staging, const PlanRecord& record) {
  clear_staging(staging, [&](const PlanRecord& found) {
    return found.fingerprint == record.fingerprint && found.source_digest == record.source_digest &&
           found.options == record.options;
  });
}

void remove_staging(const fs::path& staging) {
  if (is_folder(staging)) remove_folder(staging);
}

void clear_staging(const fs::path& staging, const std::function<bool(const PlanRecord&)>& keep) {
  bool usable = is_folder(staging);
  if (usable && !names_in(staging).empty()) {
    try {
      const PlanRecord found = read_plan(staging);
      usable = found.stage == Stage::staged && keep(found);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::io) throw;
      usable = false;
    }
  }
  if (!usable && is_present(staging)) remove_folder(staging);
  make_folders(staging);
}

bool finish_replacement(const fs::path& out) {
  if (!is_folder(out) && !is_present(out)) return false;
  const fs::path real = real_path(out);
  const fs::path side = side_of(real);
  const bool moving = is_present(real / kPlanFile) && has_stage(real, Stage::replacing);
  if (moving) move_up(real);
  if (is_folder(side)) {
    if (!has_stage(side, Stage::staged)) {
      remove_old(side, real);
    } else if (!is_present(real / kStagingFolder)) {
      move_file(side, real / kStagingFolder);  // stopped before the exchange
    } else {
      remove_dataset_files(side);
      ::rmdir(side.c_str());
    }
  }
  return moving;
}

bool has_leftovers(const fs::path& out) {
  for (const std::string& name : names_in(out))
    if (is_temporary_name(name) || (is_ours(name) && (name == kPlanFile || name.starts_with('.'))))
      return true;
  return is_present(side_of(real_path(out)));
}

}  // namespace shard::convert
