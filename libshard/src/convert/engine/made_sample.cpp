// Samples of SourceImages out of what a cache has of them.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "convert/engine/source_images.hpp"
#include "convert/publish/pixel_bound.hpp"
#include "shard/codec.hpp"
#include "shard/shard_reader.hpp"

namespace shard::convert {

std::shared_ptr<const MadeSample> SourceImages::find(std::uint64_t input) const {
  std::shared_ptr<MadeSample> made;
  std::optional<std::string> reject;
  cache_->find(input,
               {[&](const ShardReader& shard, std::uint64_t row) { made = made_of(input, shard, row); },
                [&](const CachedSample& stored) {
                  if (stored.reject && refused_by_lower_bound(*stored.reject, options_.max_pixels)) return;
                  reject = stored.reject;
                  if (!reject) made = made_of(input, stored);
                }});
  if (reject) throw unusable(input, *reject);
  if (made) made->is_cached = true;
  return made;
}

std::shared_ptr<MadeSample> SourceImages::made_of(std::uint64_t input, const CachedSample& stored) const {
  auto made = std::make_shared<MadeSample>();
  for (std::size_t i = 0; i < stored.images.size(); ++i) {
    const SampleValues& values = stored.images[i];
    const SampleSpec& of = i == 0 ? spec_.spec : spec_.fields[i - 1].spec;
    const SampleSpec spec = of.is_free() ? of.sized(values.height, values.width) : of;
    const std::span<const std::byte> bytes = values.bytes;
    if (i != 0 || (!values.frame && options_.codec.kind != CodecSpec::Kind::jpeg)) {
      made->images.push_back({spec, {bytes.begin(), bytes.end()}});
      continue;
    }
    FrameSpec frame(spec, values.frame ? values.frame->file : jpeg::FrameFile{});
    if (values.frame && gives_frames() && bytes.size() <= bytes_of(0, input)) {
      made->images.push_back({frame, {bytes.begin(), bytes.end()}});
      continue;
    }
    // A codec that loses something: the sample is what is decoded again.
    const Codec codec(options_.codec, of, spec_.normalization);
    std::vector<std::byte> pixels(spec.size_bytes());
    if (values.frame) {
      codec.decode(bytes, pixels, frame);
    } else {
      const std::vector<std::byte> encoded = codec.encode(bytes, frame);
      codec.decode(encoded, pixels, frame);
    }
    if (gives_frames()) pixels.resize(round_up(pixels.size(), kMadeAlignment));
    made->images.push_back({spec, std::move(pixels)});
  }
  return made;
}

std::shared_ptr<MadeSample> SourceImages::made_of(std::uint64_t input, const ShardReader& shard,
                                                  std::uint64_t row) const {
  auto made = std::make_shared<MadeSample>();
  // Nobody else compares it with its digests: a loader sees images that were made.
  thread_local std::vector<std::byte> scratch;
  constexpr std::size_t kKeepScratch = std::size_t{64} << 20U;
  if (scratch.capacity() > kKeepScratch) scratch = {};
  shard.verify_sample(row, scratch);
  for (std::size_t i = 0; i <= spec_.fields.size(); ++i) {
    const StoredImages& images = shard.images(i == 0 ? std::nullopt : std::optional(i - 1));
    const FrameSpec frame = images.frame_spec(row);
    MadeSample::Image image{frame.sample, {}};
    if (i == 0 && gives_frames() && frame.file.bytes != 0 && images.frame_bytes(row) <= bytes_of(0, input)) {
      image.spec = frame;
      images.read_frame(row, image.bytes);
    } else {
      const std::size_t size = static_cast<std::size_t>(frame.sample.size_bytes());
      image.bytes.resize(i == 0 && gives_frames() ? round_up(size, kMadeAlignment) : size);
      images.read(row, std::span(image.bytes).first(size));
    }
    made->images.push_back(std::move(image));
  }
  return made;
}

}  // namespace shard::convert
