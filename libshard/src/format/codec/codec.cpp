#include "shard/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "format/codec/codec_check.hpp"
#include "format/codec/codec_filter.hpp"
#include "format/codec/codec_zstd.hpp"
#include "format/codec/packed_frame.hpp"
#include "format/codec/packed_values.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

constexpr std::size_t kKeptBytes = std::size_t{16} << 20;

// Memory of this thread for the bytes of a sample. Not kept when it is large.
class ScratchBytes {
 public:
  explicit ScratchBytes(std::size_t size) : bytes_(size > kKeptBytes ? own_ : kept()) { bytes_.resize(size); }
  std::span<std::uint8_t> values() { return bytes_; }

 private:
  static std::vector<std::uint8_t>& kept() {
    thread_local std::vector<std::uint8_t> bytes;
    return bytes;
  }
  std::vector<std::uint8_t> own_;
  std::vector<std::uint8_t>& bytes_;
};

}  // namespace

struct Codec::Impl {
  CodecSpec codec_spec;
  SampleSpec spec;
  std::size_t sample_bytes = 0;
  packed::Shape shape;
  packed::Kernels kernels;
  std::optional<PackedValues> values;  // codec packed of floats

  void check_size(std::size_t size) const {
    if (size != sample_bytes)
      throw Error(ErrorCode::invalid_argument, fmt::format("{} bytes: a sample has {}", size, sample_bytes));
  }
};

Codec::Codec(const CodecSpec& codec_spec, const SampleSpec& spec, const Normalization& normalization) {
  spec.check();
  check_normalization(normalization, spec);
  check_codec(codec_spec, spec);
  auto impl = std::make_shared<Impl>();
  impl->codec_spec = codec_spec_from_string(to_string(codec_spec));
  impl->spec = spec;
  impl->sample_bytes = static_cast<std::size_t>(spec.size_bytes());
  impl->shape = {spec.channels, spec.height, spec.width};
  if (codec_spec.kind == CodecSpec::Kind::packed) {
    impl->kernels = packed::best_kernels();
    if (spec.dtype != DType::u8) impl->values.emplace(spec, normalization);
  }
  impl_ = std::move(impl);
}

std::vector<std::byte> Codec::encode(std::span<const std::byte> sample) const {
  const Impl& self = *impl_;
  self.check_size(sample.size());
  switch (self.codec_spec.kind) {
    case CodecSpec::Kind::none:
      break;
    case CodecSpec::Kind::zstd:
      if (!is_filtered(self.spec)) return zstd_compress(sample, self.codec_spec.level);
      {
        ScratchBytes filtered(self.sample_bytes);
        filter_sample(self.spec, sample, std::as_writable_bytes(filtered.values()));
        return zstd_compress(std::as_bytes(filtered.values()), self.codec_spec.level);
      }
    case CodecSpec::Kind::packed:
      if (!self.values) return packed::encode(self.kernels, self.shape, self.spec.layout, sample);
      ScratchBytes bytes(self.shape.pixels_bytes());
      self.values->reduce(sample, bytes.values());
      return packed::encode(self.kernels, self.shape, self.spec.layout, std::as_bytes(bytes.values()));
  }
  return {sample.begin(), sample.end()};
}

void Codec::decode(std::span<const std::byte> frame, std::span<std::byte> sample) const {
  const Impl& self = *impl_;
  self.check_size(sample.size());
  switch (self.codec_spec.kind) {
    case CodecSpec::Kind::none:
      break;
    case CodecSpec::Kind::zstd:
      if (!is_filtered(self.spec)) return zstd_decompress(frame, sample);
      {
        zstd_check_frame(frame, sample.size());  // before memory of that size is taken
        ScratchBytes filtered(self.sample_bytes);
        zstd_decompress(frame, std::as_writable_bytes(filtered.values()));
        return unfilter_sample(self.spec, std::as_bytes(filtered.values()), sample);
      }
    case CodecSpec::Kind::packed:
      if (!self.values) return packed::decode(self.kernels, self.shape, self.spec.layout, frame, sample);
      ScratchBytes bytes(self.shape.pixels_bytes());
      packed::decode(self.kernels, self.shape, self.spec.layout, frame,
                     std::as_writable_bytes(bytes.values()));
      return self.values->expand(bytes.values(), sample);
  }
  if (frame.size() != sample.size())
    throw Error(ErrorCode::corrupt, fmt::format("a frame of {} bytes, but a sample without codec has {}",
                                                frame.size(), sample.size()));
  std::copy(frame.begin(), frame.end(), sample.begin());
}

std::uint64_t Codec::least_frame_bytes() const noexcept {
  switch (impl_->codec_spec.kind) {
    case CodecSpec::Kind::none:
      break;
    case CodecSpec::Kind::zstd:
      return std::max<std::uint64_t>(1, zstd_least_frame_bytes(impl_->sample_bytes));
    case CodecSpec::Kind::packed:
      return packed::least_frame_bytes(impl_->shape);
  }
  return impl_->sample_bytes;
}

}  // namespace shard
