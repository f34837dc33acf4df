// AwsKeys: the keys that sign requests to S3, renewed while they are used.
//
//   fetched ---- used ---- due ---------------- expires
//                           |  one thread renews them; the others go on with those that are still valid
//                           '- after a failure again, from time to time; when they expire it is an error
//
// `due` is 10 minutes before the end, or a quarter of what was left when they were fetched,
// whichever is later.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "shard/error.hpp"

namespace shard {

using WallTime = std::chrono::system_clock::time_point;

struct SigningKeys {
  std::string id;
  std::string secret;
  std::string session{};              // of temporary keys
  std::optional<WallTime> expires{};  // nothing: not known, or never
  std::uint64_t version = 0;          // grows whenever AwsKeys gets others
};

// Where keys come from.
class KeySource {
 public:
  virtual ~KeySource() = default;
  // Waits for a bounded time. Errors: io, corrupt, invalid_argument; without secrets.
  virtual SigningKeys fetch() = 0;
};

// Thread safe, also in a child after fork().
class AwsKeys {
 public:
  // Keys that stay as they are.
  explicit AwsKeys(SigningKeys keys) : keys_(std::move(keys)) {}
  // Fetches them. `clock`: the time by which they are due and expire. Errors: those of the source;
  // io, if they have expired.
  explicit AwsKeys(std::unique_ptr<KeySource> source,
                   std::function<WallTime()> clock = std::chrono::system_clock::now);

  // As they are now. Does not wait.
  SigningKeys current() const;
  // Before a request: renews keys that expire soon. Waits only if there are none that are valid.
  // Errors: those of the source.
  void prepare();
  // The server refused the keys of this version as expired. True: there are others now. False: there is no
  // way to others. Errors: those of the source.
  bool replace(std::uint64_t refused_version);

 private:
  bool renewing() const;
  void renew(std::unique_lock<std::mutex>& lock);
  void take(SigningKeys keys);

  const std::unique_ptr<KeySource> source_;  // null: they stay as they are
  const std::function<WallTime()> clock_;    // with a source
  mutable std::mutex mutex_;
  std::condition_variable renewed_;
  SigningKeys keys_;
  std::optional<WallTime> due_;
  std::exception_ptr failure_;  // of the last renewal, if no valid keys are left
  pid_t renewing_ = 0;          // the process whose thread does it: not this one after fork()
};

}  // namespace shard
