#include "commands/write/write_run.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "base/files/file_io.hpp"
#include "base/system/guarded_read.hpp"
#include "base/text/quote.hpp"
#include "data/random.hpp"
#include "harness/measure.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMemoryAlign = 4096;
constexpr std::uint64_t kSourceBytes = std::uint64_t{32} << 20U;

UniqueFd create(const fs::path& path, WriteMethod method) {
  const int direct = method == WriteMethod::direct ? O_DIRECT : 0;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | direct, 0600));
  if (!fd && errno == EINVAL && direct != 0)
    throw Error(ErrorCode::unsupported, "this filesystem has no O_DIRECT");
  if (!fd) throw_errno("cannot make", path, errno);
  return fd;
}

void preallocate(const UniqueFd& fd, std::uint64_t size, const fs::path& path) {
  while (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    if (errno == EOPNOTSUPP) throw Error(ErrorCode::unsupported, "this filesystem has no fallocate");
    if (errno != EINTR) throw_errno("cannot reserve space for", path, errno);
  }
}

void write_block(const UniqueFd& fd, std::span<const std::byte> block, std::uint64_t offset,
                 const fs::path& path) {
  while (!block.empty()) {
    const ssize_t wrote = ::pwrite(fd.get(), block.data(), block.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EINVAL)
      throw Error(ErrorCode::unsupported,
                  fmt::format("this filesystem refuses writes of {} bytes at {}", block.size(), offset));
    if (wrote < 0) throw_errno("cannot write", path, errno);
    if (wrote == 0) throw_errno("cannot write", path, ENOSPC);
    block = block.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
}

// A file mapped to be written; pages that the disk has no room for are an error, not a signal.
class Mapping {
 public:
  Mapping(const UniqueFd& fd, std::uint64_t size, const fs::path& path) : size_(size) {
    if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
      throw_errno("cannot set the size of", path, errno);
    memory_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (memory_ == MAP_FAILED) throw_errno("cannot map", path, errno);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(memory_, size_); }
  void write(std::span<const std::byte> block, std::uint64_t offset, const fs::path& path) {
    std::byte* const target = static_cast<std::byte*>(memory_) + offset;
    try {
      guarded("write", [&] { std::memcpy(target, block.data(), block.size()); });
    } catch (const Error&) {
      throw Error(ErrorCode::io,
                  fmt::format("cannot write {} through its mapping at {}: the disk is full or failed",
                              quoted(path), offset));
    }
  }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
};

struct FilePart {
  std::uint64_t first_block = 0;  // of the run
  std::uint64_t size = 0;
};

std::uint64_t blocks_of(std::uint64_t bytes, const WriteSizes& sizes) {
  return (bytes + sizes.block_bytes - 1) / sizes.block_bytes;
}

FilePart part_of(std::uint64_t file, const WriteSizes& sizes) {
  const std::uint64_t begin = file * sizes.shard_bytes;
  return {file * blocks_of(sizes.shard_bytes, sizes), std::min(sizes.shard_bytes, sizes.size_bytes - begin)};
}

}  // namespace

std::string write_name(WriteMethod method, bool preallocated) {
  const char* const name = method == WriteMethod::buffered ? "buffered"
                           : method == WriteMethod::direct ? "O_DIRECT"
                                                           : "mapped";
  return fmt::format("{}{}", name, preallocated ? " + fallocate" : "");
}

BlockSource::BlockSource(std::uint64_t block_bytes)
    : block_bytes_(block_bytes), blocks_(std::max<std::uint64_t>(1, kSourceBytes / block_bytes)) {
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kMemoryAlign, blocks_ * block_bytes_)));
  if (!memory_)
    throw Error(ErrorCode::resource,
                fmt::format("no memory for blocks of {} bytes: lower --block", block_bytes));
  Random random(0x5EED, 0, 0);
  for (std::uint64_t at = 0; at < blocks_ * block_bytes_; at += 8) {
    const std::uint64_t value = random.bits();
    std::memcpy(memory_.get() + at, &value, 8);
  }
}

std::span<std::byte> BlockSource::block(std::uint64_t index) {
  std::byte* const block = memory_.get() + index % blocks_ * block_bytes_;
  std::memcpy(block, &index, sizeof index);
  return {block, block_bytes_};
}

WriteRun write_once(const fs::path& folder, WriteMethod method, bool preallocated, const WriteSizes& sizes,
                    BlockSource& source, const std::atomic<bool>& cancel) {
  WriteRun run;
  std::vector<UniqueFd> open_files;
  Stopwatch watch;
  for (std::uint64_t file = 0; file * sizes.shard_bytes < sizes.size_bytes; ++file) {
    const FilePart part = part_of(file, sizes);
    const fs::path path = folder / fmt::format("shard-{:05}", file);
    UniqueFd fd = create(path, method);
    if (preallocated) preallocate(fd, part.size, path);
    std::unique_ptr<Mapping> mapping;
    if (method == WriteMethod::mapped) mapping = std::make_unique<Mapping>(fd, part.size, path);
    std::uint64_t index = part.first_block;
    for (std::uint64_t at = 0; at < part.size; at += sizes.block_bytes, ++index) {
      stop_when(cancel, kStoppedAndRemoved);
      const auto block = source.block(index).first(std::min(sizes.block_bytes, part.size - at));
      if (mapping)
        mapping->write(block, at, path);
      else
        write_block(fd, block, at, path);
    }
    run.sample.bytes += part.size;
    run.files.push_back(path);
    open_files.push_back(std::move(fd));
  }
  run.sample.write_seconds = watch.seconds();
  watch.restart();
  for (std::size_t i = 0; i < open_files.size(); ++i) {
    stop_when(cancel, kStoppedAndRemoved);
    sync_file(open_files[i].get(), run.files[i]);
  }
  sync_folder(folder);
  run.sample.sync_seconds = watch.seconds();
  return run;
}

std::uint64_t check_written(std::span<const fs::path> files, const WriteSizes& sizes, BlockSource& source) {
  std::uint64_t checked = 0;
  std::vector<std::byte> found(sizes.block_bytes);
  for (std::uint64_t file = 0; file < files.size(); ++file) {
    const FilePart part = part_of(file, sizes);
    const UniqueFd fd(::open(files[file].c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throw_errno("cannot read back", files[file], errno);
    const std::uint64_t blocks = blocks_of(part.size, sizes);
    const std::uint64_t step = std::max<std::uint64_t>(1, blocks / 16);
    for (std::uint64_t b = 0; b < blocks; b = b + 1 < blocks ? std::min(b + step, blocks - 1) : blocks) {
      const std::uint64_t offset = b * sizes.block_bytes;
      const auto expected =
          source.block(part.first_block + b).first(std::min(sizes.block_bytes, part.size - offset));
      const ssize_t got = ::pread(fd.get(), found.data(), expected.size(), static_cast<off_t>(offset));
      if (got < 0) throw_errno("cannot read back", files[file], errno);
      if (static_cast<std::size_t>(got) != expected.size() ||
          !std::equal(expected.begin(), expected.end(), found.begin()))
        throw Error(ErrorCode::corrupt,
                    fmt::format("{}: what was written at {} is not there", quoted(files[file]), offset));
      ++checked;
    }
  }
  return checked;
}

}  // namespace shard::bench
