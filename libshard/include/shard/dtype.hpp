// Element types of tensors, as safetensors names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shard {

enum class DType : std::uint8_t { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };

// Bytes of one element: 1, 2, 4 or 8.
std::size_t size_bytes(DType dtype) noexcept;

// f16, bf16, f32 or f64.
constexpr bool is_floating(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

// The safetensors spelling: "BOOL", "U8", ..., "F16", "BF16", "F32", ...
std::string_view safetensors_name(DType dtype) noexcept;
std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept;

// The spelling of options and metadata: "bool", "u8", ..., "f16", "bf16", "f32", ...
std::string_view to_string(DType dtype) noexcept;
std::optional<DType> dtype_from_string(std::string_view name) noexcept;
// The long spelling of numpy and PyTorch: "bool", "uint8", ..., "float16", "bfloat16", "float32", ...
std::string_view long_name(DType dtype) noexcept;
// As users may write it in options: one of the two above. The metadata of files has the short spelling only.
std::optional<DType> dtype_from_option(std::string_view name) noexcept;

// The spelling in .npy files: "<f2"; bfloat16, which numpy does not know, as its bits: "<u2".
std::string_view npy_name(DType dtype) noexcept;

// Order of a sample's axes: nchw = [channel, row, column], nhwc = [row, column, channel]. tensor: one to four
// axes without a meaning, such as latents, waveforms or volumes.
enum class Layout : std::uint8_t { nchw, nhwc, tensor };
std::string_view to_string(Layout layout) noexcept;  // "nchw", "nhwc", "tensor"
std::optional<Layout> layout_from_string(std::string_view name) noexcept;

// IEEE 754 binary16 and bfloat16 bit patterns. The functions round to nearest, ties to even; NaN stays NaN.
std::uint16_t f32_to_f16(float value) noexcept;
float f16_to_f32(std::uint16_t bits) noexcept;
std::uint16_t f32_to_bf16(float value) noexcept;
float bf16_to_f32(std::uint16_t bits) noexcept;

}  // namespace shard
