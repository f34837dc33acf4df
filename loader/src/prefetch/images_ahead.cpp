#include "prefetch/images_ahead.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/system/stopwatch.hpp"
#include "format/shard/unconverted.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::chrono::milliseconds kTurn{20};                   // between looks at whether to stop
constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20U;  // of samples that are made ahead

// Batches that are begun ahead.
std::uint64_t batches_ahead(const DatasetInfo& info, const LoaderOptions& options) {
  std::uint64_t bytes = 0;
  for (const ShardSummary& shard : info.shards) bytes += shard.size_bytes;
  const std::uint64_t batch = bytes / std::max<std::uint64_t>(info.samples(), 1) * options.most_rows();
  return std::clamp<std::uint64_t>(kMostBytes / std::max<std::uint64_t>(batch, 1), 1, options.prefetch + 1);
}

}  // namespace

ImagesAhead::ImagesAhead(const LoaderSetup& setup, std::function<bool(std::uint64_t)> needed)
    : setup_(setup),
      needed_(std::move(needed)),
      ahead_(batches_ahead(setup.dataset.info(), setup.options)),
      rejects_(setup.options.rejects),
      pool_(setup.options.threads, "shard-images") {}

ImagesAhead::~ImagesAhead() {
  for (const auto& batch : batches_) batch->wanted = false;
}

ImagesAhead::Samples ImagesAhead::before_batch(std::uint64_t epoch, std::uint64_t index, bool again,
                                               const std::function<bool()>& stopping) {
  std::shared_ptr<Batch> batch;
  if (again) {
    batch = again_.emplace_back(begin(epoch, index));
  } else {
    if (in_use_ == batches_.size() || !batches_[in_use_]->is(epoch, index)) {
      drop_coming();
      batches_.push_back(begin(epoch, index));
    }
    batch = batches_[in_use_++];
    begin_ahead();
  }
  if (batch->made.valid()) {
    const Stopwatch watch;
    while (batch->made.wait_for(kTurn) != std::future_status::ready)
      if (stopping()) throw Error(ErrorCode::cancelled, "stopped while images are decoded");
    const std::lock_guard lock(mutex_);
    stats_.images_seconds += watch.seconds();
  }
  if (batch->made.valid()) batch->made.get();
  Samples samples;
  // The device may have refused some since the batch was begun.
  for (std::size_t row = 0; row < batch->samples.size(); ++row)
    if (batch->is_file[row] != 0 && is_refused(batch->samples[row])) make_row(*batch, row);
  for (std::size_t row = 0; row < batch->samples.size(); ++row)
    if (batch->samples[row] != batch->indices.samples[row])
      samples.replaced.push_back({row, batch->samples[row]});
  samples.is_file = batch->is_file;
  const std::lock_guard lock(mutex_);
  for (const auto& sample : batch->kept) {
    if (!sample) continue;  // it is in the device's memory
    ++(sample->is_cached ? stats_.cached_images : stats_.decoded_images);
    stats_.few_bits_images += sample->is_few_bits ? 1 : 0;
  }
  stats_.replaced_images += samples.replaced.size();
  return samples;
}

void ImagesAhead::refuse_files(const std::vector<std::uint64_t>& samples) {
  const std::lock_guard lock(mutex_);
  refused_.insert(samples.begin(), samples.end());
}

void ImagesAhead::after_batch(std::uint64_t epoch, std::uint64_t index) {
  const auto is_it = [&](const auto& batch) { return batch->is(epoch, index); };
  const auto made_again = std::find_if(again_.begin(), again_.end(), is_it);
  if (made_again != again_.end()) {
    (*made_again)->wanted = false;  // it may have failed before all rows were made
    again_.erase(made_again);
    return;
  }
  const auto used = batches_.begin() + static_cast<std::ptrdiff_t>(in_use_);
  const auto found = std::find_if(batches_.begin(), used, is_it);
  if (found == used) return;
  (*found)->wanted = false;
  batches_.erase(found);
  --in_use_;
}

void ImagesAhead::drop_coming() {
  while (batches_.size() > in_use_) {
    batches_.back()->wanted = false;
    batches_.pop_back();
  }
}

// The next epoch is most likely requested next.
void ImagesAhead::begin_ahead() {
  std::uint64_t epoch = batches_.back()->epoch;
  std::uint64_t index = batches_.back()->index;
  while (batches_.size() < in_use_ + ahead_) {
    if (++index >= setup_.order.batches()) {
      ++epoch;
      index = 0;
    }
    batches_.push_back(begin(epoch, index));
  }
}

std::shared_ptr<ImagesAhead::Batch> ImagesAhead::begin(std::uint64_t epoch, std::uint64_t index) {
  auto batch = std::make_shared<Batch>();
  batch->epoch = epoch;
  batch->index = index;
  setup_.order.batch(epoch, index, batch->indices);
  batch->samples = batch->indices.samples;
  batch->kept.resize(batch->samples.size());
  batch->is_file.resize(batch->samples.size());
  for (std::size_t row = 0; row < batch->samples.size(); ++row) {
    const std::uint64_t sample = batch->samples[row];
    const Dataset::Location at = setup_.dataset.locate(sample);
    const ShardReader* const shard = setup_.dataset.opened(at.shard);  // to open one takes time
    if (shard != nullptr && is_file(*shard, at.sample, sample))
      batch->is_file[row] = 1;
    else if (needed_(sample))
      batch->rows.push_back(row);
  }
  if (!batch->rows.empty())
    submit_rows(pool_, batch->rows.size(), batch->made,
                [this, batch](std::size_t i) { make_row(*batch, batch->rows[i]); });
  return batch;
}

bool ImagesAhead::is_file(const ShardReader& shard, std::uint64_t number, std::uint64_t sample) const {
  const UnconvertedSamples* const maker = shard.unconverted();
  return maker != nullptr && maker->file_of(number) && !is_refused(sample);
}

void ImagesAhead::make_row(Batch& batch, std::size_t row) {
  const std::uint64_t size = setup_.dataset.size();
  const bool skip = setup_.options.on_error == OnError::skip;
  std::uint64_t& sample = batch.samples[row];
  for (std::uint64_t tried = 1;; ++tried) {
    if (!batch.wanted) throw Error(ErrorCode::cancelled, "the batch is not wanted any more");
    try {
      if (!skip || !is_unusable(sample)) {
        const Dataset::Location at = setup_.dataset.locate(sample);
        const ShardReader& shard = setup_.dataset.shard(at.shard);
        batch.is_file[row] = is_file(shard, at.sample, sample) ? 1 : 0;
        if (batch.is_file[row] == 0 && shard.unconverted() != nullptr)
          batch.kept[row] = shard.unconverted()->make(at.sample);
        return;
      }
    } catch (const UnusableImage& error) {
      if (!skip)
        throw Error(error.code(),
                    fmt::format("{} (`on_error` skip puts the next sample in its place)", error.what()));
      note(sample, error);
    }
    if (tried == size)
      throw Error(ErrorCode::corrupt,
                  fmt::format("none of the {} images can be used; {}", size, stats().unusable_images));
    sample = (sample + 1) % size;
  }
}

bool ImagesAhead::is_refused(std::uint64_t sample) const {
  const std::lock_guard lock(mutex_);
  return refused_.contains(sample);
}

bool ImagesAhead::is_unusable(std::uint64_t sample) const {
  const std::lock_guard lock(mutex_);
  return unusable_.contains(sample);
}

// A file that cannot be read is looked at again the next time: only what it holds makes it unusable.
void ImagesAhead::note(std::uint64_t sample, const UnusableImage& error) {
  const std::lock_guard lock(mutex_);
  if (!listed_.contains(sample)) {
    rejects_.add(setup_.dataset.key(sample), error.reason());
    listed_.insert(sample);
    if (listed_.size() <= 100) {
      if (!stats_.unusable_images.empty()) stats_.unusable_images += '\n';
      stats_.unusable_images += error.what();
    }
  }
  if (error.code() != ErrorCode::io) unusable_.insert(sample);
}

LoaderStats ImagesAhead::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace shard
