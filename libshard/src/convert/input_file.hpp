// Reads image files below one root folder, into a buffer that is reused.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "shard/error.hpp"

namespace shard::convert {

// An input that cannot be read. It becomes a reject. If the process itself lacks something (too many open
// files, no memory), that is an Error of code resource, which ends the run.
class UnreadableInput : public Error {
 public:
  using Error::Error;
};

// Not thread safe: each thread has its own.
class InputReader {
 public:
  explicit InputReader(std::filesystem::path root) : root_(std::move(root)) {}
  // The bytes of the file, valid until the next call. Reads only regular files of at most 1 GiB. Throws
  // UnreadableInput, Error (resource).
  std::span<const std::byte> read(const std::string& relative_path);

 private:
  std::filesystem::path root_;
  std::vector<std::byte> buffer_;
};

}  // namespace shard::convert
