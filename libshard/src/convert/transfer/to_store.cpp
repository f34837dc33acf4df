#include "convert/transfer/to_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/files/temp_file.hpp"
#include "base/system/thread_name.hpp"
#include "base/text/quote.hpp"
#include "convert/plan/advice.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/folder_lock.hpp"
#include "convert/publish/journal.hpp"
#include "convert/publish/stored_shard.hpp"
#include "convert/revise/convert_to_folder.hpp"
#include "convert/transfer/copy_source.hpp"
#include "format/dataset/dataset_json.hpp"
#include "remote/s3/object_upload.hpp"
#include "shard/shard_reader.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaitingShards = 2;    // for the thread that uploads, with the one that it sends
constexpr const char* kSet = "set";          // the conversion
constexpr const char* kTaken = "taken";      // becomes `set`
constexpr const char* kRetired = "retired";  // was `set`
constexpr auto kCancelTurn = std::chrono::milliseconds(100);

// One for each address.
fs::path work_folder(const Options& options) {
  const char* const temporary = std::getenv("TMPDIR");
  const fs::path usual = temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
  return (options.work.empty() ? usual : options.work) /
         fmt::format("shardify-{}-{}", ::geteuid(), to_hex(xxh3(options.out.native())));
}

// A folder of our own: others could put files into that of somebody else.
void make_work_folder(const fs::path& folder) {
  make_folders(fs::absolute(folder).parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw_errno("cannot make the folder", folder, errno);
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) throw_errno("cannot look at", folder, errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is no folder of yours: give `work` another one", quoted(folder)));
}

// A hollow shard begins with zeros, which no shard does: its first bytes are the length of a header.
bool is_hollow(const fs::path& shard) {
  const UniqueFd fd = open_read(shard);
  std::array<std::byte, 8> first{};
  if (regular_file_size(fd.get(), shard) < first.size()) return true;
  pread_all(fd.get(), first, 0, shard);
  return load_u64(first) == 0;
}

// By a rename: the conversion, which goes on meanwhile, sees a shard of its size at each moment. One that is
// shorter would count as not finished.
void make_hollow(const fs::path& shard, std::uint64_t size_bytes) {
  TempFile hollow(shard);
  truncate(hollow.fd(), size_bytes, shard);
  hollow.publish_unflushed();
}

// The thread that uploads the shards of a folder.
class Publisher {
 public:
  Publisher(const S3Store& store, fs::path folder, const Hooks& hooks)
      : store_(store), folder_(std::move(folder)), hooks_(hooks), thread_([this] { work(); }) {}
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher() {
    stop_.request_stop();
    changed_.notify_all();
    thread_.join();
  }

  // Takes a finished shard. Waits while others wait. Throws what an upload has thrown, and cancelled.
  void take(const std::string& name) {
    take_leftovers();
    wait_until([&] { return waiting_.size() < kWaitingShards; });
    add(name);
  }

  // Until every shard is sent.
  void finish() {
    take_leftovers();
    wait_until([&] { return waiting_.empty(); });
  }

 private:
  // What an earlier run has finished and not sent. Not before the conversion has found that it
  // goes on with that run.
  void take_leftovers() {
    if (std::exchange(has_leftovers_, false))
      for (const std::string& name : finished_here())
        if (!is_hollow(folder_ / name)) add(name);
  }

  std::vector<std::string> finished_here() const {
    std::vector<std::string> names;
    if (dataset_is_there(folder_)) {
      for (const ShardSummary& shard : read_dataset_info(folder_).shards) names.push_back(shard.file);
    } else {
      for (const std::uint64_t shard : receipts_in(folder_)) names.push_back(shard_name(shard));
    }
    std::error_code error;
    std::erase_if(names, [&](const std::string& name) { return !fs::exists(folder_ / name, error); });
    return names;
  }

  void add(const std::string& name) {
    {
      const std::lock_guard lock(mutex_);
      if (std::find(waiting_.begin(), waiting_.end(), name) == waiting_.end()) waiting_.push_back(name);
    }
    changed_.notify_all();
  }

  template <class F>
  void wait_until(const F& done) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (error_) std::rethrow_exception(error_);
      if (done()) return;
      if (hooks_.cancel != nullptr && *hooks_.cancel) throw Error(ErrorCode::cancelled, "interrupted");
      changed_.wait_for(lock, kCancelTurn);
    }
  }

  void work() noexcept {
    name_thread("shard-upload");
    try {
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [&] { return stop_.stop_requested() || !waiting_.empty(); });
        if (stop_.stop_requested()) return;
        const std::string name = waiting_.front();
        lock.unlock();
        send(name);
        lock.lock();
        waiting_.pop_front();
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  // A shard of this run may be among the leftovers, too, and come again after it was sent.
  void send(const std::string& name) {
    const fs::path path = folder_ / name;
    if (is_hollow(path)) return;
    const UniqueFd fd = open_read(path);
    const std::uint64_t size = regular_file_size(fd.get(), path);
    upload_file(store_, name, fd.get(), path, counters_, stop_.get_token(),
                [&] { prove_shard(ShardReader::open(path), fd.get()); });
    make_hollow(path, size);
  }

  const S3Store& store_;
  const fs::path folder_;
  const Hooks& hooks_;
  bool has_leftovers_ = true;
  UploadCounters counters_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;  // the first one is being sent
  std::exception_ptr error_;
  std::thread thread_;
};

// The data set that the store has already, as a finished one with hollow shards.
// So the conversion finds it complete, or says what differs.
void take_over(const S3Store& store, const fs::path& work) {
  const FolderState state = folder_state(work / kSet);
  if ((state != FolderState::empty && state != FolderState::absent) || !store.stat(kDatasetFile)) return;
  const fs::path folder = work / kTaken;
  make_folders(folder);
  const auto object = store.folder().object(kDatasetFile);
  const std::vector<std::byte> document = store.folder().client().read_all(*object, kMaxDatasetBytes);
  for (const ShardSummary& shard : parse_dataset(as_text(document)).shards) {
    if (!shard_number(shard.file))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} holds a data set that shardify did not make: choose another prefix",
                              quoted(store.address())));
    make_hollow(folder / shard.file, shard.size_bytes);
  }
  publish_file(folder / kDatasetFile, as_text(document));
  rename_file(folder, work / kSet);
}

// At once, however long the removal takes: a folder with some of its files would be no data set.
void retire(const fs::path& work) {
  rename_file(work / kSet, work / kRetired);
  std::error_code error;
  fs::remove_all(work, error);  // the next run removes what is left
}

void remove_remains(const fs::path& work) {
  std::error_code error;
  for (const char* name : {kTaken, kRetired}) {
    fs::remove_all(work / name, error);
    if (error)
      throw Error(ErrorCode::io, fmt::format("cannot remove {}: {}", quoted(work / name), error.message()));
  }
}

// That no shard was removed from the store or replaced since it was sent.
// One that was is made again by the next run.
void require_shards(const S3Store& store, const fs::path& folder, const DatasetInfo& info) {
  const std::vector<StoredShard> found = look_at_stored(store, info.shards);
  std::string first;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == StoredShard::as_sent) continue;
    const std::string& file = info.shards[i].file;
    remove_file(folder / file);
    if (first.empty())
      first =
          fmt::format("{} was sent, but {}", quoted(store.folder().address_of(file)),
                      found[i] == StoredShard::missing
                          ? "is gone: run the same command again, which makes it again"
                          : "was replaced, as by another run with the same address on a store that ignores "
                            "If-None-Match: remove it there and run the same command again");
  }
  if (!first.empty()) throw Error(ErrorCode::corrupt, first);
}

void publish_in_store(const S3Store& store, const fs::path& folder) {
  UploadCounters counters;
  require_shards(store, folder, read_dataset_info(folder));
  for (const char* name : {kInputsFile, kRejectsFile}) {
    std::error_code error;
    if (!fs::exists(folder / name, error)) continue;  // of a data set that was taken over
    upload_file(store, name, open_read(folder / name).get(), folder / name, counters);
  }
  upload_bytes(store, kDatasetFile, read_file(folder / kDatasetFile, kMaxDatasetBytes), counters);
}

// Messages of the conversion name the folder in which it works, and advise what only a folder can do.
[[noreturn]] void rethrow_for(const Error& error, const fs::path& work, const std::string& address) {
  throw Error(error.code(), advice_for_store(error.what(), work / kSet, work, address));
}

}  // namespace

Summary run_to_store(const Options& given, const Hooks& hooks) {
  const S3Store store(given.out.native());
  store.check_access(kDatasetFile);
  const fs::path work = work_folder(given);
  make_work_folder(work);
  FolderLock lock;
  if (lock.try_lock(work, true) == LockResult::busy) refuse_busy(work, lock.holder(), "");
  remove_remains(work);
  take_over(store, work);
  const fs::path folder = work / kSet;
  make_folders(folder);

  Options options = given;
  options.out = folder;
  options.work.clear();
  Summary summary;
  {
    Publisher publisher(store, folder, hooks);
    Hooks here = hooks;
    here.published = [&](const std::string& name) { publisher.take(name); };
    try {
      summary = convert_to_folder(options, here, true);
    } catch (const Error& error) {
      rethrow_for(error, work, store.address());
    }
    publisher.finish();
  }
  publish_in_store(store, folder);
  retire(work);
  return summary;
}

}  // namespace shard::convert
