#include "base/files/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

namespace ipc = boost::interprocess;

// What mapped_region asks of a mappable: a handle and a mode. The descriptor stays ours (Boost's own
// file_mapping opens without O_CLOEXEC).
class BorrowedDescriptor {
 public:
  explicit BorrowedDescriptor(int fd) noexcept : fd_(fd) {}
  ipc::mapping_handle_t get_mapping_handle() const noexcept {
    return ipc::ipcdetail::mapping_handle_from_file_handle(fd_);
  }
  ipc::mode_t get_mode() const noexcept { return ipc::read_only; }

 private:
  int fd_;
};

void hold_size(int fd, std::uint64_t size_bytes, const std::filesystem::path& path) {
  const std::uint64_t now = regular_file_size(fd, path);
  if (now == size_bytes) return;
  throw Error(ErrorCode::io, fmt::format("{} changed its size from {} to {} bytes while it was being opened",
                                         quoted(path), size_bytes, now));
}

// Lines of /proc/self/maps; 0: unknown.
std::uint64_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// Why there is no room for one more mapping: the kernel gives the same error for a full address space.
std::string mapping_advice() {
  std::uint64_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  const std::uint64_t count = count_mappings();
  if (limit != 0 && count + 16 >= limit) {
    return fmt::format(
        " (this process has {} mappings, one for each open shard, and vm.max_map_count is {}: raise it with "
        "'sysctl -w vm.max_map_count={}', or make fewer, larger shards with shardify --shard-bytes)",
        count, limit, 4 * limit);
  }
  return fmt::format(" (no address space is left: raise 'ulimit -v'; {} mappings of at most {})", count,
                     limit);
}

}  // namespace

struct MappedFile::Region {
  ipc::mapped_region region;
  explicit Region(ipc::mapped_region&& mapped) : region(std::move(mapped)) {}
};

MappedFile::MappedFile(int fd, std::uint64_t size_bytes, const std::filesystem::path& path) {
  hold_size(fd, size_bytes, path);
  *this = MappedFile(fd, 0, size_bytes, path);
  hold_size(fd, size_bytes, path);
}

MappedFile::MappedFile(int fd, std::uint64_t offset, std::uint64_t size_bytes,
                       const std::filesystem::path& path) {
  try {
    region_ = std::make_unique<Region>(ipc::mapped_region(BorrowedDescriptor(fd), ipc::read_only,
                                                          static_cast<ipc::offset_t>(offset),
                                                          static_cast<std::size_t>(size_bytes)));
  } catch (const ipc::interprocess_exception& error) {
    const bool no_space = error.get_native_error() == ENOMEM || error.get_native_error() == EAGAIN;
    throw Error(no_space ? ErrorCode::resource : ErrorCode::io,
                fmt::format("cannot map the {} bytes of {}: {}{}", size_bytes, quoted(path), error.what(),
                            no_space ? mapping_advice() : std::string()));
  }
}

MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;

std::span<const std::byte> MappedFile::bytes() const noexcept {
  return {static_cast<const std::byte*>(region_->region.get_address()), region_->region.get_size()};
}

std::uint64_t MappedFile::page_bytes() noexcept {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void MappedFile::replace(std::uint64_t begin, int fd, const std::filesystem::path& path) {
  if (begin >= bytes().size()) return;
  const std::span<const std::byte> there = bytes().subspan(static_cast<std::size_t>(begin));
  void* const address = const_cast<std::byte*>(there.data());
  if (::mmap(address, there.size(), PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(begin)) ==
      MAP_FAILED)
    throw_errno("cannot map", path, errno);
}

void MappedFile::clear(std::uint64_t begin) {
  if (begin >= bytes().size()) return;
  const std::span<const std::byte> there = bytes().subspan(static_cast<std::size_t>(begin));
  void* const address = const_cast<std::byte*>(there.data());
  if (::mmap(address, there.size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
    throw_errno("cannot map", "memory", errno);
}

}  // namespace shard
