#include "format/shard/unconverted.hpp"

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "format/shard/shard_reader_impl.hpp"

namespace shard {

namespace {

// Appends to `memory`, at a multiple of 8, and returns where.
std::uint64_t append(std::vector<std::byte>& memory, std::span<const std::byte> bytes) {
  const std::size_t at = static_cast<std::size_t>(round_up(memory.size(), 8));
  memory.resize(at + bytes.size());
  if (!bytes.empty()) std::memcpy(memory.data() + at, bytes.data(), bytes.size());
  return at;
}

std::uint64_t append(std::vector<std::byte>& memory, const std::vector<std::uint64_t>& numbers) {
  return append(memory, std::as_bytes(std::span(numbers)));
}

}  // namespace

ShardReader ShardReader::of_images(const std::filesystem::path& path, UnconvertedShard shard) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->take(std::move(shard));
  return ShardReader(std::move(impl));
}

const UnconvertedSamples* ShardReader::unconverted() const noexcept { return impl_->maker.get(); }

void ShardReader::Impl::take(UnconvertedShard shard) {
  static_cast<DatasetSpec&>(header) = std::move(shard.spec);
  header.samples = shard.samples;
  header.largest = std::move(shard.largest);
  maker = std::move(shard.maker);
  keys_bytes = shard.keys.size();
  keys = append(memory, std::as_bytes(std::span(shard.keys)));
  key_offsets = append(memory, shard.key_offsets);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const UnconvertedShard::Rows& rows : shard.columns) {
    const std::uint64_t at = append(memory, rows.bytes);
    places.emplace_back(at, append(memory, rows.offsets));
  }
  for (std::size_t i = 0; i < header.columns.size(); ++i) {  // no more is appended: addresses stay
    const ColumnSpec& spec = header.columns[i];
    const UnconvertedShard::Rows& rows = shard.columns[i];
    Column column{spec.dtype,       spec.row_shape,
                  spec.row_bytes(), mapped(places[i].first, rows.bytes.size()),
                  spec.kind,        {}};
    if (spec.kind != ColumnKind::fixed)
      column.offsets = mapped(places[i].second, rows.offsets.size() * sizeof(std::uint64_t));
    columns.emplace(spec.name, std::move(column));
  }
  images.reserve(1 + header.fields.size());
  images.push_back(StoredImages(*this, {}, header.spec, header.largest.front(), header.codec,
                                Codec(header.codec, header.spec, header.normalization), {}));
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    const FieldSpec& field = header.fields[i];
    images.push_back(StoredImages(*this, field.name, field.spec, header.largest[i + 1], field.codec,
                                  Codec(field.codec, field.spec, field.normalization), {}));
  }
}

}  // namespace shard
