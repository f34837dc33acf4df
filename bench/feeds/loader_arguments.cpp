#include "feeds/loader_arguments.hpp"

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

}  // namespace

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
  app.add_flag("--flip", flip, "Mirror half of the samples");
  app.add_option("--dtype", dtype, "Delivered dtype: u8, f16, bf16 or f32")
      ->type_name("DTYPE")
      ->default_str("as stored");
  app.add_option("--layout", layout, "Delivered layout: nchw or nhwc")
      ->type_name("LAYOUT")
      ->default_str("as stored");
}

TransformOptions TransformArguments::options() const {
  TransformOptions transform;
  apply_crop(crop, transform);
  transform.flip_probability = flip ? 0.5 : 0;
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
