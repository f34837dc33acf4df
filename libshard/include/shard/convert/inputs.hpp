// The inputs of a conversion, in its order, and their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "shard/error.hpp"

namespace shard::convert {

struct InputList;
class InputReader;

// An input that cannot be read. It becomes a reject. If the process itself lacks something (too many open
// files, no memory), that is an Error of code resource, which ends the run.
class UnreadableInput : public Error {
 public:
  using Error::Error;
};

// What a folder, a list, archives or arrays hold, as they were when they were listed. Copies share the list.
// Thread safe.
class Inputs {
 public:
  // `images` as in Options. Errors: not_found, io, unsupported, invalid_argument (nothing found, duplicate
  // paths, a list whose root is not obvious), naming the path.
  explicit Inputs(const std::string& images);

  std::uint64_t size() const noexcept;
  // The file of input `index` is root() / path(index); of archives, path() is the member's name. Its bytes
  // are not escaped. `index` is below size().
  const std::filesystem::path& root() const noexcept;
  const std::string& path(std::uint64_t index) const noexcept;

  class Reader;

 private:
  std::shared_ptr<const InputList> list_;
};

// Reads inputs into a buffer that is reused. Not thread safe: each thread has its own.
class Inputs::Reader {
 public:
  explicit Reader(const Inputs& inputs);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();
  // The bytes of an image file, valid until the next call; an item of an array is handed on as one. Errors:
  // UnreadableInput, resource, io (its server), invalid_argument (its archive was changed since it was
  // listed).
  std::span<const std::byte> read(std::uint64_t index);

 private:
  std::shared_ptr<const InputList> list_;
  std::unique_ptr<InputReader> reader_;
};

}  // namespace shard::convert
