#include "setup/together.hpp"

#include <algorithm>

#include "codec/stored_form.hpp"
#include "fields/views.hpp"

namespace shard {

namespace {

// What a batch costs beside its samples (waits, events, launches: 40 to 50 us of feeder and driver) is below
// a tenth of the time of so many samples on the link.
constexpr std::uint64_t kRows = 256;
constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;
// Of samples that stay on a GPU: a kernel of 256 rows leaves a fifth of it without work (H200).
constexpr std::uint64_t kResidentRows = 512;
constexpr std::uint64_t kResidentBytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t kMostTogether = 16;

// Whether the rows of a batch are where those of the samples before end: all have one size.
bool can_be_together(const Dataset& dataset, const LoaderOptions& options) {
  if (dataset.is_remote() || dataset.is_unconverted() || options.mix.enabled()) return false;
  for (std::size_t view = 0; view < view_count(options); ++view)
    if (sizes_differ(options, view) || view_options(options, view).patch != 0) return false;
  for (const auto& form : stored_forms(dataset.info(), options))
    if (form->is_free() || form->may_be_late()) return false;
  return std::none_of(options.ragged.begin(), options.ragged.end(),
                      [](const auto& column) { return column.second.flat; });
}

}  // namespace

bool leaves_memory_open(const LoaderOptions& asked) noexcept {
  const MemoryOptions usual;
  return asked.prefetch == 0 && asked.memory.pinned_bytes == usual.pinned_bytes &&
         asked.memory.readahead_bytes == usual.readahead_bytes;
}

std::uint32_t choose_together(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options,
                              bool free) {
  if (options.together == 1 || !can_be_together(dataset, options)) return 1;
  if (options.together != 0) return options.together;
  // Errors of samples that the host makes are those of all that is made as one.
  if (!free || device.reads_host_memory) return 1;
  std::uint64_t row_bytes = 1;
  for (const auto& form : stored_forms(dataset.info(), options)) row_bytes += form->most_bytes_to_device();
  for (const TransformWork& view : plan_views(dataset.info(), options))
    row_bytes += view.delivered.size_bytes();
  const bool resident = options.transport == TransportKind::resident;
  const std::uint64_t rows = std::min(
      {resident ? kResidentRows : kRows, (resident ? kResidentBytes : kBytes) / row_bytes, dataset.size()});
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rows / options.batch_size, 1, kMostTogether));
}

}  // namespace shard
