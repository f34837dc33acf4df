#include "slot/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codec/sample_errors.hpp"
#include "codec/verify_sample.hpp"
#include "shard/error.hpp"

namespace shard {

Verdict::Verdict(Dataset dataset, StoredForms forms, Device& device, std::uint64_t samples)
    : dataset_(std::move(dataset)),
      forms_(std::move(forms)),
      most_samples_(samples),
      entries_(device.allocate_pinned(size_bytes(samples, forms_.size()))) {
  std::memset(entries_->data(), 0, size_bytes(samples, forms_.size()));
}

std::uint32_t* Verdict::entries(std::size_t form) const noexcept {
  return reinterpret_cast<std::uint32_t*>(entries_->data()) + form * most_samples_;
}

void Verdict::start_batch(const std::vector<Dataset::Location>& samples) {
  const std::lock_guard lock(mutex_);
  before_ = nullptr;
  try {
    judge(0, samples_.size());
  } catch (...) {
    before_ = std::current_exception();
  }
  samples_ = samples;
  ++batch_;
  std::fill_n(entries(), forms_.size() * most_samples_, 0U);
}

void Verdict::restart_batch(const std::vector<Dataset::Location>& samples) {
  const std::lock_guard lock(mutex_);
  samples_ = samples;
  std::fill_n(entries(), forms_.size() * most_samples_, 0U);
}

std::uint64_t Verdict::batch() const {
  const std::lock_guard lock(mutex_);
  return batch_;
}

void Verdict::check(std::uint64_t batch, std::size_t first, std::size_t end) const {
  const std::lock_guard lock(mutex_);
  if (batch == batch_) return judge(first, std::min(end, samples_.size()));
  if (batch + 1 == batch_ && before_) std::rethrow_exception(before_);
}

void Verdict::judge(std::size_t first, std::size_t end) const {
  for (std::size_t form = 0; form < forms_.size(); ++form)
    for (std::size_t i = first; i < end; ++i)
      if (entries(form)[i] != 0) report(*forms_[form], samples_[i]);
}

void Verdict::report(const StoredForm& form, const Dataset::Location& at) const {
  const ShardReader& shard = dataset_.shard(at.shard);
  check_alive(shard);
  if (shard.samples_mapped()) verify_whole(form, shard, at.sample);  // says what is wrong with its bytes
  throw Error(ErrorCode::corrupt,
              fmt::format("{}: its stored frame was damaged when it reached the device, but is valid now: "
                          "does another program write to the file?",
                          form.name_of(shard, at.sample)));
}

}  // namespace shard
