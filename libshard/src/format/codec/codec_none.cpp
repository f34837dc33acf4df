// Codec none: a sample is stored as it is.
#include <fmt/format.h>

#include <algorithm>

#include "format/codec/codecs.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

class RawCoder final : public Coder {
 public:
  std::vector<std::byte> encode(FrameSpec& /*of*/, std::span<const std::byte> sample) const override {
    return {sample.begin(), sample.end()};
  }
  void decode(const FrameSpec& /*of*/, std::span<const std::byte> frame,
              std::span<std::byte> sample) const override {
    if (frame.size() != sample.size())
      throw Error(ErrorCode::corrupt, fmt::format("a frame of {} bytes, but a sample without codec has {}",
                                                  frame.size(), sample.size()));
    std::copy(frame.begin(), frame.end(), sample.begin());
  }
  std::uint64_t least_frame_bytes(const FrameSpec& of) const noexcept override {
    return of.sample.size_bytes();
  }
  std::uint64_t most_frame_bytes(const FrameSpec& of) const noexcept override {
    return of.sample.size_bytes();
  }
};

}  // namespace

std::shared_ptr<const Coder> make_raw_coder(const CodecSpec& /*codec*/, const SampleSpec& /*spec*/,
                                            const Normalization& /*normalization*/) {
  return std::make_shared<RawCoder>();
}

}  // namespace shard
