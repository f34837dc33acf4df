// Any bytes as the stored frame of a sample, and any bytes as a sample.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "shard/codec.hpp"
#include "shard/error.hpp"

namespace {

using namespace shard;

constexpr Codec kZstd{Codec::Kind::zstd, 1};

void decode(std::span<const std::byte> frame, std::vector<std::byte>& sample) {
  try {
    decode_frame(kZstd, frame, sample);
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
  for (std::vector<std::byte>* sample : {&small, &medium, &large}) decode(input, *sample);
  if (size == 0) return 0;
  const std::vector<std::byte> frame = encode_frame(kZstd, input);
  std::vector<std::byte> back(size);
  decode_frame(kZstd, frame, back);
  if (!std::equal(back.begin(), back.end(), input.begin())) std::abort();
  return 0;
}
