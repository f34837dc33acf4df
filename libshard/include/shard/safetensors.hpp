// The safetensors container: parses and checks a header, as a pure function of bytes.
//
//   [u64 little-endian: header length][JSON header, may end in spaces][data: tensors, contiguous]
//
// These rules are checked (https://github.com/huggingface/safetensors, "Format"):
// - the header length is at most 100,000,000 and inside the file;
// - the header is one JSON object that starts with '{', with unique names and known dtypes;
// - shape x dtype = bytes, without overflow;
// - the tensors' ranges start at 0, are contiguous, and end at the end of the file;
// - elements of less than a byte (F4, F6_*) fill whole bytes together;
// - __metadata__ maps strings to strings.
// No allocation exceeds what the size of the file can justify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/dtype.hpp"
#include "shard/error.hpp"

namespace shard {

inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct TensorInfo {
  std::string name;
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;
  // Half-open byte range, relative to the start of the data.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  // The name of a dtype that safetensors knows but this library does not handle ("F8_E4M3", "F4", "C64",
  // ...); `dtype` is then meaningless. Empty otherwise. Points to static memory.
  std::string_view foreign_dtype{};
  std::uint64_t size_bytes() const noexcept { return end - begin; }
  // As safetensors spells it.
  std::string_view dtype_name() const noexcept {
    return foreign_dtype.empty() ? safetensors_name(dtype) : foreign_dtype;
  }
};

struct SafetensorsHeader {
  // Offset of the data in the file: 8 + header length.
  std::uint64_t data_begin = 0;
  // In the order of their ranges.
  std::vector<TensorInfo> tensors;
  // __metadata__
  std::map<std::string, std::string> metadata;
  const TensorInfo* find(std::string_view name) const noexcept;
};

// The file offset at which the header ends, from the first 8 bytes. Throws corrupt if it exceeds the cap or
// the file.
std::uint64_t safetensors_header_end(std::span<const std::byte> first8, std::uint64_t file_size_bytes);

// `head` holds at least the first safetensors_header_end() bytes of a file of file_size_bytes. Errors:
// corrupt, naming the tensor and the rule. Thread safe (pure).
SafetensorsHeader parse_safetensors(std::span<const std::byte> head, std::uint64_t file_size_bytes);

// The 8-byte length and the JSON, padded with spaces to a multiple of 8. Tensors must be contiguous from 0,
// in order.
std::string serialize_safetensors_header(const SafetensorsHeader& header);

}  // namespace shard
