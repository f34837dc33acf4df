#include "shard/convert/work_plan.hpp"

#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "convert/engine/steps.hpp"
#include "convert/plan/small_images.hpp"
#include "convert/publish/claim.hpp"
#include "shard/convert/recorded.hpp"

namespace shard::convert {

struct WorkPlan::Impl {
  Options options;
  Plan plan;
  PlanRecord record;

  void refuse_unfinished() const {
    for (std::uint64_t shard = 0; shard < plan.shards(); ++shard)
      if (!finished_shard(options.out, record, shard))
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("shard {} of {} of {} is not finished: convert it before the data set is finished",
                        shard, plan.shards(), quoted(options.out)));
  }
};

WorkPlan::WorkPlan(const Options& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->options.claim = true;
  impl_->options.check();
  impl_->plan = make_plan(impl_->options);
  impl_->options.preprocess = impl_->plan.preprocess;
  impl_->record = record_of(impl_->plan, spec_of(impl_->options, impl_->plan));
  impl_->record.max_pixels = impl_->options.max_pixels;
}
WorkPlan::WorkPlan(WorkPlan&&) noexcept = default;
WorkPlan& WorkPlan::operator=(WorkPlan&&) noexcept = default;
WorkPlan::~WorkPlan() = default;

std::uint64_t WorkPlan::shards() const noexcept { return impl_->plan.shards(); }
std::uint64_t WorkPlan::inputs() const noexcept { return impl_->plan.list.inputs.size(); }
std::string WorkPlan::digest() const { return impl_->record.fingerprint + impl_->record.source_digest; }

Listing WorkPlan::listing() const {
  Listing listing = listing_of(impl_->plan);
  const SmallImages small = look_for_small_images(impl_->plan, impl_->options);
  if (small.many()) listing.warnings.push_back(enlargement_text(small, impl_->plan.preprocess));
  return listing;
}

ShardResult WorkPlan::convert_shard(std::uint64_t shard, const Hooks& hooks) const {
  const Options& options = impl_->options;
  const Plan& plan = impl_->plan;
  const PlanRecord& record = impl_->record;
  if (shard >= plan.shards())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no shard {}: the plan has {}, from 0 on", shard, plan.shards()));
  ShardResult result{shard};
  const auto in_data_set = [&] {
    const DatasetInfo info = read_dataset_info(options.out);
    for (const ShardSummary& there : info.shards)
      if (there.file == shard_name(shard)) {
        result.samples = there.samples;
        result.size_bytes = there.size_bytes;
      }
    result.rejects = plan.shard_inputs(shard) - result.samples;
    return result;
  };
  const auto from_receipt = [&](const Receipt& receipt) {
    result.samples = receipt.shard.samples;
    result.size_bytes = receipt.shard.size_bytes;
    result.rejects = receipt.rejects.size();
    return result;
  };
  if (hooks.counters != nullptr) hooks.counters->planned = plan.shard_inputs(shard);
  Claim claim;
  claim_folder(plan, options, record, claim);
  result.was_complete = true;
  const bool complete = claim.complete || !claim.missing.empty();
  if (complete && claim.missing.count(shard) == 0) return in_data_set();
  if (!complete) {
    if (const auto receipt = finished_shard(options.out, record, shard)) return from_receipt(*receipt);
  }
  result.was_complete = false;
  require_space(plan, options, {shard});
  // Without its lock: who hands out a shard a second time wants it to be done,
  // whatever has become of the first one.
  Options alone = options;
  alone.claim = false;
  Summary unused;
  convert_shards(plan, alone, record, hooks, {shard}, claim.missing, unused);
  if (!dataset_is_there(options.out)) {
    if (const auto receipt = finished_shard(options.out, record, shard)) return from_receipt(*receipt);
  }
  return in_data_set();
}

Summary WorkPlan::finish() const {
  const Options& options = impl_->options;
  const Plan& plan = impl_->plan;
  const PlanRecord& record = impl_->record;
  Claim claim;
  claim_folder(plan, options, record, claim);
  Summary summary;
  if (!claim.missing.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("shard {} of {} has been lost: convert it again",
                                                         claim.missing.begin()->first, quoted(options.out)));
  if (claim.complete) {
    summary = summary_of(read_dataset_info(options.out));
    summary.was_complete = true;
    return summary;
  }
  if (!publish_dataset(plan, options, record, summary) && !dataset_is_there(options.out)) {
    impl_->refuse_unfinished();
    throw Error(ErrorCode::io,
                fmt::format("{} changed while it was finished: try again", quoted(options.out)));
  }
  summary = finished(read_dataset_info(options.out), summary);
  remove_journal(options.out);
  return summary;
}

}  // namespace shard::convert
