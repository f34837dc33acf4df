#include "commands/pipeline/pipeline_bench.hpp"

#include <algorithm>

#include "data/random.hpp"
#include "feeds/sample_reference.hpp"
#include "harness/measure.hpp"
#include "harness/stats.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

void check_first_batch(Feed& feed, const std::filesystem::path& dataset, Device& device) {
  SampleReference reference(dataset);
  feed.next();
  reference.check_batch(*device.create_stream(), feed.images(), feed.samples(), SampleReference::kChecked,
                        [&](std::size_t row) { return feed.image_of(row); });
  feed.release();
}

std::vector<BatchTimes> run(Feed& feed, TrainStep& step, const PipelineOptions& options,
                            const std::atomic<bool>& cancel) {
  std::vector<BatchTimes> all;
  // What was made ahead before the first step, the ring's length, flatters.
  const std::size_t skipped = options.prefetch + 2;
  for (std::size_t i = 0; i < skipped + options.batches; ++i) {
    stop_when(cancel);
    BatchTimes times = feed.next();
    const Stopwatch watch;
    step.run();
    feed.release();
    times.train_seconds = watch.seconds();
    if (i >= skipped) all.push_back(times);
  }
  return all;
}

double mean_total(const std::vector<BatchTimes>& batches) {
  double all = 0;
  for (const BatchTimes& one : batches) all += one.total();
  return all / static_cast<double>(std::max<std::size_t>(1, batches.size()));
}

}  // namespace

TrainStep::TrainStep(Multiplier& multiplier, double step_ms) : multiplier_(multiplier) {
  const double wanted = step_ms * 1e-3;
  // The largest product of which at least eight fit: small enough to meet the time, large enough to be work.
  for (size_ = multiplier.on_gpu() ? 4096 : 1024;; size_ /= 2) {
    Random random(size_, 7, 7);
    a_.resize(size_ * size_);
    b_.resize(size_ * size_);
    for (float& value : a_) value = random.uniform(-1, 1);
    for (float& value : b_) value = random.uniform(-1, 1);
    multiplier_.load(size_, a_, b_);
    multiplier_.multiply(2);
    const double one = multiplier_.multiply(4) / 4;
    if (one * 8 > wanted && size_ > 64) continue;
    times_ = std::max<std::size_t>(1, static_cast<std::size_t>(wanted / one + 0.5));
    break;
  }
  for (int i = 0; i < 3; ++i) {  // clocks rise, launches overlap
    seconds_ = multiplier_.multiply(times_);
    times_ = std::clamp<std::size_t>(
        static_cast<std::size_t>(static_cast<double>(times_) * wanted / seconds_ + 0.5), 1, 10'000'000);
  }
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) seconds.push_back(multiplier_.multiply(times_));
  seconds_ = summarize(seconds).median;
}

double PipelineCase::samples_per_second(std::uint64_t batch_size) const {
  if (runs.empty()) return 0;
  std::vector<double> rates;
  for (const auto& batches : runs) rates.push_back(static_cast<double>(batch_size) / mean_total(batches));
  return summarize(rates).median;
}

double PipelineCase::utilisation() const {
  const BatchTimes times = mean();
  return times.total() > 0 ? times.train_seconds / times.total() : 0;
}

BatchTimes PipelineCase::mean() const {
  BatchTimes sum;
  double count = 0;
  for (const auto& batches : runs) {
    for (const BatchTimes& one : batches) {
      sum.load_seconds += one.load_seconds;
      sum.transfer_seconds += one.transfer_seconds;
      sum.train_seconds += one.train_seconds;
      ++count;
    }
  }
  if (count == 0) return {};
  return {sum.load_seconds / count, sum.transfer_seconds / count, sum.train_seconds / count};
}

std::vector<PipelineCase> bench_pipeline(const std::vector<FeedKind>& kinds,
                                         const std::filesystem::path& dataset, Device& device,
                                         TrainStep& step, const PipelineOptions& options,
                                         const std::atomic<bool>& cancel,
                                         const std::function<void(const std::vector<PipelineCase>&)>& done) {
  std::vector<PipelineCase> cases;
  for (const FeedKind& kind : kinds) {
    stop_when(cancel);
    cases.push_back({kind.name, kind.how, {}, {}});
    attempt(cases.back().problem, [&] { check_first_batch(*kind.make(), dataset, device); });
  }
  done(cases);
  for (unsigned k = 0; k < options.repeat; ++k) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      stop_when(cancel);
      attempt(cases[i].problem,
              [&] { cases[i].runs.push_back(run(*kinds[i].make(), step, options, cancel)); });
    }
    done(cases);
  }
  return cases;
}

}  // namespace shard::bench
