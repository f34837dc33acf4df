// Progressive, arithmetic-coded and multi-scan JPEGs -> baseline JPEGs of one scan, as the kernels decode
// them (jpeg/header.hpp), without the loss of a coefficient: only the codes are others. So pixels are the
// same.
//
// Kept: quantisation tables, sampling factors, names of components, colour space, EXIF, colour profile, every
// other APPn and comment. Not kept: restart intervals, and what stands behind EOI.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/image/warnings.hpp"

namespace shard::image {

struct TranscodeOptions {
  std::uint64_t max_pixels = std::uint64_t{1} << 28;  // takes about 6 bytes of memory per pixel
  OnWarning on_warning = OnWarning::harmless;
  const std::atomic<bool>* cancel = nullptr;
};

// Errors:
//   corrupt      libjpeg cannot read the file, or not without a warning that is not accepted
//   unsupported  baseline cannot hold it: 12 bits, lossless, more than 10 blocks per MCU, a component with
//                two quantisation tables; or a progressive file without its last scans, which libjpeg smooths
//                when it decodes, so that pixels would differ
//   resource     more pixels than max_pixels, or more than 64 scans
//   cancelled    by `cancel`
std::vector<std::byte> transcode_to_baseline(std::span<const std::byte> file,
                                             const TranscodeOptions& options = {});

}  // namespace shard::image
