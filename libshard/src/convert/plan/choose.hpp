// What a conversion takes from its inputs: pages, and the channels and data type of wide images.
#pragma once

#include <cstddef>
#include <span>

#include "convert/sources/scan.hpp"
#include "shard/convert/options.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// Options::pages: each page of a TIFF file becomes an input. Reads all of them. A file whose pages cannot be
// counted stays one input without page, which becomes a reject (require_counted()). Errors: invalid_argument
// (a file has the key of a page of another one), resource.
void expand_pages(const Options& options, InputList& list);

// An input is not what it was when the run started. Ends the run.
class InputChanged : public Error {
 public:
  using Error::Error;
};
// For an input without page although `pages` was asked for: nothing if it is no TIFF file. Otherwise
// its pages could not be counted: throws why. Errors: corrupt, unsupported, resource; InputChanged
// (they can be counted now).
void require_counted(std::span<const std::byte> file);

// The options with which the list is converted. They are those given, unless the samples keep what the images
// are: with dtype u16, with Options::keep_channels, for arrays that are not RGB or gray of 8 bits, and where
// the first image is a TIFF file that RGB cannot hold (floats, signed numbers, more than four bands). Then
// channels, and dtype and normalisation if these were not given, are those of the first image that can be
// read. Errors: invalid_argument (a mean or std that does not fit the channels, no such image).
image::PreprocessOptions choose_preprocess(const Options& options, const InputList& list);
// For an array of a data set of RGB, which choose_preprocess() has not looked at: throws unsupported if RGB
// of 8 bits cannot hold it. Also the errors of read_wide_info().
void require_rgb_array(std::span<const std::byte> file, std::uint64_t max_pixels);

}  // namespace shard::convert
