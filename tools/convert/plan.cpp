#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "convert/convert.hpp"
#include "shard/checksum.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

void refuse_out_inside_images(const Options& options) {
  if (options.images == "-" || options.images.starts_with("@")) return;
  std::error_code error;
  const fs::path images = fs::weakly_canonical(options.images, error);
  if (error) return;  // scan will say what is wrong
  const fs::path out = fs::weakly_canonical(options.out, error);
  if (error) return;
  for (fs::path folder = out;; folder = folder.parent_path()) {
    if (folder == images)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("OUT '{}' lies inside IMAGES '{}': it would become input; choose a folder outside",
                      options.out.string(), options.images));
    if (folder == folder.parent_path()) return;  // the root
  }
}

}  // namespace

std::uint64_t Plan::shard_inputs(std::uint64_t shard) const noexcept {
  const std::uint64_t first = shard * per_shard;
  return std::min<std::uint64_t>(per_shard, list.inputs.size() - first);
}

Plan make_plan(const Options& options) {
  options.check();
  refuse_out_inside_images(options);
  Plan plan;
  plan.list = scan(options.images, options.root);
  plan.listed = plan.list.inputs.size() + plan.list.rejects.size();
  plan.labels =
      options.labels.empty() ? labels_from_folders(plan.list) : labels_from_csv(plan.list, options.labels);
  if (plan.list.inputs.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("none of the {} inputs has a label: '{}' {}", plan.listed,
                            plan.list.rejects.front().key, plan.list.rejects.front().reason));
  plan.per_shard = options.per_shard();

  std::size_t text_bytes = 0;
  for (const Input& input : plan.list.inputs) text_bytes += input.path.size() + 1;
  std::string text;
  text.reserve(text_bytes);  // no doubling: with many inputs this is the peak of memory
  for (const Input& input : plan.list.inputs) text += input.path + '\0';
  for (const Reject& reject : plan.list.rejects) text += reject.key + '\0' + reject.reason + '\0';
  for (const std::string& name : plan.labels.classes) text += name + '\0';
  const std::uint64_t names = xxh3(text);
  plan.source_digest = fmt::format("{:016x}", names ^ (xxh3(plan.labels.rows) * 0x9E3779B97F4A7C15U));
  return plan;
}

}  // namespace shard::convert
