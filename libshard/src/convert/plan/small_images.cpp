#include "convert/plan/small_images.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/system/stopwatch.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/error.hpp"
#include "shard/image/wide.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kLooks = 64;
constexpr double kLookSeconds = 1.0;
constexpr std::uint64_t kLookBytes = std::uint64_t{64} << 20U;
constexpr std::uint64_t kLargestFile = std::uint64_t{8} << 20U;

image::Size wanted_size(const image::PreprocessOptions& preprocess) {
  return preprocess.squash.value_or(image::Size{preprocess.resize_short, preprocess.resize_short});
}

}  // namespace

void SmallImages::add(image::Size size, const image::PreprocessOptions& preprocess) {
  const image::Size wanted = wanted_size(preprocess);
  ++sampled;
  if (size.width < wanted.width || size.height < wanted.height) ++smaller;
  differ = differ || (one_size && *one_size != size);
  one_size = size;
  if (differ) one_size.reset();
}

SmallImages look_for_small_images(const Plan& plan, const Options& options) {
  SmallImages found;
  if (plan.preprocess.free_size) return found;  // none is enlarged
  const auto& inputs = plan.list.inputs;
  const Stopwatch watch;
  InputReader reader(plan.list);
  std::uint64_t bytes = 0;
  const std::uint64_t looks = std::min<std::uint64_t>(kLooks, inputs.size());
  for (std::uint64_t k = 0; k < looks && watch.seconds() < kLookSeconds; ++k) {
    const std::uint64_t index = k * inputs.size() / looks;
    const Input& input = inputs[index];
    if (plan.list.on_server(input) || plan.sizes[index] > kLargestFile) continue;
    bytes += plan.sizes[index];
    if (bytes > kLookBytes) break;
    try {
      const image::WideInfo info =
          image::read_wide_info(reader.read(input), options.max_pixels, input.page_number());
      found.add({info.width, info.height}, plan.preprocess);
    } catch (const Error&) {
      continue;  // the conversion says what is wrong with it
    }
  }
  return found;
}

std::string enlargement_text(const SmallImages& found, const image::PreprocessOptions& preprocess,
                             bool done) {
  const image::Size wanted = wanted_size(preprocess);
  const auto percent = (found.smaller * 200 / found.sampled + 1) / 2;
  const std::string share = percent == 0 ? std::string("less than 1") : fmt::to_string(percent);
  std::string cure = "smaller values of `resize` and `crop` keep their size";
  if (found.one_size && !preprocess.squash && found.one_size->width == found.one_size->height)
    cure = fmt::format("`resize` {0} with `crop` {0} stores them as they are", found.one_size->width);
  else if (found.one_size)
    cure =
        fmt::format("`squash` {}x{} stores them as they are", found.one_size->width, found.one_size->height);
  return fmt::format(
      "{} % of the images are smaller than {}x{} and {} enlarged ({} of {} that were looked at): {}", share,
      wanted.width, wanted.height, done ? "were" : "would be", found.smaller, found.sampled, cure);
}

}  // namespace shard::convert
