#include "options.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <utility>

#include "augment.hpp"
#include "sampling.hpp"
#include "shard/error.hpp"

namespace shard::python {

namespace {

template <class T>
T get(const nb::dict& given, const char* name, const char* expected) {
  const nb::object value = given[name];
  try {
    return nb::cast<T>(value);
  } catch (const nb::cast_error&) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is {}; expected {}", name, nb::repr(value).c_str(), expected));
  }
}

std::uint32_t whole32(const nb::dict& given, const char* name) {
  return get<std::uint32_t>(given, name, "a whole number from 0 to 4294967295");
}
std::uint64_t whole64(const nb::dict& given, const char* name) {
  return get<std::uint64_t>(given, name, "a whole number from 0 on");
}

template <class T, std::size_t N>
T choice(const nb::dict& given, const char* name, const std::array<std::pair<const char*, T>, N>& known) {
  std::string expected = "one of";
  for (const auto& [word, value] : known) expected += fmt::format(" \"{}\"", word);
  const auto found = get<std::string>(given, name, expected.c_str());
  for (const auto& [word, value] : known)
    if (found == word) return value;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is \"{}\"; expected {}", name, found, expected));
}

constexpr std::array kModes{std::pair{"sequential", OrderMode::sequential},
                            std::pair{"shuffle", OrderMode::shuffle},
                            std::pair{"windowed", OrderMode::windowed}};
constexpr std::array kPartitions{std::pair{"global", Partition::global},
                                 std::pair{"by_shard", Partition::by_shard}};
constexpr std::array kTails{std::pair{"drop", Tail::drop}, std::pair{"pad", Tail::pad},
                            std::pair{"wrap", Tail::wrap}, std::pair{"short", Tail::short_}};
constexpr std::array kTransports{
    std::pair{"auto", TransportKind::automatic}, std::pair{"mapped", TransportKind::mapped},
    std::pair{"staged", TransportKind::staged}, std::pair{"direct", TransportKind::direct},
    std::pair{"resident", TransportKind::resident}};
constexpr std::array kVerify{std::pair{"never", Verify::never}, std::pair{"first_epoch", Verify::first_epoch},
                             std::pair{"always", Verify::always}};
constexpr std::array kCrops{std::pair{"none", CropKind::none}, std::pair{"center", CropKind::center},
                            std::pair{"random", CropKind::random},
                            std::pair{"random_resized", CropKind::random_resized}};
constexpr std::array kDTypes{std::pair{"uint8", DType::u8},    std::pair{"uint16", DType::u16},
                             std::pair{"float16", DType::f16}, std::pair{"bfloat16", DType::bf16},
                             std::pair{"float32", DType::f32}, std::pair{"u8", DType::u8},
                             std::pair{"u16", DType::u16},     std::pair{"f16", DType::f16},
                             std::pair{"bf16", DType::bf16},   std::pair{"f32", DType::f32}};
constexpr std::array kUnnamedLayouts{std::pair{"stored", UnnamedLayout::stored},
                                     std::pair{"nchw_if_float", UnnamedLayout::nchw_if_float},
                                     std::pair{"nchw", UnnamedLayout::nchw}};
constexpr std::array kLayouts{std::pair{"nchw", Layout::nchw}, std::pair{"nhwc", Layout::nhwc}};

bool has(const nb::dict& given, const char* name) {
  return given.contains(name) && !nb::object(given[name]).is_none();
}

OrderOptions order_options(const nb::dict& given) {
  OrderOptions order;
  order.order = choice(given, "order", kModes);
  if (has(given, "window_shards")) order.window_shards = whole32(given, "window_shards");
  order.partition = choice(given, "partition", kPartitions);
  order.tail = choice(given, "tail", kTails);
  order.seed = whole64(given, "seed");
  order.batch_size = whole64(given, "batch_size");
  order.rank = whole32(given, "rank");
  order.world_size = whole32(given, "world_size");
  if (has(given, "sampling")) order.sampling = nb::cast<const SamplingHandle&>(given["sampling"]).sampling;
  if (has(given, "samples_per_epoch")) order.samples_per_epoch = whole64(given, "samples_per_epoch");
  order.repeats = whole32(given, "repeated_augmentation");
  return order;
}

TransformOptions transform_options(const nb::dict& given) {
  TransformOptions transform;
  transform.crop = choice(given, "crop", kCrops);
  if (transform.crop != CropKind::none) {
    transform.crop_height = whole32(given, "crop_height");
    transform.crop_width = whole32(given, "crop_width");
  }
  transform.scale = get<std::array<double, 2>>(given, "scale", "two numbers");
  transform.ratio = get<std::array<double, 2>>(given, "ratio", "two numbers");
  transform.flip_probability = get<double>(given, "flip", "a probability, True or False");
  if (has(given, "dtype")) transform.dtype = choice(given, "dtype", kDTypes);
  if (has(given, "layout")) transform.layout = choice(given, "layout", kLayouts);
  if (has(given, "operations"))
    transform.operations = operations_of(nb::cast<nb::list>(given["operations"]), whole32(given, "view"));
  if (has(given, "mean"))
    transform.normalization = Normalization{get<std::vector<float>>(given, "mean", "numbers"),
                                            get<std::vector<float>>(given, "std", "numbers")};
  return transform;
}

// max_rows: a dict of numbers by column; flat: a list of columns.
std::map<std::string, RaggedOptions> ragged_options(const nb::dict& given) {
  std::map<std::string, RaggedOptions> ragged;
  if (has(given, "max_rows"))
    for (const auto& [name, rows] :
         get<std::map<std::string, std::uint64_t>>(given, "max_rows", "a dict of numbers"))
      ragged[name].max_rows = rows;
  if (has(given, "flat"))
    for (const std::string& name : get<std::vector<std::string>>(given, "flat", "a list of names"))
      ragged[name].flat = true;
  return ragged;
}

constexpr std::array kSamplings{std::pair{"nearest", FieldSampling::nearest},
                                std::pair{"bilinear", FieldSampling::bilinear},
                                std::pair{"stored", FieldSampling::stored}};
constexpr std::array kBoxFormats{std::pair{"xyxy", BoxFormat::xyxy}, std::pair{"xywh", BoxFormat::xywh},
                                 std::pair{"cxcywh", BoxFormat::cxcywh}};

FieldOptions field_options(const nb::dict& given) {
  FieldOptions field;
  field.sampling = choice(given, "sampling", kSamplings);
  field.fill = get<double>(given, "fill", "a number");
  if (has(given, "dtype")) field.dtype = choice(given, "dtype", kDTypes);
  if (has(given, "layout")) field.layout = choice(given, "layout", kLayouts);
  if (has(given, "mean"))
    field.normalization = Normalization{get<std::vector<float>>(given, "mean", "numbers"),
                                        get<std::vector<float>>(given, "std", "numbers")};
  return field;
}

BoxOptions box_options(const nb::dict& given) {
  BoxOptions boxes;
  boxes.format = choice(given, "format", kBoxFormats);
  boxes.min_size = get<double>(given, "min_size", "a number");
  boxes.min_area = get<double>(given, "min_area", "a number");
  boxes.min_visibility = get<double>(given, "min_visibility", "a number");
  if (has(given, "along")) boxes.along = get<std::vector<std::string>>(given, "along", "a list of names");
  return boxes;
}

void add_targets(const nb::dict& given, LoaderOptions& options) {
  using Dicts = std::map<std::string, nb::dict>;
  using Pairs = std::map<std::string, std::vector<std::pair<std::uint32_t, std::uint32_t>>>;
  if (has(given, "fields"))
    for (const auto& [name, field] : get<Dicts>(given, "fields", "a dict"))
      options.fields[name] = field_options(field);
  if (has(given, "boxes"))
    for (const auto& [name, boxes] : get<Dicts>(given, "boxes", "a dict"))
      options.boxes[name] = box_options(boxes);
  if (has(given, "keypoints"))
    for (const auto& [name, swap] : get<Pairs>(given, "keypoints", "a dict of pairs"))
      options.keypoints[name] = {swap};
  if (has(given, "as_stored"))
    for (const std::string& name : get<std::vector<std::string>>(given, "as_stored", "a list of names"))
      options.as_stored.insert(name);
  if (has(given, "correspondence"))
    options.correspondence = get<bool>(given, "correspondence", "True or False");
}

}  // namespace

std::vector<TransformOptions> views_of(const nb::dict& given) {
  std::vector<TransformOptions> views{transform_options(given)};
  if (has(given, "further_views"))
    for (const nb::handle view : nb::cast<nb::list>(given["further_views"]))
      views.push_back(transform_options(nb::cast<nb::dict>(view)));
  return views;
}

LoaderOptions loader_options(const nb::dict& given) {
  LoaderOptions options;
  static_cast<OrderOptions&>(options) = order_options(given);
  const std::vector<TransformOptions> views = views_of(given);
  options.transform = views.front();
  options.further_views.assign(views.begin() + 1, views.end());
  if (has(given, "mix")) {
    const auto mix = nb::cast<nb::dict>(given["mix"]);
    options.mix = {get<double>(mix, "mixup", "a number"), get<double>(mix, "cutmix", "a number"),
                   get<double>(mix, "probability", "a number"),
                   get<double>(mix, "cutmix_probability", "a number")};
  }
  if (has(given, "unnamed_layout")) options.unnamed_layout = choice(given, "unnamed_layout", kUnnamedLayouts);
  add_targets(given, options);
  options.transport = choice(given, "transport", kTransports);
  options.verify = choice(given, "verify", kVerify);
  options.prefetch = whole32(given, "prefetch");
  options.threads = whole32(given, "threads");
  options.ragged = ragged_options(given);
  for (const auto& [name, field] : {std::pair{"registered_bytes", &options.memory.registered_bytes},
                                    std::pair{"pinned_bytes", &options.memory.pinned_bytes},
                                    std::pair{"resident_bytes", &options.memory.resident_bytes},
                                    std::pair{"readahead_bytes", &options.memory.readahead_bytes},
                                    std::pair{"cache_bytes", &options.remote.cache_bytes},
                                    std::pair{"transit_bytes", &options.remote.transit_bytes}})
    if (has(given, name)) *field = whole64(given, name);
  if (has(given, "cache")) options.remote.cache = nb::cast<std::filesystem::path>(given["cache"]);
  if (has(given, "transit")) options.remote.transit = nb::cast<std::filesystem::path>(given["transit"]);
  return options;
}

}  // namespace shard::python
