// Reads image files below one root folder, or members of archives, into a buffer that is reused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "convert/sources/scan.hpp"
#include "shard/convert/inputs.hpp"

namespace shard::convert {

// Refuses more than 1 GiB. Throws UnreadableInput (resource).
void check_input_size(std::uint64_t size);

// Not thread safe: each thread has its own.
class InputReader {
 public:
  explicit InputReader(std::filesystem::path root) : root_(std::move(root)) {}
  // `list` must outlive the reader.
  explicit InputReader(const InputList& list) : root_(list.root), list_(&list) {}
  // The bytes of an input of the list; otherwise as below. Throws invalid_argument if its archive was
  // replaced or written to since it was listed.
  std::span<const std::byte> read(const Input& input);
  // The same without what follows the first `most` bytes, where that need not be read.
  std::span<const std::byte> read_front(const Input& input, std::size_t most);
  // Of the file that was read last as a whole, after it was read: file_stamp(). 0: of an archive, or on a
  // server.
  std::uint64_t stamp() const noexcept { return stamp_; }
  // Reads a file, or a member of an archive that is no server's, to `out`. False: it has another size, or was
  // written to since it was listed.
  bool read_to(const Input& input, std::span<std::byte> out);
  // The bytes of the file, valid until the next call. Reads only regular files of at most 1 GiB. Throws
  // UnreadableInput, Error (resource).
  std::span<const std::byte> read(const std::string& relative_path);

 private:
  std::span<const std::byte> read_file(const std::string& relative_path, std::size_t most);
  UniqueFd open_file(const std::filesystem::path& path, std::uint64_t& size);
  std::span<const std::byte> read_member(const Archive& archive, const Input& input, std::size_t most);
  void make_room(std::size_t size);
  int open(const Archive& archive);
  void require_unchanged(const Archive& archive);
  static void check(const Archive& archive, int fd);
  int descriptor(const Archive& archive) { return archive.open ? archive.open->fd() : open(archive); }

  std::filesystem::path root_;
  const InputList* list_ = nullptr;
  std::vector<std::byte> buffer_;
  // Archives that were read last.
  struct Open {
    const Archive* archive = nullptr;
    UniqueFd fd;
  };
  static constexpr std::size_t kOpen = 8;
  std::array<Open, kOpen> open_;
  std::size_t next_ = 0;  // the one that makes room
  std::uint64_t stamp_ = 0;
  bool may_leave_atime_ = true;  // until a file is somebody else's
};

}  // namespace shard::convert
