// Inputs on servers: archives, and the files of a list.
//
// What one file of a list does wrong (it is not there, refused, or its answers contradict each other) is an
// UnreadableInput, so a reject. What the server, the network or the keys do is a ServerFailure and ends the
// run: the same command goes on later. A file that is not the one that was listed (another size or ETag) is
// invalid_argument, as a local file is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "remote/s3/remote_folder.hpp"
#include "shard/error.hpp"

namespace shard::convert {

class ServerFailure : public Error {
 public:
  using Error::Error;
};

// Makes `out` as long as `size_bytes` in steps, each filled by `fill` before there is memory for the next: a
// size is only a claim. Throws UnreadableInput (resource: no memory) and what `fill` throws.
void grow_by_steps(std::vector<std::byte>& out, std::uint64_t size_bytes,
                   const std::function<void(std::uint64_t at, std::span<std::byte> step)>& fill);

// An archive. Thread safe.
class RemoteArchive {
 public:
  // Asks for its size. Errors: those of HttpClient.
  explicit RemoteArchive(const std::string& address);
  std::uint64_t size() const noexcept { return object_->size_bytes(); }
  // Of its ETag; 0: the server gives none.
  std::uint64_t stamp() const;
  // Fills `out`. Errors: ServerFailure; invalid_argument (it is another one now).
  void read(std::uint64_t offset, std::span<std::byte> out, const std::stop_token& stop = {}) const;

 private:
  std::shared_ptr<const RemoteFolder> folder_;
  std::unique_ptr<HttpObject> object_;
};

// The files below one address. Thread safe.
class RemoteFiles {
 public:
  // Errors: those of RemoteFolder::open().
  explicit RemoteFiles(const std::string& address) : folder_(RemoteFolder::open(address)) {}

  struct State {
    std::uint64_t size_bytes = 0;
    std::uint64_t stamp = 0;  // as above
  };
  // Asks for a file, by its path below the address. Errors: UnreadableInput, ServerFailure.
  State look(const std::string& path) const;
  // The bytes of a file that look() has seen, into `out`. Errors: as look(); invalid_argument (it is another
  // one now); UnreadableInput of code resource (no memory).
  void read(const std::string& path, const State& seen, std::vector<std::byte>& out,
            const std::stop_token& stop = {}) const;

 private:
  std::shared_ptr<const RemoteFolder> folder_;
};

}  // namespace shard::convert
