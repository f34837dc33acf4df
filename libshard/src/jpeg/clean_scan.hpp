// The entropy-coded data of a scan without stuffing and restart markers, for a host that reads all of them:
// so 64 bits can be loaded anywhere. Remembers where bytes were taken out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shard::jpeg {

class CleanScan {
 public:
  // Zeros behind the last byte: an MCU of 10 blocks of 64 codes of 16 + 15 bits may be read there.
  static constexpr std::size_t kPaddingBytes = 4096;

  // From `data_offset` to the next marker that is no restart marker. Keeps its memory from file to file.
  // corrupt: there is no such marker, or restart markers are out of order. unsupported: 0xFF before stuffing,
  // which libjpeg reads as one 0xFF; data of 2^29 bytes or more.
  void assign(std::span<const std::byte> file, std::size_t data_offset);

  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return size_; }
  // Behind the last byte of each interval; one more than there are restart markers.
  std::span<const std::uint32_t> interval_ends() const noexcept { return interval_ends_; }
  // Of the marker that ends the data, as an offset in the file.
  std::size_t end() const noexcept { return end_; }

  // Byte `clean` -> its offset in the file from `data_offset` on. At the end of an interval: behind the
  // marker. Calls must ask for growing bytes.
  class Origin {
   public:
    explicit Origin(const CleanScan& scan) noexcept : left_(scan.removed_) {}
    std::uint64_t of(std::uint64_t clean) noexcept {
      for (; !left_.empty() && left_.front().clean <= clean; left_ = left_.subspan(1))
        removed_ = left_.front().removed;
      return clean + removed_;
    }

   private:
    friend class CleanScan;
    struct Removed {
      std::uint32_t clean = 0;
      std::uint32_t removed = 0;  // bytes up to there
    };
    std::span<const Removed> left_;
    std::uint32_t removed_ = 0;
  };

 private:
  std::size_t read_marker(std::span<const std::byte> file, std::size_t at, std::size_t data_offset);

  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  std::vector<Origin::Removed> removed_;
  std::vector<std::uint32_t> interval_ends_;
  std::size_t end_ = 0;
};

}  // namespace shard::jpeg
