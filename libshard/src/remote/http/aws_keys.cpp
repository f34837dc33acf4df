#include "remote/http/aws_keys.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace shard {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::chrono::minutes kRenewBefore{10};
constexpr milliseconds kShortestWait{1000};  // between two failures, while the keys are valid
constexpr milliseconds kLongestWait{30000};

bool has_expired(const SigningKeys& keys, WallTime now) { return keys.expires && *keys.expires <= now; }

}  // namespace

AwsKeys::AwsKeys(std::unique_ptr<KeySource> source, std::function<WallTime()> clock)
    : source_(std::move(source)), clock_(std::move(clock)) {
  take(source_->fetch());
}

SigningKeys AwsKeys::current() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

void AwsKeys::take(SigningKeys keys) {
  const WallTime now = clock_();
  if (has_expired(keys, now))
    throw Error(ErrorCode::io,
                "the temporary keys that were given have expired already: check this machine's clock");
  keys.version = keys_.version + 1;
  keys_ = std::move(keys);
  due_.reset();
  if (keys_.expires)
    due_ = *keys_.expires - std::min<WallTime::duration>(kRenewBefore, (*keys_.expires - now) / 4);
}

bool AwsKeys::renewing() const { return renewing_ == ::getpid(); }

void AwsKeys::prepare() {
  if (!source_) return;
  std::unique_lock lock(mutex_);
  while (due_ && clock_() >= *due_) {
    if (!renewing()) return renew(lock);
    if (!has_expired(keys_, clock_())) return;
    renewed_.wait(lock, [&] { return !renewing(); });
    if (failure_) std::rethrow_exception(failure_);  // of the thread that was waited for
  }
}

bool AwsKeys::replace(std::uint64_t refused_version) {
  if (!source_) return false;
  std::unique_lock lock(mutex_);
  renewed_.wait(lock, [&] { return !renewing(); });
  if (keys_.version != refused_version) return true;
  const std::string refused = keys_.id + '\n' + keys_.session;
  keys_.expires = WallTime{};  // so that a failure is an error, now and later
  if (due_) due_ = WallTime{};
  renew(lock);
  return keys_.id + '\n' + keys_.session != refused;
}

// Fetches without the lock: others go on meanwhile.
void AwsKeys::renew(std::unique_lock<std::mutex>& lock) {
  renewing_ = ::getpid();
  SigningKeys keys;
  failure_ = nullptr;
  try {
    lock.unlock();
    keys = source_->fetch();
    lock.lock();
    take(std::move(keys));
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    failure_ = std::current_exception();
  }
  renewing_ = 0;
  renewed_.notify_all();
  if (!failure_) return;
  const WallTime now = clock_();
  if (has_expired(keys_, now)) std::rethrow_exception(failure_);
  failure_ = nullptr;
  const milliseconds left = keys_.expires ? duration_cast<milliseconds>(*keys_.expires - now) : kLongestWait;
  due_ = now + std::clamp(left / 4, kShortestWait, kLongestWait);
}

}  // namespace shard
