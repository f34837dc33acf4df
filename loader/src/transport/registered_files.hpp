// Files of samples that the device copies from where the archives that hold them are mapped and registered.
// Threads read those whose archive is not registered (yet).
//
// An archive is registered in ranges of 1 GiB, so that a large one is of use before all of it is registered,
// and as far as there is room for it. Only ranges are registered of which a batch has needed a member: a
// selection may need few of them. They stay.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/shard/unconverted.hpp"
#include "transport/registered_ranges.hpp"
#include "transport/transport.hpp"

namespace shard {

// What of all archives can be registered. 0: nothing, because the device or the data set has no use for it.
std::uint64_t registrable_file_bytes(const Dataset& dataset, const DeviceInfo& device);

// Used by the feeder's thread; any thread may call bytes() and remark().
class RegisteredFiles {
 public:
  // The rows of a batch that are copied from archives.
  struct Rows {
    std::vector<std::uint8_t> in_place;  // by row of Slot::fetch. Empty: none
    std::vector<CopyItem> copies;
    std::vector<std::uint32_t> ranges;  // that stay registered until release()
    std::vector<const HoldingFile*> files;
  };

  // `range_bytes`: a multiple of any page.
  static constexpr std::uint64_t kRangeBytes = std::uint64_t{1} << 30U;
  explicit RegisteredFiles(const TransportContext& context, std::uint64_t range_bytes = kRangeBytes);
  // Finds the rows whose ranges are registered by now.
  void begin(const Slot& slot, Rows& rows);
  // Their copies are done with the event, recorded in `stream`. Without an event: there are none.
  void release(Rows& rows, const Event& done, const Stream* stream);
  // Once the copies are done: throws invalid_argument if a file is not the one that was listed.
  static void check(const Rows& rows);

  std::uint64_t bytes() const { return registered_.bytes(); }
  std::string remark() const;

 private:
  struct File {
    std::uint32_t first_range = 0;
    std::uint64_t batch = 0;  // the last one that was copied from it
  };
  struct InBatch {
    std::uint64_t batch = 0;  // the last one that touched the range
    bool registered = false;  // in that one
  };
  class Ranges;

  bool use(std::uint32_t range, Rows& rows);
  void want();

  const Dataset& dataset_;
  const std::uint64_t piece_bytes_;  // of a registration
  const std::uint64_t range_bytes_;
  std::unordered_map<const HoldingFile*, File> files_;
  std::vector<InBatch> in_batch_;  // by range
  bool has_new_ = false;           // a range that no batch has needed before
  std::uint64_t all_bytes_ = 0;
  std::uint64_t budget_bytes_ = 0;  // when the loader was made
  std::uint64_t batch_ = 0;
  std::uint64_t epoch_ = 0;  // of the last batch
  RegisteredRanges registered_;
};

}  // namespace shard
