// Lists the members of a tar archive with the places of their bytes, so that they can be read in any order.
//
// Reads ustar (POSIX.1-1988), the names and sizes of pax (POSIX.1-2001) and of GNU tar, and old archives
// without a magic number. Every header is a block of 512 bytes; the bytes of members are passed over.
// Our own reader, because libarchive does not say where the bytes of a member begin, and reads an
// archive in sequence only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <cstddef>
#include <span>

#include "shard/error.hpp"

namespace shard::convert {

struct TarMember {
  // As the archive says, '/' between parts, without "./" in front. Bytes, not text.
  std::string name;
  std::uint64_t offset = 0;  // of its bytes
  std::uint64_t size_bytes = 0;
  // Not empty: the member cannot be used, and why.
  std::string problem;
};

struct TarListing {
  // Regular files, in the order of the archive. Folders are left out;
  // links, devices and sparse files have a problem.
  std::vector<TarMember> members;
  // Not empty: why the archive could not be read to its end, or may not be whole: it has no end, or data
  // behind it. The members before that place are in `members`.
  std::string problem;
};

// Why a name cannot be that of a member. Empty: it can.
std::string problem_of_name(std::string_view name);

// Fills `out` from `offset` on; returns how many bytes there were. Errors pass through.
using TarBytes = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> out)>;

// Memory: the members; and at most 1 MiB for names. Never throws for what the archive contains.
TarListing list_tar(const TarBytes& bytes, std::uint64_t archive_bytes);

}  // namespace shard::convert
