#include "shard/dtype.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace shard {
namespace {

struct DTypeRow {
  std::size_t size_bytes;
  std::string_view safetensors;
  std::string_view option;
  std::string_view long_name;
  std::string_view npy;
};

// In the order of DType.
constexpr std::array<DTypeRow, 13> kDTypes{{
    {1, "BOOL", "bool", "bool", "|b1"},
    {1, "U8", "u8", "uint8", "|u1"},
    {1, "I8", "i8", "int8", "|i1"},
    {2, "U16", "u16", "uint16", "<u2"},
    {2, "I16", "i16", "int16", "<i2"},
    {2, "F16", "f16", "float16", "<f2"},
    {2, "BF16", "bf16", "bfloat16", "<u2"},
    {4, "U32", "u32", "uint32", "<u4"},
    {4, "I32", "i32", "int32", "<i4"},
    {4, "F32", "f32", "float32", "<f4"},
    {8, "U64", "u64", "uint64", "<u8"},
    {8, "I64", "i64", "int64", "<i8"},
    {8, "F64", "f64", "float64", "<f8"},
}};

const DTypeRow& row(DType dtype) noexcept { return kDTypes[static_cast<std::size_t>(dtype)]; }

template <class Fits>
std::optional<DType> dtype_where(const Fits& fits) noexcept {
  const auto found = std::find_if(kDTypes.begin(), kDTypes.end(), fits);
  if (found == kDTypes.end()) return std::nullopt;
  return static_cast<DType>(found - kDTypes.begin());
}

}  // namespace

std::size_t size_bytes(DType dtype) noexcept { return row(dtype).size_bytes; }
std::string_view safetensors_name(DType dtype) noexcept { return row(dtype).safetensors; }
std::string_view to_string(DType dtype) noexcept { return row(dtype).option; }

std::string_view long_name(DType dtype) noexcept { return row(dtype).long_name; }
std::string_view npy_name(DType dtype) noexcept { return row(dtype).npy; }

std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept {
  return dtype_where([&](const DTypeRow& row) { return row.safetensors == name; });
}

std::optional<DType> dtype_from_string(std::string_view name) noexcept {
  return dtype_where([&](const DTypeRow& row) { return row.option == name; });
}

std::optional<DType> dtype_from_option(std::string_view name) noexcept {
  return dtype_where([&](const DTypeRow& row) { return row.option == name || row.long_name == name; });
}

std::string_view to_string(Layout layout) noexcept {
  return layout == Layout::nchw ? "nchw" : layout == Layout::nhwc ? "nhwc" : "tensor";
}

std::optional<Layout> layout_from_string(std::string_view name) noexcept {
  if (name == "nchw") return Layout::nchw;
  if (name == "nhwc") return Layout::nhwc;
  if (name == "tensor") return Layout::tensor;
  return std::nullopt;
}

// binary32: sign 1, exponent 8 (bias 127), fraction 23. binary16: sign 1, exponent 5 (bias 15), fraction 10.
std::uint16_t f32_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN: quiet, keeps the upper payload
    return static_cast<std::uint16_t>(sign | 0x7e00U | (magnitude >> 13 & 0x3ffU));
  }
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds to 65536 or more
  std::uint32_t fraction = magnitude;
  std::uint32_t shift = 13;
  if (magnitude < 0x38800000U) {               // below 2^-14: subnormal
    if (magnitude < 0x33000000U) return sign;  // below 2^-25: zero
    shift = 126 - (magnitude >> 23);           // 14 to 24: the unit is 2^-24
    fraction = (magnitude & 0x7fffffU) | 0x800000U;
  } else {
    fraction -= 0x38000000U;  // exponent bias 127 -> 15
  }
  const std::uint32_t kept = fraction >> shift;
  const std::uint32_t rest = fraction & ((1U << shift) - 1U);
  const std::uint32_t half = 1U << (shift - 1U);
  const std::uint32_t up = (rest > half || (rest == half && (kept & 1U) != 0U)) ? 1U : 0U;
  return static_cast<std::uint16_t>(sign | (kept + up));  // a carry goes into the exponent, as it must
}

float f16_to_f32(std::uint16_t bits) noexcept {
  const std::uint32_t sign = std::uint32_t{bits} << 16 & 0x80000000U;
  const std::uint32_t exponent = bits >> 10 & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t widened = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);  // quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

float bf16_to_f32(std::uint16_t bits) noexcept { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

}  // namespace shard
