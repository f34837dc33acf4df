// What all rows of shard::JpegDecoder decode: the bytes of JPEG files in pinned memory, a box of each image,
// and the values that must come out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "commands/decode/decode_bench.hpp"
#include "data/photo_set.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/jpeg_decoder.hpp"

namespace shard::bench {

enum class JpegCut : std::uint8_t { whole, box };

// Values that are not the same, of two arrays with elements of `bytes` bytes; all of them if one is shorter.
std::uint64_t differing_values(std::span<const std::byte> one, std::span<const std::byte> other,
                               std::size_t bytes);

class JpegFiles {
 public:
  // Of the set, the first files that fit into 4 GiB. Errors: resource (memory), and those of read_info().
  JpegFiles(const PhotoSet& photos, std::shared_ptr<Device> device, const DecodeOptions& options);

  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  std::uint64_t size() const noexcept { return files_.size(); }
  double mean_bytes() const noexcept;
  // Row `row` of a run is file row % size(). The box is one that RandomResizedCrop draws.
  JpegInput input(std::uint64_t row, JpegCut cut) const;
  // float16 [channel, row, column], normalised.
  const JpegDecodeOptions& delivered() const noexcept { return delivered_; }
  std::uint64_t delivered_bytes() const noexcept { return delivered_bytes_; }  // of an image

  // Whole images on the device, without a resize, compared with image::Decoder's. Counted once, of 256 files
  // at most. Errors: those of JpegDecoder, cancelled.
  const ValueCheck& whole_images(const std::atomic<bool>& cancel);
  // The first `rows` delivered images, at most 256, as the host makes them: by libjpeg-turbo and the
  // transform's reference.
  std::span<const std::byte> reference(JpegCut cut, std::uint64_t rows);

 private:
  std::shared_ptr<Device> device_;
  JpegDecodeOptions delivered_;
  std::uint64_t delivered_bytes_ = 0;
  std::unique_ptr<Block> pinned_;
  std::vector<std::span<const std::byte>> files_;
  std::vector<JpegBox> boxes_;
  std::optional<ValueCheck> whole_;
  std::vector<std::byte> references_[2];  // by JpegCut
};

}  // namespace shard::bench
