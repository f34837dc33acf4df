#include "feeds/loader_arguments.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text/quote.hpp"
#include "shard/error.hpp"
#ifdef SHARD_WITH_CUDA
#include "shard/loader/cuda_device.hpp"
#endif

namespace shard::bench {
namespace {

[[maybe_unused]] int parse_ordinal(const std::string& all, std::string_view text) {
  int ordinal = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), ordinal);
  if (text.empty() || error != std::errc{} || last != text.data() + text.size())
    refuse_value("--device", all, "host, cuda or cuda:N,M,...");
  return ordinal;
}

void apply_crop(const std::string& text, TransformOptions& transform) {
  if (text == "none") return;
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  std::uint32_t side = 0;
  if (colon != std::string::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), side);
  if (kind == "center") {
    transform.crop = CropKind::center;
  } else if (kind == "random") {
    transform.crop = CropKind::random;
  } else if (kind == "random-resized") {
    transform.crop = CropKind::random_resized;
  } else {
    refuse_value("--crop", text, "none, center:N, random:N or random-resized:N");
  }
  transform.crop_height = transform.crop_width = side;
}

// "A:B:C": the numbers. Throws where one is none, or there are not `count` of them.
std::vector<double> numbers_of(const char* option, const std::string& text, std::size_t count,
                               const char* expected) {
  std::vector<double> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    double number = 0;
    const auto [last, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) refuse_value(option, text, expected);
    numbers.push_back(number);
    if (last == end) break;
    if (*last != ':') refuse_value(option, text, expected);
    at = last + 1;
  }
  if (numbers.size() != count) refuse_value(option, text, expected);
  return numbers;
}

void apply_resize(const std::string& text, TransformOptions& transform) {
  if (text == "none") return;
  const auto colon = text.find(':');
  const auto words = words_of(ResizeKind{});
  const auto found = std::find(words.begin(), words.end(), text.substr(0, colon));
  std::uint32_t side = 0;
  if (colon != std::string::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), side);
  if (found == words.end() || side == 0)
    refuse_value("--resize", text, "none, shortest:N, longest:N, squash:N, letterbox:N or cover:N");
  transform.resize = static_cast<ResizeKind>(found - words.begin());
  transform.resize_height = transform.resize_width = side;
}

}  // namespace

std::vector<Bucket> buckets_of(const std::string& text) {
  if (text.empty()) return {};
  constexpr const char* kExpected = "AREA:STEP:ASPECT, as 65536:16:3";
  const std::vector<double> numbers = numbers_of("--buckets", text, 3, kExpected);
  if (!(numbers[0] >= 1 && numbers[0] < 1e10 && numbers[1] >= 1 && numbers[1] < 1e5))
    refuse_value("--buckets", text, kExpected);
  return make_buckets(static_cast<std::uint64_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1]),
                      numbers[2]);
}

void refuse_value(const char* option, const std::string& value, const char* expected) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {}: expected {}", option, quoted(value), expected));
}

std::vector<std::shared_ptr<Device>> devices_of(const std::string& name, unsigned host_threads) {
#ifdef SHARD_WITH_CUDA
  if (name == "cuda" || (name == "auto" && cuda_device_count() > 0)) return {make_cuda_device(0)};
  if (name.starts_with("cuda:")) {
    std::vector<std::shared_ptr<Device>> devices;
    for (std::string_view rest = std::string_view(name).substr(5);;) {
      const std::size_t comma = rest.find(',');
      devices.push_back(make_cuda_device(parse_ordinal(name, rest.substr(0, comma))));
      if (comma == std::string_view::npos) return devices;
      rest.remove_prefix(comma + 1);
    }
  }
#else
  if (name.starts_with("cuda"))
    throw Error(ErrorCode::unsupported, "--device cuda: this shardbench was built without CUDA");
#endif
  if (name != "host" && name != "auto") refuse_value("--device", name, "host, cuda or cuda:N,M,...");
  return {make_host_device(host_threads)};
}

TransportKind transport_of(const std::string& name) {
  for (const TransportKind kind : {TransportKind::automatic, TransportKind::mapped, TransportKind::staged,
                                   TransportKind::direct, TransportKind::resident})
    if (name == to_string(kind)) return kind;
  refuse_value("--transport", name, "auto, mapped, staged, direct or resident");
}

void TransformArguments::add_to(CLI::App& app) {
  app.add_option("--crop", crop, "none, center:N, random:N or random-resized:N")->type_name("CROP");
  app.add_option("--resize", resize, R"(
Before a crop: none, shortest:N, longest:N, squash:N, letterbox:N or cover:N)")
      ->type_name("RESIZE");
  app.add_option("--padded", padded, "Pad to the largest of the batch, sides multiples of N; 0: not");
  app.add_option("--patch", patch, "SIDE:TOKENS: deliver patches of SIDE pixels, at most TOKENS of a sample")
      ->type_name("PATCH");
  app.add_option("--filter", filter,
                 "Of --resize, and of samples of any size: bilinear, bicubic, box or lanczos")
      ->type_name("FILTER")
      ->check(CLI::IsMember({"bilinear", "bicubic", "box", "lanczos"}));
  app.add_flag("--flip", flip, "Mirror half of the samples");
  app.add_option("--dtype", dtype, "Delivered dtype: u8, f16, bf16 or f32")
      ->type_name("u8|f16|bf16|f32")
      ->default_str("as stored");
  app.add_option("--layout", layout, "Delivered layout: nchw or nhwc")
      ->type_name("nchw|nhwc")
      ->default_str("as stored");
}

TransformOptions TransformArguments::options() const {
  TransformOptions transform;
  apply_crop(crop, transform);
  apply_resize(resize, transform);
  transform.padded = padded;
  if (!patch.empty()) {
    const std::vector<double> numbers = numbers_of("--patch", patch, 2, "SIDE:TOKENS, as 16:256");
    if (!(numbers[0] >= 1 && numbers[0] < 1e5 && numbers[1] >= 1 && numbers[1] < 1e6))
      refuse_value("--patch", patch, "SIDE:TOKENS, as 16:256");
    transform.patch = static_cast<std::uint32_t>(numbers[0]);
    transform.max_tokens = static_cast<std::uint32_t>(numbers[1]);
  }
  const auto filters = words_of(ResizeFilter{});
  transform.filter =
      static_cast<ResizeFilter>(std::find(filters.begin(), filters.end(), filter) - filters.begin());
  transform.flip = flip ? 0.5 : 0;
  if (!dtype.empty()) {
    transform.dtype = dtype_from_option(dtype);
    if (!transform.dtype) refuse_value("--dtype", dtype, "u8, f16, bf16 or f32");
  }
  if (!layout.empty()) {
    transform.layout = layout_from_string(layout);
    if (!transform.layout) refuse_value("--layout", layout, "nchw or nhwc");
  }
  return transform;
}

}  // namespace shard::bench
