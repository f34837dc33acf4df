// The files of a cache folder: their names, which proofs count, and how many bytes they have. For ShardCache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

inline constexpr std::string_view kProofSuffix = ".proof";
inline constexpr std::string_view kPartSuffix = ".part";
// Of a proof at most.
inline constexpr std::uint64_t kProofBytes = 256;

// "0123456789abcdef-0123456789abcdef.safetensors", the same with ".proof", and with a dot before it and a
// suffix: a file that is being filled, or in transit.
bool is_entry_name(std::string_view name);
bool is_proof_name(std::string_view name);
bool is_passing_name(std::string_view name, std::string_view suffix);

// Whether nobody else can write to an open file: this user or root owns it, and no others may write to it.
bool is_ours(int fd) noexcept;
// Of an open file. 0: it cannot be asked.
std::uint64_t size_of(int fd) noexcept;

// Whether the proof beside `file`, which `fd` has open, names it as it is now, and both are ours. Never where
// the system does not say when it was started.
bool has_proof(const std::filesystem::path& file, int fd);
// Writes it, instead of one that is there. The folder is locked. False: it cannot be written;
// the file is proven again when it is needed next.
bool write_proof(const std::filesystem::path& file, int fd) noexcept;

// Removes the parts of processes that were killed, but `own`.
void remove_dead_parts(const std::filesystem::path& folder, const std::filesystem::path& own) noexcept;

// The bytes of all files in the folder, but those of the shard `entry` and what is in transit. Each shard,
// whole or not, counts with room for its proof. Exact if the folder is locked: other processes can only make
// it less meanwhile. Errors: io.
std::uint64_t bytes_of_others(const std::filesystem::path& folder, std::string_view entry);

}  // namespace shard
