// Any bytes as a shard file: opened, verified and read whole; as they are, and with a head digest that is
// right.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"
#include "shard/shard_reader.hpp"
#include "support/memory_file.hpp"

namespace {

using namespace shard;

constexpr std::uint64_t kMaxSampleBytes = std::uint64_t{64} << 20;

template <class Action>
void tolerate_corrupt(Action action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) std::abort();
  }
}

// Samples of further image fields; false if one is too large to be tried.
bool read_fields(const ShardReader& reader, std::uint64_t sample, std::uint64_t& sum) {
  const std::vector<FieldSpec>& fields = reader.header().fields;
  std::vector<std::byte> out;
  bool all = true;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    for (std::byte b : reader.images(f).frame(sample)) sum += std::to_integer<unsigned>(b);
    sum += reader.images(f).checksum(sample);
    const std::uint64_t sample_bytes = reader.images(f).spec_of(sample).size_bytes();
    all = all && sample_bytes <= kMaxSampleBytes;
    if (!all) continue;
    out.resize(static_cast<std::size_t>(sample_bytes));
    tolerate_corrupt([&] { reader.images(f).read(sample, out); });
  }
  return all;
}

void read_all(const ShardReader& reader) {
  tolerate_corrupt([&] { reader.verify_head(); });
  std::vector<std::byte> scratch;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(reader.size(), 64); ++i) {
    const std::uint64_t sample_bytes = reader.images().spec_of(i).size_bytes();
    sum += reader.key(i).size() + reader.images().checksum(i);
    for (std::byte b : reader.images().frame(i)) sum += std::to_integer<unsigned>(b);
    if (!read_fields(reader, i, sum) || sample_bytes > kMaxSampleBytes) continue;
    tolerate_corrupt([&] { reader.verify_sample(i, scratch); });
    scratch.resize(static_cast<std::size_t>(sample_bytes));
    tolerate_corrupt([&] { reader.images().read(i, scratch); });
  }
  for (const auto& entry : reader.columns()) {
    const Column& column = entry.second;  // clang 14 captures no structured binding
    const bool fixed = column.kind == ColumnKind::fixed;
    if (fixed && column.bytes.size() != reader.size() * column.row_bytes) std::abort();
    std::uint64_t rows = 0;
    for (std::uint64_t i = 0; i < reader.size(); ++i) {
      tolerate_corrupt([&] {
        reader.read_column(column, i, scratch);
        rows += scratch.size() / column.row_bytes;
        if (column.kind == ColumnKind::text) sum += reader.text(column, i).size();
      });
    }
    if (!fixed && rows * column.row_bytes != column.bytes.size()) std::abort();
    for (std::byte b : column.bytes) sum += std::to_integer<unsigned>(b);
  }
  volatile std::uint64_t used = sum;
  static_cast<void>(used);
}

void open_and_read(const std::vector<std::byte>& bytes) {
  static testing::MemoryFile file;
  file.assign(bytes);
  tolerate_corrupt([&] { read_all(ShardReader::open(file.path())); });
}

// Makes the head digest right; false when there is no head to speak of.
bool repair(std::vector<std::byte>& bytes) {
  try {
    const ShardHeader header = parse_shard_header(bytes, bytes.size());
    const auto json = as_text(bytes).substr(8, static_cast<std::size_t>(header.container.data_begin) - 8);
    const std::size_t digits_at = 8 + find_digest_digits(json).value();
    const std::string digits =
        to_hex(digest_head(std::span(bytes).first(static_cast<std::size_t>(header.head_end)), digits_at));
    std::copy(as_byte_span(digits).begin(), as_byte_span(digits).end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(digits_at));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  open_and_read(bytes);
  if (repair(bytes)) open_and_read(bytes);
  return 0;
}
