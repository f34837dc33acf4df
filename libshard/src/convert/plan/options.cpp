#include "shard/convert/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/system/cpu_count.hpp"
#include "base/text/quote.hpp"
#include "convert/annotations/class_labels.hpp"
#include "convert/annotations/label_file.hpp"
#include "convert/plan/sample_maker.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kMostPerShard = 100'000'000;

void check_annotations(const Options& options) {
  const auto fail = [](const std::string& why) { throw Error(ErrorCode::invalid_argument, why); };
  if (!options.coco.empty() + !options.yolo.empty() + !options.voc.empty() > 1)
    fail("`coco`, `yolo` and `voc` exclude each other: annotations come from one of them");
  if (!options.box_classes.empty() && options.yolo.empty() && options.voc.empty())
    fail("`box_classes` names the classes of `yolo` or `voc`: give one of them too");
  if (options.yolo_keypoints != 0 && options.yolo.empty())
    fail("`yolo_keypoints` is about the files of `yolo`: give that too");
  if (options.yolo_keypoints > kMaxKeypoints)
    fail(fmt::format("`yolo_keypoints` {}: at most {}", options.yolo_keypoints, kMaxKeypoints));
}

void check_pairs(const std::vector<FurtherImages>& pairs) {
  const auto fail = [](const FurtherImages& from, const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("further images {}: {}", quoted(from.name), why));
  };
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  std::set<std::string> names;
  for (const FurtherImages& from : pairs) {
    if (from.name.empty() || from.name.find_first_not_of(kLetters) != std::string::npos)
      fail(from, "a name of letters, digits, '_', '-' and '.' is needed");
    if (!names.insert(from.name).second) fail(from, "the name occurs twice");
    if (from.folder.empty()) fail(from, "give the folder of their files");
    if (from.role != FieldRole::mask && (from.classes != 0 || from.ignore))
      fail(from, "classes and ignore are for masks only");
    if (from.classes > 65'536) fail(from, fmt::format("{} classes: at most 65,536", from.classes));
    if (from.ignore.value_or(0) > 65'535) fail(from, fmt::format("ignore {}: at most 65,535", *from.ignore));
    if (from.ignore && from.classes == 0)
      fail(from, "ignore without classes has no meaning: give the number of classes");
  }
}

// Of a sample of any size, before one is known: so many bytes are planned for each. It must not depend on the
// images, because the plan does not.
std::uint64_t guessed_bytes(const image::PreprocessOptions& preprocess) {
  constexpr std::uint64_t kPixels = 640 * 480;
  const image::FreeSize& free = *preprocess.free_size;
  std::uint64_t pixels = kPixels;
  if (free.bound == image::FreeSize::Bound::area) pixels = free.most;
  if (free.bound == image::FreeSize::Bound::longest) pixels = free.most * free.most * 3 / 4;
  if (free.bound == image::FreeSize::Bound::shortest) pixels = free.most * free.most * 4 / 3;
  const std::uint64_t a_pixel = preprocess.sample_spec().channels * size_bytes(preprocess.dtype);
  return std::max<std::uint64_t>(1, pixels) * a_pixel;
}

}  // namespace

image::PreprocessOptions preprocess_of(Preset preset) {
  image::PreprocessOptions p;
  p.resize_short = 256;
  const std::uint32_t side = preset == Preset::train ? 256 : 224;
  p.crop = image::Size{side, side};
  p.dtype = preset == Preset::train ? DType::u8 : DType::f16;
  p.layout = preset == Preset::train ? Layout::nhwc : Layout::nchw;
  p.normalization = kImagenet;
  return p;
}

void Options::check_samples() const {
  check_pairs(pairs);
  check_annotations(*this);
  check_class_names(classes);
  if (!columns.empty()) {
    std::vector<ColumnSpec> all{{"labels", DType::i64, {}}};
    all.insert(all.end(), columns.begin(), columns.end());
    check_columns(all);
  }
  preprocess.check();
  for (const auto& [name, path] : {std::pair{"images", images}, {"out", out.native()}})
    if (path.find('\0') != std::string::npos)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("`{}` {} has a zero byte, and no file has such a name: remove it", name, quoted(path)));
  if (images.empty())
    throw Error(ErrorCode::invalid_argument, "`images` is empty: give a folder, @list.txt, or -");
  if (max_pixels < 1) throw Error(ErrorCode::invalid_argument, "`max_pixels` must be at least 1");
  if (depth != 0 && (depth < 9 || depth > 16))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`depth` is {}; it must be 9 to 16: the bits of the numbers in images of 16 bits",
                            depth));
  if (depth != 0 && (preprocess.wide() || keep_channels))
    throw Error(ErrorCode::invalid_argument,
                "`depth` together with `channels` or `dtype` u16: these keep the numbers that images have");
  if (no_sample_digest && !keeps_jpeg_files(preprocess, codec))
    throw Error(
        ErrorCode::invalid_argument,
        "`no_sample_digest` is for JPEG files that are stored as they are: give `codec` jpeg and `size` "
        "original, or leave it out");
  if (fast_decode && preprocess.free_size)
    throw Error(
        ErrorCode::invalid_argument,
        "`fast_decode` decodes at a size near that of all samples, and samples of any size have none");
  if (samples_per_shard == 0 && shard_bytes < preprocess.sample_spec().size_bytes())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`shard_bytes` {} is less than one sample of {} bytes: give a larger size",
                            shard_bytes, preprocess.sample_spec().size_bytes()));
  if (samples_per_shard > kMostPerShard)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`samples_per_shard` is {}; it must be 1 to 100,000,000, or 0 for as many as "
                            "`shard_bytes` holds",
                            samples_per_shard));
  if (jobs > 1024)
    throw Error(ErrorCode::invalid_argument, fmt::format("`jobs` is {}; it must be at most 1024", jobs));
}

void Options::check() const {
  check_samples();
  if (out.empty()) throw Error(ErrorCode::invalid_argument, "`out` is empty: give a folder");
  if (world_size < 1 || rank >= world_size)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("`rank` {} and `world_size` {}: rank must be 0 to world_size - 1", rank, world_size));
  if (is_remote(out) && (overwrite || refresh || append || shared()))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{} is in an object store, into which one process writes a new data set: `append`, `overwrite`, "
            "`refresh` and several processes need a folder, which shardctl copy uploads",
            quoted(out)));
  if (!is_remote(out) && !work.empty())
    throw Error(ErrorCode::invalid_argument, "`work` is for an `out` in an object store only");
  if (overwrite && refresh)
    throw Error(
        ErrorCode::invalid_argument,
        "`overwrite` and `refresh` exclude each other: `overwrite` converts everything again, `refresh` "
        "only the shards whose inputs changed");
  if (append && (overwrite || refresh))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`append` and {} exclude each other: `append` keeps all that is in the data set",
                            overwrite ? "`overwrite`" : "`refresh`"));
  if (claim && world_size > 1)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "`claim` and `world_size` {} exclude each other: processes that claim shards have no ranks",
            world_size));
  if (append && shared())
    throw Error(
        ErrorCode::invalid_argument,
        "`append` with several processes: only a single process can append; start it without a "
        "launcher and without `claim` (or with `rank` 0 `world_size` 1), or let the processes write into a "
        "new folder and use `shardctl join`");
  if ((overwrite || refresh) && shared())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{} with several processes: only a single process can replace a data set; start it without a "
            "launcher and without `claim` (or with `rank` 0 `world_size` 1), or let the processes write into "
            "a new folder",
            overwrite ? "`overwrite`" : "`refresh`"));
}

std::uint64_t Options::per_shard() const { return per_shard(preprocess.sample_spec().size_bytes()); }

std::uint64_t Options::per_shard(std::uint64_t sample_bytes) const {
  if (samples_per_shard != 0) return samples_per_shard;
  if (sample_bytes == 0) sample_bytes = guessed_bytes(preprocess);
  return std::clamp<std::uint64_t>(shard_bytes / sample_bytes, 1, kMostPerShard);
}

unsigned Options::threads() const {
  if (jobs != 0) return jobs;
  return cpu_count();
}

}  // namespace shard::convert
