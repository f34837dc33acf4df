#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/guarded_copy.hpp"
#include "shard/checksum.hpp"
#include "shard/error.hpp"
#include "shard/packed_format.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

std::uint64_t mem_available() {
  std::ifstream in("/proc/meminfo");
  for (std::string name, unit; in >> name;) {
    std::uint64_t kib = 0;
    in >> kib;
    std::getline(in, unit);
    if (name == "MemAvailable:") return kib << 10U;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t cgroup_available() {
  auto read = [](const char* path) {
    std::uint64_t value = 0;
    std::ifstream in(path);
    return in >> value ? value : std::numeric_limits<std::uint64_t>::max();  // absent, or "max"
  };
  const std::uint64_t limit = read("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = read("/sys/fs/cgroup/memory.current");
  if (limit == std::numeric_limits<std::uint64_t>::max()) return limit;
  return limit > used ? limit - used : 0;
}

// The sample of a frame; read again by the next call on the thread.
std::span<const std::byte> decoded(const ShardReader& shard, std::span<const std::byte> frame) {
  thread_local std::vector<std::byte> sample;
  sample.resize(shard.header().spec.size_bytes());
  shard.codec().decode(frame, sample);
  return sample;
}

[[noreturn]] void mismatch(const ShardReader& shard, std::uint64_t sample, std::uint64_t found) {
  throw Error(ErrorCode::corrupt, fmt::format("{}: sample {} ('{}') does not match its checksum: {} where {} "
                                              "is stored; restore the shard or convert "
                                              "again",
                                              shard.path().string(), sample, shard.key(sample), to_hex(found),
                                              to_hex(shard.checksum(sample))));
}

}  // namespace

std::uint64_t available_memory_bytes() { return std::min(mem_available(), cgroup_available()); }

std::uint64_t most_bytes_to_device(const DatasetInfo& info) {
  if (info.codec.kind != Codec::Kind::packed) return info.spec.size_bytes();
  const std::uint64_t stored = packed::kStoredBegin + info.spec.elements();  // no frame is longer
  return (stored + packed::kAlignment - 1) / packed::kAlignment * packed::kAlignment;
}

void check_alive(const ShardReader& shard) {
  struct stat info {};
  if (::fstat(shard.descriptor(), &info) != 0 ||
      static_cast<std::uint64_t>(info.st_size) != shard.file_size_bytes())
    throw Error(
        ErrorCode::corrupt,
        fmt::format(
            "{}: the file changed while it was in use: {} bytes now, {} when it was opened; restore it and "
            "open the data set again",
            shard.path().string(), info.st_size, shard.file_size_bytes()));
}

void check_all_alive(const Dataset& dataset) {
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) check_alive(dataset.shard(i));
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
    check_alive(shard);
    rethrow_for(shard, sample, error);
  }
  if (found != shard.checksum(sample)) mismatch(shard, sample, found);
}

void stage_row(const Dataset& dataset, const FetchItem& item, std::byte* target, bool verify, bool cached) {
  const Dataset::Location& at = item.at;
  const ShardReader& shard = dataset.shard(at.shard);
  check_alive(shard);
  if (!decompressed_on_the_way(dataset)) {
    const std::span<const std::byte> frame = shard.frame(at.sample);
    try {
      guarded("copy", [&] {
        if (cached)
          std::memcpy(target, frame.data(), frame.size());
        else
          copy_streaming(target, frame.data(), frame.size());
      });
    } catch (const Error& error) {
      check_alive(shard);  // says so when the file was cut since
      rethrow_for(shard, at.sample, error);
    }
  } else {
    try {
      shard.read(at.sample, {target, item.size_bytes});
    } catch (const Error&) {
      check_alive(shard);
      throw;
    }
  }
  if (verify) verify_stored(shard, at.sample, {target, item.size_bytes});
}

void submit_rows(HostPool& pool, std::size_t rows, std::future<void>& filled,
                 std::function<void(std::size_t)> body) {
  constexpr std::size_t kGrain = 2;
  auto done = std::make_shared<std::promise<void>>();
  filled = done->get_future();
  pool.submit({rows, kGrain,
               [body = std::move(body)](std::size_t first, std::size_t last) {
                 for (std::size_t row = first; row < last; ++row) body(row);
               },
               [done](std::exception_ptr error) { error ? done->set_exception(error) : done->set_value(); }});
}

void run_rows(HostPool& pool, std::size_t rows, const std::function<void(std::size_t)>& body) {
  std::promise<void> done;
  pool.submit({rows, 1,
               [&body](std::size_t first, std::size_t last) {
                 for (std::size_t row = first; row < last; ++row) body(row);
               },
               [&done](std::exception_ptr error) { error ? done.set_exception(error) : done.set_value(); }});
  done.get_future().get();
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
  stream.wait(slot.released_event);
  stream.copy(slot.copies);
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
    throw Error(
        ErrorCode::corrupt,
        fmt::format("{}: sample {} ('{}'): its packed frame was damaged when it reached the device, and "
                    "is not any longer: was the file written to?",
                    shard.path().string(), at.sample, shard.key(at.sample)));
  }
}

void rethrow_for(const ShardReader& shard, std::uint64_t sample, const Error& error) {
  throw Error(error.code(), fmt::format("{}: sample {} ('{}'): {}", shard.path().string(), sample,
                                        shard.key(sample), error.what()));
}

}  // namespace shard
