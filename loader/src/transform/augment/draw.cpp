// The program of one sample, drawn from (seed, epoch, sample, view, operation).
#include <algorithm>
#include <cmath>
#include <limits>

#include "shard/loader/transform.hpp"
#include "transform/augment/geometry.hpp"
#include "transform/augment/operation_draws.hpp"
#include "transform/augment/policies.hpp"
#include "transform/augment/scratch.hpp"

namespace shard {

namespace augment {

namespace {

using Program = std::vector<Instruction>;

Instruction blended(Opcode opcode, float factor) {
  return {opcode, {}, {factor, static_cast<float>(1.0 - double{factor})}};
}

void draw(const ops::ColorJitter& jitter, const SampleSpec& pixels, OperationDraws& draws, Program& program) {
  const std::array<std::uint32_t, 4> order =
      jitter.random_order ? draws.order<4>() : std::array<std::uint32_t, 4>{0, 1, 2, 3};
  std::array<float, 4> values{};
  const std::array<const std::optional<Range>*, 4> parts{&jitter.brightness, &jitter.contrast,
                                                         &jitter.saturation, &jitter.hue};
  for (std::size_t i = 0; i < 4; ++i)
    if (*parts[i]) values[i] = draws.real_in(**parts[i]);
  for (const std::uint32_t part : order) {
    if (!*parts[part] || (part >= 2 && pixels.channels != 3)) continue;
    const float value = values[part];
    if (part == 3)
      program.push_back({Opcode::hue, {}, {value}});
    else if (value != 1.0F && part == 0)
      program.push_back({Opcode::brightness, {}, {value}});
    else if (value != 1.0F)
      program.push_back(blended(part == 1 ? Opcode::contrast : Opcode::saturation, value));
  }
}

void draw(const ops::Grayscale&, const SampleSpec& pixels, OperationDraws&, Program& program) {
  if (pixels.channels == 3) program.push_back({Opcode::grayscale});
}

// torchvision's _get_gaussian_kernel1d.
Instruction blur(std::uint32_t kernel_size, double sigma) {
  Instruction instruction{Opcode::blur, {static_cast<std::int32_t>(kernel_size)}};
  const std::uint32_t radius = kernel_size / 2;
  std::array<double, 16> heights{};
  double sum = 0;
  for (std::uint32_t d = 0; d <= radius; ++d) {
    heights[d] = std::exp(-0.5 * (d / sigma) * (d / sigma));
    sum += d == 0 ? heights[d] : 2 * heights[d];
  }
  for (std::uint32_t d = 0; d <= radius; ++d) instruction.real[d] = static_cast<float>(heights[d] / sum);
  return instruction;
}

void draw(const ops::GaussianBlur& operation, const SampleSpec&, OperationDraws& draws, Program& program) {
  program.push_back(blur(operation.kernel_size, draws.in(operation.sigma)));
}
void draw(const ops::Solarize& operation, const SampleSpec&, OperationDraws&, Program& program) {
  program.push_back({Opcode::solarize, {}, {static_cast<float>(operation.threshold)}});
}
void draw(const ops::Posterize& operation, const SampleSpec&, OperationDraws&, Program& program) {
  if (operation.bits >= 8) return;
  program.push_back(
      {Opcode::posterize, {static_cast<std::int32_t>(((1U << operation.bits) - 1) << (8 - operation.bits))}});
}
void draw(const ops::Equalize&, const SampleSpec&, OperationDraws&, Program& program) {
  program.push_back({Opcode::equalize});
}
void draw(const ops::AutoContrast&, const SampleSpec&, OperationDraws&, Program& program) {
  program.push_back({Opcode::autocontrast});
}
void draw(const ops::Sharpness& operation, const SampleSpec&, OperationDraws& draws, Program& program) {
  const float factor = draws.real_in(operation.factor);
  if (factor != 1.0F) program.push_back({Opcode::sharpness, {}, {static_cast<float>(1.0 - double{factor})}});
}
void draw(const ops::Invert&, const SampleSpec&, OperationDraws&, Program& program) {
  program.push_back({Opcode::invert});
}

void draw(const ops::Permute& operation, const SampleSpec& pixels, OperationDraws& draws, Program& program) {
  std::array<std::uint32_t, 4> order{0, 1, 2, 3};
  for (std::uint32_t i = pixels.channels; i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
  if (operation.order) order = *operation.order;
  Instruction instruction{Opcode::permute};
  std::copy(order.begin(), order.end(), instruction.whole.begin());
  program.push_back(instruction);
}

void draw(const ops::ChannelDropout& operation, const SampleSpec& pixels, OperationDraws& draws,
          Program& program) {
  // Floyd's sample of `count` out of all channels.
  std::uint64_t dropped = 0;
  for (std::uint32_t last = pixels.channels - operation.count; last < pixels.channels; ++last) {
    const std::uint32_t drawn = draws.below(last + 1);
    dropped |= std::uint64_t{1} << ((dropped >> drawn & 1U) != 0 ? last : drawn);
  }
  Instruction instruction{
      Opcode::drop_channels,
      {static_cast<std::int32_t>(dropped & 0xFFFFFFFFU), static_cast<std::int32_t>(dropped >> 32U)}};
  std::copy(operation.fill.begin(), operation.fill.end(), instruction.real.begin());
  program.push_back(instruction);
}

void draw(const ops::Affine& operation, const SampleSpec& pixels, OperationDraws& draws, Program& program) {
  AffineParameters parameters;
  parameters.degrees = draws.in(operation.degrees);
  for (std::size_t i = 0; i < 2; ++i) {
    const double most = operation.translate[i] * (i == 0 ? pixels.width : pixels.height);
    parameters.translate[i] = round_even(draws.in({-most, most}));
  }
  parameters.scale = draws.in(operation.scale);
  parameters.shear = {draws.in(operation.shear_x), draws.in(operation.shear_y)};
  program.push_back(
      affine_instruction(pixels, inverse_affine_matrix(parameters), operation.interpolation, operation.fill));
}

void draw(const ops::Rotation& operation, const SampleSpec& pixels, OperationDraws& draws, Program& program) {
  append_rotation(pixels, draws.in(operation.degrees), operation.interpolation, operation.fill, program);
}

void draw(const ops::Perspective& operation, const SampleSpec& pixels, OperationDraws& draws,
          Program& program) {
  const std::uint32_t half_height = pixels.height / 2;  // whole pixels, as in torchvision
  const std::uint32_t half_width = pixels.width / 2;
  const std::uint32_t rows = static_cast<std::uint32_t>(operation.distortion * half_height) + 1;
  const std::uint32_t columns = static_cast<std::uint32_t>(operation.distortion * half_width) + 1;
  const double right = pixels.width - 1.0;
  const double bottom = pixels.height - 1.0;
  Corners ends{};
  for (std::size_t i = 0; i < 4; ++i) {  // from top left clockwise
    const double x = draws.below(columns);
    const double y = draws.below(rows);
    ends[i] = {i == 1 || i == 2 ? pixels.width - columns + x : x, i >= 2 ? pixels.height - rows + y : y};
  }
  const Corners starts{{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
  std::array<double, 8> coefficients{};
  if (ends == starts || !perspective_coefficients(starts, ends, coefficients)) return;
  program.push_back(perspective_instruction(pixels, coefficients, operation.interpolation, operation.fill));
}

void draw(const ops::Erasing& operation, const SampleSpec& pixels, OperationDraws& draws, Program& program) {
  const double area = static_cast<double>(pixels.height) * pixels.width;
  const Range log_ratio{std::log(operation.ratio.low), std::log(operation.ratio.high)};
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double erased = area * draws.in(operation.scale);
    const double ratio = std::exp(draws.in(log_ratio));
    const double height = round_even(std::sqrt(erased * ratio));
    const double width = round_even(std::sqrt(erased / ratio));
    if (!(height < pixels.height && width < pixels.width)) continue;
    const auto h = static_cast<std::uint32_t>(height);
    const auto w = static_cast<std::uint32_t>(width);
    Instruction instruction{operation.value ? Opcode::erase : Opcode::erase_noise};
    instruction.whole = {static_cast<std::int32_t>(draws.below(pixels.height - h + 1)),
                         static_cast<std::int32_t>(draws.below(pixels.width - w + 1)),
                         static_cast<std::int32_t>(h), static_cast<std::int32_t>(w)};
    if (operation.value) {
      std::copy(operation.value->begin(), operation.value->end(), instruction.real.begin());
    } else {
      for (std::size_t i = 4; i < 6; ++i)
        instruction.whole[i] =
            static_cast<std::int32_t>(draws.below(std::numeric_limits<std::uint32_t>::max()));
    }
    if (h > 0 && w > 0) program.push_back(instruction);
    return;
  }
}

void draw(const ops::VerticalFlip&, const SampleSpec&, OperationDraws&, Program& program) {
  program.push_back({Opcode::flip_rows});
}
void draw(const ops::Turns& operation, const SampleSpec&, OperationDraws& draws, Program& program) {
  const std::uint32_t turns = operation.turns.value_or(draws.below(4));
  if (turns != 0) program.push_back({Opcode::quarter_turns, {static_cast<std::int32_t>(turns)}});
}
void draw(const ops::PaddedCrop& operation, const SampleSpec&, OperationDraws& draws, Program& program) {
  const auto padding = static_cast<std::int32_t>(operation.padding);
  const std::int32_t down = padding - static_cast<std::int32_t>(draws.below(2 * operation.padding + 1));
  const std::int32_t right = padding - static_cast<std::int32_t>(draws.below(2 * operation.padding + 1));
  if (down == 0 && right == 0) return;
  Instruction instruction{Opcode::shift, {down, right, operation.reflect ? 1 : 0}};
  std::copy(operation.fill.begin(), operation.fill.end(), instruction.real.begin());
  program.push_back(instruction);
}

void draw(const ops::ThreeAugment&, const SampleSpec& pixels, OperationDraws& draws, Program& program) {
  switch (draws.below(3)) {
    case 0:
      return draw(ops::Grayscale{}, pixels, draws, program);
    case 1:
      return draw(ops::Solarize{}, pixels, draws, program);
    default:
      return draw(ops::GaussianBlur{13, {0.1, 2.0}}, pixels, draws, program);
  }
}

void draw_any(const Operation& operation, const SampleSpec& pixels, OperationDraws& draws, Program& program) {
  std::visit(
      [&](const auto& one) {
        if (draws.chance(one.p)) draw(one, pixels, draws, program);
      },
      operation);
}

}  // namespace

}  // namespace augment

void draw_program(const SampleSpec& pixels, const std::vector<Operation>& operations, std::uint64_t seed,
                  std::uint64_t epoch, std::uint64_t sample, std::uint32_t view,
                  std::vector<Instruction>& program) {
  std::array<std::uint32_t, std::variant_size_v<Operation>> seen{};
  for (const Operation& operation : operations) {
    const auto kind = static_cast<std::uint32_t>(operation.index());
    augment::OperationDraws draws(augment::derived_seed(seed, view, kind, seen[kind]++), epoch, sample);
    augment::draw_any(operation, pixels, draws, program);
  }
}

std::uint64_t augment_scratch_bytes(const SampleSpec& delivered, std::uint64_t samples,
                                    bool with_mix) noexcept {
  return augment::ScratchShape(delivered, samples, with_mix).size_bytes;
}

bool mixes(const std::vector<Operation>& operations) noexcept {
  return std::any_of(operations.begin(), operations.end(), [](const Operation& operation) {
    return std::holds_alternative<ops::AugMix>(operation);
  });
}

}  // namespace shard
