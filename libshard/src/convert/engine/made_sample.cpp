// Samples of SourceImages out of what a cache has of them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/source_images.hpp"
#include "convert/publish/pixel_bound.hpp"
#include "shard/codec.hpp"
#include "shard/error.hpp"
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
  made->is_few_bits = stored.warnings.has(image::Warning::few_bits);
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
  thread_local std::vector<std::byte> stored;
  constexpr std::size_t kKeepStored = std::size_t{64} << 20U;
  if (stored.capacity() > kKeepStored) stored = {};
  for (std::size_t i = 0; i <= spec_.fields.size(); ++i) {
    const StoredImages& images = shard.images(i == 0 ? std::nullopt : std::optional(i - 1));
    const FrameSpec frame = images.frame_spec(row);
    images.read_frame(row, stored);
    // Nobody else compares it: a loader sees images that were made.
    if (xxh3(stored) != images.frame_checksum(row))
      throw Error(ErrorCode::corrupt,
                  fmt::format("shard {}: sample {} does not match its digest: give another folder",
                              quoted(shard.path()), row));
    MadeSample::Image image{frame.sample, {}};
    if (i == 0 && gives_frames() && frame.file.bytes != 0 && stored.size() <= bytes_of(0, input)) {
      image.spec = frame;
      image.bytes = stored;
    } else {
      const auto size = static_cast<std::size_t>(frame.sample.size_bytes());
      image.bytes.resize(i == 0 && gives_frames() ? round_up(size, kMadeAlignment) : size);
      const std::span<std::byte> pixels = std::span(image.bytes).first(size);
      if (images.framed())
        images.codec().decode(stored, pixels, frame);
      else
        std::copy(stored.begin(), stored.end(), pixels.begin());
    }
    made->images.push_back(std::move(image));
  }
  return made;
}

}  // namespace shard::convert
