// RemoteCopy: bytes of files on a server, to a descriptor, as fast as the network gives them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shard/error.hpp"

namespace shard {

// Has connections of its own, and keeps nothing of what it reads. Thread safe.
class RemoteCopy {
 public:
  // `folder`: its address (shard/remote.hpp). Sends no request. Errors: invalid_argument (not an address),
  // unsupported (this build has no libcurl).
  explicit RemoteCopy(const std::string& folder);
  RemoteCopy(const RemoteCopy&) = delete;
  RemoteCopy& operator=(const RemoteCopy&) = delete;
  ~RemoteCopy();

  // Bytes [begin, begin + size_bytes) of a file in the folder, which has `file_bytes`, to `fd` from offset 0
  // on. Errors: not_found, io, corrupt (the file has another size).
  void copy_to(int fd, const std::string& name, std::uint64_t file_bytes, std::uint64_t begin,
               std::uint64_t size_bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
