// Reads whole files into memory, with the errors of this library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace shard {

// The bytes of a regular file (or of a pipe or device, until its end). Reading is retried after EINTR.
// Errors: not_found; io (with the errno text; also for too many open files); resource if it has more than
// max_bytes. Never allocates much more than the file has.
std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

// The same into `out`, whose capacity is reused; out.size() is the size of the file afterwards.
void read_file_into(const std::filesystem::path& path, std::uint64_t max_bytes, std::vector<std::byte>& out);

}  // namespace shard
