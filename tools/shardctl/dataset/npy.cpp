#include "shardctl/dataset/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "shard/dtype.hpp"

namespace shard::ctl {

std::string npy_header(std::string_view dtype, const std::vector<std::uint64_t>& shape) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", dtype,
                                       fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  dictionary.append(63 - (10 + dictionary.size()) % 64, ' ');
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xFFU);
  header += static_cast<char>(dictionary.size() >> 8U);
  return header + dictionary;
}

void widen_bf16(std::span<const std::byte> bf16, std::span<std::byte> f32) {
  for (std::size_t i = 0; i < bf16.size() / 2; ++i) {
    f32[i * 4] = f32[i * 4 + 1] = std::byte{0};
    f32[i * 4 + 2] = bf16[i * 2];
    f32[i * 4 + 3] = bf16[i * 2 + 1];
  }
}

std::vector<std::byte> npy_sample(const SampleSpec& spec, std::span<const std::byte> sample) {
  const bool widen = spec.dtype == DType::bf16;
  std::vector<std::uint64_t> shape;
  for (const std::uint32_t axis : spec.shape()) shape.push_back(axis);
  const std::string header = npy_header(npy_name(widen ? DType::f32 : spec.dtype), shape);
  const std::span<const std::byte> begin = std::as_bytes(std::span(header));
  std::vector<std::byte> file(begin.begin(), begin.end());
  file.resize(header.size() + sample.size() * (widen ? 2 : 1));
  const std::span<std::byte> values = std::span(file).subspan(header.size());
  if (widen)
    widen_bf16(sample, values);
  else
    std::copy(sample.begin(), sample.end(), values.begin());
  return file;
}

}  // namespace shard::ctl
