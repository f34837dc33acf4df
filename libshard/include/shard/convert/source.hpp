// Images as a data set without a conversion: each sample is made of its file when it is read.
//
//   shard::convert::Options options;
//   options.images = "photos/";
//   options.preprocess.free_size.emplace();  // of their own size
//   shard::Loader loader(shard::convert::open_source(options), device, loader_options);
//
// Numbers, keys, labels, columns and pixels of the samples are those of the data set that run() makes with
// the same options, as long as no image is a reject, and so are a loader's batches: a training run may begin
// before the conversion and end after it. Samples are decoded (codec none) whatever `codec` is; what codec
// jpeg changes of an image is changed in its sample too.
#pragma once

#include <filesystem>
#include <string>

#include "shard/convert/convert.hpp"
#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// Lists the images and looks up their sizes in bytes; of samples of any size also reads the header of each
// image. `out` is not used, nor is what concerns several processes. Of `hooks`, `planned` and `cancel` are.
//
// Inputs that a conversion rejects while it lists them are left out. An image that turns out to be unusable
// when it is read is an error of whoever reads it: corrupt, naming the image and the reason. A loader may
// replace it (LoaderOptions::on_error). io: it cannot be read now. An image whose file or archive is not the
// one that was listed any more (its size or times are others) is invalid_argument.
//
// The data set shares what it knows with its copies, and keeps as many decoders as threads read from it at a
// time. Memory for decoding is bounded as in a conversion (`decode_memory_bytes`).
//
// Errors: those of run() before it writes; unsupported (further images of sizes of their own beside samples
// of any size).
Dataset open_source(const Options& options, const Hooks& hooks = {});

// Whether `path` names images, and no data set, finished or not: a list (@FILE), archives, arrays, or a
// folder with neither dataset.json nor conversion.json.
bool names_images(const std::string& path);
// What `path` names: a data set, or images at their own size, in u8 (`size` original). Errors: those of
// Dataset::open() or open_source().
Dataset open_data(const std::filesystem::path& path, const Hooks& hooks = {});

}  // namespace shard::convert
