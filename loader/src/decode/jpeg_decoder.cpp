#include "shard/loader/jpeg_decoder.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "base/bytes.hpp"
#include "base/system/cpu_count.hpp"
#include "decode/block_pool.hpp"
#include "decode/jpeg_slot.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

constexpr std::size_t kSlots = 6;  // groups in flight
constexpr std::size_t kMostImages = 256;
constexpr std::uint64_t kMostBytes = std::uint64_t{384} << 20U;  // of a group, or one image
constexpr std::uint64_t kImageAlignment = 16;
// Headers that a thread reads at once: they take less time than to wake another thread.
constexpr std::size_t kHeadersAtOnce = 64;

}  // namespace

struct JpegDecoder::Impl {
  Impl(std::shared_ptr<Device> on, unsigned threads, LastStream last_stream);

  JpegBatch decode(std::span<const JpegInput> given, const JpegDecodeOptions& options);
  void read(std::span<const JpegInput> given, const JpegDecodeOptions& options);
  void fetch(std::span<const JpegInput> given);
  void place(jpeg::Call& call, JpegBatch& batch);
  std::unique_ptr<jpeg::HostJpeg> take_host();
  void give_back(std::unique_ptr<jpeg::HostJpeg> host);
  void run_threads(std::size_t count, std::size_t at_once, const jpeg::RunRow& row);
  template <class Bytes, class Start>
  void run_groups(std::span<const std::size_t> inputs, const Bytes& bytes_of, const Start& start);
  void finish(jpeg::Slot& slot);
  void finish_all();
  jpeg::Slot& next_slot();

  std::shared_ptr<Device> device;
  std::shared_ptr<BlockPool> blocks;
  ThreadPool pool;
  std::vector<jpeg::Input> inputs;
  std::vector<std::vector<std::byte>> fetched;  // files that were on the device
  std::vector<std::size_t> others;              // not for kernels
  std::vector<std::size_t> for_kernels;         // numbers of inputs by the way they take
  std::vector<std::size_t> for_host;
  std::vector<std::size_t> refused;  // by kernels
  std::mutex hosts_mutex;
  std::vector<std::unique_ptr<jpeg::HostJpeg>> hosts;  // idle ones
  std::array<std::unique_ptr<jpeg::Slot>, kSlots> slots;
  std::size_t next = 0;
};

JpegDecoder::Impl::Impl(std::shared_ptr<Device> on, unsigned threads, LastStream last_stream)
    : device(std::move(on)),
      blocks(std::make_shared<BlockPool>(device, std::move(last_stream))),
      pool(threads != 0 ? threads : std::min(cpu_count(), 8U), "shard-jpeg") {}

std::unique_ptr<jpeg::HostJpeg> JpegDecoder::Impl::take_host() {
  {
    const std::lock_guard lock(hosts_mutex);
    if (!hosts.empty()) {
      std::unique_ptr<jpeg::HostJpeg> host = std::move(hosts.back());
      hosts.pop_back();
      return host;
    }
  }
  return std::make_unique<jpeg::HostJpeg>();
}

void JpegDecoder::Impl::give_back(std::unique_ptr<jpeg::HostJpeg> host) {
  const std::lock_guard lock(hosts_mutex);
  hosts.push_back(std::move(host));
}

// What one thread takes at once runs on the calling one: no other has to be woken.
void JpegDecoder::Impl::run_threads(std::size_t count, std::size_t at_once, const jpeg::RunRow& row) {
  const auto rows = [&](std::size_t first, std::size_t last) {
    std::unique_ptr<jpeg::HostJpeg> host = take_host();
    for (std::size_t i = first; i < last; ++i) row(i, *host);
    give_back(std::move(host));
  };
  if (count <= at_once) {
    if (count > 0) rows(0, count);
    return;
  }
  run_parts(pool, count, at_once, [&](std::size_t first, std::size_t last) {
    thread_local bool entered = false;  // the pool's threads have one device
    if (!std::exchange(entered, true)) device->enter_thread();
    rows(first, last);
  });
}

jpeg::Slot& JpegDecoder::Impl::next_slot() {
  std::unique_ptr<jpeg::Slot>& slot = slots[next++ % kSlots];
  if (!slot) slot = std::make_unique<jpeg::Slot>(*device);
  finish(*slot);
  return *slot;
}

void JpegDecoder::Impl::finish(jpeg::Slot& slot) { slot.finish(refused); }

// Files in device memory to the host, which reads their headers.
void JpegDecoder::Impl::fetch(std::span<const JpegInput> given) {
  if (std::none_of(given.begin(), given.end(), [](const JpegInput& one) { return one.on_device; })) return;
  fetched.assign(given.size(), {});
  std::vector<CopyItem> items;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].on_device) continue;
    fetched[i].resize(given[i].file.size());
    items.push_back({fetched[i].data(), given[i].file.data(), given[i].file.size()});
  }
  const std::unique_ptr<Stream> stream = device->create_stream();
  stream->copy_to_host(items);
  stream->synchronize();
}

void JpegDecoder::Impl::read(std::span<const JpegInput> given, const JpegDecodeOptions& options) {
  fetch(given);
  inputs.assign(given.size(), {});
  for (std::size_t i = 0; i < given.size(); ++i)
    inputs[i].file = given[i].on_device ? fetched[i] : given[i].file;
  if (device->info().decodes_jpeg)
    run_threads(given.size(), kHeadersAtOnce, [&](std::size_t i, jpeg::HostJpeg&) {
      jpeg::Input& input = inputs[i];
      if (jpeg::read_for_kernels(i, given[i], options.upright, input))
        input.pinned = device->is_pinned(input.file);
    });
  others.clear();
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!inputs[i].by_kernels) others.push_back(i);
  run_threads(others.size(), 1, [&](std::size_t k, jpeg::HostJpeg& host) {
    jpeg::read_for_host(others[k], given[others[k]], options.upright, host, inputs[others[k]]);
  });
}

// Where each image goes.
void JpegDecoder::Impl::place(jpeg::Call& call, JpegBatch& batch) {
  std::uint64_t size = 0;
  batch.images.reserve(inputs.size());
  for (jpeg::Input& input : inputs) {
    JpegBatch::Image& image = batch.images.emplace_back();
    image.offset = size;
    if (!call.spec.is_free()) {
      image.height = call.spec.height;
      image.width = call.spec.width;
      size += call.spec.size_bytes();
    } else if (!input.failure) {
      image.height = input.box.height;
      image.width = input.box.width;
      size = round_up(size + call.spec.sized(image.height, image.width).size_bytes(), kImageAlignment);
    }
    if (input.failure) {  // zeros
      input.by_kernels = false;
      input.width = input.height = 1;
      input.box = {0, 0, 1, 1};
    }
  }
  BlockPool::Taken taken = blocks->take(size);
  batch.memory = std::move(taken.block);
  call.ready = std::move(taken.ready);
}

// `bytes_of` an input -> what it takes; `start`(slot, group) queues.
template <class Bytes, class Start>
void JpegDecoder::Impl::run_groups(std::span<const std::size_t> all, const Bytes& bytes_of,
                                   const Start& start) {
  for (std::size_t first = 0; first < all.size();) {
    jpeg::Slot& slot = next_slot();
    std::uint64_t bytes = 0;
    std::size_t last = first;
    while (last < all.size() && last - first < kMostImages) {
      bytes += bytes_of(slot, all[last]);
      if (last != first && bytes > kMostBytes) break;
      ++last;
    }
    start(slot, all.subspan(first, last - first));
    first = last;
  }
}

void JpegDecoder::Impl::finish_all() {
  for (const std::unique_ptr<jpeg::Slot>& slot : slots)
    if (slot) finish(*slot);
}

JpegBatch JpegDecoder::Impl::decode(std::span<const JpegInput> given, const JpegDecodeOptions& options) {
  jpeg::Call call;
  call.options = &options;
  call.spec = jpeg::check_options(options);
  read(given, options);
  const auto throw_first = [&] {
    if (options.report_failures) return;
    for (const jpeg::Input& input : inputs)
      if (input.failure) throw Error(input.failure->code, input.failure->message);
  };
  throw_first();
  JpegBatch batch;
  place(call, batch);
  call.inputs = inputs;
  call.images = batch.images;
  call.target = batch.memory->data();
  const jpeg::RunOnThreads run = [this](std::size_t count, const jpeg::RunRow& row) {
    run_threads(count, 1, row);
  };

  refused.clear();
  for_kernels.clear();
  for_host.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].by_kernels)
      for_kernels.push_back(i);
    else if (!inputs[i].failure || !call.spec.is_free())
      for_host.push_back(i);
  const auto decode_on_host = [&](std::span<const std::size_t> files) {
    run_groups(
        files, [&](const jpeg::Slot&, std::size_t i) { return jpeg::Slot::bytes_by_host(inputs[i]); },
        [&](jpeg::Slot& slot, std::span<const std::size_t> group) { slot.by_host(call, group, run); });
  };
  try {
    run_groups(
        for_kernels, [&](jpeg::Slot& slot, std::size_t i) { return slot.bytes_by_kernels(call, i); },
        [&](jpeg::Slot& slot, std::span<const std::size_t> group) { slot.by_kernels(call, group, run); });
    decode_on_host(for_host);  // while the kernels run
    finish_all();
    if (!refused.empty()) {
      std::sort(refused.begin(), refused.end());
      decode_on_host(refused);
      finish_all();
    }
  } catch (...) {
    for (std::unique_ptr<jpeg::Slot>& slot : slots) slot.reset();  // waits for what uses the batch
    throw;
  }
  throw_first();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].failure) continue;
    batch.failures.push_back(std::move(*inputs[i].failure));
    if (call.spec.is_free()) batch.images[i].height = batch.images[i].width = 0;
  }
  for (const std::vector<std::size_t>* files : {&for_host, &refused})
    for (const std::size_t i : *files) batch.on_host += inputs[i].failure ? 0 : 1;
  fetched.clear();
  inputs.clear();
  return batch;
}

JpegDecoder::JpegDecoder(std::shared_ptr<Device> device, unsigned threads, LastStream last_stream) {
  if (threads > 64)
    throw Error(ErrorCode::invalid_argument,
                "JpegDecoder with " + std::to_string(threads) + " threads: it must have 1 to 64, or 0");
  impl_ = std::make_unique<Impl>(std::move(device), threads, std::move(last_stream));
}
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;
JpegDecoder::~JpegDecoder() = default;

JpegBatch JpegDecoder::decode(std::span<const JpegInput> inputs, const JpegDecodeOptions& options) {
  return impl_->decode(inputs, options);
}

}  // namespace shard
