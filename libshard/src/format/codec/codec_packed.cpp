// Codec packed: frames of bytes (packed_frame.hpp). Floats are stored as the bytes that they were made of.
#include <optional>

#include "format/codec/codecs.hpp"
#include "format/codec/packed_frame.hpp"
#include "format/codec/packed_values.hpp"
#include "format/codec/scratch_bytes.hpp"

namespace shard {
namespace {

class PackedCoder final : public Coder {
 public:
  PackedCoder(const SampleSpec& spec, const Normalization& normalization) {
    if (spec.dtype != DType::u8) floats_.emplace(spec, normalization);
  }

  std::vector<std::byte> encode(FrameSpec& of, std::span<const std::byte> sample) const override {
    const packed::Shape shape = shape_of(of.sample);
    if (!floats_) return packed::encode(kernels_, shape, of.sample.layout, sample);
    ScratchBytes bytes(shape.pixels_bytes());
    floats_->reduce(sample, bytes.values());
    return packed::encode(kernels_, shape, of.sample.layout, std::as_bytes(bytes.values()));
  }
  void decode(const FrameSpec& of, std::span<const std::byte> frame,
              std::span<std::byte> sample) const override {
    const packed::Shape shape = shape_of(of.sample);
    if (!floats_) return packed::decode(kernels_, shape, of.sample.layout, frame, sample);
    ScratchBytes bytes(shape.pixels_bytes());
    packed::decode(kernels_, shape, of.sample.layout, frame, std::as_writable_bytes(bytes.values()));
    floats_->expand(bytes.values(), sample);
  }
  std::uint64_t least_frame_bytes(const FrameSpec& of) const noexcept override {
    return packed::least_frame_bytes(shape_of(of.sample));
  }

 private:
  static packed::Shape shape_of(const SampleSpec& of) noexcept { return {of.channels, of.height, of.width}; }

  packed::Kernels kernels_ = packed::best_kernels();
  std::optional<PackedValues> floats_;
};

}  // namespace

bool packed_can_hold(const SampleSpec& spec) noexcept {
  return spec.dtype != DType::u16 && spec.channels <= packed::kMaxChannels && !spec.is_tensor();
}

std::shared_ptr<const Coder> make_packed_coder(const CodecSpec& /*codec*/, const SampleSpec& spec,
                                               const Normalization& normalization) {
  return std::make_shared<PackedCoder>(spec, normalization);
}

}  // namespace shard
