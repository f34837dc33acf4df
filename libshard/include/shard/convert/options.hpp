// What a conversion is asked to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// What becomes of an image that cannot be stored: a reject, or the end of the conversion.
enum class OnError : std::uint8_t { skip, fail };
// What becomes of inputs that the table of labels does not name: rejects, or counted and left out.
enum class Unlisted : std::uint8_t { reject, skip };
// Of arrays of images with four axes: [image, row, column, channel] or [image, channel, row, column].
// automatic: as the shape says.
enum class ArrayLayout : std::uint8_t { automatic, nhwc, nchw };

// What becomes of images without annotations: stored without objects, left out, or the end of the
// conversion. With `fail` annotations without image, of unknown categories or with invalid boxes end it too;
// else they are counted.
enum class Missing : std::uint8_t { empty, skip, fail };

// A second image of each sample, from a folder of its own: a mask, depth, another camera. The file of an
// image has its path, relative to this folder, also with another extension. It is upright, and resized and
// cropped as the image is.
struct FurtherImages {
  // Of the field (docs/format.md).
  std::string name;
  std::filesystem::path folder;
  // What the names of the files have behind those of the images, before the extension: "_mask".
  std::string suffix = {};
  FieldRole role = FieldRole::image;
  // Masks: their values are 0 to classes - 1, or `ignore`. 0: any value.
  std::uint32_t classes = 0;
  std::optional<std::uint32_t> ignore;
  // Nothing: that of the first file, or of masks what holds `classes` and `ignore`.
  std::optional<DType> dtype;
  // Not of masks, which are resized with nearest.
  image::Filter filter = image::Filter::bilinear;
  // Nothing: packed for masks of u8, else that of the images, and zstd where packed cannot hold the values.
  std::optional<CodecSpec> codec;
  // False: a file with another size than its image is a reject. True: it is resized and cropped by itself.
  bool any_size = false;
};

// Messages of errors name members as `member`, for example `max_pixels`; programs replace these names by
// those that their users know.

struct Options {
  // A folder; a tar archive, or several: "train-{000..146}.tar", "{a,b}.tar"; arrays of images (.npy, .npz,
  // IDX, CIFAR's binary files; docs/sources.md); "@FILE" for a list of paths, one a line; "-" for
  // such a list on standard input.
  std::string images;
  // A folder, or s3://BUCKET/PREFIX.
  std::filesystem::path out;
  // If `out` is in an object store: the folder for shards until they are uploaded, and for what is needed to
  // go on. Four shards at most are in it. Empty: shardify-USER-DIGEST in TMPDIR, or /tmp.
  std::filesystem::path work;
  // Finished shards leave `out` (Hooks::published), so room for a few is enough. Set by run().
  bool shards_leave = false;
  // Lists: keys and classes are relative to it. Empty: the deepest common folder, where that is obvious.
  std::filesystem::path root;
  // A CSV table with lines path,label or path,v1,...,vk; for arrays also an array of labels (.npy, IDX).
  // Empty: the class is the first folder of the path.
  std::filesystem::path labels;
  Unlisted unlisted = Unlisted::reject;
  // The names of the labels 0, 1, ..., not escaped: a list, or read_class_names() of a file or another data
  // set, so that a label means the same in both. An image of another class is an error. Empty: the classes
  // that the images have, sorted by bytes.
  std::vector<std::string> classes;
  ArrayLayout array_layout = ArrayLayout::automatic;
  // Columns of that table that are stored beside the labels. Its first line must name them.
  std::vector<ColumnSpec> columns;
  // Annotations in the format of COCO: boxes, keypoints and captions become columns (docs/sources.md).
  // Empty: none.
  std::filesystem::path coco;
  // The same from a folder with a file for each image, in the format of YOLO or of Pascal VOC.
  // Only one of `coco`, `yolo` and `voc`.
  std::filesystem::path yolo;
  std::filesystem::path voc;
  // The names of the classes of `yolo` or `voc`, one a line. Empty: classes.txt in `yolo` if it is there;
  // of `voc` all names that occur.
  std::filesystem::path box_classes;
  // Keypoints of each object in the files of `yolo`, 0 to 1000.
  std::uint32_t yolo_keypoints = 0;
  // Further images. Those that an image has none of: see `missing`, where `empty` stores zeros.
  std::vector<FurtherImages> pairs;
  Missing missing = Missing::empty;
  // True: hidden names and files that are not images are rejects. False: they are skipped and counted.
  bool strict = false;

  image::PreprocessOptions preprocess;
  // The samples keep the channels of their images, which must all have the same
  // (PreprocessOptions::channels): those of the first.
  bool keep_channels = false;
  // Where they do: also the dtype, and no mean and std unless they are RGB, instead of those in `preprocess`.
  bool keep_dtype = false;
  bool keep_normalization = false;
  // Each page of a TIFF file is an image, with the key FILE#PAGE. False: the first page is.
  bool pages = false;
  // Images of 16 bits have numbers of so many bits, 9 to 16 (image::DecodeOptions::depth). 0: 16.
  // Not for samples that keep what the images are.
  unsigned depth = 0;
  // JPEGs are decoded at a reduced size that still covers the target. Faster, but the pixels differ.
  bool fast_decode = false;
  // Images with more pixels are rejects.
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  CodecSpec codec;
  // Bytes of samples per shard, before the codec. Used if samples_per_shard is 0.
  std::uint64_t shard_size_bytes = std::uint64_t{1} << 30U;
  // 1 to 100,000,000. 0: as many as shard_size_bytes holds, at least 1 and at most 100,000,000.
  std::uint64_t samples_per_shard = 0;

  // Worker threads, 1 to 1024. 0: one for each CPU that this process may use.
  unsigned jobs = 0;
  // What images may take while they are decoded, all threads together. Images wait for each other within it;
  // one that alone needs more is a reject. 0: three quarters of the memory that is available to this process
  // when it starts.
  std::uint64_t decode_memory_bytes = 0;
  OnError on_error = OnError::skip;
  // Which images with warnings of the decoder are stored.
  image::OnWarning on_warning = image::OnWarning::harmless;
  // Converts everything again. The data set in `out` stays until the new one is complete.
  bool overwrite = false;
  // Compares all inputs with those of the data set in `out`, and converts only the shards
  // whose inputs changed.
  bool refresh = false;
  // Adds the images to the finished data set in `out`, which must have the same options: new shards after the
  // old ones, which stay as they are. The summary describes the added images.
  bool append = false;
  // This process converts the shards i with i mod world_size == rank.
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  // Any number of processes with the same options share the work, and each takes the next free shard.
  // They may start and end at any time. run() returns when the data set is complete. Not together with
  // rank and world_size.
  bool claim = false;

  // Throws invalid_argument naming the member and its bounds.
  void check() const;
  std::uint64_t per_shard() const;
  // The same for samples of another size.
  std::uint64_t per_shard(std::uint64_t sample_bytes) const;
  unsigned threads() const;
  // Other processes may convert into the same `out` at the same time.
  bool shared() const noexcept { return claim || world_size > 1; }
};

}  // namespace shard::convert
