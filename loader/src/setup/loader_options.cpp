#include "setup/loader_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/system/cpu_count.hpp"
#include "base/text/quote.hpp"
#include "fields/delivered_columns.hpp"
#include "fields/views.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// They wait for answers, not for a CPU: the first batch of a shuffle needs the heads of as many
// shards as it has samples.
constexpr unsigned kRemoteThreads = 16;

unsigned default_threads() { return std::min(cpu_count(), 8U); }

void require_one_size(const DatasetInfo& info, const LoaderOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} of any size: a loader needs samples of one size; read them one by one, or convert "
                    "the images with a size (for example --resize 256 --crop 256)",
                    what));
  };
  if (info.spec.is_free()) refuse("the samples are");
  for (const FieldSpec& field : info.fields)
    if (field.spec.is_free() && options.fields.contains(field.name))
      refuse(fmt::format("field {} has samples", quoted(field.name)));
}

}  // namespace

LoaderOptions check_loader_options(LoaderOptions options) {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  const auto check = [&](std::string_view name, const auto& value, const Limits& limits) {
    if (const std::string wrong = violation(name, value, limits); !wrong.empty()) refuse(wrong);
  };
  LoaderOptions::members(options, check);
  if (options.threads == 0) options.threads = default_threads();
  return options;
}

LoaderOptions check_loader_options(LoaderOptions options, const Dataset& dataset) {
  if (options.threads == 0 && dataset.is_remote()) options.threads = kRemoteThreads;
  LoaderOptions checked = check_loader_options(std::move(options));
  require_one_size(dataset.info(), checked);
  name_layouts(dataset.info(), checked);
  set_row_limits(dataset, checked);
  return checked;
}

std::vector<std::uint64_t> samples_of_shards(const DatasetInfo& info) {
  std::vector<std::uint64_t> samples;
  for (const ShardSummary& shard : info.shards) samples.push_back(shard.samples);
  return samples;
}

}  // namespace shard
