#include "shard/convert/follow.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "convert/annotations/class_labels.hpp"
#include "convert/engine/steps.hpp"
#include "convert/plan/plan.hpp"
#include "convert/publish/append_log.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/folder_lock.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/tables.hpp"
#include "convert/revise/append.hpp"
#include "convert/revise/convert_to_folder.hpp"
#include "convert/sources/source_kind.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

constexpr auto kFollowTick = std::chrono::milliseconds(50);  // how soon a cancel is seen

void require_growing_folder(const Options& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, fmt::format("`follow` converts a folder that grows: {}", what));
  };
  std::error_code error;
  if (is_remote(options.images) || !fs::is_directory(options.images, error))
    refuse(fmt::format("{} is not a folder", quoted(fs::path(options.images))));
  if (is_remote(options.out)) refuse("`out` must be a folder too; shardctl copy uploads it");
  if (options.overwrite || options.refresh || options.append || options.shared())
    refuse("leave out `overwrite`, `refresh`, `append`, `claim` and ranks");
  if (!options.labels.empty() || !options.columns.empty() || !options.coco.empty() || !options.yolo.empty() ||
      !options.voc.empty() || !options.pairs.empty() || options.pages)
    refuse("labels are its folders; leave out tables, annotations, further images and `pages`");
}

struct NewFile {
  std::int64_t changed_ns = 0;
  std::string path;  // relative to the folder
};

// How a file was found, and when it was first found so.
struct Look {
  std::uint64_t size_bytes = 0;
  std::int64_t written_ns = 0;
  std::int64_t changed_ns = 0;
  std::chrono::steady_clock::time_point since;
  bool is_as(const Look& other) const noexcept {
    return size_bytes == other.size_bytes && written_ns == other.written_ns && changed_ns == other.changed_ns;
  }
};

class Follower {
 public:
  Follower(const Options& options, const FollowOptions& how, const Hooks& hooks)
      : options_(options), how_(how), hooks_(hooks) {
    options_.root = options.images;
    fs::path out = fs::absolute(options_.out).lexically_normal();
    if (!out.has_filename()) out = out.parent_path();
    options_.out = out;
    first_ = out.parent_path() / ("." + out.filename().string() + ".shardify-follow");
  }

  Summary run() {
    begin();
    for (;;) {
      require_going();
      const bool ends = !how_.until.empty() && is_present(how_.until);  // before the scan
      const Stopwatch scan;
      std::vector<NewFile> files = new_files(ends);
      const double seconds = scan.seconds();
      if (files.empty() && ends) break;
      if (!files.empty()) convert_some(std::move(files), ends);
      if (!ends) wait(std::max(std::chrono::duration<double>(how_.look).count(), 10 * seconds));
    }
    if (how_.warn && !unlisted_.empty())
      how_.warn(fmt::format("{} of {} cannot be listed, so nothing of them is converted, first {}: {}",
                            unlisted_.size(), quoted(options_.root), quoted_key(unlisted_.front().key),
                            unlisted_.front().reason));
    if (!dataset_is_there(options_.out))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("no images came into {}: nothing is converted", quoted(options_.root)));
    return finished(read_dataset_info(options_.out), done_);
  }

 private:
  void require_going() const {
    if (hooks_.cancel != nullptr && hooks_.cancel->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "interrupted");
  }

  void wait(double seconds) const {
    const Stopwatch watch;
    while (watch.seconds() < seconds) {
      require_going();
      if (!how_.until.empty() && is_present(how_.until)) return;
      std::this_thread::sleep_for(kFollowTick);
    }
  }

  void begin() {
    make_folders(options_.out.parent_path());
    finish_killed_append();
    switch (folder_state(options_.out)) {
      case FolderState::complete:
        break;
      case FolderState::absent:
      case FolderState::empty:
        // A run that was killed before it gave its first data set the name.
        if (folder_state(first_) != FolderState::complete) return;
        require_own(first_);
        put_first();
        break;
      case FolderState::incomplete:
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} holds an unfinished conversion: finish it first, with the command that "
                                "began it, or give another folder",
                                quoted(options_.out)));
      case FolderState::foreign:
        refuse_foreign(options_.out);
    }
    require_own(options_.out);
    look_at_out();
  }

  // Its images are in OUT as soon as it is decided, and in the tables when it is finished.
  void finish_killed_append() {
    if (!is_present(options_.out / kAppendLog)) return;
    FolderLock lock;
    if (lock.try_lock(options_.out, true) == LockResult::busy) refuse_busy(options_.out, lock.holder(), "");
    finish_append(options_.out);
  }

  // The data set was converted with these options, as an append asks. One that has no name yet is of images
  // of this folder.
  void require_own(const fs::path& folder) {
    const DatasetInfo info = read_dataset_info(folder);
    const InputList list = scan();
    if (folder == first_)
      read_input_rows(folder, nullptr, [&](InputRow&& row) {
        if (find_key(list, unescape_key(row.key)) != nullptr) return;
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("{} is what a run that has ended left for {}, and it has {}, which is not in "
                        "{}: remove it, or run the command that began it",
                        quoted(folder), quoted(options_.out), quoted_key(row.key), quoted(options_.root)));
      });
    if (list.inputs.empty()) return;
    const std::uint64_t per_shard = options_.samples_per_shard;
    if (info.samples_per_shard != 0) options_.samples_per_shard = info.samples_per_shard;
    list_of({{0, list.inputs.front().path}});
    const Options options = listed();
    const Plan plan = make_plan(options);
    options_.samples_per_shard = per_shard;
    require_same_options(info, record_of(plan, spec_of(options, plan)), folder);
    if (!hooks_.planned) return;
    Listing listing = listing_of(plan);
    listing.inputs = info.inputs;
    listing.classes.clear();
    for (const std::string& name : info.classes) listing.classes.push_back(escape_key(name));
    listing.warnings.clear();
    hooks_.planned(listing);
  }

  InputList scan() const {
    ScanOptions how;
    how.images = options_.root.string();
    return source_kind(how.images).scan(how);
  }

  void look_at_out() {
    const DatasetInfo info = read_dataset_info(options_.out);
    if (info.samples_per_shard != 0) options_.samples_per_shard = info.samples_per_shard;
    if (!read_input_rows(options_.out, nullptr, [&](InputRow&& row) { known_.insert(std::move(row.key)); }))
      throw Error(ErrorCode::corrupt,
                  fmt::format("{} has no valid {}, which says which images it has: convert all of them into "
                              "another folder",
                              quoted(options_.out), kInputsFile));
  }

  // Those that have settled, the oldest first. `all`: all of them, and what the listing refuses.
  std::vector<NewFile> new_files(bool all) {
    const InputList list = scan();
    struct timespec now {};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto in_ns = [](const struct timespec& time) {
      return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    std::vector<NewFile> files;
    std::unordered_map<std::string, Look> looks;
    for (const Input& input : list.inputs) {
      if (known_.contains(input.key())) continue;
      struct stat status {};
      if (::stat((options_.root / input.path).c_str(), &status) != 0) continue;  // it was renamed or removed
      Look look{static_cast<std::uint64_t>(status.st_size), in_ns(status.st_mtim), in_ns(status.st_ctim),
                std::chrono::steady_clock::now()};
      const auto before = looks_.find(input.path);
      if (before != looks_.end() && before->second.is_as(look)) look.since = before->second.since;
      // Renaming sets the other one. The clock of a server may be ahead: then only looking tells.
      const std::int64_t changed = std::max(look.written_ns, look.changed_ns);
      const std::int64_t settled = std::chrono::nanoseconds(how_.settled).count();
      const bool is_old = changed <= in_ns(now) && in_ns(now) - changed >= settled;
      if (all || is_old || std::chrono::steady_clock::now() - look.since >= how_.settled)
        files.push_back({changed, input.path});
      looks.emplace(input.path, look);
    }
    looks_ = std::move(looks);
    std::sort(files.begin(), files.end(), [](const NewFile& a, const NewFile& b) {
      return std::pair(a.changed_ns, std::string_view(a.path)) <
             std::pair(b.changed_ns, std::string_view(b.path));
    });
    unlisted_.clear();
    for (const Reject& reject : list.rejects) {
      const std::string path = unescape_key(reject.key);
      std::error_code error;
      if (fs::is_directory(options_.root / path, error) || error == std::errc::too_many_symbolic_link_levels)
        unlisted_.push_back(reject);
      else if (all && !files.empty() && !known_.contains(reject.key))  // there must be an image among them
        files.push_back({0, path});
    }
    return files;
  }

  // As many whole shards as there are, or all.
  void convert_some(std::vector<NewFile> files, bool all) {
    for (const NewFile& file : files)
      if (file.path.find('\n') != std::string::npos)
        throw Error(ErrorCode::unsupported,
                    fmt::format("{}: a name with a line feed cannot be followed: rename it",
                                quoted(options_.root / file.path)));
    if (options_.samples_per_shard == 0) {
      list_of(files);
      options_.samples_per_shard = make_plan(listed()).per_shard;
    }
    if (!all) files.resize(files.size() - files.size() % options_.samples_per_shard);
    if (files.empty()) return;
    list_of(files);
    Options options = listed();
    Summary summary;
    if (dataset_is_there(options_.out)) {
      options.append = true;
      summary = convert_to_folder(options, hooks_);
    } else {
      summary = convert_first(options);
    }
    done_.converted += summary.converted;
    done_.converted_shards += summary.converted_shards;
    done_.bytes_read += summary.bytes_read;
    done_.convert_seconds += summary.convert_seconds;
    done_.stages.read += summary.stages.read;
    done_.stages.preprocess += summary.stages.preprocess;
    done_.stages.store += summary.stages.store;
    done_.warnings.add(summary.warnings);
    done_.jpeg.add(summary.jpeg);
    known_.clear();
    look_at_out();
    if (how_.grown) how_.grown(summary_of(read_dataset_info(options_.out)));
  }

  // Beside `out`, which so is a whole data set or none.
  Summary convert_first(Options options) {
    options.out = first_;
    Summary summary;
    try {
      summary = convert_to_folder(options, hooks_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument || folder_state(first_) != FolderState::incomplete)
        throw;
      // Of a killed run, whose first images were others; unless it is at work.
      FolderLock lock;
      if (lock.try_lock(first_, true) == LockResult::busy) refuse_busy(first_, lock.holder(), "");
      fs::remove_all(first_);
      lock.unlock();
      summary = convert_to_folder(options, hooks_);
    }
    put_first();
    return summary;
  }

  void put_first() {
    rename_file(first_, options_.out);
    flush_folder(options_.out.parent_path());
    warn_of_classes();
  }

  // The list that is converted lies beside nothing: what lies beside the folder says how classes are numbered
  // elsewhere.
  void warn_of_classes() const {
    if (!how_.warn) return;
    LabelTable labels;
    for (const std::string& name : read_dataset_info(options_.out).classes)
      labels.classes.push_back(escape_key(name));
    Options options = options_;
    options.images = options_.root.string();
    for (const std::string& text : class_warnings(options, scan(), labels)) how_.warn(text);
  }

  // A file without a name, so that two runs do not meet and none is left.
  void list_of(const std::vector<NewFile>& files) {
    std::string text;
    const fs::path root = fs::absolute(options_.root).lexically_normal();
    for (const NewFile& file : files) text += (root / file.path).string() + "\n";
    list_ = open_unnamed(options_.out.parent_path());
    pwrite_all(list_.get(), as_byte_span(text), 0, options_.out.parent_path());
  }
  Options listed() const {
    Options options = options_;
    options.images = fmt::format("@/proc/self/fd/{}", list_.get());
    options.root = fs::absolute(options_.root).lexically_normal();
    return options;
  }

 public:
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

 private:
  Options options_;
  const FollowOptions& how_;
  const Hooks& hooks_;
  fs::path first_;  // the first data set, until it is finished
  UniqueFd list_;
  std::unordered_set<std::string> known_;        // keys of the inputs that are in `out`
  std::unordered_map<std::string, Look> looks_;  // at those that are not, by path
  std::vector<Reject> unlisted_;                 // folders that the last scan could not list
  Summary done_;
};

}  // namespace

Summary follow(const Options& options, const FollowOptions& how, const Hooks& hooks) {
  options.check();
  require_growing_folder(options);
  return Follower(options, how, hooks).run();
}

}  // namespace shard::convert
