// InputFetcher: brings inputs from servers before workers ask for them.
//
//   get(i) --> its group: one file, or inputs that follow each other in an archive, up to 4 MiB a request
//                |  is requested now, and those behind it in the same shard too, up to kAheadBytes in all
//                '- waits for it; the group is dropped when each of its inputs was got
//
// Thread safe. The order in which inputs are got is about that of the list.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "convert/sources/scan.hpp"
#include "shard/error.hpp"

namespace shard::convert {

class InputFetcher {
 public:
  static constexpr std::uint64_t kAheadBytes = std::uint64_t{64} << 20U;

  // All inputs of `list`, which must outlive it, are on servers. `stopped`: whether the run ends;
  // asked from any thread.
  InputFetcher(const InputList& list, std::uint64_t per_shard, std::function<bool()> stopped);
  InputFetcher(const InputFetcher&) = delete;
  InputFetcher& operator=(const InputFetcher&) = delete;
  ~InputFetcher();  // cancels requests

  struct Fetched {
    std::shared_ptr<const std::vector<std::byte>> owner;
    std::span<const std::byte> bytes;  // a part of what the owner has
  };
  // An input, each once. Errors: those of InputReader::read(); cancelled.
  Fetched get(std::uint64_t index);

 private:
  enum class State : std::uint8_t { idle, started, ended };
  struct Group {
    std::uint64_t first = 0;  // input
    std::uint64_t inputs = 0;
    std::uint64_t begin = 0;  // in the archive
    std::uint64_t size_bytes = 0;
    State state = State::idle;
    std::uint64_t left = 0;  // inputs that were not got
    std::shared_ptr<const std::vector<std::byte>> bytes;
    std::exception_ptr error;
  };
  struct Shard {
    std::vector<Group> groups;
    std::size_t ahead = 0;  // the first group that was not looked at
    std::uint64_t left = 0;
  };

  Shard& shard_of(std::uint64_t index);
  std::vector<Group> groups_of(std::uint64_t first, std::uint64_t end) const;
  void start(Group& group, bool urgent);
  void work();
  std::vector<std::byte> fetch(const Group& group) const;

  const InputList& list_;
  const std::uint64_t per_shard_;
  const std::function<bool()> stopped_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable may_fetch_;
  std::condition_variable fetched_;
  std::map<std::uint64_t, Shard> shards_;  // those that are converted
  std::deque<Group*> queue_;
  std::uint64_t held_bytes_ = 0;  // of groups that were started and not dropped
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shard::convert
