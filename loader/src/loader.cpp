#include "shard/loader/loader.hpp"

#include <unistd.h>

#include "engine/lease.hpp"
#include "engine/loader_impl.hpp"
#include "fields/views.hpp"

namespace shard {

Loader::Loader(Dataset dataset, std::shared_ptr<Device> device, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), std::move(device), std::move(options))) {}
Loader::Loader(Loader&&) noexcept = default;

Loader::~Loader() {
  if (impl_ && impl_->made_by_another_process())
    static_cast<void>(impl_.release());  // its threads are not in this process
}

const LoaderOptions& Loader::options() const noexcept { return impl_->setup().options; }
SampleSpec Loader::delivered(std::size_t view) const {
  const std::vector<TransformWork>& transforms = impl_->setup().transforms;
  if (view >= transforms.size())
    throw Error(ErrorCode::invalid_argument, "view " + std::to_string(view) + " of a loader that has " +
                                                 std::to_string(transforms.size()) +
                                                 " (LoaderOptions::further_views)");
  SampleSpec delivered = spec_in_batch(transforms[view]);
  if (sizes_differ(impl_->setup().options, view)) delivered.height = delivered.width = 0;
  return delivered;
}
std::uint64_t Loader::batches_per_epoch() const noexcept { return impl_->setup().order.batches(); }
void Loader::start_epoch(std::uint64_t epoch) { impl_->start_epoch(epoch, 0); }
void Loader::set_views(TransformOptions transform, std::vector<TransformOptions> further_views) {
  further_views.insert(further_views.begin(), std::move(transform));
  impl_->set_views(std::move(further_views));
}
void Loader::set_data(Dataset dataset) { impl_->set_data(std::move(dataset)); }
bool Loader::wait_ready(std::chrono::milliseconds timeout) { return impl_->wait_ready(timeout); }
void Loader::cancel() noexcept { impl_->cancel(); }
LoaderState Loader::state() const { return impl_->state(); }
void Loader::resume(const LoaderState& state) { impl_->resume(state); }
LoaderStats Loader::stats() const { return impl_->stats(); }

std::optional<Batch> Loader::next() {
  const Loader::Impl::Part part = impl_->next();
  if (part.slot == nullptr) return std::nullopt;
  const LoaderWorks& works = impl_->works();
  return Batch(std::make_shared<Batch::Lease>(works.ring, part.slot, part.batch, works.setup->dataset));
}

Loader::Epoch Loader::epoch(std::uint64_t epoch) {
  if (!impl_->inside(epoch)) impl_->start_epoch(epoch, 0);
  return Epoch(*this);
}

}  // namespace shard
