// System calls on files, each with the path and the system's reason in its error. EINTR and short transfers
// are handled.
//
// Errors of all: not_found (ENOENT), resource (EMFILE, ENFILE), io (everything else).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_handle.hpp"

namespace shard {

// The system's words for an error: "No such file or directory".
std::string errno_text(int error_number);
// Throws `what` "PATH": reason of `error_number`.
[[noreturn]] void throw_errno(std::string_view what, const std::filesystem::path& path, int error_number);

// For EMFILE and ENFILE: a space and, in brackets, what to do. Else empty.
std::string descriptor_advice(int error_number);

// For a path that does not exist: "; folder "/data" has no "trian": correct the path".
std::string missing_advice(const std::filesystem::path& path);

UniqueFd open_read(const std::filesystem::path& path);
// A regular file, which is not reached through a symbolic link; with O_CREAT its mode is 0644 less the umask.
// Invalid: errno says why there is none (0: it is something else).
UniqueFd open_plain(const std::filesystem::path& path, int flags) noexcept;
// Whether `path` names the file that `fd` has open.
bool names_file(const std::filesystem::path& path, int fd) noexcept;

// The names of what is in a folder, in no order. Errors: io.
std::vector<std::string> names_in(const std::filesystem::path& folder);

// Whether there is something of that name, be it a link to nothing.
bool is_present(const std::filesystem::path& path) noexcept;

enum class LockState : std::uint8_t { taken, busy, not_supported };
// Tries to lock an open file or folder for this process alone (flock). EINTR is handled.
LockState lock_alone(int fd) noexcept;
// A new file without a name in `folder`, for reading and writing. The kernel removes it with its
// last descriptor and mapping, however the process ends. Where the file system has no such files,
// its name is removed at once.
UniqueFd open_unnamed(const std::filesystem::path& folder);
// TMPDIR, or /tmp if that is no folder.
std::filesystem::path temporary_folder();
// Bytes of a regular file; io for anything else.
std::uint64_t regular_file_size(int fd, const std::filesystem::path& path);
// Reads from `offset` on: fewer bytes than `out` has only at the end of the file. Returns how many.
std::size_t pread_some(int fd, std::span<std::byte> out, std::uint64_t offset,
                       const std::filesystem::path& path);
// Fills `out` from `offset`. Throws io if the file ends before.
void pread_all(int fd, std::span<std::byte> out, std::uint64_t offset, const std::filesystem::path& path);
void pwrite_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset,
                const std::filesystem::path& path);
// Reserves the first `size_bytes`, so that writing them cannot run out of space. If the file system cannot do
// this, it only sets the size. For ENOSPC the message has the needed and the free bytes.
void preallocate(int fd, std::uint64_t size_bytes, const std::filesystem::path& path);
void truncate(int fd, std::uint64_t size_bytes, const std::filesystem::path& path);
void sync_file(int fd, const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);
// Renames without replacing. False: `to` exists, and nothing has changed. Uses renameat2(RENAME_NOREPLACE).
// If the file system does not have that, it makes a hard link; without hard links either, it checks before
// the rename.
bool rename_file_new(const std::filesystem::path& from, const std::filesystem::path& to);
// Whether `path` is a regular file that holds the same bytes as `fd`. Errors: io.
bool holds_same_bytes(int fd, const std::filesystem::path& fd_path, const std::filesystem::path& path);
// The folder that holds `path`: "." for a plain name.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace shard
