// What operations refuse, and the names of instructions.
#include <fmt/format.h>

#include <algorithm>

#include "shard/error.hpp"
#include "shard/loader/augment.hpp"

namespace shard {

namespace {

// Visits the parameters of an operation.
class OperationCheck {
 public:
  OperationCheck(const SampleSpec& pixels, std::uint32_t view, std::size_t number, std::string_view name)
      : pixels_(pixels), where_(fmt::format("view {}, operation {} ({})", view, number, name)) {}

  void channels(ops::Channels wanted) const {
    const std::uint32_t count = pixels_.channels;
    if (wanted == ops::Channels::one_or_three && count != 1 && count != 3)
      refuse(fmt::format("the samples have {} channels; it is defined for 1 or 3", count));
    const std::uint32_t most = wanted == ops::Channels::up_to_4 ? 4 : 64;
    if ((wanted == ops::Channels::up_to_4 || wanted == ops::Channels::up_to_64) && count > most)
      refuse(fmt::format("the samples have {} channels; it takes 1 to {}", count, most));
  }

  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value, const Limits& limits) const {
    if (value) (*this)(name, *value, limits);
  }
  template <class T, std::size_t N>
  void operator()(std::string_view name, const std::array<T, N>& values, const Limits& limits) const {
    for (const T& value : values) (*this)(name, value, limits);
  }
  template <class T>
  void operator()(std::string_view name, const T& value, const Limits& limits) const {
    if (const std::string wrong = violation(name, value, limits); !wrong.empty()) refuse(wrong);
  }

  // What bounds of single parameters do not say.
  void further(const auto&) const {}
  void further(const ops::GaussianBlur& blur) const {
    smaller_than_sample("half of kernel_size", blur.kernel_size / 2);
  }
  void further(const ops::Permute& permutation) const {
    if (!permutation.order) return;
    std::array<bool, 4> there{};
    for (std::uint32_t c = 0; c < pixels_.channels; ++c) {
      const std::uint32_t from = (*permutation.order)[c];
      if (from >= pixels_.channels || there[from])
        refuse(fmt::format("order has channel {} at {}; it must have each of 0 to {} once", from, c,
                           pixels_.channels - 1));
      there[from] = true;
    }
  }
  void further(const ops::Turns& turns) const {
    if (turns.turns && *turns.turns % 2 == 0) return;
    if (pixels_.is_free())
      refuse(
          "a quarter turn of a sample that is not square has another shape, and padded samples and patches "
          "have sizes of their own; use turns 2");
    if (pixels_.height != pixels_.width)
      refuse(
          fmt::format("a quarter turn of {} x {} (rows x columns) has another shape; the sample must be as "
                      "high as wide, or turns 2",
                      pixels_.height, pixels_.width));
  }
  void further(const ops::PaddedCrop& crop) const {
    if (crop.reflect) smaller_than_sample("padding", crop.padding);
  }
  void further(const ops::RandAugment& policy) const {
    (*this)("magnitude", policy.magnitude, {.low = 0, .high = policy.bins - 1.0});
  }
  void further(const ops::ChannelDropout& dropout) const {
    if (dropout.count >= pixels_.channels)
      refuse(fmt::format("count is {}; it must be less than the channels of the samples, which are {}",
                         dropout.count, pixels_.channels));
  }
  void further(const ops::ThreeAugment&) const { smaller_than_sample("half of the blur's kernel_size", 6); }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::invalid_argument, where_ + ": " + message);
  }
  // Samples of any size may be smaller: mirrored() goes back and forth.
  void smaller_than_sample(std::string_view name, std::uint32_t value) const {
    if (!pixels_.is_free() && value >= std::min(pixels_.height, pixels_.width))
      refuse(fmt::format("{} is {}; it must be less than rows and columns, which are {} x {}", name, value,
                         pixels_.height, pixels_.width));
  }

  const SampleSpec& pixels_;
  std::string where_;
};

}  // namespace

std::string_view to_string(Opcode opcode) noexcept { return kOpcodeNames[static_cast<std::size_t>(opcode)]; }

void check_operations(const SampleSpec& pixels, const std::vector<Operation>& operations,
                      std::uint32_t view) {
  if (!operations.empty() && pixels.dtype != DType::u8)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("view {}, operation 0 ({}): operations are defined for samples stored as u8 or "
                            "with codec packed, not as {} "
                            "values: convert the images with dtype u8 or codec packed",
                            view, name_of(operations[0]), to_string(pixels.dtype)));
  if (!operations.empty() && !pixels.is_free() && pixels.elements() >= std::uint64_t{1} << 31U)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("view {}: operations take samples of fewer than 2^31 values, not of {}", view,
                            pixels.elements()));
  if (operations.size() > 32)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("view {}: {} operations; at most 32", view, operations.size()));
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationCheck check(pixels, view, i, name_of(operations[i]));
    check.channels(description_of(operations[i]).channels);
    std::visit(
        [&](const auto& operation) {
          ops::visit_members(operation, check);
          check.further(operation);
        },
        operations[i]);
  }
}

}  // namespace shard
