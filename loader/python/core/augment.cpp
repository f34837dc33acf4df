// Augmentation: operations from (name, parameters), programs, and their execution on the host.
#include "augment.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/geometry.hpp"

namespace shard::python {

namespace {

// The parameters of one operation. Each must be asked for once; others are refused.
class Parameters {
 public:
  // where: named in errors.
  Parameters(std::string where, const nb::dict& given) : where_(std::move(where)), given_(given) {}

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", where_, message));
  }

  template <class T>
  T get(const char* key, T otherwise, const char* expected) {
    return maybe<T>(key, expected).value_or(otherwise);
  }
  template <class T>
  std::optional<T> maybe(const char* key, const char* expected) {
    const nb::object value = take(key);
    if (!value.is_valid() || value.is_none()) return std::nullopt;
    return cast<T>(value, key, expected);
  }
  double number(const char* key, double otherwise) { return get<double>(key, otherwise, "a number"); }
  std::uint32_t whole(const char* key, std::uint32_t otherwise) {
    return get<std::uint32_t>(key, otherwise, "a whole number from 0 on");
  }
  bool flag(const char* key, bool otherwise) { return get<bool>(key, otherwise, "True or False"); }
  std::optional<Range> maybe_range(const char* key) {
    const auto both = maybe<std::array<double, 2>>(key, "two numbers");
    return both ? std::optional(Range{(*both)[0], (*both)[1]}) : std::nullopt;
  }
  Range range(const char* key, Range otherwise) { return maybe_range(key).value_or(otherwise); }
  Interpolation interpolation(Interpolation otherwise) {
    const auto word = maybe<std::string>("interpolation", "\"nearest\" or \"bilinear\"");
    if (!word) return otherwise;
    if (*word == "nearest") return Interpolation::nearest;
    if (*word == "bilinear") return Interpolation::bilinear;
    refuse(fmt::format("interpolation is \"{}\"; expected \"nearest\" or \"bilinear\"", *word));
  }
  // A number for all channels, or one for each.
  Fill fill(const char* key, const Fill& otherwise) {
    if (!given_.contains(key)) return otherwise;
    const nb::object value = take(key);
    if (value.is_none()) return std::nullopt;
    std::array<float, 4> values{};
    if (nb::isinstance<nb::sequence>(value)) {
      const auto numbers = cast<std::vector<float>>(value, key, "a number, or one for each channel");
      if (numbers.empty() || numbers.size() > 4)
        refuse(fmt::format("{} has {} numbers; expected one, or one for each of up to 4 channels", key,
                           numbers.size()));
      for (std::size_t i = 0; i < 4; ++i)
        values[i] = numbers.size() == 1 ? numbers[0] : i < numbers.size() ? numbers[i] : 0.0F;
    } else {
      values.fill(cast<float>(value, key, "a number, or one for each channel"));
    }
    return values;
  }
  void end() const {
    for (const auto& [key, value] : given_) {
      const auto word = nb::cast<std::string>(key);
      bool known = false;
      for (const std::string& taken : taken_) known = known || taken == word;
      if (!known) refuse(fmt::format("there is no parameter {}", word));
    }
  }

 private:
  nb::object take(const char* key) {
    taken_.emplace_back(key);
    return given_.contains(key) ? nb::object(given_[key]) : nb::object();
  }
  template <class T>
  T cast(const nb::object& value, const char* key, const char* expected) const {
    try {
      return nb::cast<T>(value);
    } catch (const nb::cast_error&) {
      refuse(fmt::format("{} is {}; expected {}", key, nb::repr(value).c_str(), expected));
    }
  }

  std::string where_;
  nb::dict given_;
  std::vector<std::string> taken_;
};

ops::AutoAugmentPolicy policy_of(Parameters& of) {
  const auto name = of.get<std::string>("policy", "imagenet", "a policy");
  if (name == "imagenet") return ops::AutoAugmentPolicy::imagenet;
  if (name == "cifar10") return ops::AutoAugmentPolicy::cifar10;
  if (name == "svhn") return ops::AutoAugmentPolicy::svhn;
  of.refuse(fmt::format("policy is \"{}\"; expected \"imagenet\", \"cifar10\" or \"svhn\"", name));
}

Operation operation_of(const std::string& name, Parameters& of) {
  const double p = of.number("p", 1);
  if (name == "color_jitter")
    return ops::ColorJitter{of.maybe_range("brightness"),  of.maybe_range("contrast"),
                            of.maybe_range("saturation"),  of.maybe_range("hue"),
                            of.flag("random_order", true), p};
  if (name == "grayscale") return ops::Grayscale{p};
  if (name == "gaussian_blur")
    return ops::GaussianBlur{of.whole("kernel_size", 23), of.range("sigma", {0.1, 2}), p};
  if (name == "solarize") return ops::Solarize{of.number("threshold", 128), p};
  if (name == "posterize") return ops::Posterize{of.whole("bits", 8), p};
  if (name == "equalize") return ops::Equalize{p};
  if (name == "auto_contrast") return ops::AutoContrast{p};
  if (name == "sharpness") return ops::Sharpness{of.range("factor", {2, 2}), p};
  if (name == "invert") return ops::Invert{p};
  if (name == "permute") {
    ops::ChannelPermutation permutation{std::nullopt, p};
    const auto order = of.maybe<std::vector<std::uint32_t>>("order", "a list of channels");
    if (!order) return permutation;
    if (order->empty() || order->size() > 4)
      of.refuse(fmt::format("order has {} channels; it takes 1 to 4", order->size()));
    permutation.order =
        std::array<std::uint32_t, 4>{4, 4, 4, 4};  // no sample has it: an order that is too short
    std::copy(order->begin(), order->end(), permutation.order->begin());
    return permutation;
  }
  if (name == "affine")
    return ops::Affine{of.range("degrees", {}),
                       of.get<std::array<double, 2>>("translate", {}, "two numbers"),
                       of.range("scale", {1, 1}),
                       of.range("shear_x", {}),
                       of.range("shear_y", {}),
                       of.interpolation(Interpolation::nearest),
                       of.fill("fill", std::array<float, 4>{}),
                       p};
  if (name == "rotation")
    return ops::Rotation{of.range("degrees", {}), of.interpolation(Interpolation::nearest),
                         of.fill("fill", std::array<float, 4>{}), p};
  if (name == "perspective")
    return ops::Perspective{of.number("distortion", 0.5), of.interpolation(Interpolation::bilinear),
                            of.fill("fill", std::array<float, 4>{}), p};
  if (name == "erasing")
    return ops::Erasing{of.range("scale", {0.02, 0.33}), of.range("ratio", {0.3, 3.3}),
                        of.fill("value", std::array<float, 4>{}), p};
  if (name == "vertical_flip") return ops::VerticalFlip{p};
  if (name == "turns")
    return ops::QuarterTurns{of.maybe<std::uint32_t>("turns", "a whole number from 0 to 3"), p};
  if (name == "padded_crop") {
    ops::PaddedCrop crop{of.whole("padding", 4), of.flag("reflect", false), {}, p};
    crop.fill = of.fill("fill", std::array<float, 4>{}).value_or(std::array<float, 4>{});
    return crop;
  }
  if (name == "rand_augment")
    return ops::RandAugment{of.whole("count", 2),          of.whole("magnitude", 9),
                            of.whole("bins", 31),          of.interpolation(Interpolation::nearest),
                            of.fill("fill", std::nullopt), p};
  if (name == "trivial_augment")
    return ops::TrivialAugmentWide{of.whole("bins", 31), of.interpolation(Interpolation::nearest),
                                   of.fill("fill", std::nullopt), p};
  if (name == "auto_augment")
    return ops::AutoAugment{policy_of(of), of.interpolation(Interpolation::nearest),
                            of.fill("fill", std::nullopt), p};
  if (name == "aug_mix")
    return ops::AugMix{of.whole("severity", 3),
                       of.whole("width", 3),
                       of.whole("depth", 0),
                       of.number("alpha", 1),
                       of.flag("all_operations", true),
                       of.interpolation(Interpolation::bilinear),
                       of.fill("fill", std::nullopt),
                       p};
  if (name == "three_augment") return ops::ThreeAugment{p};
  of.refuse("there is no operation of this name");
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
    of.end();
  }
  return operations;
}

void bind_augment(nb::module_& module) {
  module.def("draw_program", &draw);
  module.def("apply_operations", &apply);
}

}  // namespace shard::python
