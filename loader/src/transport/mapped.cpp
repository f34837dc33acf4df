// mapped: shards registered where they are mapped; the copy engine gathers the samples from the page cache.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <list>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "shard/error.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

class Mapped final : public Transport {
 public:
  explicit Mapped(const TransportContext& context)
      : context_(context),
        budget_(context.options->registered_bytes != 0 ? context.options->registered_bytes
                                                       : default_budget_bytes()),
        in_place_(context.device->info().reads_host_memory) {
    const DatasetInfo& info = context.dataset->info();
    if (info.codec.kind != Codec::Kind::none)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("samples stored with codec {} must be decompressed first", to_string(info.codec)));
    if (!context.device->info().registers_read_only)
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} cannot register read-only mappings", context.device->info().name));
    used_in_batch_.assign(info.shards.size(), 0);
    std::uint64_t total = 0;
    std::uint64_t largest = 0;
    for (const ShardSummary& shard : info.shards) {
      total += shard.size_bytes;
      largest = std::max(largest, shard.size_bytes);
    }
    if (in_place_) return;  // nothing is locked
    if (largest > budget_)
      throw Error(
          ErrorCode::resource,
          fmt::format(
              "a shard of {} bytes exceeds the budget of {} bytes for registered memory (registered_bytes)",
              largest, budget_));
    if (total > budget_ && context.options->order.mode == OrderMode::shuffle)
      throw Error(
          ErrorCode::resource,
          fmt::format("{} bytes of shards exceed the budget of {} bytes for registered memory "
                      "(registered_bytes), and a "
                      "global shuffle needs all of them at once; a windowed order needs only its window",
                      total, budget_));
    ++batch_;
    use_shard(0, context.dataset->shard(
                     0));  // a platform that refuses says so now, while another transport can be chosen
  }

  TransportKind kind() const noexcept override { return TransportKind::mapped; }
  bool reads_in_place() const noexcept override { return in_place_; }
  void prepare(Slot&) override {}

  void begin(Slot& slot) override {
    const std::uint64_t size = context_.dataset->info().spec.size_bytes();
    slot.copies.clear();
    slot.sources.clear();
    ++batch_;
    batch_shards_.clear();
    for (const FetchItem& item : slot.fetch) {
      const Dataset::Location at = context_.dataset->locate(item.sample);
      const ShardReader& shard = context_.dataset->shard(at.shard);
      if (used_in_batch_[at.shard] != batch_) {
        used_in_batch_[at.shard] = batch_;
        batch_shards_.push_back(at.shard);
        check_alive(shard);
        if (!in_place_) use_shard(at.shard, shard);
      }
      const std::span<const std::byte> frame = shard.frame(at.sample);
      if (item.target != nullptr)
        slot.copies.push_back({item.target, frame.data(), size});
      else
        slot.sources.push_back(frame.data());
    }
    if (slot.verify) verify(slot);
    context_.copy_stream->wait(slot.released_event);
    context_.copy_stream->copy(slot.copies);
    context_.copy_stream->copy(
        {&slot.columns_copy, 1});  // alone: a small range among large ones slows the whole batch down
    slot.copied_event = context_.copy_stream->record();
    if (in_place_) return;
    for (std::uint32_t shard : batch_shards_) registered_.at(shard).last_use = slot.copied_event;
  }
  void end(Slot&) override {}  // the copy engine does the rest

  TransportUse use() const noexcept override { return {registered_bytes_, 0, 0, storage_nanoseconds_}; }

 private:
  struct Registered {
    std::unique_ptr<Registration> registration;
    Event last_use;
    std::list<std::uint32_t>::iterator recency;
  };

  // Makes the shard's images resident and registered, giving up the least recently used ones beyond the
  // budget.
  void use_shard(std::uint32_t index, const ShardReader& shard) {
    if (auto it = registered_.find(index); it != registered_.end()) {
      recency_.splice(recency_.end(), recency_, it->second.recency);
      return;
    }
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t first = shard.header().images_begin;
    const std::span<const std::byte> images =
        shard.mapping().subspan(first, shard.header().images_end - first);
    while (registered_bytes_ + images.size() > budget_) give_up_oldest();
    // Reads the pages in; a page that cannot be had is an error here and not a signal later.
    if (::madvise(const_cast<std::byte*>(images.data()), images.size(), MADV_POPULATE_READ) != 0 &&
        errno != EINVAL) {
      const int error = errno;
      check_alive(shard);  // says so when the file was cut: EFAULT tells nobody
      throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", shard.path().string(),
                                             std::generic_category().message(error)));
    }
    Registered entry;
    entry.registration = context_.device->register_read_only(images);
    entry.recency = recency_.insert(recency_.end(), index);
    registered_[index] = std::move(entry);
    registered_bytes_ += images.size();
    storage_nanoseconds_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
            .count());
  }

  void give_up_oldest() {
    const auto oldest = std::find_if(recency_.begin(), recency_.end(),
                                     [&](std::uint32_t shard) { return used_in_batch_[shard] != batch_; });
    if (oldest == recency_.end())
      throw Error(
          ErrorCode::resource,
          fmt::format(
              "one batch touches {} shards, more than the budget of {} bytes for registered memory holds; "
              "raise registered_bytes, or use fewer window_shards",
              batch_shards_.size(), budget_));
    Registered& entry = registered_.at(*oldest);
    entry.last_use.wait();
    registered_bytes_ -= entry.registration->range().size();
    registered_.erase(*oldest);
    recency_.erase(oldest);
  }

  void verify(const Slot& slot) {
    run_rows(*context_.pool, slot.fetch.size(), [&](std::size_t i) {
      const Dataset::Location at = context_.dataset->locate(slot.fetch[i].sample);
      const ShardReader& shard = context_.dataset->shard(at.shard);
      verify_mapped(shard, at.sample);
    });
  }

  TransportContext context_;
  std::uint64_t budget_;
  bool in_place_;
  std::unordered_map<std::uint32_t, Registered> registered_;
  std::list<std::uint32_t> recency_;          // least recently used first
  std::vector<std::uint64_t> used_in_batch_;  // by shard: the last batch that used it
  std::vector<std::uint32_t> batch_shards_;   // of this batch
  std::uint64_t batch_ = 0;
  std::uint64_t registered_bytes_ = 0;
  std::uint64_t storage_nanoseconds_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_mapped(const TransportContext& context) {
  return std::make_unique<Mapped>(context);
}

}  // namespace shard
