// Any bytes as the stored frame of a sample, and any bytes as a sample.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "shard/codec.hpp"
#include "shard/error.hpp"

namespace {

using namespace shard;

// A codec for samples of `size` bytes.
Codec zstd(std::size_t size) {
  const std::uint32_t width = size % 1000 == 0 ? 1000 : static_cast<std::uint32_t>(size);
  return Codec({CodecSpec::Kind::zstd, 1},
               {DType::u8, Layout::nchw, 1, static_cast<std::uint32_t>(size / width), width});
}

// The same for values of 16 bits in two channels, which are filtered.
Codec filtered(std::size_t size) {
  return Codec({CodecSpec::Kind::zstd, 1},
               {DType::u16, Layout::nhwc, 2, 5, static_cast<std::uint32_t>(size / 20)});
}

void round_trip(const Codec& codec, std::span<const std::byte> sample) {
  const std::vector<std::byte> frame = codec.encode(sample);
  std::vector<std::byte> back(sample.size());
  codec.decode(frame, back);
  if (!std::equal(back.begin(), back.end(), sample.begin())) std::abort();
}

void decode(const Codec& codec, std::span<const std::byte> frame, std::vector<std::byte>& sample) {
  try {
    codec.decode(frame, sample);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
  static std::vector<std::byte> small(60);
  static std::vector<std::byte> medium(4800);
  static std::vector<std::byte> large(300'000);  // several blocks
  for (std::vector<std::byte>* sample : {&small, &medium, &large}) {
    decode(zstd(sample->size()), input, *sample);
    decode(filtered(sample->size()), input, *sample);
  }
  if (size == 0 || size > 65535) return 0;
  round_trip(zstd(size), input);
  if (size >= 20) round_trip(filtered(size), input.first(size / 20 * 20));
  return 0;
}
