// Augmentation: operations from (name, parameters), programs, and their execution on the host.
#include "augment.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "declared.hpp"
#include "options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/geometry.hpp"

namespace shard::python {

namespace {

Operation operation_of(const std::string& name, FromDict& parameters) {
  std::optional<Operation> made = operation_named(name);
  if (!made) parameters.refuse("there is no operation of this name");
  std::visit([&](auto& one) { ops::visit_members(one, parameters); }, *made);
  parameters.end();
  return *made;
}

// Lists what Python must know of the parameters: (name, kind, default, what Limits say for Python).
class Described {
 public:
  nb::list parameters;

  template <class T>
  void operator()(std::string_view name, const T& member, const Limits& limits) {
    nb::dict one;
    one["name"] = name;
    one["kind"] = kind(member);
    one["default"] = value(member);
    one["low"] = limits.low;
    one["high"] = limits.high;
    one["centre"] = limits.centre ? nb::cast(*limits.centre) : nb::none();
    one["none"] = limits.none;
    one["by_name"] = limits.by_name;
    one["required"] = limits.required;
    parameters.append(one);
  }

 private:
  static const char* kind(double) { return "number"; }
  static const char* kind(std::uint32_t) { return "whole"; }
  static const char* kind(bool) { return "switch"; }
  static const char* kind(const Range&) { return "span"; }
  static const char* kind(const std::array<double, 2>&) { return "pair"; }
  static const char* kind(const std::array<float, 4>&) { return "fill"; }
  static const char* kind(const Fill&) { return "fill or none"; }
  static const char* kind(const std::optional<Range>&) { return "span or none"; }
  static const char* kind(const std::optional<std::uint32_t>&) { return "whole or none"; }
  static const char* kind(const std::optional<std::array<std::uint32_t, 4>>&) { return "channels or none"; }
  template <class T>
  requires std::is_enum_v<T>
  static const char* kind(T) { return "word"; }

  static nb::object value(const Range& range) { return nb::make_tuple(range.low, range.high); }
  static nb::object value(const std::array<float, 4>& fill) { return nb::cast(fill[0]); }
  template <class T>
  static nb::object value(const std::optional<T>& member) {
    return member ? value(*member) : nb::none();
  }
  template <class T>
  static nb::object value(const T& member) {
    if constexpr (std::is_enum_v<T>)
      return nb::cast(words_of(T{})[static_cast<std::size_t>(member)]);
    else
      return nb::cast(member);
  }
};

// [(name, sentence, parameters)]
nb::list operations() {
  nb::list all;
  for (const Operation& one : all_operations()) {
    Described described;
    std::visit([&](const auto& operation) { ops::visit_members(operation, described); }, one);
    all.append(nb::make_tuple(name_of(one), description_of(one).sentence, described.parameters));
  }
  return all;
}

using Drawn = std::tuple<std::string, std::array<std::int32_t, 7>, std::array<float, 16>>;

SampleSpec pixels(const std::array<std::uint32_t, 3>& shape) {
  SampleSpec spec{DType::u8, Layout::nhwc, shape[2], shape[0], shape[1]};
  spec.check();
  return spec;
}

std::vector<Drawn> draw(const nb::list& operations, const std::array<std::uint32_t, 3>& shape,
                        std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::uint32_t view) {
  const std::vector<Operation> all = operations_of(operations, view);
  check_operations(pixels(shape), all, view);
  std::vector<Instruction> program;
  draw_program(pixels(shape), all, seed, epoch, sample, view, program);
  std::vector<Drawn> drawn;
  for (const Instruction& one : program)
    drawn.emplace_back(std::string(to_string(one.opcode)), one.whole, one.real);
  return drawn;
}

// The pixels after the operations.
nb::bytes apply(const nb::list& operations, const nb::bytes& image, const std::array<std::uint32_t, 3>& shape,
                std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::uint32_t view) {
  const SampleSpec spec = pixels(shape);
  if (image.size() != spec.size_bytes())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("an image of {} bytes; {} x {} x {} needs {}", image.size(), shape[0], shape[1],
                            shape[2], spec.size_bytes()));
  const std::vector<Operation> all = operations_of(operations, view);
  check_operations(spec, all, view);
  std::vector<std::uint8_t> values(image.size());
  std::memcpy(values.data(), image.data(), values.size());
  {
    WithoutGil without_gil;
    std::vector<Instruction> program;
    draw_program(spec, all, seed, epoch, sample, view, program);
    run_program(spec, program, values.data());
  }
  return nb::bytes(values.data(), values.size());
}

}  // namespace

nb::tuple draw_places(TransformOptions view, const std::array<std::uint32_t, 3>& shape, std::uint64_t seed,
                      std::uint64_t epoch, std::uint64_t sample, std::uint32_t number) {
  // Planned as of any size: then nothing is refused because of the size of this sample.
  DatasetSpec stored;
  stored.spec = pixels(shape);
  const SampleSpec sized = stored.spec;
  const bool whole = view.crop == CropKind::none && view.resize == ResizeKind::none && view.padded == 0;
  if (!whole && sized.channels <= 4) stored.spec.height = stored.spec.width = 0;
  view.dtype.reset();
  view.normalization.reset();
  TransformWork work = plan_transform(DatasetInfo(stored), view, number);
  work.stored = sized;
  if (view.padded != 0) {  // what its batch makes of it is not known here
    const SampleSize content = padded_size(sized, view);
    work.delivered.height = content.height;
    work.delivered.width = content.width;
  }
  const Geometry geometry = draw_geometry(work, view, seed, epoch, sample, number);
  nb::list steps;
  for (const Instruction& one : geometry.steps)
    steps.append(nb::cast(Drawn(std::string(to_string(one.opcode)), one.whole, one.real)));
  const SampleCrop& crop = geometry.crop;
  return nb::make_tuple(nb::make_tuple(crop.top, crop.left, crop.height, crop.width, crop.flip),
                        nb::make_tuple(geometry.height, geometry.width), nb::tuple(steps),
                        nb::tuple(nb::cast(matrix_of(geometry))));
}

std::vector<Operation> operations_of(const nb::list& given, std::size_t view) {
  std::vector<Operation> operations;
  for (const nb::handle one : given) {
    const auto [name, parameters] = nb::cast<std::pair<std::string, nb::dict>>(one);
    FromDict of(fmt::format("view {}, operation {} ({}): ", view, operations.size(), name), parameters);
    operations.push_back(operation_of(name, of));
  }
  return operations;
}

void bind_augment(nb::module_& module) {
  module.def("operations", &operations);
  module.def("draw_program", &draw);
  module.def("apply_operations", &apply);
}

}  // namespace shard::python
