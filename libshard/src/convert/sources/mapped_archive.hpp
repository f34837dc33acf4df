// MappedArchive: an archive of a list of inputs, mapped, so that its members can be read in place.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/files/mapped_file.hpp"
#include "convert/sources/scan.hpp"
#include "format/shard/unconverted.hpp"

namespace shard::convert {

// Says that an archive was replaced or written to since it was listed. `size_bytes`: what it has now.
[[noreturn]] void throw_changed(const Archive& archive, std::uint64_t size_bytes);

// Thread safe, also in a child after fork(). Keeps no descriptor: there may be thousands of archives.
class MappedArchive final : public HoldingFile {
 public:
  // `archive` must outlive this object.
  explicit MappedArchive(const Archive& archive) : archive_(archive) {}
  MappedArchive(const MappedArchive&) = delete;
  MappedArchive& operator=(const MappedArchive&) = delete;
  ~MappedArchive() override { delete mapped_.load(std::memory_order_acquire); }
  // Whether members of the archive are its own bytes, in a file that can be opened again.
  static bool can_hold(const Archive& archive) noexcept {
    return !archive.is_array() && archive.open == nullptr && archive.size_bytes != 0;
  }

  const std::filesystem::path& path() const noexcept override { return archive_.path; }
  std::uint64_t size_bytes() const noexcept override { return archive_.size_bytes; }
  std::span<const std::byte> mapping() const override;
  void check_unchanged() const override;

 private:
  const Archive& archive_;
  mutable std::atomic<const MappedFile*> mapped_{nullptr};
};

}  // namespace shard::convert
