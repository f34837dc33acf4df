#include <algorithm>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/system/thread_pool.hpp"
#include "commands/pipeline/pipeline_bench.hpp"
#include "feeds/row_makers.hpp"
#include "feeds/sample_reference.hpp"
#include "harness/interrupt.hpp"
#include "harness/measure.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

// Decodes rows of a batch on a pool's threads, each with a decoder of its own.
class Decoders {
 public:
  Decoders(const TierImages& images, DatasetInfo info, unsigned threads)
      : images_(images),
        info_(std::move(info)),
        row_bytes_(made_preprocess(info_).sample_spec().size_bytes()),
        pool_(threads) {
    for (unsigned i = 0; i < threads; ++i)
      free_.push_back(std::make_unique<ImageMaker>(images_, info_, nullptr));
  }
  // `filled` is done, or failed, when all rows are there.
  void submit(std::uint64_t first, std::uint64_t rows, std::byte* target, std::future<void>& filled) {
    submit_rows(pool_, rows, filled, [this, first, target, size = row_bytes_](std::size_t row) {
      if (interrupted()) throw Error(ErrorCode::cancelled, "stopped");
      auto maker = take();
      try {
        maker->make(first + row, {target + row * size, size});
      } catch (...) {
        give(std::move(maker));
        throw;
      }
      give(std::move(maker));
    });
  }
  const DatasetInfo& info() const noexcept { return info_; }
  const TierImages& images() const noexcept { return images_; }

 private:
  std::unique_ptr<ImageMaker> take() {
    const std::scoped_lock lock(mutex_);
    auto maker = std::move(free_.back());
    free_.pop_back();
    return maker;
  }
  void give(std::unique_ptr<ImageMaker> maker) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(maker));
  }
  const TierImages& images_;
  DatasetInfo info_;
  std::uint64_t row_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ImageMaker>> free_;
  ThreadPool pool_;  // last: its threads end first
};

// A batch in host memory and its place on the device.
class BatchPlace {
 public:
  BatchPlace(Device& device, const DatasetInfo& info, std::uint64_t batch_size, bool pinned)
      : info_(info),
        made_(made_preprocess(info).sample_spec()),
        transform_(made_transform(info)),
        batch_size_(batch_size),
        computes_(!is_identity(made_, transform_)) {
    const std::uint64_t bytes = batch_size * made_.size_bytes();
    if (pinned) {
      pinned_ = device.allocate_pinned(bytes);
    } else {
      pageable_.resize(bytes);
    }
    batch_ = device.allocate_device(batch_size * check_transform(made_, transform_).size_bytes());
    if (computes_) raw_ = device.allocate_device(bytes);
  }
  std::byte* rows() noexcept { return pinned_ ? pinned_->data() : pageable_.data(); }
  const std::byte* images() const noexcept { return batch_->data(); }
  // Queues the copy and the transform.
  void upload(Stream& stream) {
    const CopyItem item{computes_ ? raw_->data() : batch_->data(), rows(), batch_size_ * made_.size_bytes()};
    stream.copy({&item, 1});
    if (computes_)
      transform_rows(stream, made_, transform_, info_.normalization, raw_->data(), 0, batch_size_,
                     batch_->data());
  }

 private:
  const DatasetInfo& info_;
  SampleSpec made_;  // a row as it is decoded
  TransformOptions transform_;
  std::uint64_t batch_size_;
  bool computes_;
  std::vector<std::byte> pageable_;
  std::unique_ptr<Block> pinned_, batch_, raw_;
};

// How a feed decodes: on how many threads, how many batches before they are asked for, and whether they are
// brought to the device before, too, by a thread.
struct DecodeHow {
  unsigned threads = 1;
  bool pinned = false;
  std::size_t ahead = 0;  // 0: a batch is decoded when it is asked for, copied, and waited for
  bool to_device = false;
};

// A ring of batches that are decoded from the images.
class DecodeFeed final : public Feed {
 public:
  DecodeFeed(const TierImages& images, const DatasetInfo& info, const std::shared_ptr<Device>& device,
             std::uint64_t batch_size, const DecodeHow& how)
      : stream_(device->create_stream()), batch_size_(batch_size), decoders_(images, info, how.threads) {
    for (std::size_t i = 0; i < how.ahead + 1; ++i) {
      slots_.push_back(std::make_unique<Slot>(*device, decoders_.info(), batch_size, how.pinned));
      if (how.ahead > 0) fill(i);
    }
    if (how.to_device) uploader_ = std::jthread([this](const std::stop_token& stop) { upload_all(stop); });
  }
  ~DecodeFeed() override {
    if (uploader_.joinable()) {
      uploader_.request_stop();
      {
        const std::scoped_lock lock(mutex_);
        changed_.notify_all();
      }
      uploader_.join();
    }
    for (const auto& slot : slots_)
      if (slot->filled.valid()) slot->filled.wait();
    try {
      stream_->synchronize();  // it may still copy from the slots
    } catch (const Error&) {   // told before
    }
  }

  BatchTimes next() override {
    BatchTimes times;
    Slot& slot = *slots_[batch_ % slots_.size()];
    Stopwatch watch;
    if (uploader_.joinable()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return error_ || queued_ > batch_; });
      if (queued_ <= batch_) std::rethrow_exception(error_);
    } else {
      if (slots_.size() == 1) fill(batch_);
      slot.filled.get();
    }
    times.load_seconds = watch.restart();
    if (uploader_.joinable()) {
      slot.there.wait();
    } else {
      slot.place.upload(*stream_);
      stream_->synchronize();
    }
    times.transfer_seconds = watch.seconds();
    const auto& all = decoders_.images().samples;
    samples_.clear();
    for (std::uint64_t i = 0; i < batch_size_; ++i)
      samples_.push_back(all[(batch_ * batch_size_ + i) % all.size()]);
    return times;
  }
  const std::byte* images() const override { return slots_[batch_ % slots_.size()]->place.images(); }
  std::span<const std::uint64_t> samples() const override { return samples_; }
  std::filesystem::path image_of(std::size_t row) const override {
    const TierImages& all = decoders_.images();
    return all.root / all.paths[(batch_ * batch_size_ + row) % all.paths.size()];
  }
  void release() override {
    {
      const std::scoped_lock lock(mutex_);
      if (slots_.size() > 1) fill(batch_ + slots_.size());
      ++batch_;
    }
    changed_.notify_all();
  }

 private:
  struct Slot {
    Slot(Device& device, const DatasetInfo& info, std::uint64_t batch_size, bool pinned)
        : place(device, info, batch_size, pinned) {}
    BatchPlace place;
    std::future<void> filled;
    Event there;
  };
  void fill(std::uint64_t batch) {
    Slot& slot = *slots_[batch % slots_.size()];
    decoders_.submit(batch * batch_size_, batch_size_, slot.place.rows(), slot.filled);
    filling_ = batch + 1;
  }
  void upload_all(const std::stop_token& stop) {
    try {
      for (std::uint64_t batch = 0;; ++batch) {
        Slot& slot = *slots_[batch % slots_.size()];
        std::future<void> filled;
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return stop.stop_requested() || filling_ > batch; });
          if (stop.stop_requested()) return;
          filled = std::move(slot.filled);
        }
        filled.get();
        slot.place.upload(*stream_);
        slot.there = stream_->record();
        const std::scoped_lock lock(mutex_);
        queued_ = batch + 1;
        changed_.notify_all();
      }
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  std::unique_ptr<Stream> stream_;
  std::uint64_t batch_size_;
  std::vector<std::uint64_t> samples_;  // of the batch that the consumer has
  Decoders decoders_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t batch_ = 0;    // that the consumer has, or waits for
  std::uint64_t filling_ = 0;  // batches that are decoded, or will be
  std::uint64_t queued_ = 0;   // batches on their way to the device
  std::exception_ptr error_;
  std::jthread uploader_;
};

class LoaderFeed final : public Feed {
 public:
  LoaderFeed(const std::filesystem::path& folder, std::shared_ptr<Device> device,
             const PipelineOptions& options)
      : loader_(Dataset::open(folder), std::move(device), of(folder, options)) {
    loader_.start_epoch(0);
  }
  BatchTimes next() override {
    if (interrupted()) throw Error(ErrorCode::cancelled, "stopped");
    BatchTimes times;
    Stopwatch watch;
    batch_.reset();
    for (batch_ = loader_.next(); !batch_; batch_ = loader_.next()) loader_.start_epoch(++epoch_);
    times.load_seconds = watch.restart();
    batch_->wait();
    times.transfer_seconds = watch.seconds();
    return times;
  }
  const std::byte* images() const override { return batch_->images().data; }
  std::span<const std::uint64_t> samples() const override { return batch_->ids(); }
  void release() override { batch_.reset(); }

 private:
  static LoaderOptions of(const std::filesystem::path& folder, const PipelineOptions& options) {
    const Dataset dataset = Dataset::open(folder);
    LoaderOptions load;
    load.transform = delivered_transform(dataset.info());
    load.as_stored = {"*"};  // images are what is measured
    load.batch_size = options.batch_size;
    load.tail = Tail::wrap;
    load.prefetch = static_cast<std::uint32_t>(options.prefetch);
    return load;
  }
  Loader loader_;
  std::optional<Batch> batch_;
  std::uint64_t epoch_ = 0;
};

}  // namespace

std::vector<FeedKind> feed_kinds(const std::filesystem::path& folder, const TierImages& images,
                                 const std::shared_ptr<Device>& device, const PipelineOptions& options) {
  const DatasetInfo info = Dataset::open(folder).info();
  const unsigned jobs = options.jobs();
  const auto decoding = [&](const DecodeHow& how) {
    return [&images, info, device, options, how] {
      return std::make_unique<DecodeFeed>(images, info, device, options.batch_size, how);
    };
  };
  std::vector<FeedKind> kinds;
  if (images.problem.empty())
    kinds = {
        {"one thread", "decodes, copies from pageable memory, trains, one after the other", decoding({1})},
        {"workers", fmt::format("{} threads decode a batch, then the same", jobs), decoding({jobs})},
        {"+ pinned", "they decode into pinned memory", decoding({jobs, true})},
        {"+ prefetch on the host",
         fmt::format("{} batches are decoded ahead while the device trains", options.prefetch),
         decoding({jobs, true, options.prefetch})},
        {"+ prefetch on the device", "and copied and transformed ahead",
         decoding({jobs, true, options.prefetch, true})}};
  kinds.push_back(
      {"precomputed shards", fmt::format("the loader, {} batches ahead", options.prefetch),
       [folder, device, options] { return std::make_unique<LoaderFeed>(folder, device, options); }});
  return kinds;
}

}  // namespace shard::bench
