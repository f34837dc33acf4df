#include "convert/sources/input_fetcher.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/system/thread_name.hpp"
#include "convert/sources/input_file.hpp"

namespace shard::convert {
namespace {

constexpr std::uint64_t kGroupBytes = std::uint64_t{4} << 20U;
constexpr std::uint64_t kGapBytes = 16 * 1024;  // between members: it costs less than another request
constexpr unsigned kFetchThreads = 32;
constexpr std::chrono::milliseconds kLookAgain{100};

}  // namespace

InputFetcher::InputFetcher(const InputList& list, std::uint64_t per_shard, std::function<bool()> stopped)
    : list_(list), per_shard_(per_shard), stopped_(std::move(stopped)) {
  for (unsigned i = 0; i < kFetchThreads; ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::exception& error) {
      if (!threads_.empty()) return;
      throw Error(ErrorCode::resource, std::string("cannot start a thread: ") + error.what());
    }
  }
}

InputFetcher::~InputFetcher() {
  stop_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  may_fetch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<InputFetcher::Group> InputFetcher::groups_of(std::uint64_t first, std::uint64_t end) const {
  std::vector<Group> groups;
  for (std::uint64_t i = first; i < end; ++i) {
    const Input& input = list_.inputs[i];
    const Archive* const archive = list_.archive_of(input);
    if (!groups.empty() && archive != nullptr && archive == list_.archive_of(list_.inputs[i - 1])) {
      Group& last = groups.back();
      const std::uint64_t last_end = last.begin + last.size_bytes;
      const std::uint64_t input_end = input.offset + input.size_bytes;
      if (input.offset >= last_end && input.offset - last_end <= kGapBytes &&
          input_end - last.begin <= kGroupBytes) {
        last.size_bytes = input_end - last.begin;
        ++last.inputs;
        ++last.left;
        continue;
      }
    }
    Group group;
    group.first = i;
    group.inputs = group.left = 1;
    group.begin = input.offset;
    group.size_bytes = input.size_bytes;
    groups.push_back(std::move(group));
  }
  return groups;
}

InputFetcher::Shard& InputFetcher::shard_of(std::uint64_t index) {
  const std::uint64_t number = index / per_shard_;
  Shard& shard = shards_[number];
  if (shard.groups.empty()) {
    const std::uint64_t first = number * per_shard_;
    const std::uint64_t end = std::min<std::uint64_t>(first + per_shard_, list_.inputs.size());
    shard.groups = groups_of(first, end);
    shard.left = end - first;
  }
  return shard;
}

void InputFetcher::start(Group& group, bool urgent) {
  if (group.state != State::idle) return;
  group.state = State::started;
  held_bytes_ += group.size_bytes;
  if (urgent)
    queue_.push_front(&group);
  else
    queue_.push_back(&group);
  may_fetch_.notify_one();
}

InputFetcher::Fetched InputFetcher::get(std::uint64_t index) {
  const Input& input = list_.inputs[index];
  std::unique_lock lock(mutex_);
  Shard& shard = shard_of(index);
  const auto behind = std::upper_bound(shard.groups.begin(), shard.groups.end(), index,
                                       [](std::uint64_t i, const Group& group) { return i < group.first; });
  Group& group = *std::prev(behind);
  start(group, true);
  shard.ahead = std::max(shard.ahead, static_cast<std::size_t>(behind - shard.groups.begin()));
  while (shard.ahead < shard.groups.size() &&
         held_bytes_ + shard.groups[shard.ahead].size_bytes <= kAheadBytes)
    start(shard.groups[shard.ahead++], false);
  while (group.state != State::ended) {
    fetched_.wait_for(lock, kLookAgain);
    if (group.state != State::ended && stopped_()) throw Error(ErrorCode::cancelled, "the run was stopped");
  }
  Fetched fetched{group.bytes, {}};
  const std::exception_ptr error = group.error;
  if (fetched.owner)
    fetched.bytes = std::span(*fetched.owner)
                        .subspan(static_cast<std::size_t>(input.offset - group.begin),
                                 static_cast<std::size_t>(input.size_bytes));
  if (--group.left == 0) {
    held_bytes_ -= group.size_bytes;
    group.bytes.reset();
  }
  if (--shard.left == 0) shards_.erase(index / per_shard_);
  if (error) std::rethrow_exception(error);
  return fetched;
}

void InputFetcher::work() {
  name_thread("shard-fetch");
  std::unique_lock lock(mutex_);
  for (;;) {
    may_fetch_.wait(lock, [&] { return quit_ || !queue_.empty(); });
    if (quit_) return;
    Group& group = *queue_.front();
    queue_.pop_front();
    lock.unlock();
    std::shared_ptr<const std::vector<std::byte>> bytes;
    std::exception_ptr error;
    try {
      bytes = std::make_shared<const std::vector<std::byte>>(fetch(group));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    group.bytes = std::move(bytes);
    group.error = std::move(error);
    group.state = State::ended;
    fetched_.notify_all();
  }
}

// What it reads of the group does not change while it is started.
std::vector<std::byte> InputFetcher::fetch(const Group& group) const {
  const Input& input = list_.inputs[group.first];
  check_input_size(group.size_bytes);
  std::vector<std::byte> bytes;
  const Archive* const archive = list_.archive_of(input);
  if (archive == nullptr)
    list_.server->read(input.path, {input.size_bytes, input.stamp}, bytes, stop_.get_token());
  else
    archive->open->read_into(bytes, group.begin, group.size_bytes, stop_.get_token());
  return bytes;
}

}  // namespace shard::convert
