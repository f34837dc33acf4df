// ImagesAhead: makes the samples of coming batches from their images, where a data set is not converted
// (Dataset::is_unconverted()).
//
//   before_batch(b): begin with b + 1 .. b + ahead; wait for b; its samples are kept
//   after_batch(b):  they were copied, and are let go
//
// JPEG files that the device decodes from their own bytes are not made: the transport reads them. If one
// cannot be read, or decoded there, its batch is made again, and then it is made like other images, which
// also tells what is wrong with it.
//
// An image that is unusable is an error, or (LoaderOptions::on_error) another sample takes its place: the
// next one of the data set, after the last one the first, that is not unusable itself. So it is the same for
// every rank, thread count and repetition.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "prefetch/rejects_file.hpp"
#include "setup/loader_setup.hpp"
#include "shard/loader/stats.hpp"

namespace shard {

struct MadeSample;
class UnusableImage;

// The feeder's thread calls the members, but for stats().
class ImagesAhead {
 public:
  // `needed`: whether a sample must be made; asked on the feeder's thread when its batch begins.
  ImagesAhead(const LoaderSetup& setup, std::function<bool(std::uint64_t sample)> needed);
  ImagesAhead(const ImagesAhead&) = delete;
  ImagesAhead& operator=(const ImagesAhead&) = delete;
  ~ImagesAhead();  // stops, and joins the threads

  // Which sample a row has instead of the one that the order says.
  struct Replacement {
    std::size_t row = 0;
    std::uint64_t sample = 0;
  };
  struct Samples {
    std::vector<Replacement> replaced;
    std::vector<std::uint8_t> is_file;  // by row: UnconvertedSamples::file_of() has one
  };
  // Waits until the samples of this batch are made. `again`: not in the order of the plan. Errors: those of
  // the first image that failed; cancelled, soon after stopping() is true.
  Samples before_batch(std::uint64_t epoch, std::uint64_t index, bool again,
                       const std::function<bool()>& stopping);
  // These samples are made from now on, not read as files.
  void refuse_files(const std::vector<std::uint64_t>& samples);
  // Nothing reads the samples of this batch any more.
  void after_batch(std::uint64_t epoch, std::uint64_t index);

  // From any thread.
  LoaderStats stats() const;

 private:
  struct Batch {
    std::uint64_t epoch = 0;
    std::uint64_t index = 0;
    BatchIndices indices;
    std::vector<std::size_t> rows;                        // that are looked at, or made
    std::vector<std::uint8_t> is_file;                    // by row
    std::vector<std::uint64_t> samples;                   // of each row, in the end
    std::vector<std::shared_ptr<const MadeSample>> kept;  // likewise
    std::atomic<bool> wanted{true};
    std::future<void> made;
    bool is(std::uint64_t e, std::uint64_t i) const noexcept { return epoch == e && index == i; }
  };

  std::shared_ptr<Batch> begin(std::uint64_t epoch, std::uint64_t index);
  void begin_ahead();
  void drop_coming();
  void make_row(Batch& batch, std::size_t row);
  bool is_file(const ShardReader& shard, std::uint64_t number, std::uint64_t sample) const;
  bool is_unusable(std::uint64_t sample) const;
  bool is_refused(std::uint64_t sample) const;
  void note(std::uint64_t sample, const UnusableImage& error);

  const LoaderSetup& setup_;
  const std::function<bool(std::uint64_t)> needed_;
  const std::uint64_t ahead_;
  std::deque<std::shared_ptr<Batch>> batches_;  // in order; the first ones are in use
  std::size_t in_use_ = 0;
  std::vector<std::shared_ptr<Batch>> again_;  // that are made again, in use
  mutable std::mutex mutex_;                   // guards the next five
  RejectsFile rejects_;
  std::set<std::uint64_t> listed_;  // in it, and in the statistics
  std::set<std::uint64_t> unusable_;
  std::set<std::uint64_t> refused_;  // by the device, as files
  LoaderStats stats_;
  ThreadPool pool_;  // destroyed first
};

}  // namespace shard
