// StoredForm: how samples are stored, as far as a loader is concerned. Each codec has one implementation, in a
// file of this folder. The rest of the loader knows the codec through this interface only.
//
//   codec    stored        reaches the device    decoded
//   none     the sample    as it is stored       -
//   zstd     a frame       as the sample         by the host, on the way
//   packed   a frame       as it is stored       by the device, in the transform
//
// What is true of every codec is not here: ShardReader::codec() decodes one frame on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

// The bytes of one sample that go to the device.
struct StoredSample {
  std::uint64_t size_bytes = 0;
  // Where they are mapped; null if this was not looked up, because the size is known without it.
  const std::byte* mapped = nullptr;
};

// Immutable and thread safe. The defaults are those of samples that are stored as they are.
class StoredForm {
 public:
  explicit StoredForm(const SampleSpec& recorded) : recorded_(recorded) {}
  StoredForm(const StoredForm&) = delete;
  StoredForm& operator=(const StoredForm&) = delete;
  virtual ~StoredForm() = default;

  // The most bytes of a sample that go to the device.
  virtual std::uint64_t most_bytes_to_device() const noexcept { return recorded_.size_bytes(); }
  // Every sample has most_bytes_to_device().
  virtual bool fixed_size() const noexcept { return true; }
  // What is to be brought of one sample. Errors: corrupt (naming shard and sample), those of Dataset::shard().
  virtual StoredSample locate(const Dataset& dataset, const Dataset::Location& at) const;

  // The host decodes samples on the way: what is mapped is not what the device gets.
  virtual bool decoded_by_host() const noexcept { return false; }
  // XXH3-64 of the sample that goes to the device as `bytes`. Errors: corrupt.
  virtual std::uint64_t checksum(const ShardReader& shard, std::span<const std::byte> bytes) const;

  // The device decodes samples, and says of each whether its bytes are valid (verdict.hpp).
  virtual bool decoded_by_device() const noexcept { return false; }
  // A sample as the transform sees it.
  virtual SampleSpec transform_input() const { return recorded_; }
  // Device memory that the transform needs per sample of a batch while it runs.
  virtual std::uint64_t scratch_bytes(const TransformOptions&, const DeviceInfo&) const noexcept { return 0; }
  // Adds what the transform must be told beside addresses. `sizes`: in bytes, of each sample of the batch;
  // `scratch`: that many scratch_bytes(). Both must live as long as `work` is used.
  virtual void describe(TransformWork& /*work*/, std::span<const std::uint64_t> /*sizes*/,
                        std::byte* /*scratch*/) const {}

 protected:
  const SampleSpec& recorded() const noexcept { return recorded_; }

 private:
  SampleSpec recorded_;
};

// The form of a data set's samples: the one place that chooses by codec.
std::unique_ptr<const StoredForm> make_stored_form(const DatasetInfo& info);

// One per codec.
std::unique_ptr<const StoredForm> make_raw_form(const DatasetInfo& info);
std::unique_ptr<const StoredForm> make_zstd_form(const DatasetInfo& info);
std::unique_ptr<const StoredForm> make_packed_form(const DatasetInfo& info);

}  // namespace shard
