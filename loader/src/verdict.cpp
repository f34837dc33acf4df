#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sample_errors.hpp"
#include "shard/error.hpp"
#include "transport/sample_io.hpp"

namespace shard {

Verdict::Verdict(Dataset dataset, std::shared_ptr<const StoredForm> form, Device& device,
                 std::uint64_t samples)
    : dataset_(std::move(dataset)),
      form_(std::move(form)),
      entries_(device.allocate_pinned(size_bytes(samples))) {
  std::memset(entries_->data(), 0, size_bytes(samples));
}

std::uint32_t* Verdict::entries() const noexcept {
  return reinterpret_cast<std::uint32_t*>(entries_->data());
}

void Verdict::start_batch(const std::vector<Dataset::Location>& samples) {
  const std::lock_guard lock(mutex_);
  before_ = nullptr;
  try {
    judge();
  } catch (...) {
    before_ = std::current_exception();
  }
  samples_ = samples;
  ++batch_;
  std::fill_n(entries(), samples_.size(), 0U);
}

std::uint64_t Verdict::batch() const {
  const std::lock_guard lock(mutex_);
  return batch_;
}

void Verdict::check(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  if (batch == batch_) return judge();
  if (batch + 1 == batch_ && before_) std::rethrow_exception(before_);
}

void Verdict::judge() const {
  const std::uint32_t* const invalid = entries();
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (invalid[i] == 0) continue;
    const Dataset::Location& at = samples_[i];
    const ShardReader& shard = dataset_.shard(at.shard);
    check_alive(shard);
    verify_mapped(*form_, shard, at.sample);  // says what is wrong with its bytes
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: its {} frame was damaged when it reached the device, but is valid now: "
                            "does another program write to the file?",
                            name_of_sample(shard, at.sample), to_string(shard.header().codec)));
  }
}

}  // namespace shard
