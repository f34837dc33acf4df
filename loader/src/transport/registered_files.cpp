#include "transport/registered_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "shard/loader/pieces.hpp"
#include "transport/memory_plan.hpp"
#include "transport/populate.hpp"

namespace shard {

namespace {

std::uint32_t ranges_of(const HoldingFile& file, std::uint64_t range_bytes) {
  return static_cast<std::uint32_t>((file.size_bytes() + range_bytes - 1) / range_bytes);
}

}  // namespace

std::uint64_t registrable_file_bytes(const Dataset& dataset, const DeviceInfo& device) {
  if (!device.registers_read_only || device.reads_host_memory || !dataset.info().unindexed_files) return 0;
  const std::vector<const HoldingFile*> files = dataset.holding_files();
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const HoldingFile* file) { return sum + file->size_bytes(); });
}

class RegisteredFiles::Ranges final : public MappedRanges {
 public:
  Ranges(const std::vector<const HoldingFile*>& files, std::uint64_t range_bytes)
      : range_bytes_(range_bytes) {
    for (const HoldingFile* file : files)
      for (std::uint32_t i = 0; i < ranges_of(*file, range_bytes); ++i)
        ranges_.emplace_back(file, i * range_bytes);
  }
  std::size_t size() const override { return ranges_.size(); }
  const char* name() const noexcept override { return "parts of archives"; }
  std::span<const std::byte> range(std::uint32_t number) const override {
    const auto& [file, begin] = ranges_[number];
    const std::span<const std::byte> rest = file->mapping().subspan(begin);
    return rest.first(std::min<std::uint64_t>(rest.size(), range_bytes_));
  }
  void read_in(std::uint32_t number, std::span<const std::byte> part,
               const std::stop_token& stop) const override {
    const HoldingFile& file = *ranges_[number].first;
    populate(file.path(), part, stop, [&] { file.check_unchanged(); });
  }

 private:
  std::uint64_t range_bytes_;
  std::vector<std::pair<const HoldingFile*, std::uint64_t>> ranges_;
};

RegisteredFiles::RegisteredFiles(const TransportContext& context, std::uint64_t range_bytes)
    : dataset_(*context.dataset),
      piece_bytes_(context.device->info().registration_piece_bytes),
      range_bytes_(range_bytes),
      all_bytes_(registrable_file_bytes(*context.dataset, context.device->info())),
      budget_bytes_(registered_budget_bytes(*context.options)),
      registered_(std::make_unique<const Ranges>(dataset_.holding_files(), range_bytes), context.device,
                  [options = *context.options] { return registered_budget_bytes(options); }) {
  std::uint32_t ranges = 0;
  for (const HoldingFile* file : dataset_.holding_files()) {
    files_[file].first_range = ranges;
    ranges += ranges_of(*file, range_bytes);
  }
  in_batch_.resize(ranges);
}

void RegisteredFiles::begin(const Slot& slot, Rows& rows) {
  rows = {};
  ++batch_;
  if (batch_ == 1) {  // no registration may delay the very first batch
    epoch_ = slot.epoch;
    return;
  }
  if (std::exchange(epoch_, slot.epoch) != slot.epoch) registered_.retry_refused();
  rows.in_place.resize(slot.fetch.size());
  for (std::size_t row = 0; row < slot.fetch.size(); ++row) {
    const FetchItem& item = slot.fetch[row];
    if (!item.is_file) continue;
    const UnconvertedSamples& samples = *dataset_.shard(item.at.shard).unconverted();
    const UnconvertedSamples::Place place = samples.place_of(item.at.sample);
    if (place.file == nullptr) continue;
    File& file = files_.at(place.file);
    const auto first = static_cast<std::uint32_t>(file.first_range + place.offset / range_bytes_);
    const auto last =
        static_cast<std::uint32_t>(file.first_range + (place.offset + place.size_bytes - 1) / range_bytes_);
    bool all = true;
    for (std::uint32_t range = first; range <= last; ++range) all = use(range, rows) && all;
    if (!all) continue;
    rows.in_place[row] = 1;
    if (std::exchange(file.batch, batch_) != batch_) rows.files.push_back(place.file);
    CopyItem left{item.target, place.file->mapping().data() + place.offset, place.size_bytes};
    for (std::uint64_t at = place.offset % range_bytes_; left.size_bytes != 0; at = 0) {
      const std::uint64_t bytes = std::min(left.size_bytes, range_bytes_ - at);
      add_pieces({left.target, left.source, bytes}, at, piece_bytes_, rows.copies);
      left = {left.target + bytes, left.source + bytes, left.size_bytes - bytes};
    }
  }
  if (std::exchange(has_new_, false)) want();
}

// Those that were needed, in the order of their numbers. They stay: each epoch needs all of them again.
void RegisteredFiles::want() {
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t range = 0; range < in_batch_.size(); ++range)
    if (in_batch_[range].batch != 0) wanted.push_back(range);
  registered_.prefetch(std::move(wanted));
}

bool RegisteredFiles::use(std::uint32_t range, Rows& rows) {
  InBatch& in_batch = in_batch_[range];
  has_new_ = has_new_ || in_batch.batch == 0;
  if (std::exchange(in_batch.batch, batch_) == batch_) return in_batch.registered;
  in_batch.registered = registered_.try_use(range);
  if (in_batch.registered) rows.ranges.push_back(range);
  return in_batch.registered;
}

void RegisteredFiles::release(Rows& rows, const Event& done, const Stream* stream) {
  registered_.release(rows.ranges, done, stream);
  rows.ranges.clear();
}

void RegisteredFiles::check(const Rows& rows) {
  for (const HoldingFile* file : rows.files) file->check_unchanged();
}

std::string RegisteredFiles::remark() const {
  std::string remark = registered_.remark();
  if (all_bytes_ <= budget_bytes_) return remark;
  return fmt::format(
      "{}{}archives have {} bytes, of which {} may be registered (registered_bytes), and "
      "threads read the others",
      remark, remark.empty() ? "" : "; ", all_bytes_, budget_bytes_);
}

}  // namespace shard
