// Compressed arrays: members of .npz that numpy.savez_compressed wrote (Deflate), and .gz. Their items
// cannot be read in place, so they are unpacked once, when they are listed, into a file without a name in
// the folder for temporary files ($TMPDIR, else /tmp). It is gone when the run ends, however it ends.
// Memory: 1 MiB. zlib is named here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/sources/open_archive.hpp"

namespace shard::convert {

enum class Packed : std::uint8_t { deflate, gzip };

// A compressed part of a file, from its begin to its end. Not thread safe.
class Unpacker {
 public:
  // `file` must outlive it. Error: resource (no memory).
  Unpacker(const OpenArchive& file, std::uint64_t offset, std::uint64_t size_bytes, Packed kind);
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker();

  // How many bytes there were: fewer only at the end. Errors: corrupt (damaged, cut off,
  // a wrong checksum of gzip), io.
  std::size_t read(std::span<std::byte> out);
  // Of all bytes that read() has returned (CRC-32).
  std::uint32_t checksum() const noexcept;
  // No more than this can come out of the compressed bytes: Deflate has a limit of about 1,032.
  static std::uint64_t most_bytes(std::uint64_t packed_bytes) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `begin`, which has been read already, and what follows, `size_bytes` in all, as a file without a name.
// `checksum`: of all of it. Errors: corrupt (more or fewer bytes, another checksum), resource (no space for
// it, with the number of bytes and the folder), io.
std::shared_ptr<const OpenArchive> unpack_file(Unpacker& unpacker, std::span<const std::byte> begin,
                                               std::uint64_t size_bytes,
                                               std::optional<std::uint32_t> checksum = std::nullopt);

}  // namespace shard::convert
