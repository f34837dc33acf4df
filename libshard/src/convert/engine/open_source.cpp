#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/system/parallel.hpp"
#include "convert/engine/cached_samples.hpp"
#include "convert/engine/source_images.hpp"
#include "convert/engine/steps.hpp"
#include "convert/plan/sample_maker.hpp"
#include "convert/plan/small_images.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/journal.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/sources/source_kind.hpp"
#include "format/dataset/dataset_part.hpp"
#include "shard/convert/image_cache.hpp"
#include "shard/convert/source.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

class ShardOfImages final : public UnconvertedSamples {
 public:
  ShardOfImages(std::shared_ptr<const SourceImages> images, std::uint64_t first)
      : images_(std::move(images)), first_(first) {}
  SampleSpec spec_of(std::size_t image, std::uint64_t sample) const override {
    return images_->spec_of(image, first_ + sample);
  }
  std::shared_ptr<const MadeSample> make(std::uint64_t sample) const override {
    return images_->make(first_ + sample);
  }
  std::optional<jpeg::FrameFile> file_of(std::uint64_t sample) const override {
    return images_->file_of(first_ + sample);
  }
  bool read_file(std::uint64_t sample, std::span<std::byte> out) const override {
    return images_->read_file(first_ + sample, out);
  }
  Place place_of(std::uint64_t sample) const override { return images_->place_of(first_ + sample); }

 private:
  std::shared_ptr<const SourceImages> images_;
  std::uint64_t first_;
};

UnconvertedShard shard_of(const std::shared_ptr<const SourceImages>& images, std::uint64_t number) {
  const Plan& plan = images->plan();
  UnconvertedShard shard;
  const std::uint64_t first = number * plan.per_shard;
  shard.spec = images->spec();
  shard.samples = plan.shard_inputs(number);
  shard.largest = images->largest(first, shard.samples);
  for (std::uint64_t i = first; i < first + shard.samples; ++i) {
    shard.key_offsets.push_back(shard.keys.size());
    shard.keys += plan.list.inputs[i].key();
  }
  shard.key_offsets.push_back(shard.keys.size());
  shard.columns.resize(1 + plan.columns.size());
  const auto labels = std::span(plan.labels.rows)
                          .subspan(first * plan.labels.row_bytes, shard.samples * plan.labels.row_bytes);
  shard.columns.front().bytes.assign(labels.begin(), labels.end());
  for (std::size_t c = 0; c < plan.columns.size(); ++c) {
    const ColumnTable& table = plan.columns[c];
    UnconvertedShard::Rows& rows = shard.columns[c + 1];
    for (std::uint64_t i = first; i < first + shard.samples; ++i) {
      rows.offsets.push_back(rows.bytes.size() / table.spec().row_bytes());
      const std::span<const std::byte> own = table.rows(i);
      rows.bytes.insert(rows.bytes.end(), own.begin(), own.end());
    }
    rows.offsets.push_back(rows.bytes.size() / table.spec().row_bytes());
  }
  shard.maker = std::make_unique<ShardOfImages>(images, first);
  return shard;
}

DatasetInfo info_of(const SourceImages& images) {
  const Plan& plan = images.plan();
  DatasetInfo info(images.spec());
  info.classes = plan.labels.classes;
  info.source_digest = plan.source_digest;
  info.inputs = plan.list.inputs.size();
  info.samples_per_shard = plan.per_shard;
  info.targets = plan.targets;
  for (std::uint64_t number = 0; number < plan.shards(); ++number) {
    ShardSummary shard{shard_name(number), plan.shard_inputs(number)};
    const std::uint64_t first = number * plan.per_shard;
    for (std::uint64_t i = first; i < first + shard.samples; ++i)
      for (std::size_t image = 0; image <= info.fields.size(); ++image)
        shard.size_bytes += images.bytes_of(image, i);
    const std::vector<LargestSample> largest = images.largest(first, shard.samples);
    for (std::size_t image = 0; image < largest.size(); ++image)
      if ((image == 0 ? info.spec : info.fields[image - 1].spec).is_free())
        shard.largest.push_back(largest[image]);
    info.shards.push_back(std::move(shard));
  }
  return info;
}

class SetOfImages final : public UnconvertedSet {
 public:
  explicit SetOfImages(std::shared_ptr<const SourceImages> images)
      : images_(std::move(images)), info_(info_of(*images_)) {}
  const DatasetInfo& info() const noexcept override { return info_; }
  UnconvertedShard shard(std::uint32_t number) const override { return shard_of(images_, number); }
  std::shared_ptr<const UnconvertedSet> with_frames() const override {
    auto frames = images_->with_frames();
    return frames ? std::make_shared<const SetOfImages>(std::move(frames)) : nullptr;
  }
  std::vector<const HoldingFile*> holding_files() const override { return images_->holding_files(); }

 private:
  std::shared_ptr<const SourceImages> images_;
  DatasetInfo info_;
};

}  // namespace

namespace {

// The plan of `options`, which get what it has decided.
std::shared_ptr<const Plan> plan_for_source(Options& options, const Hooks& hooks) {
  Plan plan = make_plan(options);
  options.preprocess = plan.preprocess;
  const SmallImages small = look_for_small_images(plan, options);
  if (small.many()) plan.warnings.push_back(enlargement_text(small, plan.preprocess));
  if (hooks.planned) hooks.planned(listing_of(plan));
  return std::make_shared<const Plan>(std::move(plan));
}

constexpr CodecSpec kJpegOfCache{CodecSpec::Kind::jpeg};

// No file that can be read is of another kind than its name says: it would be encoded. Servers are not asked.
bool begin_as_jpeg(const InputList& list, unsigned threads) {
  constexpr std::size_t kFront = 3;
  std::atomic<bool> all = true;
  std::vector<std::unique_ptr<InputReader>> readers(threads);
  parallel_for(threads, list.inputs.size(), [&](unsigned thread, std::uint64_t i) {
    const Input& input = list.inputs[i];
    if (!all || list.on_server(input)) return;
    if (!readers[thread]) readers[thread] = std::make_unique<InputReader>(list);
    try {
      const auto front = readers[thread]->read_front(input, kFront);
      const bool jpeg = front.size() >= 2 && front[0] == std::byte{0xFF} && front[1] == std::byte{0xD8};
      if (front.size() >= kFront && !jpeg) all = false;
    } catch (const UnreadableInput&) {  // it becomes a reject, or is read later
    }
  });
  return all;
}

bool stores_jpeg_files(const Options& options, const Plan& plan) {
  const auto is_jpeg = [](const Input& input) {
    std::string end = std::filesystem::path(input.key()).extension();
    std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
    return end == ".jpg" || end == ".jpeg" || end == ".jpe" || end == ".jfif";
  };
  return keeps_jpeg_files(options.preprocess, kJpegOfCache) &&
         kJpegOfCache.can_hold(options.preprocess.sample_spec()) &&
         std::all_of(plan.list.inputs.begin(), plan.list.inputs.end(), is_jpeg) &&
         begin_as_jpeg(plan.list, options.threads());
}

Dataset all_of(const Options& options, std::shared_ptr<const SourceImages> images) {
  return DatasetPart::whole(
      DatasetPart::of_images(options.images, std::make_shared<const SetOfImages>(std::move(images))));
}

}  // namespace

Dataset open_source(const Options& given, const Hooks& hooks) {
  Options options = given;
  options.out.clear();
  options.check_samples();
  std::shared_ptr<const Plan> plan = plan_for_source(options, hooks);
  return all_of(options, std::make_shared<const SourceImages>(std::move(plan), options, hooks));
}

CachedSource open_source(const Options& given, const CacheOptions& cache, const Hooks& hooks) {
  Options options = given;
  options.out = cache.folder;
  options.claim = true;
  options.check();
  std::shared_ptr<const Plan> plan = plan_for_source(options, hooks);
  if (cache.choose_codec && stores_jpeg_files(options, *plan)) {
    options.codec = kJpegOfCache;
    options.no_sample_digest = true;
    plan = std::make_shared<const Plan>(make_plan(options));  // further images may get another codec too
  }
  PlanRecord record = record_of(*plan, convert::spec_of(options, *plan));
  record.max_pixels = options.max_pixels;
  Options finishing = options;
  finishing.jobs = cache.jobs != 0 ? cache.jobs : std::max(1U, thread_count(0) / 8);
  finishing.on_error = OnError::skip;
  auto cached = std::make_shared<CachedSamples>(plan, finishing, record);
  if (cached->complete() && read_dataset_info(cache.folder).samples() == plan->list.inputs.size())
    return {Dataset::open(cache.folder), nullptr};
  return {all_of(options, std::make_shared<const SourceImages>(std::move(plan), options, hooks, cached)),
          cached};
}

bool names_images(const std::string& path) {
  try {
    for (const SourceKind& kind : source_kinds())
      if (kind.scan != scan_folder && kind.matches(path)) return true;
  } catch (const Error&) {  // a form of it that is not read
    return true;
  }
  std::error_code error;
  if (is_remote(path) || !std::filesystem::is_directory(path, error)) return false;
  const FolderState state = folder_state(path);
  return state != FolderState::complete && state != FolderState::incomplete;
}

Dataset open_data(const std::filesystem::path& path, const Hooks& hooks) {
  if (!names_images(path.native())) return Dataset::open(path);
  TextOptions words;
  words.add("size", "original");
  Options options;
  apply(words, options);
  options.images = path.native();
  return open_source(options, hooks);
}

}  // namespace shard::convert
