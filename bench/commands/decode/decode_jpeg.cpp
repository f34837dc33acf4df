// Decoding by shard::JpegDecoder: on a GPU by kernels, from files as they are.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "commands/decode/decode_bench.hpp"
#include "commands/decode/jpeg_files.hpp"
#include "harness/interrupt.hpp"
#include "limits/load_limits.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kWarmFiles = 2048;      // of a caller: all of a decoder's memory is in use by then
constexpr std::uint64_t kComparedImages = 256;  // of a call

// A thread's decoder. The memory of its batches is kept, so that no call waits for the driver to free it.
class Caller {
 public:
  Caller(const JpegFiles& files, const DecoderCalls& calls, unsigned threads)
      : files_(files),
        calls_(calls),
        stream_(files.device()->create_stream()),
        decoder_(files.device(), threads, [this] { return StreamRef(*stream_); }) {}
  JpegBatch call(std::uint64_t number) {
    const JpegCut cut = calls_.boxes ? JpegCut::box : JpegCut::whole;
    inputs_.clear();
    for (std::uint64_t i = 0; i < calls_.files; ++i)
      inputs_.push_back(files_.input(number * calls_.files + i, cut));
    return decoder_.decode(inputs_, files_.delivered());
  }
  // How many values of a batch's first images are not those of `expected`.
  std::uint64_t differ(const JpegBatch& batch, std::span<const std::byte> expected) {
    std::vector<std::byte> made(expected.size());
    const CopyItem item{made.data(), batch.memory->data(), made.size()};
    stream_->copy_to_host({&item, 1});
    stream_->synchronize();
    return differing_values(made, expected, size_bytes(files_.delivered().dtype));
  }

 private:
  const JpegFiles& files_;
  const DecoderCalls& calls_;
  std::vector<JpegInput> inputs_;
  std::unique_ptr<Stream> stream_;
  JpegDecoder decoder_;
};

class JpegCandidate final : public DecodeCandidate {
 public:
  JpegCandidate(std::shared_ptr<JpegFiles> files, const DecoderCalls& calls, unsigned jobs)
      : files_(std::move(files)), calls_(calls), threads_(std::clamp(jobs / calls.callers, 1U, 8U)) {}
  std::string name() const override {
    return fmt::format("JpegDecoder, {}, {} caller{} of {} files", calls_.boxes ? "boxes" : "whole images",
                       calls_.callers, calls_.callers == 1 ? "" : "s", calls_.files);
  }
  std::string how() const override {
    return fmt::format(
        "{}; files are in memory{}; a caller is a thread with a decoder of its own, which has an equal part "
        "of "
        "the threads, 8 at most; whole images, or boxes as RandomResizedCrop draws them, to {}x{}",
        on_device() ? "kernels" : "libjpeg-turbo on the host device",
        on_device() ? ", pinned, and the limit is the link" : "", files_->delivered().height,
        files_->delivered().width);
  }
  DecodeLimit limit() const noexcept override { return on_device() ? DecodeLimit::link : DecodeLimit::full; }
  double link_rate() override { return link_limit({&files_->device(), 1}) / files_->mean_bytes(); }
  std::uint64_t photos() const noexcept override { return files_->size(); }
  std::uint64_t photo(std::uint64_t row) const override { return row % files_->size(); }
  std::optional<DecoderCalls> calls() const override { return calls_; }

  std::optional<ValueCheck> check_values(const std::atomic<bool>& cancel) override {
    ValueCheck check = files_->whole_images(cancel);
    const std::uint64_t images = std::min(calls_.files, kComparedImages);
    const auto expected = files_->reference(calls_.boxes ? JpegCut::box : JpegCut::whole, images);
    start();
    std::atomic<std::uint64_t> differ{0};
    const Elapsed elapsed =
        each_caller([&](Caller& caller) { differ += caller.differ(caller.call(0), expected); });
    check.compared += calls_.callers * expected.size() / size_bytes(files_->delivered().dtype);
    check.differ += differ;
    check.run = {elapsed, calls_.callers * calls_.files};
    return check;
  }
  BatchRun run(std::uint64_t rows, std::span<std::byte>) override {
    start();
    const std::uint64_t calls =
        std::max<std::uint64_t>(calls_.callers, (rows + calls_.files - 1) / calls_.files);
    std::atomic<std::uint64_t> next{0};
    const Elapsed elapsed = each_caller([&](Caller& caller) {
      for (std::uint64_t call = next++; call < calls && !failed_; call = next++) {
        if (interrupted()) throw Error(ErrorCode::cancelled, "stopped");
        caller.call(call);
      }
    });
    return {elapsed, calls * calls_.files};
  }
  void rest() override { callers_.clear(); }

 private:
  bool on_device() const { return files_->device()->info().kind != DeviceKind::host; }
  void start() {
    if (!callers_.empty()) return;
    for (unsigned i = 0; i < calls_.callers; ++i)
      callers_.push_back(std::make_unique<Caller>(*files_, calls_, threads_));
    if (!on_device()) return;
    each_caller([&](Caller& caller) {
      for (std::uint64_t call = 0; call * calls_.files < kWarmFiles; ++call) caller.call(call);
    });
  }
  // Each on a thread of its own. After an error nothing of it is kept.
  template <class Work>
  Elapsed each_caller(const Work& work) {
    failed_ = false;
    const RunClock clock;
    try {
      run_threads(calls_.callers, [&](unsigned caller) {
        try {
          files_->device()->enter_thread();
          work(*callers_[caller]);
        } catch (...) {
          failed_ = true;
          throw;
        }
      });
    } catch (...) {
      rest();
      throw;
    }
    return clock.elapsed();
  }

  std::shared_ptr<JpegFiles> files_;
  DecoderCalls calls_;
  unsigned threads_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::atomic<bool> failed_{false};
};

}  // namespace

Candidates make_jpeg_candidates(const PhotoSet& photos, const std::shared_ptr<Device>& device,
                                const DecodeOptions& options, std::string& absent) {
  Candidates list;
  const bool host = device->info().kind == DeviceKind::host;
  if (host && options.callers.empty()) {
    absent = "the device is the host; with --callers its decoder is measured, which is libjpeg-turbo";
    return list;
  }
  if (!host && !device->info().decodes_jpeg) {
    absent = fmt::format("{} has no kernels for JPEG", device->info().name);
    return list;
  }
  try {
    const auto files = std::make_shared<JpegFiles>(photos, device, options);
    for (const bool boxes : {false, true})
      for (const std::uint64_t each : options.call_files)
        for (const unsigned callers : options.callers_or_default())
          list.push_back(
              std::make_unique<JpegCandidate>(files, DecoderCalls{callers, each, boxes}, options.jobs()));
  } catch (const Error& error) {
    absent = error.what();
  }
  return list;
}

}  // namespace shard::bench
