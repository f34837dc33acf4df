#include "codec/sample_errors.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/system/guarded_read.hpp"
#include "base/text/quote.hpp"

namespace shard {

namespace {

// Of a shard on a server, mapping() is shorter than what is mapped.
bool holds(const ShardReader& shard, const std::byte* at) {
  const std::byte* const begin = shard.mapping().data();
  return shard.samples_mapped() && begin <= at && at < begin + shard.file_size_bytes();
}

// The field whose frames the address is in; empty: images.
std::optional<std::size_t> field_at(const ShardReader& shard, const std::byte* at) {
  const auto offset = static_cast<std::uint64_t>(at - shard.mapping().data());
  const std::vector<ShardHeader::Range>& ranges = shard.header().field_ranges;
  for (std::size_t field = 0; field < ranges.size(); ++field)
    if (ranges[field].begin <= offset && offset < ranges[field].end) return field;
  return std::nullopt;
}

// The first sample whose frame ends after the address. Frames follow each other.
std::uint64_t sample_at(const ShardReader& shard, std::optional<std::size_t> field, const std::byte* at) {
  std::uint64_t first = 0;
  for (std::uint64_t last = shard.size() - 1; first < last;) {
    const std::uint64_t middle = first + (last - first) / 2;
    const std::span<const std::byte> frame = shard.images(field).frame(middle);
    if (at < frame.data() + frame.size())
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

[[noreturn]] void rethrow_at(const ShardReader& shard, const std::byte* at, const Error& error) {
  const std::optional<std::size_t> field = field_at(shard, at);
  rethrow_for(shard, name_of_sample(shard, sample_at(shard, field, at), field), error);
}

}  // namespace

std::string name_of_sample(const ShardReader& shard, std::uint64_t sample, std::optional<std::size_t> field) {
  std::string name = fmt::format("{}: sample {}", quoted(shard.path()), sample);
  try {
    name += fmt::format(" ({})", quoted_key(shard.key(sample)));
  } catch (const Error&) {  // then without its key
  }
  return field ? fmt::format("{}, field {}", name, quoted(shard.images(field).name())) : name;
}

void check_alive(const ShardReader& shard) {
  const std::string change = shard.change();
  if (!change.empty()) throw Error(ErrorCode::corrupt, fmt::format("{}: {}", quoted(shard.path()), change));
}

Error explained(const ShardReader& shard, const Error& error) {
  const std::string change = shard.change();
  if (change.empty()) return error;
  return {ErrorCode::corrupt, fmt::format("{} ({})", change, error.what())};
}

void rethrow_for(const ShardReader& shard, const std::string& name, const Error& error) {
  const Error told = explained(shard, error);
  throw Error(told.code(), fmt::format("{}: {}", name, told.what()));
}

void rethrow_for(const ShardReader& shard, std::uint64_t sample, const Error& error) {
  rethrow_for(shard, name_of_sample(shard, sample), error);
}

void rethrow_named(const Dataset& dataset) {
  try {
    throw;
  } catch (const UnreadablePage& error) {
    const std::byte* const at = error.address();
    for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
      const ShardReader* const shard = dataset.opened(i);
      if (shard != nullptr && holds(*shard, at)) rethrow_at(*shard, at, error);
    }
    throw;
  } catch (const Error& error) {
    for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
      const ShardReader* const shard = dataset.opened(i);
      const std::string change = shard != nullptr ? shard->change() : std::string();
      if (!change.empty())
        throw Error(error.code(), fmt::format("{} ({}: {})", error.what(), quoted(shard->path()), change));
    }
    throw;
  }
}

}  // namespace shard
