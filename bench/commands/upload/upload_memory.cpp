#include "commands/upload/upload_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "commands/upload/upload_bench.hpp"
#include "data/random.hpp"
#include "shard/error.hpp"
#include "shard/loader/order.hpp"

namespace shard::bench {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw Error(ErrorCode::io, fmt::format("cannot {} {}: {}: set TMPDIR to a folder with room", what,
                                         quoted(path), std::generic_category().message(errno)));
}

}  // namespace

UploadSource::UploadSource(Device& device, std::uint64_t bytes) : bytes_(bytes), pageable_(bytes) {
  Random random(1, 2, 3);
  for (std::uint64_t at = 0; at + 8 <= bytes; at += 8) {
    const std::uint64_t value = random.bits();
    std::memcpy(pageable_.data() + at, &value, 8);
  }
  pinned_ = device.allocate_pinned(bytes);
  std::memcpy(pinned_->data(), pageable_.data(), bytes);
  map_file(device);
}

UploadSource::~UploadSource() {
  registration_.reset();
  if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
}

void UploadSource::map_file(Device& device) {
  std::string name = (std::filesystem::temp_directory_path() / "shardbench-XXXXXX").string();
  const UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) fail("make", name);
  ::unlink(name.c_str());
  pwrite_all(file.get(), pageable_, 0, name);
  void* const mapped = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (mapped == MAP_FAILED) fail("map", name);
  mapped_ = mapped;
  try {
    registration_ = device.register_read_only({static_cast<const std::byte*>(mapped_), bytes_});
  } catch (const Error& refused) {
    refusal_ = refused.what();
  }
}

const std::byte* UploadSource::data(UploadMemory memory) const noexcept {
  if (memory == UploadMemory::pageable) return pageable_.data();
  return memory == UploadMemory::pinned ? pinned_->data() : static_cast<const std::byte*>(mapped_);
}

std::vector<std::uint64_t> shuffled_places(std::uint64_t n) {
  const Permutation permuted(n, 0x5EED);
  std::vector<std::uint64_t> places(n);
  for (std::uint64_t i = 0; i < n; ++i) places[i] = permuted(i);
  return places;
}

}  // namespace shard::bench
