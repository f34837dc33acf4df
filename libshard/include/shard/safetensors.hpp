// The safetensors container: parse and check a header, as a pure function of bytes.
//
//   [u64 little-endian: header length][JSON header, may end in spaces][data: tensors, contiguous]
//
// Rules checked (https://github.com/huggingface/safetensors, "Format"): header length at most 100,000,000 and
// inside the file; the header is one JSON object that begins with '{'; names unique; known dtypes; shape x
// dtype = bytes without overflow; the tensors' ranges start at 0, are disjoint, without holes, and end at the
// end of the file; elements of less than a byte (F4, F6_*) fill whole bytes together; __metadata__ maps
// strings to strings. No allocation exceeds what the bytes present can justify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/dtype.hpp"

namespace shard {

inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct TensorInfo {
  std::string name;
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // half-open byte range, relative to the start of the data
  std::uint64_t end = 0;
  // Of a dtype that safetensors knows and this library does not handle ("F8_E4M3", "F4", "C64", ...): its
  // name, and `dtype` means nothing. Empty otherwise. Points to memory that stays.
  std::string_view foreign_dtype{};
  std::uint64_t size_bytes() const noexcept { return end - begin; }
  // As safetensors spells it.
  std::string_view dtype_name() const noexcept {
    return foreign_dtype.empty() ? safetensors_name(dtype) : foreign_dtype;
  }
};

struct SafetensorsHeader {
  std::uint64_t data_begin = 0;                 // offset of the data in the file: 8 + header length
  std::vector<TensorInfo> tensors;              // in the order of their ranges
  std::map<std::string, std::string> metadata;  // __metadata__
  const TensorInfo* find(std::string_view name) const noexcept;
};

// The file offset at which the header ends, from the first 8 bytes; throws corrupt when it breaks the cap or
// the file.
std::uint64_t safetensors_header_end(std::span<const std::byte> first8, std::uint64_t file_size_bytes);

// `head` holds at least the first safetensors_header_end() bytes of a file of file_size_bytes. Errors:
// corrupt, naming the tensor and the rule. Thread safe (pure).
SafetensorsHeader parse_safetensors(std::span<const std::byte> head, std::uint64_t file_size_bytes);

// The 8-byte length and the JSON, padded with spaces to a multiple of 8. Tensors must be contiguous from 0,
// in order.
std::string serialize_safetensors_header(const SafetensorsHeader& header);

}  // namespace shard
