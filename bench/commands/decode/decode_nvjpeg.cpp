// Decoding by nvJPEG.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include <fmt/core.h>

#include "base/files/file.hpp"
#include "base/system/parallel.hpp"
#include "base/system/thread_pool.hpp"
#include "commands/decode/decode_bench.hpp"
#include "commands/decode/decode_resize.hpp"
#include "commands/decode/nvjpeg_library.hpp"
#include "harness/interrupt.hpp"
#include "harness/measure.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

struct Picture {
  std::uint64_t photo = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint64_t pitch() const noexcept { return (std::uint64_t{width} * 3 + 255) / 256 * 256; }
  std::uint64_t bytes() const noexcept { return pitch() * height; }
};

// The photos that can be decoded, upright as they are. `asks`: the library is asked for each; it knows of the
// hardware alone.
std::vector<Picture> usable_pictures(const NvjpegHandle& handle, const PhotoSet& photos, bool asks) {
  std::vector<Picture> pictures;
  nvjpegJpegStream_t stream = nullptr;
  nvjpeg().check(nvjpeg().create_stream(handle.get(), &stream), "nvjpegJpegStreamCreate");
  for (std::uint64_t i = 0; i < photos.size(); ++i) {
    const auto file = photos.file(i);
    const auto* const data = reinterpret_cast<const unsigned char*>(file.data());
    int refused = 1;
    int components = 0;
    nvjpegChromaSubsampling_t subsampling = NVJPEG_CSS_UNKNOWN;
    int widths[NVJPEG_MAX_COMPONENT] = {};
    int heights[NVJPEG_MAX_COMPONENT] = {};
    if (nvjpeg().parse_header(handle.get(), data, file.size(), stream) != NVJPEG_STATUS_SUCCESS ||
        (asks &&
         (nvjpeg().supported(handle.get(), stream, &refused) != NVJPEG_STATUS_SUCCESS || refused != 0)) ||
        nvjpeg().image_info(handle.get(), data, file.size(), &components, &subsampling, widths, heights) !=
            NVJPEG_STATUS_SUCCESS ||
        components == 4 || image::read_info(file, image::DecodeOptions{}.max_pixels).orientation != 1)
      continue;
    pictures.push_back({i, static_cast<std::uint32_t>(widths[0]), static_cast<std::uint32_t>(heights[0])});
  }
  nvjpeg().destroy_stream(stream);
  return pictures;
}

struct Backend {
  nvjpegBackend_t kind;
  const char* name;
};
constexpr Backend kHardware{NVJPEG_BACKEND_HARDWARE, "hardware engine"};
constexpr Backend kGpu{NVJPEG_BACKEND_GPU_HYBRID, "GPU"};
constexpr Backend kHybrid{NVJPEG_BACKEND_HYBRID, "hybrid"};

// What all lanes share. Row r of a run is pictures[r % size].
struct Plan {
  Backend backend{};
  const PhotoSet* photos = nullptr;
  std::shared_ptr<Device> device;
  DecodeOptions options;
  std::vector<Picture> pictures;
  std::uint64_t pixel_bytes = 0;  // most of any batch
  std::uint64_t row_bytes = 0;
  bool resizes = true;

  const Picture& picture(std::uint64_t row) const { return pictures[row % pictures.size()]; }
  std::uint64_t middle_bytes(const Picture& picture) const {
    return std::uint64_t{picture.height} * options.crop * 3;
  }
  void measure() {
    // Every batch of a run begins at a multiple of the batch size: as many places as pictures at most.
    for (std::uint64_t b = 0; b < pictures.size(); ++b) {
      std::uint64_t pixels = 0;
      std::uint64_t rows = 0;
      for (std::uint64_t i = 0; i < options.batch_size; ++i) {
        pixels += picture(b * options.batch_size + i).bytes();
        rows += middle_bytes(picture(b * options.batch_size + i));
      }
      pixel_bytes = std::max(pixel_bytes, pixels);
      row_bytes = std::max(row_bytes, rows);
    }
  }
};

// A decoding thread with its own handle, two streams, and a ring of batches: files of the next batch are read
// and parsed while the engine decodes this one and the kernels resize the one before.
class Lane {
 public:
  Lane(const Plan& plan, ThreadPool& readers)
      : plan_(plan),
        readers_(readers),
        handle_(plan.backend.kind),
        decoding_(plan.device->create_stream()),
        resizing_(plan.device->create_stream()) {
    for (int i = 0; i < kDepth; ++i) slots_.push_back(std::make_unique<Ring>(plan_, handle_));
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() {
    for (const auto& slot : slots_)
      if (slot->read.valid()) slot->read.wait();
    try {
      finish();
    } catch (const Error&) {  // told before
    }
  }

  void run(std::atomic<std::uint64_t>& next, std::uint64_t batches, std::span<std::byte> out,
           const std::atomic<bool>& stop) {
    std::uint64_t batch = next++;
    if (batch < batches) read(*slots_[0], batch);
    for (std::size_t k = 0; batch < batches && !stop; ++k) {
      if (interrupted()) throw Error(ErrorCode::cancelled, "stopped");
      const std::uint64_t following = next++;
      if (following < batches) read(*slots_[(k + 1) % kDepth], following);
      Ring& slot = *slots_[k % kDepth];
      slot.read.get();
      decode(slot, batch);
      if (plan_.resizes || !out.empty()) resize(slot, batch, out);
      slot.done = (plan_.resizes || !out.empty() ? resizing_ : decoding_)->record();
      batch = following;
    }
    finish();
  }
  void finish() {
    decoding_->synchronize();
    resizing_->synchronize();
  }

 private:
  static constexpr int kDepth = 3;
  struct Ring {
    Ring(const Plan& plan, const NvjpegHandle& handle)
        : state(handle, static_cast<int>(plan.options.batch_size)),
          pixels(plan.device->allocate_device(plan.pixel_bytes)),
          rows(plan.device->allocate_device(plan.row_bytes)),
          records(plan.device->allocate_device(plan.options.batch_size * sizeof(ResizeRecord))),
          pinned_records(plan.device->allocate_pinned(plan.options.batch_size * sizeof(ResizeRecord))),
          batch(plan.device->allocate_device(plan.options.batch_size *
                                             plan.options.preprocess().sample_spec().size_bytes())) {
      files.resize(plan.options.batch_size);
      data.resize(files.size());
      lengths.resize(files.size());
      images.resize(files.size());
    }
    NvjpegState state;
    std::unique_ptr<Block> pixels, rows, records, pinned_records, batch;
    std::vector<std::vector<std::byte>> files;  // whose capacities are reused
    std::vector<const unsigned char*> data;
    std::vector<std::size_t> lengths;
    std::vector<nvjpegImage_t> images;
    std::future<void> read;
    Event done;
  };

  void read(Ring& slot, std::uint64_t batch) {
    slot.done.wait();  // nvJPEG may read the files until it is done
    submit_rows(readers_, slot.files.size(), slot.read, [this, &slot, batch](std::size_t i) {
      const Picture& picture = plan_.picture(batch * plan_.options.batch_size + i);
      const auto& path = plan_.photos->paths()[picture.photo % plan_.photos->size()];
      std::vector<std::byte>& file = slot.files[i];
      read_file_into(plan_.photos->root() / path, ~std::uint64_t{0}, file);
      slot.data[i] = reinterpret_cast<const unsigned char*>(file.data());
      slot.lengths[i] = file.size();
    });
  }
  void decode(Ring& slot, std::uint64_t batch) {
    std::byte* at = slot.pixels->data();
    for (std::size_t i = 0; i < slot.images.size(); ++i) {
      const Picture& picture = plan_.picture(batch * plan_.options.batch_size + i);
      slot.images[i] = {};
      slot.images[i].channel[0] = reinterpret_cast<unsigned char*>(at);
      slot.images[i].pitch[0] = picture.pitch();
      at += picture.bytes();
    }
    nvjpeg().check(nvjpeg().decode(handle_.get(), slot.state.get(), slot.data.data(), slot.lengths.data(),
                                   slot.images.data(), static_cast<cudaStream_t>(decoding_->native())),
                   "nvjpegDecodeBatched");
  }
  void resize(Ring& slot, std::uint64_t batch, std::span<std::byte> out) {
    const DecodeOptions& options = plan_.options;
    const image::PreprocessOptions preprocess = options.preprocess();
    auto* const records = reinterpret_cast<ResizeRecord*>(slot.pinned_records->data());
    std::byte* at = slot.rows->data();
    for (std::size_t i = 0; i < slot.images.size(); ++i) {
      const Picture& picture = plan_.picture(batch * options.batch_size + i);
      const image::Size resized = image::resized_size({picture.width, picture.height}, preprocess);
      const image::Box box = image::crop_box(resized, preprocess);
      records[i] = {slot.images[i].channel[0],
                    reinterpret_cast<std::uint8_t*>(at),
                    picture.pitch(),
                    picture.width,
                    picture.height,
                    resized.width,
                    resized.height,
                    box.left,
                    box.top,
                    0,
                    0};
      set_needed_rows(records[i], options.crop);
      at += plan_.middle_bytes(picture);
    }
    resizing_->wait(decoding_->record());
    const CopyItem item{slot.records->data(), slot.pinned_records->data(),
                        slot.images.size() * sizeof(ResizeRecord)};
    resizing_->copy({&item, 1});
    ResizeLaunch launch;
    launch.records = reinterpret_cast<const ResizeRecord*>(slot.records->data());
    launch.images = static_cast<std::uint32_t>(slot.images.size());
    launch.crop = options.crop;
    launch.target = reinterpret_cast<std::uint16_t*>(slot.batch->data());
    std::copy_n(preprocess.normalization.mean.begin(), 3, launch.mean);
    std::copy_n(preprocess.normalization.std.begin(), 3, launch.std);
    const cudaError_t error = launch_resize_normalise(launch, static_cast<cudaStream_t>(resizing_->native()));
    if (error != cudaSuccess)
      throw Error(ErrorCode::io, fmt::format("CUDA: resizing: {}", cudaGetErrorString(error)));
    const std::uint64_t bytes = options.batch_size * preprocess.sample_spec().size_bytes();
    if (batch * bytes >= out.size()) return;
    const std::span<std::byte> part = out.subspan(batch * bytes);
    const CopyItem back{part.data(), slot.batch->data(), std::min<std::uint64_t>(bytes, part.size())};
    resizing_->copy_to_host({&back, 1});
  }

  const Plan& plan_;
  ThreadPool& readers_;
  NvjpegHandle handle_;
  std::unique_ptr<Stream> decoding_;
  std::unique_ptr<Stream> resizing_;
  std::vector<std::unique_ptr<Ring>> slots_;
};

class NvjpegCandidate final : public DecodeCandidate {
 public:
  NvjpegCandidate(Plan plan, unsigned lanes) : plan_(std::move(plan)), lanes_(lanes) { plan_.measure(); }
  std::string name() const override { return name_of(plan_.resizes); }
  std::string how() const override {
    return fmt::format(
        "nvJPEG {}, batches of {}, {}", nvjpeg().version(), plan_.options.batch_size,
        plan_.resizes ? "resized and normalised by a kernel beside the decoding" : "pixels only");
  }
  std::string limited_by() const override { return plan_.resizes ? name_of(false) : std::string(); }
  // Another inverse DCT, and colour without libjpeg's smooth upsampling: edges of colours differ most.
  LevelDifference allowed() const noexcept override { return {2, 96}; }
  std::uint64_t photos() const noexcept override { return plan_.pictures.size(); }
  std::uint64_t photo(std::uint64_t row) const override { return plan_.picture(row).photo; }

  BatchRun run(std::uint64_t rows, std::span<std::byte> out) override {
    if (running_.empty()) start();
    return run_batches((rows + plan_.options.batch_size - 1) / plan_.options.batch_size, out);
  }
  void rest() override {
    running_.clear();
    readers_.reset();
  }

 private:
  std::string name_of(bool resizes) const {
    return fmt::format("nvJPEG {}, {}, {}", plan_.backend.name, resizes ? "to the batch" : "decode only",
                       lanes_ == 1 ? "1 handle" : fmt::format("{} handles", lanes_));
  }
  void start() {
    readers_ = std::make_unique<ThreadPool>(std::clamp(plan_.options.jobs(), 1U, 64U));
    for (unsigned i = 0; i < lanes_; ++i) running_.push_back(std::make_unique<Lane>(plan_, *readers_));
    run_batches(4 * std::uint64_t{lanes_}, {});  // nvJPEG allocates as it goes
  }
  BatchRun run_batches(std::uint64_t batches, std::span<std::byte> out) {
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    const RunClock clock;
    try {
      run_threads(lanes_, [&](unsigned lane) {
        try {
          cudaSetDevice(plan_.device->info().ordinal);
          running_[lane]->run(next, batches, out, stop);
        } catch (...) {
          stop = true;
          throw;
        }
      });
    } catch (...) {
      rest();  // its state is not known
      throw;
    }
    return {clock.elapsed(), batches * plan_.options.batch_size};
  }

  Plan plan_;
  unsigned lanes_;
  std::unique_ptr<ThreadPool> readers_;
  std::vector<std::unique_ptr<Lane>> running_;
};

}  // namespace

namespace detail {

void add_nvjpeg_candidates(Candidates& list, const PhotoSet& photos, const std::shared_ptr<Device>& device,
                           const DecodeOptions& options, std::string& absent) {
  cudaSetDevice(device->info().ordinal);
  std::string reasons;
  unsigned backends = 0;
  for (const Backend& backend : {kHardware, kGpu, kHybrid}) {
    if (backend.kind == NVJPEG_BACKEND_HYBRID && backends > 0) break;  // the slowest: where there is no other
    Plan plan;
    try {
      const NvjpegHandle handle(backend.kind);
      plan = {backend, &photos, device, options,
              usable_pictures(handle, photos, backend.kind == NVJPEG_BACKEND_HARDWARE)};
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) throw;  // no library
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", backend.name, error.what());
      continue;
    }
    if (plan.pictures.empty()) {
      reasons += fmt::format("{}{}: it takes none of the images", reasons.empty() ? "" : "; ", backend.name);
      continue;
    }
    for (const unsigned lanes : {1U, 2U}) {
      for (const bool resizes : {false, true}) {
        plan.resizes = resizes;
        list.push_back(std::make_unique<NvjpegCandidate>(plan, lanes));
      }
    }
    ++backends;
  }
  if (!reasons.empty()) absent = reasons;
}

}  // namespace detail
}  // namespace shard::bench
