// --refresh: which shards of a data set are equal to those that a new conversion of the present inputs would
// write.
//
// A shard is kept if its inputs have the same names, order, labels, sizes and contents as when it was made,
// and if its file is the one that the data set records. Contents are compared by the digests in inputs.csv
// (or in the receipts of an unfinished conversion), so every input is read once. All other shards are
// converted again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "convert/plan/plan.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

class Refresh {
 public:
  // Reads all inputs, on options.threads() threads. `options.out` holds a data set or an unfinished
  // conversion. Errors: invalid_argument (its options are not the same; the message names the differences),
  // io, resource, cancelled.
  Refresh(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks);

  // The data set is complete, and every shard is kept.
  bool nothing_changed() const noexcept { return nothing_changed_; }
  // Of the existing data set. Valid only if nothing_changed().
  const Summary& summary() const noexcept { return summary_; }

  // Puts the kept shards (as hard links, or as copies if the file system has no links) and their receipts
  // into `staging`, which has the plan `record`. Receipts in `staging` for inputs that have changed since are
  // removed. Errors: io.
  void carry_over(const std::filesystem::path& staging, const PlanRecord& record) const;

 private:
  const Plan& plan_;
  std::filesystem::path out_;
  std::vector<std::optional<std::uint64_t>> digests_;  // of the present inputs; nothing: it cannot be read
  std::map<std::uint64_t, Receipt> kept_;              // by number of the shard
  bool nothing_changed_ = false;
  Summary summary_;
};

}  // namespace shard::convert
