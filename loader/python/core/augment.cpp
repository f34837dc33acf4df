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

#include "options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/geometry.hpp"

namespace shard::python {

namespace {

// Sets the parameters of an operation from a dict, each once; others are refused.
class Parameters {
 public:
  // where: named in errors.
  Parameters(std::string where, const nb::dict& given) : where_(std::move(where)), given_(given) {}

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", where_, message));
  }

  template <class T>
  void operator()(std::string_view name, T& member, const ops::Limits&) {
    const nb::str key(name.data(), name.size());
    known_[key] = true;
    if (given_.contains(key)) set(name, member, given_[key]);
  }
  void end() const {
    for (const auto& [key, value] : given_)
      if (!known_.contains(key)) refuse(fmt::format("there is no parameter {}", nb::str(key).c_str()));
  }

 private:
  template <class T>
  T cast(std::string_view name, const nb::handle& value, const char* expected) const {
    try {
      return nb::cast<T>(value);
    } catch (const nb::cast_error&) {
      refuse(fmt::format("{} is {}; expected {}", name, nb::repr(value).c_str(), expected));
    }
  }

  void set(std::string_view name, double& member, const nb::handle& value) const {
    member = cast<double>(name, value, "a number");
  }
  void set(std::string_view name, std::uint32_t& member, const nb::handle& value) const {
    member = cast<std::uint32_t>(name, value, "a whole number from 0 on");
  }
  void set(std::string_view name, bool& member, const nb::handle& value) const {
    member = cast<bool>(name, value, "True or False");
  }
  void set(std::string_view name, Range& member, const nb::handle& value) const {
    const auto both = cast<std::array<double, 2>>(name, value, "two numbers");
    member = {both[0], both[1]};
  }
  void set(std::string_view name, std::array<double, 2>& member, const nb::handle& value) const {
    member = cast<std::array<double, 2>>(name, value, "two numbers");
  }
  // A number for all channels, or one for each.
  void set(std::string_view name, std::array<float, 4>& member, const nb::handle& value) const {
    if (!nb::isinstance<nb::sequence>(value)) {
      member.fill(cast<float>(name, value, "a number, or one for each channel"));
      return;
    }
    const auto numbers = cast<std::vector<float>>(name, value, "a number, or one for each channel");
    if (numbers.empty() || numbers.size() > 4)
      refuse(fmt::format("{} has {} numbers; expected one, or one for each of up to 4 channels", name,
                         numbers.size()));
    for (std::size_t i = 0; i < 4; ++i)
      member[i] = numbers.size() == 1 ? numbers[0] : i < numbers.size() ? numbers[i] : 0.0F;
  }
  void set(std::string_view name, std::array<std::uint32_t, 4>& member, const nb::handle& value) const {
    const auto order = cast<std::vector<std::uint32_t>>(name, value, "a list of channels");
    if (order.empty() || order.size() > 4)
      refuse(fmt::format("{} has {} channels; it takes 1 to 4", name, order.size()));
    member = {4, 4, 4, 4};  // no sample has it: an order that is too short
    std::copy(order.begin(), order.end(), member.begin());
  }
  template <class T>
  void set(std::string_view name, std::optional<T>& member, const nb::handle& value) const {
    member.reset();
    if (!value.is_none()) set(name, member.emplace(), value);
  }
  template <class T>
  requires std::is_enum_v<T>
  void set(std::string_view name, T& member, const nb::handle& value) const {
    const auto words = words_of(T{});
    std::string expected;
    for (std::size_t i = 0; i < words.size(); ++i)
      expected += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
    const auto word = cast<std::string>(name, value, expected.c_str());
    const auto at = std::find(words.begin(), words.end(), word);
    if (at == words.end()) refuse(fmt::format("{} is \"{}\"; expected {}", name, word, expected));
    member = static_cast<T>(at - words.begin());
  }

  std::string where_;
  nb::dict given_;
  nb::dict known_;
};

Operation operation_of(const std::string& name, Parameters& parameters) {
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
  void operator()(std::string_view name, const T& member, const ops::Limits& limits) {
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
  DatasetSpec stored;
  stored.spec = pixels(shape);
  view.dtype.reset();
  view.normalization.reset();
  const Geometry geometry =
      draw_geometry(plan_transform(DatasetInfo(stored), view, number), view, seed, epoch, sample, number);
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
    Parameters of(fmt::format("view {}, operation {} ({})", view, operations.size(), name), parameters);
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
