#include "commands/upload/upload_bench.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "commands/upload/upload_memory.hpp"
#include "harness/measure.hpp"
#include "shard/error.hpp"
#include "shard/loader/pieces.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kMostMemory = std::uint64_t{16} << 30U;
constexpr std::uint64_t kMostCopies = 4096;  // of a pass

void check(const UploadOptions& options) {
  const auto refuse = [](const char* option, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value < least || value > most)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} {}: expected {} to {}", option, value, least, most));
  };
  refuse("--memory", options.memory_bytes, 1 << 20U, kMostMemory);
  for (const std::uint64_t chunk : options.chunks) refuse("--chunks", chunk, 1, options.memory_bytes);
  refuse("--sample-bytes", options.sample_bytes, 1, options.memory_bytes);
  for (const std::uint64_t batch : options.batch_sizes)
    refuse("--batch-sizes", batch, 1, options.memory_bytes / options.sample_bytes);
}

// One device's memory of every kind, its two streams, and a device block for each direction.
class Endpoint {
 public:
  Endpoint(std::shared_ptr<Device> device, std::uint64_t bytes)
      : device_(std::move(device)),
        memory_(*device_, bytes),
        target_(device_->allocate_device(bytes)),
        source_(device_->allocate_device(bytes)),
        back_(device_->allocate_pinned(bytes)),
        up_(device_->create_stream()),
        down_(device_->create_stream()) {
    // The device's own source of what goes back.
    const CopyItem item{source_->data(), memory_.data(UploadMemory::pinned), bytes};
    up_->copy({&item, 1});
    up_->synchronize();
  }

  // Queues a pass of copies of `items` chunks.
  void queue(const UploadCase& one, std::span<const CopyItem> up, std::span<const CopyItem> down) {
    if (one.direction != UploadDirection::down) send(one.batched, up, [&](auto part) { up_->copy(part); });
    if (one.direction != UploadDirection::up)
      send(one.batched, down, [&](auto part) { down_->copy_to_host(part); });
  }
  void synchronize() {
    up_->synchronize();
    down_->synchronize();
  }

  std::vector<CopyItem> up_items(const UploadCase& one, std::span<const std::uint64_t> places) const {
    std::vector<CopyItem> items;
    const std::byte* const from = memory_.data(one.memory);
    const std::uint64_t piece =
        one.memory == UploadMemory::registered ? device_->info().registration_piece_bytes : 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::uint64_t at = places[i] * one.chunk_bytes;
      add_pieces({target_->data() + i * one.chunk_bytes, from + at, one.chunk_bytes}, at, piece, items);
    }
    return items;
  }
  std::vector<CopyItem> down_items(const UploadCase& one, std::span<const std::uint64_t> places) const {
    std::vector<CopyItem> items;
    for (std::size_t i = 0; i < places.size(); ++i)
      items.push_back({back_->data() + i * one.chunk_bytes, source_->data() + places[i] * one.chunk_bytes,
                       one.chunk_bytes});
    return items;
  }

  // The pass delivers what it says: every chunk, byte for byte.
  bool delivers(const UploadCase& one, std::span<const CopyItem> up, std::span<const CopyItem> down,
                std::span<const std::uint64_t> places) {
    const std::uint64_t bytes = places.size() * one.chunk_bytes;
    std::vector<std::byte> cleared(bytes, std::byte{0xEE});
    std::memcpy(back_->data(), cleared.data(), bytes);
    const CopyItem clear{target_->data(), back_->data(), bytes};
    up_->copy({&clear, 1});
    up_->synchronize();
    queue(one, up, down);
    synchronize();
    if (one.direction != UploadDirection::up && !holds(one, places)) return false;
    if (one.direction == UploadDirection::down) return true;
    const CopyItem fetch{back_->data(), target_->data(), bytes};
    down_->copy_to_host({&fetch, 1});
    down_->synchronize();
    return holds(one, places);
  }
  const UploadSource& memory() const noexcept { return memory_; }

 private:
  template <class Send>
  static void send(bool batched, std::span<const CopyItem> items, const Send& each) {
    if (batched) return each(items);
    for (std::size_t i = 0; i < items.size(); ++i) each(items.subspan(i, 1));
  }
  bool holds(const UploadCase& one, std::span<const std::uint64_t> places) const {
    const std::byte* const expected = memory_.data(UploadMemory::pageable);
    for (std::size_t i = 0; i < places.size(); ++i)
      if (std::memcmp(back_->data() + i * one.chunk_bytes, expected + places[i] * one.chunk_bytes,
                      one.chunk_bytes) != 0)
        return false;
    return true;
  }

  std::shared_ptr<Device> device_;
  UploadSource memory_;
  std::unique_ptr<Block> target_, source_, back_;
  std::unique_ptr<Stream> up_, down_;
};

using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

// The work of a pass on every device that a case uses.
class Pass {
 public:
  Pass(const UploadCase& one, const Endpoints& endpoints, std::uint64_t memory_bytes) : one_(one) {
    const std::uint64_t there = memory_bytes / one.chunk_bytes;
    places_ = shuffled_places(there);
    places_.resize(std::min(there, kMostCopies));
    for (std::size_t d = 0; d < one.devices; ++d)
      work_.push_back(
          {endpoints[d].get(), endpoints[d]->up_items(one, places_), endpoints[d]->down_items(one, places_)});
  }
  bool delivers() {
    return std::all_of(work_.begin(), work_.end(), [&](Work& work) {
      return work.endpoint->delivers(one_, work.up, work.down, places_);
    });
  }
  double rate(double seconds) {
    const std::uint64_t bytes =
        places_.size() * one_.chunk_bytes * work_.size() * (one_.direction == UploadDirection::both ? 2 : 1);
    std::uint64_t passes = 0;
    const Stopwatch watch;
    double took = 0;
    do {
      for (Work& work : work_) work.endpoint->queue(one_, work.up, work.down);
      for (Work& work : work_) work.endpoint->synchronize();
      ++passes;
    } while ((took = watch.seconds()) < seconds);
    return static_cast<double>(bytes * passes) / took;
  }

 private:
  struct Work {
    Endpoint* endpoint;
    std::vector<CopyItem> up, down;
  };
  UploadCase one_;
  std::vector<std::uint64_t> places_;
  std::vector<Work> work_;
};

std::vector<UploadCase> cases_of(const UploadOptions& options, std::size_t devices) {
  std::vector<UploadCase> cases;
  for (const std::uint64_t chunk : options.chunks)
    for (const UploadMemory memory : {UploadMemory::pageable, UploadMemory::pinned, UploadMemory::registered})
      for (const bool batched : {false, true})
        if (!batched || memory != UploadMemory::pageable)
          cases.push_back({memory, batched, UploadDirection::up, 1, chunk, {}, {}});
  if (options.chunks.empty()) return cases;
  const std::uint64_t largest = *std::max_element(options.chunks.begin(), options.chunks.end());
  for (const UploadDirection direction : {UploadDirection::down, UploadDirection::both})
    cases.push_back({UploadMemory::pinned, false, direction, 1, largest, {}, {}});
  if (devices > 1)
    for (const UploadDirection direction : {UploadDirection::up, UploadDirection::both})
      cases.push_back({UploadMemory::pinned, false, direction, devices, largest, {}, {}});
  return cases;
}

}  // namespace

std::string upload_name(const UploadCase& one) {
  std::string name = one.memory == UploadMemory::pageable ? "pageable"
                     : one.memory == UploadMemory::pinned ? "pinned"
                                                          : "registered";
  if (one.batched) name += ", batched";
  if (one.direction == UploadDirection::down) name += ", from the device";
  if (one.direction == UploadDirection::both) name += ", both ways";
  if (one.devices > 1) name += fmt::format(", {} devices", one.devices);
  return name;
}

UploadResult bench_upload(std::span<const std::shared_ptr<Device>> devices, const UploadOptions& options,
                          const std::atomic<bool>& cancel,
                          const std::function<void(const UploadResult&)>& done) {
  check(options);
  Endpoints endpoints;
  for (const auto& device : devices)
    endpoints.push_back(std::make_unique<Endpoint>(device, options.memory_bytes));
  UploadResult result;
  result.cases = cases_of(options, devices.size());
  const std::string& refusal = endpoints[0]->memory().refusal();
  std::vector<Pass> passes;
  for (UploadCase& one : result.cases) {
    stop_when(cancel);
    passes.emplace_back(one, endpoints, options.memory_bytes);
    if (one.memory == UploadMemory::registered) one.problem = refusal;
    attempt(one.problem, [&] {
      if (!passes.back().delivers())
        one.problem = "wrong: the bytes that arrived are not those that were sent";
    });
  }
  const UploadMemory memory = refusal.empty() ? UploadMemory::registered : UploadMemory::pinned;
  for (const std::uint64_t batch : options.batch_sizes) result.batches.push_back({batch, memory, {}});
  const UploadCase sample{memory, true, UploadDirection::up, 1, options.sample_bytes, {}, {}};
  const std::vector<std::uint64_t> places = shuffled_places(options.memory_bytes / options.sample_bytes);
  const std::vector<CopyItem> items = endpoints[0]->up_items(sample, places);
  Pass limit({UploadMemory::pinned, false, UploadDirection::up, 1, options.memory_bytes, {}, {}}, endpoints,
             options.memory_bytes);
  for (unsigned k = 0; k < options.repeat; ++k) {
    result.limit_bytes_per_second.push_back(limit.rate(options.seconds));
    for (std::size_t i = 0; i < passes.size(); ++i) {
      stop_when(cancel);
      UploadCase& one = result.cases[i];
      if (one.problem.empty()) one.bytes_per_second.push_back(passes[i].rate(options.seconds));
    }
    for (BatchUpload& one : result.batches) {
      stop_when(cancel);
      const auto part =
          std::span(items).subspan(k * one.batch_size % (items.size() - one.batch_size + 1), one.batch_size);
      const Stopwatch watch;
      endpoints[0]->queue(sample, part, {});
      endpoints[0]->synchronize();
      one.seconds.push_back(watch.seconds());
    }
    done(result);
  }
  return result;
}

}  // namespace shard::bench
