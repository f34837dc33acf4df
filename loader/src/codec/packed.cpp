// Codec packed: frames of bytes, which the transform unpacks on the device (shard/packed_format.hpp).
#include <fmt/format.h>

#include <vector>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "codec/stored_form.hpp"
#include "shard/error.hpp"
#include "shard/packed_format.hpp"

namespace shard {

namespace {

class PackedForm final : public StoredForm {
 public:
  using StoredForm::StoredForm;

  // No frame is longer than one that stores its bytes without packing.
  std::uint64_t most_bytes_to_device() const noexcept override {
    if (is_free()) return largest().frame_bytes;
    constexpr std::uint64_t kUnit = packed::kAlignment;
    return (packed::kStoredBegin + recorded().elements() + kUnit - 1) / kUnit * kUnit;
  }
  bool fixed_size() const noexcept override { return false; }

  StoredSample locate(const Dataset& dataset, const Dataset::Location& at) const override {
    const ShardReader& shard = dataset.shard(at.shard);
    StoredSample sample;
    if (!shard.samples_mapped()) {
      sample.size_bytes = images(shard).frame_bytes(at.sample);
    } else {
      const std::span<const std::byte> bytes = images(shard).frame(at.sample);
      sample = {bytes.size(), bytes.data()};
    }
    if (sample.size_bytes > most_bytes_to_device())
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: a packed frame of {} bytes; a sample takes at most {}",
                              name_of(shard, at.sample), sample.size_bytes, most_bytes_to_device()));
    return sample;
  }

  std::uint64_t checksum(const ShardReader& shard, std::uint64_t sample,
                         std::span<const std::byte> bytes) const override {
    thread_local std::vector<std::byte> decoded;
    const SampleSpec spec = is_free() ? images(shard).spec_of(sample) : recorded();
    decoded.resize(spec.size_bytes());
    images(shard).codec().decode(bytes, decoded, spec);
    return xxh3(decoded);
  }

  bool decoded_by_device() const noexcept override { return true; }
  // Floats are stored as the bytes that they were made of.
  SampleSpec transform_input() const override {
    SampleSpec spec = recorded();
    spec.dtype = DType::u8;
    return spec;
  }
  // A resize reads whole samples. A device that does not read host memory unpacks them into this memory
  // first.
  bool needs_scratch(const TransformOptions& options, const DeviceInfo& device) const noexcept override {
    const bool resized = is_free() || options.crop == CropKind::random_resized ||
                         options.resize != ResizeKind::none || options.padded != 0 || options.patch != 0;
    return resized && !device.reads_host_memory;
  }
  // Samples of any size: each view decodes what it needs.
  bool decodes_first(std::size_t views, const DeviceInfo&) const noexcept override {
    return views > 1 && !is_free();
  }
  void describe(TransformWork& work, const StoredFrames& frames, std::byte* scratch) const override {
    work.frame_bytes = frames.sizes;
    work.unpacked = scratch;
  }
};

}  // namespace

std::unique_ptr<const StoredForm> make_packed_form(const StoredField& of) {
  return std::make_unique<PackedForm>(of);
}

}  // namespace shard
