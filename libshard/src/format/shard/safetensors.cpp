#include "shard/safetensors.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/text/json.hpp"
#include "shard/error.hpp"

namespace shard {

const TensorInfo* SafetensorsHeader::find(std::string_view name) const noexcept {
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::uint64_t safetensors_header_end(std::span<const std::byte> first8, std::uint64_t file_size_bytes) {
  if (first8.size() < 8 || file_size_bytes < 8) {
    throw Error(ErrorCode::corrupt,
                fmt::format("the file has {} bytes: a safetensors file starts with 8 bytes of header length",
                            file_size_bytes));
  }
  const std::uint64_t length = load_u64(first8);
  if (length > kMaxSafetensorsHeaderBytes) {
    throw Error(
        ErrorCode::corrupt,
        fmt::format(
            "the header length is {}: safetensors allows at most {} (is it a safetensors file? To open "
            "a data set give its folder, and to read images theirs)",
            length, kMaxSafetensorsHeaderBytes));
  }
  if (length > file_size_bytes - 8) {
    throw Error(ErrorCode::corrupt, fmt::format("the header length is {}, but the file has only {} bytes: it "
                                                "was cut, or is not a safetensors file",
                                                length, file_size_bytes));
  }
  return 8 + length;
}

std::string serialize_safetensors_header(const SafetensorsHeader& header) {
  std::string text(8, '\0');
  text += "{\"__metadata__\":{";
  bool first = true;
  for (const auto& [key, value] : header.metadata) {
    if (!first) text += ',';
    first = false;
    text += json_quote(key) + ':' + json_quote(value);
  }
  text += '}';
  std::uint64_t expected_begin = 0;
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.begin != expected_begin || tensor.end < tensor.begin) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("tensor \"{}\" takes bytes {} to {}: it must start at {}", tensor.name,
                              tensor.begin, tensor.end, expected_begin));
    }
    expected_begin = tensor.end;
    text += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json_quote(tensor.name), tensor.dtype_name(), fmt::join(tensor.shape, ","),
                        tensor.begin, tensor.end);
  }
  text += '}';
  text.resize(static_cast<std::size_t>(round_up(text.size(), 8)), ' ');
  if (text.size() - 8 > kMaxSafetensorsHeaderBytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a header of {} bytes: safetensors allows at most {}", text.size() - 8,
                            kMaxSafetensorsHeaderBytes));
  }
  std::uint64_t length = text.size() - 8;
  for (std::size_t i = 0; i < 8; ++i, length >>= 8) text[i] = static_cast<char>(length & 0xff);
  return text;
}

}  // namespace shard
