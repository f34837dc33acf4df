// --refresh: which shards of a data set are still what a conversion would make of the inputs as they are now.
//
// A shard is kept when its inputs have the same names, order, labels, sizes and contents as those it was made
// of, and its file is the one that the data set names. Contents are compared by the digests in inputs.csv (or
// in the receipts of an unfinished conversion): every input is read once. All other shards are converted
// again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "convert/journal.hpp"
#include "convert/plan.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

class Refresh {
 public:
  // Reads all inputs, on options.threads() threads. `options.out` holds a data set or an unfinished
  // conversion with the same options; else invalid_argument, naming what differs. Errors: io, resource,
  // cancelled.
  Refresh(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks);

  // The data set is complete, and every shard is kept.
  bool nothing_changed() const noexcept { return nothing_changed_; }
  // Of the data set as it is. Only when nothing has changed.
  const Summary& summary() const noexcept { return summary_; }

  // Puts the kept shards (hard links, copies where there are none) and their receipts into `staging`, which
  // has the plan `record`. What an earlier run converted there from inputs that have changed since is
  // removed. Errors: io.
  void carry_over(const std::filesystem::path& staging, const PlanRecord& record) const;

 private:
  const Plan& plan_;
  std::filesystem::path out_;
  std::vector<std::optional<std::uint64_t>> digests_;  // of the inputs now; nothing: not readable
  std::map<std::uint64_t, Receipt> kept_;              // by number of the shard
  bool nothing_changed_ = false;
  Summary summary_;
};

}  // namespace shard::convert
