#include "commands/transform/transform_bench.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "data/photo.hpp"
#include "harness/measure.hpp"
#include "shard/convert/text_options.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kPictures = 16;
constexpr std::uint64_t kMostSide = 4096;
constexpr std::uint64_t kMostBatch = 4096;
constexpr std::size_t kDraws = 8;  // batches of draws, in turn
constexpr std::size_t kSlots = 4;  // targets, in turn

void check_options(const TransformBenchOptions& options) {
  const auto refuse = [](const char* option, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value < least || value > most)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} {}: expected {} to {}", option, value, least, most));
  };
  refuse("--side", options.side, 32, kMostSide);
  refuse("--size", options.size, 32, kMostSide);
  refuse("--batch-size", options.batch_size, 1, kMostBatch);
}

std::vector<TransformCase> chosen_cases(const std::vector<std::string>& names) {
  std::vector<TransformCase> all = transform_cases();
  if (names.empty()) return all;
  std::vector<TransformCase> chosen{all.front()};
  for (const std::string& name : names) {
    const auto begins = [&](const TransformCase& one) { return one.name.starts_with(name); };
    const std::size_t before = chosen.size();
    std::copy_if(all.begin() + 1, all.end(), std::back_inserter(chosen), begins);
    if (chosen.size() > before) continue;
    std::string there;
    for (auto one = all.begin() + 1; one != all.end(); ++one)
      there += (there.empty() ? "" : "; ") + one->name;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "--cases {}: no case begins so; beside the first, which is always measured, there are: {}",
            quoted(name), there));
  }
  return chosen;
}

// A stream with the memory that its transforms share, like the loader's.
struct Lane {
  std::unique_ptr<Block> augment;
  std::unique_ptr<Stream> stream;
};

class Pipeline {
 public:
  Pipeline(Device& device, const TransformBenchOptions& options, std::vector<TransformCase>& cases)
      : options_(options),
        stored_{DType::u8, Layout::nhwc, 3, options.side, options.side},
        delivered_(check_transform(stored_, transform_of({}))),
        samples_(device.allocate_device(options.batch_size * stored_.size_bytes())),
        targets_(device.allocate_device(kSlots * options.batch_size *
                                        std::max(delivered_.size_bytes(), stored_.size_bytes()))) {
    const bool with_mix =
        std::any_of(cases.begin(), cases.end(), [](const auto& one) { return mixes(one.operations); });
    const bool gpu = device.info().kind == DeviceKind::cuda;
    const std::uint64_t bytes = augment_scratch_bytes(delivered_, options.batch_size, with_mix);
    for (int i = 0; i < (gpu ? 2 : 1); ++i)
      lanes_.push_back({gpu ? device.allocate_device(bytes) : nullptr, device.create_stream()});
    upload_pictures(device);
    for (std::uint64_t i = 0; i < options.batch_size; ++i)
      sources_.push_back(samples_->data() + i * stored_.size_bytes());
  }

  const SampleSpec& stored() const { return stored_; }
  const SampleSpec& delivered() const { return delivered_; }

  // Bytes a second, read and written.
  double copy_rate() {
    std::vector<CopyItem> items;
    const double batches = rate([&](Lane& lane, std::size_t slot, std::size_t) {
      items.clear();
      for (std::size_t i = 0; i < sources_.size(); ++i)
        items.push_back(
            {target(slot, stored_) + i * stored_.size_bytes(), sources_[i], stored_.size_bytes()});
      lane.stream->gather(items);
    });
    return 2 * batches * static_cast<double>(options_.batch_size * stored_.size_bytes());
  }

  // Samples a second.
  double transform_rate(TransformCase& one) {
    const std::vector<Draws> draws = draw(one);
    TransformWork work;
    work.stored = stored_;
    work.delivered = delivered_;
    work.normalize = true;
    work.normalization = convert::kImagenet;
    work.sources = sources_;
    const double batches = rate([&](Lane& lane, std::size_t slot, std::size_t number) {
      const Draws& drawn = draws[number % kDraws];
      work.crops = drawn.crops;
      work.instructions = drawn.instructions;
      work.begins = drawn.begins;
      work.augment_scratch = lane.augment ? lane.augment->data() : nullptr;
      work.target = target(slot, delivered_);
      lane.stream->transform(work);
    });
    return batches * static_cast<double>(options_.batch_size);
  }

 private:
  struct Draws {
    std::vector<SampleCrop> crops;
    std::vector<Instruction> instructions;
    std::vector<std::uint32_t> begins;
  };

  TransformOptions transform_of(const std::vector<Operation>& operations) const {
    TransformOptions transform;
    transform.crop = CropKind::random_resized;
    transform.crop_height = transform.crop_width = options_.size;
    transform.flip = 0.5;
    transform.dtype = options_.dtype;
    transform.layout = Layout::nchw;
    transform.operations = operations;
    return transform;
  }

  void upload_pictures(Device& device) {
    const auto pinned = device.allocate_pinned(kPictures * stored_.size_bytes());
    for (std::uint64_t i = 0; i < kPictures; ++i) {
      PhotoPlan plan = plan_photo(1, i, 10);
      plan.width = plan.height = options_.side;
      const std::vector<std::uint8_t> picture = render_photo(plan);
      std::memcpy(pinned->data() + i * stored_.size_bytes(), picture.data(), stored_.size_bytes());
    }
    std::vector<CopyItem> items;
    for (std::uint64_t i = 0; i < options_.batch_size; ++i)
      items.push_back({samples_->data() + i * stored_.size_bytes(),
                       pinned->data() + i % kPictures * stored_.size_bytes(), stored_.size_bytes()});
    lanes_.front().stream->copy(items);
    lanes_.front().stream->synchronize();
  }

  // Also measures how many a thread draws in a second.
  std::vector<Draws> draw(TransformCase& one) const {
    const TransformOptions transform = transform_of(one.operations);
    check_transform(stored_, transform);
    std::vector<Draws> all(kDraws);
    const Stopwatch watch;
    for (std::size_t number = 0; number < kDraws; ++number) {
      Draws& drawn = all[number];
      if (!one.operations.empty()) drawn.begins.push_back(0);
      for (std::uint64_t i = 0; i < options_.batch_size; ++i) {
        const std::uint64_t sample = number * options_.batch_size + i;
        drawn.crops.push_back(draw_crop(stored_, transform, 1, 0, sample));
        if (one.operations.empty()) continue;
        draw_program(delivered_, one.operations, 1, 0, sample, 0, drawn.instructions);
        drawn.begins.push_back(static_cast<std::uint32_t>(drawn.instructions.size()));
      }
    }
    one.draws_per_second = static_cast<double>(kDraws * options_.batch_size) / watch.seconds();
    return all;
  }

  std::byte* target(std::size_t slot, const SampleSpec& of) const {
    return targets_->data() + slot * options_.batch_size * of.size_bytes();
  }

  // Batches a second of what `queue` queues for (lane, slot, number of the batch).
  template <class Queue>
  double rate(const Queue& queue) {
    std::vector<Event> done(kSlots);
    const auto run = [&](std::size_t number) {
      const std::size_t slot = number % kSlots;
      done[slot].wait();
      Lane& lane = lanes_[number % lanes_.size()];
      queue(lane, slot, number);
      done[slot] = lane.stream->record();
    };
    for (std::size_t number = 0; number < kSlots; ++number) run(number);  // warm
    for (const Lane& lane : lanes_) lane.stream->synchronize();
    const Stopwatch watch;
    std::size_t number = 0;
    while (number == 0 || watch.seconds() < options_.seconds) run(number++);
    for (const Lane& lane : lanes_) lane.stream->synchronize();
    return static_cast<double>(number) / watch.seconds();
  }

  const TransformBenchOptions& options_;
  SampleSpec stored_;
  SampleSpec delivered_;
  std::unique_ptr<Block> samples_;
  std::unique_ptr<Block> targets_;
  std::vector<Lane> lanes_;
  std::vector<const std::byte*> sources_;
};

}  // namespace

TransformResult bench_transform(Device& device, const TransformBenchOptions& options,
                                const std::atomic<bool>& cancel,
                                const std::function<void(const TransformResult&)>& done) {
  check_options(options);
  TransformResult result;
  result.cases = chosen_cases(options.cases);
  Pipeline pipeline(device, options, result.cases);
  result.stored_bytes = pipeline.stored().size_bytes();
  result.delivered_bytes = pipeline.delivered().size_bytes();
  for (unsigned k = 0; k < options.repeat; ++k) {
    result.memory_bytes_per_second.push_back(pipeline.copy_rate());
    for (TransformCase& one : result.cases) {
      stop_when(cancel);
      attempt(one.problem, [&] { one.samples_per_second.push_back(pipeline.transform_rate(one)); });
    }
    done(result);
  }
  return result;
}

}  // namespace shard::bench
