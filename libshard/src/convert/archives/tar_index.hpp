// What the listing of a tar archive has read, as bytes that can be kept, so that the next listing need not
// read the headers, which are as far apart as members are large.
//
//   "L" u64 begin, u64 size, u64 members        the TarListing of the bytes [begin, begin + size)
//       each: text name, u64 offset, u64 size,
//             text problem
//       text problem
//   "R" u64 offset, text                        what was read at this place: the first bytes of a member
//
// Little-endian; a text is its u32 size and its bytes. Records in the order in which they were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/archives/tar.hpp"

namespace shard::convert {

class TarIndexWriter {
 public:
  void add(std::uint64_t begin, std::uint64_t size, const TarListing& listing);
  void add(std::uint64_t offset, std::span<const std::byte> bytes);
  // How many members and places there are.
  std::uint64_t entries() const noexcept { return entries_; }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t entries_ = 0;
};

class TarIndex {
 public:
  // Nothing: these bytes are not an index of an archive of that size. Whatever they hold, every place of a
  // member without a problem is inside the archive, and its name one that list_tar() gives.
  static std::optional<TarIndex> parse(std::string bytes, std::uint64_t archive_bytes);

  // The places (begin, size) whose listings can be taken.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places() const;
  // What list_tar() has found in [begin, begin + size). Once. Nothing: it was not listed.
  std::optional<TarListing> take(std::uint64_t begin, std::uint64_t size);
  // What was read at `offset`, if that were as many bytes. Nothing: they were not read.
  std::optional<std::string_view> read(std::uint64_t offset, std::size_t size) const;

 private:
  // Bytes [at, at + size) of `bytes_`, which a view would lose when this object is moved.
  struct Piece {
    std::uint64_t offset;
    std::size_t at;
    std::size_t size;
  };
  std::string bytes_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, TarListing> listings_;
  std::vector<Piece> pieces_;  // sorted by offset
};

}  // namespace shard::convert
