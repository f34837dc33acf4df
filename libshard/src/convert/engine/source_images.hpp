// SourceImages: the samples of a plan that is not converted, by the number of their input.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/engine/cached_samples.hpp"
#include "convert/plan/kept_sizes.hpp"
#include "convert/plan/plan.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/sources/mapped_archive.hpp"
#include "format/shard/unconverted.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

class PlanReader;

// Thread safe, also in a child after fork().
class SourceImages {
 public:
  // `options` are those of the plan. Reads the headers of all images if their samples are of any size, and
  // decodes those whose header does not tell; those that cannot be used count as 1 x 1, and are errors when
  // they are made. Errors: cancelled, those that end a conversion.
  // `cache`: what is made is stored there, and what is there is not made again. May be null.
  SourceImages(std::shared_ptr<const Plan> plan, const Options& options, const Hooks& hooks,
               std::shared_ptr<const CachedSamples> cache = nullptr);
  SourceImages(const SourceImages&) = delete;
  SourceImages& operator=(const SourceImages&) = delete;
  ~SourceImages();
  // The same with frames of codec jpeg. Null: samples are not as large as their images, in u8 and RGB, or no
  // file is a JPEG that a frame can hold, or the cache needs its pixels.
  std::shared_ptr<const SourceImages> with_frames() const;

  const Plan& plan() const noexcept { return *plan_; }
  // What all samples have: those of the conversion, with codec none, or jpeg for images that are frames.
  const DatasetSpec& spec() const noexcept { return spec_; }
  // Image 0 or a further one of an input.
  SampleSpec spec_of(std::size_t image, std::uint64_t input) const;
  // How many bytes make() has for it, about.
  std::uint64_t bytes_of(std::size_t image, std::uint64_t input) const;
  // Of inputs [first, first + count), for the images whose samples are of any size; {} of the others.
  std::vector<LargestSample> largest(std::uint64_t first, std::uint64_t count) const;
  // See UnconvertedSamples.
  std::shared_ptr<const MadeSample> make(std::uint64_t input) const;
  std::optional<jpeg::FrameFile> file_of(std::uint64_t input) const;
  bool read_file(std::uint64_t input, std::span<std::byte> out) const;
  UnconvertedSamples::Place place_of(std::uint64_t input) const;
  // Archives whose members are files of samples.
  std::vector<const HoldingFile*> holding_files() const;

 private:
  // What threads share. A forked child makes its own: another thread may have held the lock.
  struct Shared;

  SourceImages(const SourceImages& pixels, CodecSpec codec);
  Shared& shared() const;
  void find_sizes(const Hooks& hooks);
  // Those that cannot be used stay unknown.
  void look_at_unknown(std::vector<KnownImage>& known, const Hooks& hooks) const;
  KnownImage look(InputReader& reader, std::uint64_t input) const;
  bool gives_frames() const noexcept { return spec_.codec.kind == CodecSpec::Kind::jpeg; }
  std::unique_ptr<PlanReader> take_reader() const;
  void give_back(std::unique_ptr<PlanReader> reader) const;
  std::shared_ptr<const MadeSample> read(std::uint64_t input) const;
  // Of the file that `reader` has read.
  std::optional<JpegFrame> frame_of(std::uint64_t input, PlanReader& reader) const;
  // With a cache: what it has of the input, or null; a sample that a worker of a conversion would store; the
  // same of a finished shard.
  std::shared_ptr<const MadeSample> find(std::uint64_t input) const;
  UnusableImage unusable(std::uint64_t input, const std::string& why) const;
  UnusableImage unreadable(std::uint64_t input, const std::string& why) const;
  std::shared_ptr<MadeSample> made_of(std::uint64_t input, const CachedSample& stored) const;
  std::shared_ptr<MadeSample> made_of(std::uint64_t input, const ShardReader& shard, std::uint64_t row) const;
  // Of samples of any size: throws invalid_argument if it is not the one that was listed.
  void check_size(std::uint64_t input, const MadeSample& made) const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const CachedSamples> cache_;
  Options options_;
  DatasetSpec spec_;
  std::shared_ptr<const std::vector<KnownImage>> known_;  // of samples of any size
  // By archive of the plan, if samples are frames. Null: members are not read in place.
  std::vector<std::unique_ptr<const MappedArchive>> mapped_;
  mutable std::atomic<Shared*> shared_;
};

}  // namespace shard::convert
