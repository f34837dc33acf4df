#include "transport/registered_shards.hpp"

#include <utility>

#include "transport/populate.hpp"

namespace shard {

namespace {

class ShardRanges final : public MappedRanges {
 public:
  ShardRanges(Dataset dataset, bool with_fields) : dataset_(std::move(dataset)), with_fields_(with_fields) {}
  std::size_t size() const override { return dataset_.info().shards.size(); }
  const char* name() const noexcept override { return "shards"; }
  std::span<const std::byte> range(std::uint32_t number) const override {
    return registered_range(dataset_.shard(number), with_fields_);
  }
  void read_in(std::uint32_t number, std::span<const std::byte> part,
               const std::stop_token& stop) const override {
    populate(dataset_.shard(number), part, stop);
  }

 private:
  Dataset dataset_;
  bool with_fields_;
};

}  // namespace

std::span<const std::byte> registered_range(const ShardReader& shard, bool with_fields) {
  const ShardHeader& header = shard.header();
  const std::uint64_t first = with_fields ? header.head_end : header.images_begin;
  return shard.mapping().subspan(first, header.images_end - first);
}

RegisteredShards::RegisteredShards(Dataset dataset, std::shared_ptr<Device> device,
                                   std::function<std::uint64_t()> budget_bytes, bool with_fields)
    : RegisteredRanges(std::make_unique<const ShardRanges>(std::move(dataset), with_fields),
                       std::move(device), std::move(budget_bytes)) {
  probe();
}

RegisteredShards::RegisteredShards(Dataset dataset, std::shared_ptr<Device> device,
                                   std::uint64_t budget_bytes)
    : RegisteredShards(std::move(dataset), std::move(device), [budget_bytes] { return budget_bytes; }) {}

}  // namespace shard
