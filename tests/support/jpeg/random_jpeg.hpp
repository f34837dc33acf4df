// JPEGs that no encoder writes: random Huffman codes of up to 16 bits, coefficients of any value, runs that
// lead beyond the block, four tables of each kind, quantisation values of 16 bits, any factors, restart
// markers with fill bytes, blocks that end with codes of other names. libjpeg-turbo reads all of them without
// a warning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace shard::testing {

enum class Coefficients : std::uint8_t {
  usual,    // as encoders write them
  large,    // samples beyond 0 to 255
  extreme,  // all 16 bits, times quantisation values of 16 bits
};

struct RandomJpegOptions {
  Coefficients coefficients = Coefficients::usual;
  std::uint32_t most_pixels = 70;  // of a side
};

std::vector<std::byte> random_jpeg(std::mt19937_64& random, const RandomJpegOptions& options);

}  // namespace shard::testing
