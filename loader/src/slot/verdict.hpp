// Verdict: which samples of a batch the device found invalid when it decoded them. Known when the batch is
// done.
//
// Each slot has a verdict if the device decodes samples. The consumer asks for the verdict on the batch that
// it got last, even after it gave the slot back. By then the feeder may make another batch in the slot, so
// the verdict on the slot's batch before is kept too.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "codec/stored_form.hpp"
#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"

namespace shard {

// Thread safe.
class Verdict {
 public:
  // For batches of `samples`, of fields of these forms. Errors: resource.
  Verdict(Dataset dataset, StoredForms forms, Device& device, std::uint64_t samples);
  Verdict(const Verdict&) = delete;
  Verdict& operator=(const Verdict&) = delete;

  // TransformWork::broken, for the samples of a form.
  std::uint32_t* entries(std::size_t form = 0) const noexcept;
  static std::uint64_t size_bytes(std::uint64_t samples, std::size_t forms) noexcept {
    return sizeof(std::uint32_t) * samples * forms;
  }

  // The slot's next batch has these samples. The device must be done with the batch before.
  void start_batch(const std::vector<Dataset::Location>& samples);
  // That batch is made again, and nobody has seen it yet.
  void restart_batch(const std::vector<Dataset::Location>& samples);
  // Numbers the batches of the slot.
  std::uint64_t batch() const;
  // Throws corrupt, naming shard and sample, if the device found one of these samples of the batch invalid.
  // `batch` is the slot's last one or the one before, and the device must be done with it. Of the one before,
  // the samples before these were checked by then.
  void check(std::uint64_t batch, std::size_t first, std::size_t end) const;

 private:
  void judge(std::size_t first, std::size_t end) const;
  [[noreturn]] void report(const StoredForm& form, const Dataset::Location& at) const;

  const Dataset dataset_;
  const StoredForms forms_;
  const std::uint64_t most_samples_;
  const std::unique_ptr<Block> entries_;
  mutable std::mutex mutex_;
  std::vector<Dataset::Location> samples_;
  std::uint64_t batch_ = 0;
  // On the batch before; null: valid.
  std::exception_ptr before_;
};

}  // namespace shard
