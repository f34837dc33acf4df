// What a conversion is asked to do.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::convert {

// Mean and standard deviation of ImageNet: `normalize` imagenet, and both presets.
inline const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

// What samples are before other options change parts of it. Both resize the short side to 256.
//
//   train  centre crop 256, u8, NHWC: the loader crops, flips and normalises. The default everywhere
//   eval   centre crop 224, f16, NCHW, normalised
//
// Both have kImagenet; values of u8 are not normalised yet: the loader applies what is recorded.
enum class Preset : std::uint8_t { train, eval };
constexpr std::array<std::string_view, 2> words_of(Preset) { return {"train", "eval"}; }
image::PreprocessOptions preprocess_of(Preset preset);

// What becomes of an image that cannot be stored: a reject, or the end of the conversion.
enum class OnError : std::uint8_t { skip, fail };
constexpr std::array<std::string_view, 2> words_of(OnError) { return {"skip", "fail"}; }
// What becomes of inputs that the table of labels does not name: rejects, or counted and left out.
enum class Unlisted : std::uint8_t { reject, skip };
constexpr std::array<std::string_view, 2> words_of(Unlisted) { return {"reject", "skip"}; }
// The axes of arrays: [image, row, column, channel] or [image, channel, row, column] (automatic: as the shape
// says), or of one image: [row, column], [row, column, channel] or [channel, row, column].
enum class ArrayLayout : std::uint8_t { automatic, nhwc, nchw, hw, hwc, chw };
constexpr std::array<std::string_view, 6> words_of(ArrayLayout) {
  return {"automatic", "nhwc", "nchw", "hw", "hwc", "chw"};
}
constexpr bool is_single(ArrayLayout layout) noexcept { return layout >= ArrayLayout::hw; }

// What becomes of images without annotations: stored without objects, left out, or the end of the
// conversion. With `fail` annotations without image, of unknown categories or with invalid boxes end it too;
// else they are counted.
enum class Missing : std::uint8_t { empty, skip, fail };
constexpr std::array<std::string_view, 3> words_of(Missing) { return {"empty", "skip", "fail"}; }

// A second image of each sample, from a folder of its own: a mask, depth, another camera. The file of an
// image has its path, relative to this folder, also with another extension. It is upright, and resized and
// cropped as the image is.
struct FurtherImages {
  // The name of the field (docs/format.md).
  std::string name;
  std::filesystem::path folder;
  // What follows the image's name in the name of its file, before the extension: "_mask".
  std::string suffix = {};
  FieldRole role = FieldRole::image;
  // For masks: their values are 0 to classes - 1, or `ignore`. If 0, any value is allowed.
  std::uint32_t classes = 0;
  std::optional<std::uint32_t> ignore;
  // By default the first file's dtype; for masks one that holds `classes` and `ignore`.
  std::optional<DType> dtype;
  // Masks ignore it: they are resized with nearest.
  image::Filter filter = image::Filter::bilinear;
  // By default packed for u8 masks, else the images' codec, and zstd where packed cannot hold the values.
  std::optional<CodecSpec> codec;
  // Whether files may have other sizes than their images: they are then resized and cropped by themselves.
  // Otherwise such a file is a reject.
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
  // If `out` is in an object store: the folder for at most four shards until they are uploaded, and for what
  // a resumed run needs. By default shardify-USER-DIGEST in TMPDIR, or /tmp.
  std::filesystem::path work;
  // For lists: keys and classes are relative to it. By default the deepest common folder, where that is
  // obvious.
  std::filesystem::path root;
  // A CSV table with lines path,label or path,v1,...,vk; for arrays also an array of labels (.npy, IDX).
  // By default the class is the first folder of the path.
  std::filesystem::path labels;
  Unlisted unlisted = Unlisted::reject;
  // The names of the labels 0, 1, ..., not escaped: a list, or read_class_names() of a file or another data
  // set, so that a label means the same in both. An image of another class is an error. By default the
  // images' classes, sorted by bytes.
  std::vector<std::string> classes;
  ArrayLayout array_layout = ArrayLayout::automatic;
  // Columns of that table that are stored beside the labels. Its first line must name them.
  std::vector<ColumnSpec> columns;
  // A file of COCO annotations: boxes, keypoints and captions become columns (docs/sources.md).
  std::filesystem::path coco;
  // The same from a folder with a YOLO or Pascal VOC file for each image. Only one of `coco`, `yolo` and
  // `voc`.
  std::filesystem::path yolo;
  std::filesystem::path voc;
  // A file with the class names of `yolo` or `voc`, one per line. By default classes.txt in `yolo`, if it
  // exists; for `voc` all names that occur.
  std::filesystem::path box_classes;
  // Keypoints of each object in the files of `yolo`, 0 to 1000.
  std::uint32_t yolo_keypoints = 0;
  // Extra images per sample. If an image has no partner, `missing` decides; `empty` stores zeros.
  std::vector<FurtherImages> pairs;
  Missing missing = Missing::empty;
  // Makes hidden names and files that are not images rejects. Otherwise they are skipped and counted.
  bool strict = false;

  // For samples with other channels than three, or stored floats, give their own normalisation.
  image::PreprocessOptions preprocess = preprocess_of(Preset::train);
  // The samples keep the channels of their images, which must all have the same
  // (PreprocessOptions::channels): those of the first.
  bool keep_channels = false;
  // Where they do: also the dtype, and no mean and std unless they are RGB, instead of those in `preprocess`.
  bool keep_dtype = false;
  bool keep_normalization = false;
  // Each page of a TIFF file is an image, with the key FILE#PAGE. Otherwise only the first page is.
  bool pages = false;
  // The number of bits that the values of 16-bit images have, 9 to 16 (image::DecodeOptions::depth); 0 means
  // 16. Not for samples that keep their images' bits.
  unsigned depth = 0;
  // JPEGs are decoded at a reduced size that still covers the target. Faster, but the pixels differ.
  bool fast_decode = false;
  // Images with more pixels are rejects.
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  CodecSpec codec;
  // JPEG files that are stored as they are are not decoded, so the digests of their pixels are not known. For
  // codec jpeg and samples that keep the size of their images.
  bool no_sample_digest = false;
  // Bytes of samples per shard, before the codec. Used if samples_per_shard is 0.
  std::uint64_t shard_bytes = std::uint64_t{1} << 30U;
  // 1 to 100,000,000. 0: as many as shard_bytes holds, at least 1 and at most 100,000,000.
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
  // The same without what a conversion alone has: `out`, and several processes.
  void check_samples() const;
  std::uint64_t per_shard() const;
  // The same for samples of another size.
  std::uint64_t per_shard(std::uint64_t sample_bytes) const;
  unsigned threads() const;
  // Other processes may convert into the same `out` at the same time.
  bool shared() const noexcept { return claim || world_size > 1; }
};

}  // namespace shard::convert
