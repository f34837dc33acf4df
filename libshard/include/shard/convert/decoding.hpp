// How a conversion decodes its inputs, and how it names one that could not be decoded.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "shard/convert/options.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// How each image is decoded. `cancel` must outlive the result.
image::DecodeOptions decode_options(const Options& options, const std::atomic<bool>* cancel);

// The value of image::DecodeOptions::fast_min_short_side with which the image that is decoded at a reduced
// size still covers the size to which it is resized.
std::uint32_t fast_decode_side(const image::PreprocessOptions& options);

// The reason in rejects.csv for an image whose conversion failed with `error`. Names the option that can
// change it.
std::string reject_reason(const Error& error);

}  // namespace shard::convert
