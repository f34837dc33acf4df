// RemoteFile: a file on a server whose size is known, with a place for its head in a LocalArea.
//
// The head of a shard is kept in that place, where it is mapped;
// samples are read on demand, by range, into memory. Thread safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "remote/cache/local_area.hpp"
#include "remote/s3/remote_folder.hpp"
#include "shard/error.hpp"

namespace shard {

class RemoteFile {
 public:
  // A file of `folder`. `size_bytes` 0: asks the server. Errors: those of HttpClient, and io.
  // `likely_head_bytes`: how much a reader of its head should ask for first.
  RemoteFile(std::shared_ptr<const RemoteFolder> folder, const std::string& name, std::uint64_t size_bytes,
             std::uint64_t likely_head_bytes = 512 * 1024);
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;
  ~RemoteFile();  // gives the place of its head back

  std::uint64_t size_bytes() const noexcept { return object_->size_bytes(); }
  std::uint64_t likely_head_bytes() const noexcept { return likely_head_bytes_; }
  const LocalArea& area() const noexcept { return *area_; }

  // Reads from the server. Errors: those of HttpClient.
  void read(std::uint64_t begin, std::span<std::byte> out) const;
  // The same, for readers that go through a file from its beginning: a thread that reads where it ended
  // before gets the bytes up to `end` ahead, at most kAheadBytes, in one request. It may read some twice.
  void read_ahead(std::uint64_t begin, std::span<std::byte> out, std::uint64_t end) const;
  // Forgets what this thread has read ahead.
  void forget_ahead() const noexcept;
  // Writes the head of the file to the area, instead of one that is there. Returns its offset. Called by one
  // thread, before others know the file. Errors: io.
  std::uint64_t keep_head(std::span<const std::byte> bytes) const;

  static constexpr std::uint64_t kAheadBytes = std::uint64_t{4} << 20U;

 private:
  std::shared_ptr<const RemoteFolder> folder_;
  std::shared_ptr<LocalArea> area_;
  std::unique_ptr<HttpObject> object_;
  std::uint64_t likely_head_bytes_;
  void give_back_head() const noexcept;

  mutable std::uint64_t head_offset_ = 0;  // in the area
  mutable std::uint64_t head_bytes_ = 0;
  std::uint64_t id_ = 0;  // of this object among all of the process
};

}  // namespace shard
