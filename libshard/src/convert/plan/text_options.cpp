#include "shard/convert/text_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "convert/plan/text_setters.hpp"

namespace shard::convert {

namespace setters {

static const TextOption kOptions[] = {
    // name, flag, group, value, by default, help, may be given several times, what it does, is common
    {"labels", "--labels", "Input", "FILE", "", R"(
      Take the labels from a CSV table with lines path,label or path,v1,...,vk. The paths are relative to IMAGES.
      For arrays also an array of labels (.npy, IDX), in the order in which IMAGES gives its arrays.
      Without a table, the class is the first folder of the path)",
     false, path<&Options::labels>, true},
    {"classes", "--classes", "Input", "FILE|SET", "", R"(
      The names of the labels. A text file with one name a line, or another data set, OUT/train. With it a
      label means the same in both, also if these images have only some of its classes. An image of another class ends
      the run. Without it, the classes are those that the images have, sorted)",
     false, set_classes, true},
    {"columns", "--column", "Input", "NAME:TYPE", "", R"(
      Store a column of the table of --labels with each sample; may be given several times. The first line of the
      table names its columns: path, the others, and "label" if the classes are not the folders. TYPE is text, a
      dtype, or a dtype with a shape: f32[3] for three numbers, separated by spaces; i64[] for any number of numbers;
      f32[,4] for any number of rows of four. Without --labels: from the members of a WebDataset, 0001.NAME or NAME
      in 0001.json)",
     true, add_column, true},
    {"coco", "--coco", "Input", "FILE.json", "", R"(
      Boxes, keypoints and captions in the format of COCO. They are stored as columns, in pixels of the stored sample)",
     false, path<&Options::coco>, true},
    {"yolo", "--yolo", "Input", "DIR", "", R"(
      A folder with the boxes of each image in the format of YOLO. A file has the path of its image with the extension
      .txt, and lines "class cx cy w h" with fractions of the image. They are stored as the columns of --coco)",
     false, path<&Options::yolo>, true},
    {"yolo_keypoints", "--yolo-keypoints", "Input", "N", "", R"(
      The lines of --yolo have N keypoints behind the box: x y, or x y visibility)",
     false, number<&Options::yolo_keypoints>},
    {"voc", "--voc", "Input", "DIR", "", R"(
      A folder with the boxes of each image in the format of Pascal VOC: the same path with the extension .xml)",
     false, path<&Options::voc>},
    {"box_classes", "--box-classes", "Input", "FILE|DATASET", "", R"(
      The names of the classes of --yolo or --voc, a text file with one a line (not YOLO's data.yaml), or a data set that has their names. An image with another class is rejected. Without it: classes.txt in the
      folder of --yolo, if it is there; all names that occur in --voc)",
     false, path<&Options::box_classes>},
    {"mask", "--mask", "Input", "DIR[,KEY=VALUE...]", "", R"(
      A folder with a mask for each image. A mask has the path of its image, with the extension of a PNG or TIFF file.
      The index in its palette, or its gray value, is the class. Masks are resized with nearest and cropped as the
      images, and stored as the field "mask". Settings behind DIR: suffix=_mask (for 0001_mask.png of 0001.jpg),
      classes=N (an image whose mask has other values than 0 to N - 1 is rejected), ignore=VALUE (a further value, for
      pixels without a class: 255 for Pascal VOC))",
     false, set_mask, true},
    {"pairs", "--pair", "Input", "NAME=DIR[,KEY=VALUE...]", "", R"(
      A folder with a second image for each image: the same path, also with another extension. It is stored as the field NAME; may be
      given several times. Settings behind DIR: dtype=u16 (without it, that of the first file), filter=nearest (without it,
      bilinear), codec=zstd:3, size=any (files of other sizes than their images), suffix=TEXT, role=mask, classes=N, ignore=VALUE)",
     true, add_pair},
    {"missing", "--missing", "Input", "empty|skip|fail", "empty", R"(
      What to do with images that have no annotation, mask or pair: store them without objects, and with zeros in place of the mask or pair; or
      skip them. fail: stop, also at annotations without an image, of unknown categories or with boxes without area)",
     false, word<&Options::missing>},
    {"unlisted", "--unlisted", "Input", "reject|skip", "reject", R"(
      What to do with images that --labels does not name: reject them, or skip them to convert a subset)",
     false, word<&Options::unlisted>},
    {"array_layout", "--array-layout", "Input", "nhwc|nchw|hwc|chw|hw", "", R"(
      The axes of arrays: nhwc (images, rows, columns, channels) or nchw, where the shape does not say it. Where each .npy file
      has one image, hwc, chw or hw: IMAGES may then be a folder of them, and they may have different shapes)",
     false, set_array_layout},
    {"root", "--root", "Input", "DIR", "", R"(
      For lists: keys and classes are relative to this folder. It can be left out if all paths are in one folder,
      or all in subfolders of one folder)",
     false, path<&Options::root>},
    {"strict", "--strict", "Input", "", "", R"(
      Report hidden files, system files and files that are not images as rejects, instead of skipping them)",
     false, on<&Options::strict>},
    {"on_error", "--on-error", "Input", "skip|fail", "skip", R"(
      List bad images in OUT/rejects.csv and go on, or stop at the first)",
     false, word<&Options::on_error>, true},
    {"on_warning", "--on-warning", "Input", "harmless|accept|reject", "harmless", R"(
      Which JPEGs with decoder warnings are stored. harmless: those with complete pixels; accept: all, with gray
      for missing pixels; reject: none)",
     false, word<&Options::on_warning>},
    {"pages", "--pages", "Input", "", "", R"(
      Each page of a TIFF file is a sample, with the key FILE#PAGE (from 0 on), instead of the first page alone)",
     false, on<&Options::pages>},
    {"max_pixels", "--max-pixels", "Input", "N", "178956970", "Reject larger images before they are decoded",
     false, number<&Options::max_pixels>},
    {"preset", "--preset", "Pixels", "train|eval", "train", R"(
      What a sample is: 256x256 u8, or 224x224 f16. train: short side 256, centre crop 256, u8, NHWC; the loader crops
      and normalises. eval: short side 256, centre crop 224, f16, NCHW, normalised. Other options override the preset)",
     false, set_preset, true},
    {"resize", "--resize", "Pixels", "N", "256", "Length of the short side after resizing", false, set_resize,
     true},
    {"crop", "--crop", "Pixels", "N|WxH|none", "by preset, at most --resize",
     "Centre crop; none needs --squash", false, set_crop, true},
    {"squash", "--squash", "Pixels", "WxH", "", R"(
      Resize to exactly this size, and ignore the aspect ratio. Nothing is cropped unless --crop is given)",
     false, set_squash},
    {"size", "--size", "Pixels", "original|N", "", R"(
      original: each sample keeps the size of its image (docs/sizes.md). N: the same as --resize N --crop N)",
     false, set_size, true},
    {"longest", "--longest", "Pixels", "N", "", R"(
      As --size original, but at most N pixels on the long side. Larger images are made smaller, none is made larger)",
     false, set_longest},
    {"shortest", "--shortest", "Pixels", "N", "", "The same for the short side", false, set_shortest},
    {"area", "--area", "Pixels", "N|WxH", "", "The same for the number of pixels: 1M, 512x512", false,
     set_area},
    {"multiple", "--multiple", "Pixels", "N", "1", R"(
      With --size original, --longest, --shortest or --area: both sides become multiples of N, by a centre crop)",
     false, set_multiple},
    {"filter", "--filter", "Pixels", "bilinear|bicubic|lanczos|box|nearest", "bilinear",
     "bilinear, bicubic, lanczos, box or nearest, with Pillow's results", false, set_filter},
    {"fast_decode", "--fast-decode", "Pixels", "", "", R"(
      Decode JPEGs at a reduced size that still covers the target. Faster, but the pixels differ; the data set
      records it)",
     false, on<&Options::fast_decode>},
    {"dtype", "--dtype", "Values", "u8|u16|f16|bf16|f32", "by preset", R"(
      Data type of the stored values (also uint8, uint16, ...). u16 keeps all 16 bits of PNG, TIFF and arrays; images of
      8 bits become value x 257)",
     false, set_dtype, true},
    {"channels", "--channels", "Values", "keep|N", "RGB", R"(
      keep: the channels of the first image, and without --dtype its data type. All others must have the same. N: so
      many channels. Without it, images become RGB of 8 bits, except for --dtype u16 and for images that RGB cannot hold
      (floats, more than four bands), which are kept)",
     false, set_channels},
    {"depth", "--depth", "Values", "N", "16", R"(
      Images of 16 bits have numbers of N bits, 9 to 16, as those of many sensors: as RGB of 8 bits they keep the highest 8 of these. An
      image with a larger number is rejected; 9 to 16)",
     false, number<&Options::depth, 9, 16>},
    {"layout", "--layout", "Values", "nchw|nhwc", "by preset", "Order of the axes: nchw or nhwc", false,
     set_layout},
    {"normalize", "--normalize", "Values", "imagenet|clip|half|none", "imagenet", R"(
      Mean and standard deviation: imagenet, clip, half (both 0.5) or none (values from 0 to 1). Floats are stored
      normalised. For u8 the numbers are only recorded, and the loader applies them)",
     false, set_normalize},
    {"mean", "--mean", "Values", "R,G,B,...", "", R"(
      The mean of each channel, in units of 0 to 1, instead of that of --normalize. Not for images of floats, which are kept)",
     false, set_mean},
    {"std", "--std", "Values", "R,G,B,...", "", "The standard deviation, likewise", false, set_std},
    {"codec", "--codec", "Output", "none|packed|zstd|jpeg", "none", R"(
      How samples are stored. Without loss: none, packed (about half the bytes on photographs), or zstd:LEVEL with
      a level of 1 to 19 (zstd alone: 3). jpeg: with --size original JPEG files are stored as they are, byte for byte,
      and progressive ones as baseline with the same pixels; all other images, and all of another size, are encoded with
      --quality)",
     false, set_codec, true},
    {"quality", "--quality", "Output", "N", "95", R"(
      The quality of the images that --codec jpeg encodes, 1 to 100. JPEG files that are stored as they are keep theirs)",
     false, set_quality},
    {"no_sample_digest", "--no-sample-digest", "Output", "", "", R"(
      With --codec jpeg and --size original: do not decode the JPEG files that are stored as they are, which takes most of the time.
      Their frames have digests, their pixels have none)",
     false, on<&Options::no_sample_digest>},
    {"shard_bytes", "--shard-bytes", "Output", "BYTES", "1GiB",
     "Bytes of samples per shard, before the codec; not with --samples-per-shard", false, set_shard_bytes},
    {"samples_per_shard", "--samples-per-shard", "Output", "N", "",
     "The same as a number of samples, 1 to 100000000", false, number<&Options::samples_per_shard, 1>},
    {"overwrite", "--overwrite", "Output", "", "", R"(
      Convert everything again. The old data set stays until the new one is complete. Not with --refresh or --append)",
     false, on<&Options::overwrite>, true},
    {"refresh", "--refresh", "Output", "", "", R"(
      Convert only the shards whose inputs changed. All inputs are compared with those of the existing data set)",
     false, on<&Options::refresh>, true},
    {"append", "--append", "Output", "", "", R"(
      Add the images to the finished data set OUT, as further shards. All other options must be as recorded there)",
     false, on<&Options::append>, true},
    {"work", "--work", "Output", "DIR", "in TMPDIR, or /tmp", R"(
      For OUT in an object store: the folder for shards until they are uploaded, four at most. The same command with the same DIR
      continues)",
     false, path<&Options::work>},
};

}  // namespace setters

namespace {

const TextOption& option_of(std::string_view name) {
  const auto found = std::find_if(std::begin(setters::kOptions), std::end(setters::kOptions),
                                  [&](const TextOption& one) { return one.name == name; });
  if (found == std::end(setters::kOptions))
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no option {}", name));
  return *found;
}

bool gives_jpeg(const TextOptions& text) {
  if (!text.has("codec")) return false;
  const std::string& codec = text.values("codec").front();
  return codec == "jpeg" || codec.starts_with("jpeg:");
}

bool gives_free_size(const TextOptions& text) {
  return text.has("longest") || text.has("shortest") || text.has("area") ||
         (text.has("size") && text.values("size").front() == "original");
}

// What depends on several options.
void check_together(const TextOptions& text) {
  const auto exclude = [&](std::string_view one, std::string_view other, std::string_view why) {
    if (text.has(one) && text.has(other))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("`{}` and `{}` exclude each other: {}", one, other, why));
  };
  exclude("squash", "resize", "squash sets both sides");
  exclude("samples_per_shard", "shard_bytes", "each says how many samples a shard has");
  constexpr std::string_view kSizes[] = {"size", "longest", "shortest", "area"};
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    for (const std::string_view other : {"resize", "crop", "squash"})
      exclude(kSizes[i], other, "each says how large the samples are");
    for (std::size_t k = i + 1; k < std::size(kSizes); ++k)
      exclude(kSizes[i], kSizes[k], "each says how large the samples are");
  }
  if (text.has("quality") && !gives_jpeg(text))
    throw Error(ErrorCode::invalid_argument,
                "`quality` is that of images which codec jpeg encodes: give `codec` jpeg too");
  if (text.has("quality") && text.values("codec").front().find(':') != std::string::npos)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`quality` and the number in `codec` {} exclude each other: each is the quality",
                            text.values("codec").front()));
  if (text.has("multiple") && !gives_free_size(text))
    throw Error(
        ErrorCode::invalid_argument,
        "`multiple` is for samples of any size: give `size` original, `longest`, `shortest` or `area` too");
}

// Systems would take a path up to its zero byte, which names another file.
void check_bytes(const TextOptions& text) {
  for (const TextOption& option : setters::kOptions)
    for (const std::string& value : text.values(option.name))
      if (value.find('\0') != std::string::npos)
        setters::refuse(option.name, value, "it has a zero byte: remove it");
}

}  // namespace

std::span<const TextOption> text_options() { return setters::kOptions; }

TextOptions::TextOptions(std::initializer_list<std::pair<const std::string_view, std::string>> values) {
  for (const auto& [name, value] : values) add(name, value);
}

void TextOptions::add(std::string_view name, std::string value) {
  const TextOption& option = option_of(name);
  if (value.empty() && !option.several) return;
  std::vector<std::string>& values = values_[std::string(name)];
  if (!option.several) values.clear();
  values.push_back(std::move(value));
}

const std::vector<std::string>& TextOptions::values(std::string_view name) const {
  static const std::vector<std::string> none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : found->second;
}

void apply(const TextOptions& text, Options& options) {
  check_together(text);
  check_bytes(text);
  setters::set_preset(options, "preset", text.has("preset") ? text.values("preset").front() : "train");
  for (const TextOption& option : setters::kOptions)
    if (option.name != "preset")
      for (const std::string& value : text.values(option.name)) option.set(options, option.name, value);
  image::PreprocessOptions& p = options.preprocess;
  if (p.squash && !text.has("crop")) p.crop.reset();
  // The preset's crop, but no larger than what is resized.
  if (text.has("resize") && !text.has("crop") && p.crop && p.resize_short < p.crop->width)
    p.crop = image::Size{p.resize_short, p.resize_short};
  options.keep_dtype = !text.has("dtype");
  options.keep_normalization = !text.has("normalize") && !text.has("mean") && !text.has("std");
  if (p.normalization.mean.size() != p.normalization.std.size())  // one of them is that of a preset
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`mean` has {} numbers and `std` {}: give both, with a number for each channel",
                            p.normalization.mean.size(), p.normalization.std.size()));
  // A number for each channel says how many there are.
  if (p.channels == 0 && p.normalization.mean.size() != 3)
    p.channels = static_cast<std::uint32_t>(p.normalization.mean.size());
  // The preset's are those of RGB.
  if (p.channels != 0 && p.channels != 3 && options.keep_normalization) p.normalization = {};
  if (p.channels != 0) p.normalization = for_channels(p.normalization, p.channels);
}

}  // namespace shard::convert
