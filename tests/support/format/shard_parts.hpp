// A shard taken apart into its tensors, to be changed and put together again with a digest that is right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "format/shard/shard_profile.hpp"

namespace shard::testing {

// A shard taken apart, changed, and put together again.
struct Parts {
  SafetensorsHeader header;
  std::map<std::string, std::vector<std::byte>> data;

  TensorInfo& tensor(const std::string& name) {
    for (TensorInfo& tensor : header.tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::runtime_error("no tensor " + name);
  }
  void erase(const std::string& name) {
    std::erase_if(header.tensors, [&](const TensorInfo& tensor) { return tensor.name == name; });
  }
  void insert_early(const std::string& name, DType dtype, std::vector<std::uint64_t> shape,
                    std::size_t size) {
    const auto keys = std::find_if(header.tensors.begin(), header.tensors.end(),
                                   [](const TensorInfo& tensor) { return tensor.name == "keys"; });
    header.tensors.insert(keys, {name, dtype, std::move(shape), 0, 0});
    data[name].assign(size, std::byte{1});
  }
  // Before `keys`, where there are no further image fields.
  void insert(const std::string& name, DType dtype, std::vector<std::uint64_t> shape, std::size_t size) {
    header.tensors.insert(header.tensors.end() - 2, {name, dtype, std::move(shape), 0, 0});
    data[name].assign(size, std::byte{1});
  }
};

inline Parts take_apart(std::span<const std::byte> file) {
  Parts parts;
  parts.header = parse_safetensors(file, file.size());
  for (const TensorInfo& tensor : parts.header.tensors) {
    const auto bytes = file.subspan(static_cast<std::size_t>(parts.header.data_begin + tensor.begin),
                                    static_cast<std::size_t>(tensor.size_bytes()));
    parts.data[tensor.name].assign(bytes.begin(), bytes.end());
  }
  return parts;
}

inline std::vector<std::byte> put_together(Parts parts, std::size_t align_images = 4096) {
  std::string head;
  for (int round = 0; round < 3; ++round) {  // the padding of keys settles
    std::uint64_t end = 0;
    for (TensorInfo& tensor : parts.header.tensors) {
      if (tensor.name == "keys" && tensor.shape.size() == 1 && align_images != 0) {
        parts.data["keys"].resize(round_up(head.size() + end + 200, align_images) - head.size() - end);
        tensor.shape = {parts.data["keys"].size()};
      }
      tensor.begin = end;
      tensor.end = end += parts.data[tensor.name].size();
    }
    head = serialize_safetensors_header(parts.header);
  }
  std::vector<std::byte> file(as_byte_span(head).begin(), as_byte_span(head).end());
  for (const TensorInfo& tensor : parts.header.tensors)
    file.insert(file.end(), parts.data[tensor.name].begin(), parts.data[tensor.name].end());
  std::size_t head_end = file.size() - parts.data[parts.header.tensors.back().name].size();
  for (const auto& [key, value] : parts.header.metadata)  // the images of further fields come first
    if ((value == "mask" || value == "image") && parts.header.find("keys") != nullptr)
      head_end = head.size() + static_cast<std::size_t>(parts.header.find("keys")->end);
  if (const auto digits_at = find_digest_digits(std::string_view(head).substr(8))) {
    const std::string digits = to_hex(digest_head(std::span(file).first(head_end), 8 + *digits_at));
    std::copy(as_byte_span(digits).begin(), as_byte_span(digits).end(),
              file.begin() + static_cast<std::ptrdiff_t>(8 + *digits_at));
  }
  return file;
}

}  // namespace shard::testing
