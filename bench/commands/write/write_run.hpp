// Writes files once in one way and times it, and checks what was written.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shard::bench {

enum class WriteMethod : std::uint8_t { buffered, direct, mapped };
std::string write_name(WriteMethod method, bool preallocated);  // "buffered", "O_DIRECT + fallocate"

struct WriteSizes {
  std::uint64_t size_bytes = std::uint64_t{1} << 30U;     // of a run
  std::uint64_t shard_bytes = std::uint64_t{256} << 20U;  // of a file; the last one may be smaller
  std::uint64_t block_bytes = std::uint64_t{1} << 20U;    // of a write; the last one of a file may be smaller
};

// The data to write: pseudo-random bytes that no filesystem can compress; no two blocks of a run are equal.
// Not thread safe. A block is valid until the next call.
class BlockSource {
 public:
  explicit BlockSource(std::uint64_t block_bytes);
  std::span<std::byte> block(std::uint64_t index);  // 4096-aligned

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::uint64_t block_bytes_;
  std::uint64_t blocks_;  // in memory; they are used again with another number in front
  std::unique_ptr<std::byte, Free> memory_;
};

struct WriteSample {
  std::uint64_t bytes = 0;
  double write_seconds = 0;  // making the files, reserving their space, every write
  double sync_seconds = 0;   // after that: fsync of every file and of the folder
  double durable_seconds() const noexcept { return write_seconds + sync_seconds; }
};

struct WriteRun {
  WriteSample sample;
  std::vector<std::filesystem::path> files;
};

// Writes the files of a run into `folder`, which must be empty. Errors: unsupported (the filesystem has no
// O_DIRECT or no fallocate), io (naming the file), cancelled.
WriteRun write_once(const std::filesystem::path& folder, WriteMethod method, bool preallocated,
                    const WriteSizes& sizes, BlockSource& source, const std::atomic<bool>& cancel);

// Reads blocks of the files back, the first and the last of each and some between. Returns how many. Errors:
// corrupt naming file and offset; io.
std::uint64_t check_written(std::span<const std::filesystem::path> files, const WriteSizes& sizes,
                            BlockSource& source);

}  // namespace shard::bench
