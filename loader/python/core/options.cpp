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
#include "declared.hpp"
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

template <class T, std::size_t N>
T choice(const nb::dict& given, const char* name, const std::array<std::pair<const char*, T>, N>& known) {
  std::string expected = "one of";
  for (const auto& [word, value] : known) expected += fmt::format(" \"{}\"", word);
  const auto found = get<std::string>(given, name, expected.c_str());
  for (const auto& [word, value] : known)
    if (found == word) return value;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is \"{}\"; expected {}", name, found, expected));
}

constexpr std::array kDTypes{std::pair{"uint8", DType::u8},    std::pair{"uint16", DType::u16},
                             std::pair{"float16", DType::f16}, std::pair{"bfloat16", DType::bf16},
                             std::pair{"float32", DType::f32}, std::pair{"u8", DType::u8},
                             std::pair{"u16", DType::u16},     std::pair{"f16", DType::f16},
                             std::pair{"bf16", DType::bf16},   std::pair{"f32", DType::f32}};
constexpr std::array kLayouts{std::pair{"nchw", Layout::nchw}, std::pair{"nhwc", Layout::nhwc}};

bool has(const nb::dict& given, const char* name) {
  return given.contains(name) && !nb::object(given[name]).is_none();
}

TransformOptions transform_options(const nb::dict& given) {
  TransformOptions transform;
  FromDict read("", given);
  read("resize", transform.resize, {});
  read("resize_height", transform.resize_height, {});
  read("resize_width", transform.resize_width, {});
  read("padded", transform.padded, {});
  read("patch", transform.patch, {});
  read("max_tokens", transform.max_tokens, {});
  read("filter", transform.filter, {});
  if (has(given, "fill"))
    transform.fill = get<std::vector<std::uint8_t>>(given, "fill", "numbers from 0 to 255");
  read("crop", transform.crop, {});
  read("crop_height", transform.crop_height, {});
  read("crop_width", transform.crop_width, {});
  read("scale", transform.scale, {});
  read("ratio", transform.ratio, {});
  transform.flip = get<double>(given, "flip", "a probability, True or False");
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

FieldOptions field_options(const nb::dict& given) {
  FieldOptions field;
  FromDict read("", given);
  read("sampling", field.sampling, {});
  read("fill", field.fill, {});
  if (has(given, "dtype")) field.dtype = choice(given, "dtype", kDTypes);
  if (has(given, "layout")) field.layout = choice(given, "layout", kLayouts);
  if (has(given, "mean"))
    field.normalization = Normalization{get<std::vector<float>>(given, "mean", "numbers"),
                                        get<std::vector<float>>(given, "std", "numbers")};
  return field;
}

BoxOptions box_options(const nb::dict& given) {
  BoxOptions boxes;
  FromDict read("", given);
  read("format", boxes.format, {});
  read("min_size", boxes.min_size, {});
  read("min_area", boxes.min_area, {});
  read("min_visibility", boxes.min_visibility, {});
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
  FromDict read("", given);
  LoaderOptions::members(options, read);
  if (has(given, "sampling")) options.sampling = nb::cast<const SamplingHandle&>(given["sampling"]).sampling;
  const std::vector<TransformOptions> views = views_of(given);
  options.transform = views.front();
  options.further_views.assign(views.begin() + 1, views.end());
  if (has(given, "buckets"))
    for (const auto& [height, width] : get<std::vector<std::pair<std::uint32_t, std::uint32_t>>>(
             given, "buckets", "a list of (height, width)"))
      options.buckets.push_back({height, width});
  if (has(given, "mix")) {
    const auto mix = nb::cast<nb::dict>(given["mix"]);
    FromDict read_mix("", mix);
    read_mix("mixup", options.mix.mixup, {});
    read_mix("cutmix", options.mix.cutmix, {});
    read_mix("mix_probability", options.mix.probability, {});
    read_mix("cutmix_probability", options.mix.cutmix_probability, {});
  }
  add_targets(given, options);
  options.ragged = ragged_options(given);
  return options;
}

}  // namespace shard::python
