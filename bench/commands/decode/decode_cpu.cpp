// Decoding by libjpeg-turbo on all threads, as the converter does it.
#include <utility>

#include <fmt/core.h>

#include "commands/decode/decode_bench.hpp"
#include "feeds/row_makers.hpp"
#include "shard/convert/decoding.hpp"

namespace shard::bench {
namespace {

class CpuCandidate final : public DecodeCandidate {
 public:
  CpuCandidate(const PhotoSet& photos, std::shared_ptr<Device> device, const DecodeOptions& options,
               bool scaled, bool on_device)
      : photos_(photos),
        device_(std::move(device)),
        options_(options),
        scaled_(scaled),
        on_device_(on_device) {}
  std::string name() const override {
    return fmt::format("{} DCT, {}", scaled_ ? "scaled" : "full",
                       on_device_ ? "normalised on the device" : "normalised on the host");
  }
  std::string how() const override {
    return fmt::format("libjpeg-turbo, {} threads; {} a sample go to the device", options_.jobs(),
                       on_device_ ? "bytes" : "float16");
  }
  DecodeLimit limit() const noexcept override { return scaled_ ? DecodeLimit::scaled : DecodeLimit::full; }
  image::DecodeOptions decode_options() const override {
    image::DecodeOptions decode;
    if (scaled_) decode.fast_min_short_side = convert::fast_decode_side(options_.preprocess());
    return decode;
  }
  std::uint64_t photos() const noexcept override { return photos_.size(); }
  std::uint64_t photo(std::uint64_t row) const override { return row % photos_.size(); }
  BatchRun run(std::uint64_t rows, std::span<std::byte> out) override {
    if (!pipeline_) start();
    return pipeline_->run(rows, out);
  }
  void rest() override { pipeline_.reset(); }

 private:
  void start() {
    image::PreprocessOptions preprocess = options_.preprocess();
    BatchPipelineOptions options;
    if (on_device_) {
      options.transform.dtype = preprocess.dtype;
      options.transform.layout = preprocess.layout;
      options.transform.normalization = preprocess.normalization;
      preprocess.dtype = DType::u8;
      preprocess.layout = Layout::nhwc;
    }
    options.made = preprocess.sample_spec();
    options.batch_size = options_.batch_size;
    options.threads = options_.jobs();
    options.maker = [this, preprocess] {
      return std::make_unique<ImageMaker>(photos_.root(), photos_.paths(), preprocess, decode_options());
    };
    pipeline_ = std::make_unique<BatchPipeline>(device_, options);
  }

  const PhotoSet& photos_;
  std::shared_ptr<Device> device_;
  DecodeOptions options_;
  bool scaled_;
  bool on_device_;
  std::unique_ptr<BatchPipeline> pipeline_;
};

}  // namespace

Candidates make_cpu_candidates(const PhotoSet& photos, const std::shared_ptr<Device>& device,
                               const DecodeOptions& options) {
  Candidates list;
  for (const bool scaled : {false, true})
    for (const bool on_device : {false, true})
      list.push_back(std::make_unique<CpuCandidate>(photos, device, options, scaled, on_device));
  return list;
}

}  // namespace shard::bench
