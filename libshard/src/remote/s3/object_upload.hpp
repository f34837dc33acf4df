// Uploads files as objects of a store, resumable and verified.
//
//   the object is there:  its bytes are proven equal (ETag, or read back) -> was_there, nothing is sent
//                         they differ -> invalid_argument, nothing is changed
//   at most 16 MiB:       one request
//   larger:               parts of 8 MiB or more, several at a time. Parts of an upload that was not
//                         finished, by this or another process, are kept if their digest is that of the
//                         file's bytes; so they are not sent twice
//   then:                 the object is asked for again: its size, ETag and first bytes must be those of the
//                         file
//
// Several processes may upload the same file at once: one of them completes the object, and the others find
// it. A file that is changed meanwhile is an error (corrupt), and no object appears. Thread safe.
// Errors: those of S3Store; invalid_argument, corrupt, io.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>

#include "remote/s3/s3_store.hpp"

namespace shard {

// Read while uploads run, from any thread.
struct UploadCounters {
  std::atomic<std::uint64_t> sent_bytes{0};
  std::atomic<std::uint64_t> kept_bytes{0};  // that were there, in objects or in parts
  std::atomic<std::uint64_t> sent_parts{0};  // of multipart uploads
  std::atomic<std::uint64_t> kept_parts{0};
};

enum class Uploaded : std::uint8_t { sent, was_there };

// The file that `fd` is open on; `path` is for messages. `prove` is called first, and may throw:
// what it has read is what is sent.
Uploaded upload_file(const S3Store& store, const std::string& name, int fd, const std::filesystem::path& path,
                     UploadCounters& counters, const std::stop_token& stop = {},
                     const std::function<void()>& prove = {});

// A small document.
Uploaded upload_bytes(const S3Store& store, const std::string& name, std::span<const std::byte> bytes,
                      UploadCounters& counters, const std::stop_token& stop = {});

// How many bytes each part has, but the last one.
std::uint64_t upload_part_bytes(std::uint64_t size_bytes) noexcept;

}  // namespace shard
