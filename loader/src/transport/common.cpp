#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "base/quote.hpp"
#include "base/streaming_copy.hpp"
#include "shard/error.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

// The sample of a frame; read again by the next call on the thread.
std::span<const std::byte> decoded(const ShardReader& shard, std::span<const std::byte> frame) {
  thread_local std::vector<std::byte> sample;
  sample.resize(shard.header().spec.size_bytes());
  shard.codec().decode(frame, sample);
  return sample;
}

// For messages. The key is left out where it cannot be had: what is being reported comes first.
std::string name_of(const ShardReader& shard, std::uint64_t sample) {
  try {
    return fmt::format("{}: sample {} ({})", quoted(shard.path()), sample, quoted_key(shard.key(sample)));
  } catch (const Error&) {
    return fmt::format("{}: sample {}", quoted(shard.path()), sample);
  }
}

[[noreturn]] void mismatch(const ShardReader& shard, std::uint64_t sample, std::uint64_t found) {
  throw Error(
      ErrorCode::corrupt,
      fmt::format("{} does not match its checksum: {} where {} is stored; restore the shard or convert "
                  "again",
                  name_of(shard, sample), to_hex(found), to_hex(shard.checksum(sample))));
}

// A failure while the shard was read, with what is wrong with its file, if that can be seen.
Error explained(const ShardReader& shard, const Error& error) {
  const std::string change = shard.change();
  if (change.empty()) return error;
  return {ErrorCode::corrupt, fmt::format("{} ({})", change, error.what())};
}

bool holds(std::span<const std::byte> bytes, const std::byte* at) {
  return bytes.data() <= at && at < bytes.data() + bytes.size();
}

// The first sample whose frame ends behind the address: frames follow each other.
std::uint64_t sample_at(const ShardReader& shard, const std::byte* at) {
  std::uint64_t first = 0;
  for (std::uint64_t last = shard.size() - 1; first < last;) {
    const std::uint64_t middle = first + (last - first) / 2;
    const std::span<const std::byte> frame = shard.frame(middle);
    if (at < frame.data() + frame.size())
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

}  // namespace

void check_alive(const ShardReader& shard) {
  const std::string change = shard.change();
  if (!change.empty()) throw Error(ErrorCode::corrupt, fmt::format("{}: {}", quoted(shard.path()), change));
}

void rethrow_named(const Dataset& dataset) {
  try {
    throw;
  } catch (const UnreadablePage& error) {
    const std::byte* const at = error.address();
    for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
      const ShardReader* const shard = dataset.opened(i);
      if (shard != nullptr && holds(shard->mapping(), at)) rethrow_for(*shard, sample_at(*shard, at), error);
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

void verify_stored(const ShardReader& shard, std::uint64_t sample, std::span<const std::byte> bytes) {
  std::uint64_t found = 0;
  if (shard.header().codec.kind == Codec::Kind::packed) {
    try {
      found = xxh3(decoded(shard, bytes));
    } catch (const Error& error) {
      rethrow_for(shard, sample, error);
    }
  } else {
    found = xxh3(bytes);
  }
  if (found != shard.checksum(sample)) mismatch(shard, sample, found);
}

void verify_mapped(const ShardReader& shard, std::uint64_t sample) {
  const std::span<const std::byte> frame = shard.frame(sample);
  std::uint64_t found = 0;
  try {
    const bool packed = shard.header().codec.kind == Codec::Kind::packed;
    guarded("verify", [&] { found = xxh3(packed ? decoded(shard, frame) : frame); });
  } catch (const Error& error) {
    rethrow_for(shard, sample, error);
  }
  if (found != shard.checksum(sample)) mismatch(shard, sample, found);
}

void stage_row(const Dataset& dataset, const FetchItem& item, std::byte* target, bool verify, bool cached) {
  const Dataset::Location& at = item.at;
  const ShardReader& shard = dataset.shard(at.shard);
  if (item.first_of_shard) check_alive(shard);
  if (!decompressed_on_the_way(dataset)) {
    const std::span<const std::byte> frame = frame_of(dataset, item);
    try {
      guarded("copy", [&] {
        if (cached)
          std::memcpy(target, frame.data(), frame.size());
        else
          copy_streaming(target, frame.data(), frame.size());
      });
    } catch (const Error& error) {
      rethrow_for(shard, at.sample, error);
    }
  } else {
    try {
      shard.read(at.sample, {target, item.size_bytes});
    } catch (const Error& error) {  // names shard and sample itself
      throw explained(shard, error);
    }
  }
  if (verify) verify_stored(shard, at.sample, {target, item.size_bytes});
}

void copy_rows(Stream& stream, Slot& slot, const std::function<const std::byte*(std::size_t row)>& source) {
  slot.copies.clear();
  for (std::size_t row = 0; row < slot.fetch.size(); ++row) {
    const FetchItem& item = slot.fetch[row];
    const std::byte* const from = source(row);
    CopyItem* const last = slot.copies.empty() ? nullptr : &slot.copies.back();
    if (last != nullptr && last->target + last->size_bytes == item.target &&
        last->source + last->size_bytes == from)
      last->size_bytes += item.size_bytes;
    else
      slot.copies.push_back({item.target, from, item.size_bytes});
  }
  queue_copies(stream, slot);
}

void queue_copies(Stream& stream, Slot& slot) {
  for (const Event& event : slot.released) stream.wait(event);
  stream.copy_pinned(slot.copies);
  slot.copied_event = stream.record();
}

void check_frames(const Dataset& dataset, const Slot& slot) {
  if (!slot.broken) return;
  const auto* const broken = reinterpret_cast<const std::uint32_t*>(slot.broken->data());
  for (std::size_t i = 0; i < slot.locations.size(); ++i) {
    if (broken[i] == 0) continue;
    const Dataset::Location& at = slot.locations[i];
    const ShardReader& shard = dataset.shard(at.shard);
    check_alive(shard);
    verify_mapped(shard, at.sample);  // says what is wrong with the frame
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: its packed frame was damaged when it reached the device, but is valid now: "
                            "does another program write to the file?",
                            name_of(shard, at.sample)));
  }
}

void rethrow_for(const ShardReader& shard, std::uint64_t sample, const Error& error) {
  const Error told = explained(shard, error);
  throw Error(told.code(), fmt::format("{}: {}", name_of(shard, sample), told.what()));
}

}  // namespace shard
