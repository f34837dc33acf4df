#include "convert/revise/replace_set.hpp"

#include <filesystem>
#include <string>

#include "convert/engine/steps.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/replace.hpp"
#include "convert/revise/refresh.hpp"

namespace shard::convert {

namespace fs = std::filesystem;

Summary replace_dataset(const Plan& plan, const Options& options, const PlanRecord& record,
                        const Hooks& hooks) {
  const fs::path& out = options.out;
  FolderLock old;
  if (old.try_lock(out, true) == LockResult::busy) refuse_busy(out, old.holder(), "");
  prepare_replacement(out);

  Options inner = options;
  inner.out = out / kStagingFolder;
  inner.overwrite = false;
  inner.refresh = false;
  PlanRecord staged = record;
  staged.stage = Stage::staged;
  staged.options["max_pixels"] =
      std::to_string(options.max_pixels);  // what was staged has the rejects of this bound
  Claim claim;                             // of the staged folder, which becomes OUT
  if (options.refresh) {
    const Refresh refresh(plan, options, record, hooks);
    if (refresh.nothing_changed()) {
      remove_staging(inner.out);  // of an earlier run with other inputs
      return refresh.summary();
    }
    prepare_staging(inner.out, staged);
    claim.folder.try_lock(inner.out, true);
    claim_folder(plan, inner, staged, claim);
    refresh.carry_over(inner.out, staged);
  } else {
    prepare_staging(inner.out, staged);
    claim.folder.try_lock(inner.out, true);
  }
  Summary summary = convert_into(plan, inner, staged, hooks, claim);
  summary.was_complete = false;
  put_in_place(out);
  remove_journal(out);
  return summary;
}

}  // namespace shard::convert
