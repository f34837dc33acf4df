// Reads image files below one root folder, into a buffer that is reused.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "shard/error.hpp"

namespace shard::convert {

// An input that cannot be read: a reject, as opposed to trouble of our own (too many open files, no memory),
// which is an Error that ends the run.
class UnreadableInput : public Error {
 public:
  using Error::Error;
};

// One per thread.
class InputReader {
 public:
  explicit InputReader(std::filesystem::path root) : root_(std::move(root)) {}
  // The file's bytes; valid until the next call. Regular files of at most 1 GiB. Throws UnreadableInput,
  // Error (resource).
  std::span<const std::byte> read(const std::string& relative_path);

 private:
  std::filesystem::path root_;
  std::vector<std::byte> buffer_;
};

}  // namespace shard::convert
