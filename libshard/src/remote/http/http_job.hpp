// HttpJob: what one call of HttpClient waits for. Its pieces are requests of their own;
// each ends by finish().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "remote/http/http_client.hpp"

namespace shard {

struct HttpJob {
  enum class Sink { memory, file, document };

  HttpObject& object;
  Sink sink = Sink::memory;
  std::uint64_t begin = 0;            // of the range; memory and file begin there
  std::byte* memory = nullptr;        // sink memory
  int fd = -1;                        // sink file
  std::filesystem::path path{};       // sink file; for messages
  std::uint64_t offset = 0;           // sink file
  HttpClient::Arrived arrived{};      // sink file; may be empty
  std::vector<std::byte> document{};  // sink document: the whole object
  std::uint64_t max_bytes = 0;        // sink document
  bool urgent = false;
  const ObjectCall* call = nullptr;  // sink document; null: a read
  std::string payload{};             // of the call: what the signature has of its body
  ObjectReply reply{};               // of the call, but its body
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces{};

  std::atomic<bool> cancelled{false};
  std::mutex mutex{};
  std::condition_variable over{};
  std::size_t left = 0;  // pieces
  std::exception_ptr error{};

  // The version of keys that the server called expired; 0: none.
  // Requests wait until the thread that waits for the job has got others.
  std::atomic<std::uint64_t> expired_keys{0};

  // Keys of this version have expired. Thread safe.
  void ask_for_keys(std::uint64_t version) {
    const std::lock_guard lock(mutex);
    expired_keys = version;
    over.notify_all();
  }
  // Gets others, while the lock is open. What fails ends the job.
  void renew_keys(std::unique_lock<std::mutex>& lock) {
    std::exception_ptr failure;
    lock.unlock();
    try {
      object.access().keys->replace(expired_keys);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    expired_keys = 0;
    if (!failure) return;
    if (!error) error = std::move(failure);
    cancelled = true;
  }

  // One piece is over. Thread safe.
  void finish(std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    if (why && !error) error = std::move(why);
    if (error) cancelled = true;  // the other pieces are dropped
    if (--left == 0) over.notify_all();
  }
};

}  // namespace shard
