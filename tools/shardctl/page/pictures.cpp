#include "shardctl/page/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "base/system/parallel.hpp"
#include "shardctl/draw/pixels.hpp"
#include "shardctl/page/new_folder.hpp"

namespace shard::ctl {
namespace {

constexpr int kQuality = 88;
constexpr std::uint32_t kFineSide = 128;  // up to this, colours are stored at full resolution

// Turns samples into JPEGs. One per thread.
class PictureMaker {
 public:
  explicit PictureMaker(const DatasetInfo& info)
      : denormalizer_(info.spec, info.normalization),
        sample_(info.spec.size_bytes()),
        rgb_(std::size_t{info.spec.height} * info.spec.width * 3) {
    const image::Size size = picture_size(info.spec);
    if (size.width == info.spec.width && size.height == info.spec.height) return;
    image::PreprocessOptions options;
    options.squash = size;
    options.crop = std::nullopt;
    shrink_ = std::make_unique<image::Preprocessor>(options);
  }

  std::span<std::byte> sample() { return sample_; }
  // `draw(rgb)` may change the picture before it is made smaller.
  template <class Draw>
  std::vector<std::byte> encode(const Draw& draw) {
    const SampleSpec& spec = denormalizer_.spec();
    denormalizer_.rgb(sample_, rgb_);
    draw(std::span<std::uint8_t>(rgb_));
    image::RgbView picture{rgb_.data(), spec.width, spec.height, std::size_t{spec.width} * 3};
    if (shrink_) picture = shrink_->resize_crop(picture);
    const bool fine = std::max(picture.width, picture.height) <= kFineSide;
    return image::encode_jpeg(picture, kQuality, fine ? 444 : 420);
  }

 private:
  Denormalizer denormalizer_;
  std::unique_ptr<image::Preprocessor> shrink_;
  std::vector<std::byte> sample_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace

image::Size picture_size(const SampleSpec& spec) {
  const std::uint32_t longer = std::max(spec.width, spec.height);
  if (longer <= kMostPictureSide) return {spec.width, spec.height};
  const auto scaled = [&](std::uint32_t side) {
    return static_cast<std::uint32_t>(
        std::max<std::uint64_t>(1, std::uint64_t{side} * kMostPictureSide / longer));
  };
  return {scaled(spec.width), scaled(spec.height)};
}

WrittenPictures write_pictures(const Source& source, const std::set<std::uint64_t>& indices,
                               const std::filesystem::path& folder, unsigned threads, cli::Progress& progress,
                               Damage& damage, const Overlay* overlay) {
  const std::vector<std::uint64_t> list(indices.begin(), indices.end());
  std::vector<std::unique_ptr<PictureMaker>> makers(threads);
  std::mutex mutex;
  WrittenPictures written;
  parallel_for(threads, list.size(), [&](unsigned thread, std::uint64_t number) {
    if (!makers[thread]) makers[thread] = std::make_unique<PictureMaker>(source.info());
    PictureMaker& maker = *makers[thread];
    const std::uint64_t index = list[number];
    std::vector<std::byte> jpeg;
    const bool whole = damage.survives(index, [&] {
      source.read(index, maker.sample());
      jpeg = maker.encode([&](std::span<std::uint8_t> rgb) {
        if (overlay != nullptr) overlay->draw(overlay->read(source, index), rgb);
      });
    });
    if (!whole) return;
    write_new_file(folder / (std::to_string(index) + ".jpg"), jpeg);
    const std::lock_guard lock(mutex);
    written.indices.insert(index);
    written.size_bytes += jpeg.size();
    if (progress.due())
      progress.update(fmt::format("{} of {} pictures", written.indices.size(), list.size()));
  });
  return written;
}

std::uint64_t write_augmented(const Source& source, const Augmented& augmented,
                              const std::vector<std::uint64_t>& indices, std::uint32_t epochs,
                              const std::filesystem::path& folder, const Overlay* overlay) {
  DatasetInfo as_rgb;  // what Augmented delivers
  as_rgb.spec = {DType::u8, Layout::nhwc, 3, source.info().spec.height, source.info().spec.width};
  PictureMaker maker(as_rgb);
  std::uint64_t bytes = 0;
  for (const std::uint64_t index : indices)
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
      std::vector<std::uint8_t> rgb = augmented.picture(source, index, epoch);
      if (overlay != nullptr) overlay->draw(augmented.targets(*overlay, source, index, epoch), rgb);
      std::memcpy(maker.sample().data(), rgb.data(), rgb.size());
      const std::vector<std::byte> jpeg = maker.encode([](std::span<std::uint8_t>) {});
      write_new_file(folder / fmt::format("{}-a{}.jpg", index, epoch), jpeg);
      bytes += jpeg.size();
    }
  return bytes;
}

}  // namespace shard::ctl
