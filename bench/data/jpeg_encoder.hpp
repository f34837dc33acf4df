// The JPEG encoder of the sample pictures. jpeglib for encoding is named in jpeg_encoder.cpp alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/photo.hpp"

namespace shard::bench {

// `ycc` is uint8 [plan.height, plan.width, (Y, Cb, Cr)]; `comment` goes into a COM segment. Thread safe.
// Errors: resource, with libjpeg's message.
std::vector<std::byte> encode_photo(const PhotoPlan& plan, std::span<const std::uint8_t> ycc,
                                    const std::string& comment);

}  // namespace shard::bench
