#include "commands/decode/jpeg_files.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "base/system/cpu_count.hpp"
#include "harness/measure.hpp"
#include "shard/image/decode.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kMostPinned = std::uint64_t{4} << 30U;
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kChannels = 3;
constexpr std::uint64_t kImagesOfCheck = 32;  // on the device at a time
constexpr std::uint64_t kMostChecked = 256;

JpegBox draw_box(std::span<const std::byte> file, std::uint32_t side, std::uint64_t photo) {
  const image::ImageInfo info = image::read_info(file, image::DecodeOptions{}.max_pixels);
  TransformOptions crop;
  crop.crop = CropKind::random_resized;
  crop.crop_height = crop.crop_width = side;
  const SampleSpec image{DType::u8, Layout::nhwc, kChannels, info.upright_height(), info.upright_width()};
  const SampleCrop box = draw_crop(image, crop, 0, 0, photo);
  return {box.left, box.top, box.width, box.height};
}

}  // namespace

std::uint64_t differing_values(std::span<const std::byte> one, std::span<const std::byte> other,
                               std::size_t bytes) {
  const std::size_t both = std::min(one.size(), other.size());
  std::uint64_t differ = (std::max(one.size(), other.size()) - both) / bytes;
  if (std::memcmp(one.data(), other.data(), both) == 0) return differ;
  for (std::size_t at = 0; at < both; at += bytes)
    differ += std::memcmp(one.data() + at, other.data() + at, bytes) != 0 ? 1 : 0;
  return differ;
}

JpegFiles::JpegFiles(const PhotoSet& photos, std::shared_ptr<Device> device, const DecodeOptions& options)
    : device_(std::move(device)) {
  const image::PreprocessOptions preprocess = options.preprocess();
  delivered_.height = delivered_.width = options.crop;
  delivered_.dtype = preprocess.dtype;
  delivered_.layout = preprocess.layout;
  delivered_.normalization = preprocess.normalization;
  delivered_bytes_ = preprocess.sample_spec().size_bytes();
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  for (; count < photos.size(); ++count) {
    const std::uint64_t more = round_up(photos.file(count).size(), kAlignment);
    if (count > 0 && bytes + more > kMostPinned) break;
    bytes += more;
  }
  pinned_ = device_->allocate_pinned(bytes);
  std::byte* at = pinned_->data();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::span<const std::byte> file = photos.file(i);
    std::memcpy(at, file.data(), file.size());
    files_.emplace_back(at, file.size());
    boxes_.push_back(draw_box(file, options.crop, i));
    at += round_up(file.size(), kAlignment);
  }
}

double JpegFiles::mean_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& file : files_) bytes += file.size();
  return static_cast<double>(bytes) / static_cast<double>(files_.size());
}

JpegInput JpegFiles::input(std::uint64_t row, JpegCut cut) const {
  JpegInput input;
  input.file = files_[row % files_.size()];
  if (cut == JpegCut::box) input.box = boxes_[row % files_.size()];
  return input;
}

const ValueCheck& JpegFiles::whole_images(const std::atomic<bool>& cancel) {
  if (whole_) return *whole_;
  ValueCheck check;
  check.photos = std::min(size(), kMostChecked);
  JpegDecoder made(device_);
  image::Decoder expected;
  const auto stream = device_->create_stream();
  std::vector<std::byte> pixels;
  for (std::uint64_t first = 0; first < check.photos; first += kImagesOfCheck) {
    std::vector<JpegInput> inputs;
    for (std::uint64_t i = first; i < std::min(first + kImagesOfCheck, check.photos); ++i)
      inputs.push_back(input(i, JpegCut::whole));
    const JpegBatch batch = made.decode(inputs);
    check.on_host += batch.on_host;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      stop_when(cancel);
      const JpegBatch::Image& image = batch.images[i];
      pixels.resize(std::uint64_t{image.height} * image.width * kChannels);
      const CopyItem item{pixels.data(), batch.memory->data() + image.offset, pixels.size()};
      stream->copy_to_host({&item, 1});
      stream->synchronize();
      const image::RgbView view = expected.decode(inputs[i].file, {});
      const std::uint64_t row_bytes = std::uint64_t{view.width} * kChannels;
      check.compared += view.height * row_bytes;
      if (view.width != image.width || view.height != image.height) {
        check.differ += view.height * row_bytes;
        continue;
      }
      for (std::uint32_t row = 0; row < view.height; ++row)
        check.differ +=
            differing_values(std::span(pixels).subspan(row * row_bytes, row_bytes),
                             std::as_bytes(std::span(view.data + row * view.stride_bytes, row_bytes)), 1);
    }
  }
  return whole_.emplace(check);
}

std::span<const std::byte> JpegFiles::reference(JpegCut cut, std::uint64_t rows) {
  std::vector<std::byte>& made = references_[static_cast<std::size_t>(cut)];
  rows = std::min(rows, kMostChecked);
  if (made.size() < rows * delivered_bytes_) {
    const unsigned threads = std::min(cpu_count(), 8U);
    JpegDecoder host(make_host_device(threads), threads);
    std::vector<JpegInput> inputs;
    for (std::uint64_t row = 0; row < rows; ++row) inputs.push_back(input(row, cut));
    const JpegBatch batch = host.decode(inputs, delivered_);
    made.assign(batch.memory->data(), batch.memory->data() + rows * delivered_bytes_);
  }
  return std::span(made).first(rows * delivered_bytes_);
}

}  // namespace shard::bench
