#include "shardctl/page/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include "base/system/parallel.hpp"
#include "shardctl/draw/picture.hpp"
#include "shardctl/draw/pixels.hpp"
#include "shardctl/page/new_folder.hpp"

namespace shard::ctl {
namespace {

constexpr int kQuality = 88;
constexpr std::uint32_t kFineSide = 128;  // up to this, colours are stored at full resolution

std::vector<std::byte> encode_picture(PictureShrinker& shrinker, const Picture& picture) {
  const image::RgbView small = shrinker.shrink(picture);
  const bool fine = std::max(small.width, small.height) <= kFineSide;
  return image::encode_jpeg(small, kQuality, fine ? 444 : 420);
}

// Turns samples into JPEGs. One per thread.
class PictureMaker {
 public:
  explicit PictureMaker(const DatasetInfo& info)
      : denormalizer_(info.spec, info.normalization), free_(info.spec.is_free()) {}

  // Errors: those of Source::read() and Overlay::read().
  std::vector<std::byte> make(const Source& source, std::uint64_t index, const Overlay* overlay) {
    picture_.resize(source.read(index, sample_));
    denormalizer_.rgb(sample_, picture_.rgb);
    const std::uint32_t scale = free_ ? line_scale({picture_.width, picture_.height}) : 1;
    if (overlay != nullptr) overlay->draw(overlay->read(source, index), picture_.canvas(), scale);
    return encode_picture(shrinker_, picture_);
  }

 private:
  Denormalizer denormalizer_;
  bool free_;
  PictureShrinker shrinker_;
  std::vector<std::byte> sample_;
  Picture picture_;
};

}  // namespace

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
    const bool whole = damage.survives(index, [&] { jpeg = maker.make(source, index, overlay); });
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
  PictureShrinker shrinker;
  Picture picture;
  picture.resize(source.info().spec);
  std::uint64_t bytes = 0;
  for (const std::uint64_t index : indices)
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
      picture.rgb = augmented.picture(source, index, epoch);
      if (overlay != nullptr)
        overlay->draw(augmented.targets(*overlay, source, index, epoch), picture.canvas());
      const std::vector<std::byte> jpeg = encode_picture(shrinker, picture);
      write_new_file(folder / fmt::format("{}-a{}.jpg", index, epoch), jpeg);
      bytes += jpeg.size();
    }
  return bytes;
}

}  // namespace shard::ctl
