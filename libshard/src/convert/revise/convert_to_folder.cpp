#include "convert/revise/convert_to_folder.hpp"

#include <string>
#include <utility>

#include "base/system/stopwatch.hpp"
#include "convert/annotations/class_labels.hpp"
#include "convert/engine/steps.hpp"
#include "convert/plan/plan.hpp"
#include "convert/plan/small_images.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/journal.hpp"
#include "convert/revise/append.hpp"
#include "convert/revise/replace_set.hpp"
#include "shard/dataset.hpp"

namespace shard::convert {

namespace {

// Where images are appended. A class that is misspelled is a new one.
void warn_of_new_classes(const Options& options, Plan& plan) {
  if (!options.classes.empty() || !dataset_is_there(options.out)) return;
  const DatasetInfo there = read_dataset_info(options.out);
  if (there.classes.empty()) return;  // append_to() says that these labels are of another kind
  const std::string text = new_classes_warning(there.classes, plan.labels.classes, options.out.string());
  if (!text.empty()) plan.warnings.push_back(text);
}

// Not a repetition of a finished conversion.
bool starts_anew(const Options& options) {
  return options.overwrite || options.refresh || options.append || !dataset_is_there(options.out);
}

}  // namespace

Summary convert_to_folder(const Options& given, const Hooks& hooks, bool shards_leave) {
  const Stopwatch planning;
  Options options = given;
  options.check();
  Plan plan = make_plan(options);
  options.preprocess = plan.preprocess;
  if (starts_anew(options)) {
    const SmallImages small = look_for_small_images(plan, options);
    if (small.many()) plan.warnings.push_back(enlargement_text(small, plan.preprocess));
  }
  if (options.append) warn_of_new_classes(options, plan);
  if (hooks.planned) hooks.planned(listing_of(plan));
  PlanRecord record = record_of(plan, spec_of(options, plan));
  record.max_pixels = options.max_pixels;
  const double plan_seconds = planning.seconds();
  const FolderState state = folder_state(options.out);
  Summary summary;
  if (options.append) {
    summary = append_to(std::move(plan), options, record, hooks);
  } else if ((options.overwrite || options.refresh) &&
             (state == FolderState::complete || state == FolderState::incomplete)) {
    summary = replace_dataset(plan, options, record, hooks);
  } else {
    Claim claim;
    claim.shards_leave = shards_leave;
    summary = convert_into(plan, options, record, hooks, claim);
  }
  summary.scan_seconds += plan_seconds;
  return summary;
}

}  // namespace shard::convert
