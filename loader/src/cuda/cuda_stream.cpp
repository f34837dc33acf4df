#include "cuda/cuda_stream.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "codec/jpeg_workspace.hpp"
#include "cuda/blocks.hpp"
#include "cuda/frame_groups.hpp"
#include "cuda/kernels/frame_faults.hpp"
#include "cuda/kernels/jpeg.hpp"
#include "cuda/kernels/targets.hpp"
#include "cuda/kernels/transform.hpp"
#include "shard/error.hpp"
#include "transform/check_work.hpp"
#include "transform/jpeg_work.hpp"

namespace shard {

namespace {

struct StreamTraits {
  using type = cudaStream_t;
  static type invalid() noexcept { return nullptr; }
  static void close(type stream) noexcept { cudaStreamDestroy(stream); }
};
using UniqueStream = UniqueHandle<StreamTraits>;

class CudaStream final : public Stream {
 public:
  CudaStream(const CudaContext& context, CopyMethod method, bool kernels_read_registered,
             std::shared_ptr<EventPool> events)
      : context_(context),
        method_(method),
        batched_(method),
        kernels_read_registered_(kernels_read_registered),
        events_(std::move(events)) {
    const CudaScope scope(context);
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    stream_.reset(stream);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override {
    quietly(context_, [&] {
      flush_upload();
      cudaStreamSynchronize(stream_.get());
      stream_.reset();
    });
  }

  void copy(std::span<const CopyItem> items) override {
    const CudaScope scope(context_);
    flush_upload();
    if (items.size() > 1 && (method_ == CopyMethod::driver || method_ == CopyMethod::driver_13))
      return batched_.queue(items, stream_.get());
    copy_each(items, cudaMemcpyHostToDevice);
  }
  // To queue a range for the copy engine takes the host 1 us (batches of 32 frames, H200), which for small
  // ranges is longer than the copy. One launch of a kernel takes as long as a few ranges. Where tiny ranges
  // stand between large ones, as packed masks between images, a kernel copies only these (256 packed images
  // with masks of 2 KiB: 724 us a batch, by the copy engine alone 822 us). Masks of 64 KiB are for the copy
  // engine (1,218 us, and 1,253 us with a kernel).
  void copy_pinned(std::span<const CopyItem> items) override {
    if (method_ == CopyMethod::kernel) return copy_by_kernel(items, kLargeItems, launch_copy_large);
    if (!kernels_read_registered_) return copy(items);
    const auto is_tiny = [](const CopyItem& item) { return item.size_bytes <= kTinyItemBytes; };
    const auto tiny = static_cast<std::size_t>(std::count_if(items.begin(), items.end(), is_tiny));
    if (tiny >= kFewItems && tiny < items.size()) {
      parted_.assign(items.begin(), items.end());
      std::partition(parted_.begin(), parted_.end(), is_tiny);
      copy_by_kernel(std::span(parted_).first(tiny), kLargeItems, launch_copy_large);
      return copy(std::span(parted_).subspan(tiny));
    }
    const auto add = [](std::uint64_t sum, const CopyItem& item) { return sum + item.size_bytes; };
    const std::uint64_t bytes = std::accumulate(items.begin(), items.end(), std::uint64_t{0}, add);
    const std::uint64_t small = items.size() <= kPinnedItems ? kSmallItemBytes : kSmallItemBytes / 2;
    if (items.size() < kFewItems || bytes > small * items.size()) return copy(items);
    copy_by_kernel(items, kPinnedItems, launch_copy_pinned);
  }
  void upload(const CopyItem& item) override {
    const CudaScope scope(context_);
    flush_upload();
    if (item.size_bytes > kUploadBytes && item.size_bytes <= kLargeUploadBytes) {
      launch_copy_large({&item, 1}, stream_.get());
      return;
    }
    if (item.size_bytes > kLargeUploadBytes) {
      check_cuda(
          cudaMemcpyAsync(item.target, item.source, item.size_bytes, cudaMemcpyHostToDevice, stream_.get()),
          "cudaMemcpyAsync");
      return;
    }
    const std::lock_guard lock(mutex_);
    upload_ = item;
  }
  void gather(std::span<const CopyItem> items) override {
    if (items.empty()) return;
    const CudaScope scope(context_);
    flush_upload();
    Scratch& scratch = next_scratch(gather_scratch_bytes(items.size()));
    scratch.tables_there = false;
    launch_gather(items, scratch.pinned->data(), scratch.device->data(), stream_.get());
    mark_used();
  }
  void copy_to_host(std::span<const CopyItem> items) override {
    const CudaScope scope(context_);
    flush_upload();
    copy_each(items, cudaMemcpyDeviceToHost);
  }

  void transform(const TransformWork& work) override {
    if (work.files.empty()) return transform_samples(work);
    check_work(work);
    std::byte* const room = work.only_decodes() ? work.target : work.unpacked;
    std::uint64_t used = 0;
    places_.clear();
    for (std::size_t row = 0; row < work.sources.size(); ++row) {
      places_.push_back(room + used);
      used += work.only_decodes() ? decoded_room(work, row) : unpacked_room(stored_spec(work, row));
    }
    decode(work);
    if (work.only_decodes()) return;
    TransformWork rest = work;
    rest.sources = places_;
    rest.frame_bytes = {};
    rest.files = {};
    rest.broken = nullptr;
    transform_samples(rest);
  }

  void follow(const TargetWork& work) override {
    if (work.sources.empty()) return;
    const CudaScope scope(context_);
    flush_upload();
    Scratch& scratch = next_scratch(targets_scratch_bytes(work));
    scratch.tables_there = false;
    launch_targets(work, scratch.pinned->data(), scratch.device->data(), stream_.get());
    mark_used();
  }

  void decode_jpeg(const JpegWork& work) override {
    if (work.images.empty()) return;
    const CudaScope scope(context_);
    flush_upload();
    std::vector<gpu::JpegSource> sources;
    sources.reserve(work.images.size());
    for (const JpegWork::Image& image : work.images)
      sources.push_back({image.file, image.box, image.data, nullptr, image.pixels, 3, true});
    const gpu::JpegPlan plan(sources);
    if (plan.workspace_bytes() > work.workspace_bytes)
      throw Error(ErrorCode::resource,
                  fmt::format("{} JPEG files need {} bytes of workspace; there are {}", work.images.size(),
                              plan.workspace_bytes(), work.workspace_bytes));
    const std::size_t size = round_up(plan.parameter_bytes(), 256);
    Scratch& scratch = next_scratch(size);
    scratch.tables_there = false;
    const gpu::JpegLaunch launch = plan.write(scratch.pinned->data(), scratch.device->data(), work.workspace);
    launch_upload({scratch.device->data(), scratch.pinned->data(), size}, stream_.get());
    gpu::launch_jpeg(launch, stream_.get());
    check_cuda(cudaMemcpyAsync(work.faults, launch.faults, work.images.size() * sizeof(std::uint32_t),
                               cudaMemcpyDeviceToHost, stream_.get()),
               "cudaMemcpyAsync");
    mark_used();
  }
  void index_jpeg(const JpegIndexWork& work) override {
    const CudaScope scope(context_);
    flush_upload();
    std::vector<gpu::JpegSource> sources;
    for (std::size_t first = 0; first < work.frames.size();) {
      sources.clear();
      std::uint64_t used = 0;
      std::size_t end = first;
      for (; end < work.frames.size(); ++end) {
        const JpegIndexWork::Frame& frame = work.frames[end];
        used += index_stage_bytes(frame.file);
        if (end != first && used > work.workspace_bytes) break;
        gpu::JpegSource& source = sources.emplace_back();
        source.file = frame.file;
        source.frame = frame.data;
        source.box = {0, 0, frame.file.upright_width(), frame.file.upright_height()};
        source.channels = frame.file.components();
        source.makes_index = true;
      }
      index_some(gpu::JpegPlan(sources, gpu::JpegPlan::Make::indices), sources.size(), work);
      first = end;
    }
  }
  std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file) const override {
    return gpu::jpeg_workspace_bytes(file, true);
  }

  Event record() override {
    const CudaScope scope(context_);
    flush_upload();
    Event event(std::make_shared<CudaEvent>(events_, stream_.get()));
    const std::lock_guard lock(mutex_);
    for (const std::size_t scratch : unrecorded_) scratch_[scratch].used = event;
    unrecorded_.clear();
    return event;
  }
  void wait(const Event& event) override {
    if (known_over(event) || event.impl()->native() == nullptr) return;
    const CudaScope scope(context_);
    check_cuda(cudaStreamWaitEvent(stream_.get(), static_cast<cudaEvent_t>(event.impl()->native()), 0),
               "cudaStreamWaitEvent");
  }
  void synchronize() override {
    const CudaScope scope(context_);
    flush_upload();
    check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }
  void* native() noexcept override {
    quietly(context_, [&] { flush_upload(); });  // others queue behind it
    return stream_.get();
  }

 private:
  void index_some(const gpu::JpegPlan& plan, std::size_t frames, const JpegIndexWork& work) {
    if (plan.workspace_bytes() > work.workspace_bytes)
      throw Error(ErrorCode::resource,
                  fmt::format("the indices of {} JPEG files need {} bytes of workspace; there are {}", frames,
                              plan.workspace_bytes(), work.workspace_bytes));
    const std::size_t size = round_up(plan.parameter_bytes(), 256);
    Scratch& scratch = next_scratch(size);
    scratch.tables_there = false;
    const gpu::JpegLaunch launch = plan.write(scratch.pinned->data(), scratch.device->data(), work.workspace);
    launch_upload({scratch.device->data(), scratch.pinned->data(), size}, stream_.get());
    gpu::launch_jpeg(launch, stream_.get());
    mark_used();
  }

  // At most `most` of them in a launch.
  template <class Launch>
  void copy_by_kernel(std::span<const CopyItem> items, std::size_t most, const Launch& launch) {
    const CudaScope scope(context_);
    flush_upload();
    while (!items.empty()) {
      const auto some = items.first(std::min(items.size(), most));
      launch(some, stream_.get());
      items = items.subspan(some.size());
    }
  }

  void transform_samples(const TransformWork& work) {
    const CudaScope scope(context_);
    const std::size_t bytes = (transform_scratch_bytes(work) + 255) / 256 * 256;
    Scratch& scratch = next_scratch(bytes + mix_scratch_bytes(work));
    TransformLaunch with;
    with.tables_there = std::exchange(scratch.tables_there, false);
    with.upload = take_upload();
    scratch.tables_there =
        launch_transform(work, scratch.pinned->data(), scratch.device->data(), stream_.get(), with);
    launch_mix(work, scratch.pinned->data() + bytes, scratch.device->data() + bytes, stream_.get());
    mark_used();
  }

  // Frames of codec jpeg to places_.
  void decode(const TransformWork& work) {
    if (work.sources.empty()) return;
    if (work.workspace == nullptr || places_.front() == nullptr)
      throw Error(ErrorCode::invalid_argument, "transform: there is no memory to decode JPEG frames in");
    const CudaScope scope(context_);
    flush_upload();
    groups_.start(work, places_);
    while (groups_.next(group_)) {
      const gpu::JpegPlan plan(group_.sources);
      if (plan.workspace_bytes() > work.workspace_bytes)
        throw Error(ErrorCode::resource,
                    fmt::format("transform: {} JPEG frames need {} bytes of workspace; there are {}",
                                group_.sources.size(), plan.workspace_bytes(), work.workspace_bytes));
      const std::size_t rows_at = round_up(plan.parameter_bytes(), kScratchAlign);
      const std::size_t size = rows_at + group_.rows.size() * sizeof(group_.rows[0]);
      Scratch& scratch = next_scratch(size);
      scratch.tables_there = false;
      std::byte* const pinned = scratch.pinned->data();
      std::byte* const device = scratch.device->data();
      const gpu::JpegLaunch launch = plan.write(pinned, device, work.workspace);
      std::memcpy(pinned + rows_at, group_.rows.data(), size - rows_at);
      launch_upload({device, pinned, size}, stream_.get());
      gpu::launch_jpeg(launch, stream_.get());
      launch_frame_faults(launch.faults, reinterpret_cast<const std::uint32_t*>(device + rows_at),
                          static_cast<std::uint32_t>(group_.rows.size()), work.broken, stream_.get());
      mark_used();
    }
  }

  // Parameters of a transform or gather that is queued. Reused when its kernels have ended.
  struct Scratch {
    std::unique_ptr<Block> pinned;
    std::unique_ptr<Block> device;
    bool tables_there = false;  // of launch_transform()
    Event used;                 // guarded by mutex_
  };

  // A scratch for the work that is queued next. Call mark_used() after that.
  Scratch& next_scratch(std::uint64_t size) {
    scratch_next_ = (scratch_next_ + 1) % kScratches;
    if (is_unrecorded(scratch_next_)) record();
    Scratch& scratch = scratch_[scratch_next_];
    Event used;
    {
      const std::lock_guard lock(mutex_);
      used = scratch.used;
    }
    used.wait();
    if (!scratch.pinned || scratch.pinned->size_bytes() < size) {
      scratch.tables_there = false;
      const std::uint64_t room = std::bit_ceil(size);  // seldom again: the driver waits for the device
      scratch.pinned = std::make_unique<PinnedBlock>(context_, room);
      scratch.device = std::make_unique<DeviceBlock>(context_, room);
    }
    return scratch;
  }
  // The scratch is in use until the next event that is recorded. Of many transforms in a row (views of a
  // batch) some are recorded in between: whoever needs a scratch again then waits for those, and the others
  // keep the device busy.
  void mark_used() {
    bool many = false;
    {
      const std::lock_guard lock(mutex_);
      unrecorded_.push_back(scratch_next_);
      many = unrecorded_.size() >= kScratches / 4;
    }
    if (many) record();
  }
  bool is_unrecorded(std::size_t scratch) {
    const std::lock_guard lock(mutex_);
    return std::find(unrecorded_.begin(), unrecorded_.end(), scratch) != unrecorded_.end();
  }

  CopyItem take_upload() {
    const std::lock_guard lock(mutex_);
    return std::exchange(upload_, CopyItem{});
  }
  void flush_upload() { launch_upload(take_upload(), stream_.get()); }

  void copy_each(std::span<const CopyItem> items, cudaMemcpyKind kind) {
    for (const CopyItem& item : items)
      check_cuda(cudaMemcpyAsync(item.target, item.source, item.size_bytes, kind, stream_.get()),
                 "cudaMemcpyAsync");
  }

  static constexpr std::size_t kScratches = 16;
  static constexpr std::size_t kScratchAlign = 256;
  static constexpr std::size_t kFewItems = 4;  // take the host as long as one launch
  static constexpr std::uint64_t kSmallItemBytes = std::uint64_t{96} << 10U;
  static constexpr std::uint64_t kTinyItemBytes = std::uint64_t{32} << 10U;
  // Of one block of threads for each few bytes. Beyond, by a kernel for large ranges: the copy engine is
  // quicker, but it has whole batches to copy first.
  static constexpr std::uint64_t kUploadBytes = std::uint64_t{128} << 10U;
  static constexpr std::uint64_t kLargeUploadBytes = std::uint64_t{8} << 20U;
  const CudaContext context_;
  CopyMethod method_;
  BatchedCopy batched_;
  bool kernels_read_registered_;
  std::shared_ptr<EventPool> events_;
  UniqueStream stream_;
  std::array<Scratch, kScratches> scratch_;
  std::size_t scratch_next_ = 0;
  std::mutex mutex_;                     // record() is for any thread
  std::vector<std::size_t> unrecorded_;  // scratches without an event after their use; guarded by mutex_
  std::vector<CopyItem> parted_;         // scratch of copy_pinned()
  FrameGroups groups_;                   // scratch of decode(), like the two that follow
  FrameGroup group_;
  std::vector<const std::byte*> places_;
  CopyItem upload_;  // goes with what is queued next; guarded by mutex_
};

}  // namespace

std::unique_ptr<Stream> make_cuda_stream(const CudaContext& context, CopyMethod method,
                                         bool kernels_read_registered, std::shared_ptr<EventPool> events) {
  return std::make_unique<CudaStream>(context, method, kernels_read_registered, std::move(events));
}

}  // namespace shard
