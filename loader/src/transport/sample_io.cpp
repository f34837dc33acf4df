#include "transport/sample_io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/digest/checksum.hpp"
#include "base/system/guarded_read.hpp"
#include "base/system/streaming_copy.hpp"
#include "codec/sample_errors.hpp"
#include "codec/verify_sample.hpp"
#include "format/shard/unconverted.hpp"
#include "shard/error.hpp"

namespace shard {

std::span<const std::byte> mapped_bytes(const Dataset& dataset, const StoredForm& form,
                                        const FetchItem& item) {
  if (item.mapped != nullptr) return {item.mapped, static_cast<std::size_t>(item.size_bytes)};
  return form.images(dataset.shard(item.at.shard)).frame(item.at.sample);
}

void stage_row(const Dataset& dataset, const StoredForm& form, const FetchItem& item, std::byte* target,
               bool verify, bool cached) {
  const Dataset::Location& at = item.at;
  const ShardReader& shard = dataset.shard(at.shard);
  if (item.first_of_shard) check_alive(shard);
  if (item.is_file) {
    const UnconvertedSamples& files = *shard.unconverted();
    const std::span<std::byte> out(target, files.file_of(at.sample)->bytes);
    // Without its first bytes it is no JPEG file: the device finds that, and the host looks why.
    if (!files.read_file(at.sample, out))
      std::fill_n(out.begin(), std::min<std::size_t>(out.size(), 2), std::byte{0});
  } else if (!form.decoded_by_host() && !shard.samples_mapped()) {
    form.images(shard).read_frame(at.sample, std::span(target, item.size_bytes));
  } else if (!form.decoded_by_host()) {
    const std::span<const std::byte> bytes = mapped_bytes(dataset, form, item);
    try {
      guarded("copy", [&] {
        if (cached)
          std::memcpy(target, bytes.data(), bytes.size());
        else
          copy_streaming(target, bytes.data(), bytes.size());
      });
    } catch (const Error& error) {
      rethrow_for(shard, form.name_of(shard, at.sample), error);
    }
  } else {
    try {
      if (verify)
        read_verified(form, shard, at.sample, {target, item.size_bytes});
      else
        form.images(shard).read(at.sample, {target, item.size_bytes});
    } catch (const Error& error) {  // it already names shard and sample
      throw explained(shard, error);
    }
  }
  if (verify && !shard.is_unconverted()) verify_stored(form, shard, at.sample, {target, item.size_bytes});
}

bool wait_filled(const std::future<void>& filled, std::chrono::microseconds time) {
  return !filled.valid() || filled.wait_for(time) == std::future_status::ready;
}

void queue_copies(Stream& stream, Slot& slot, std::span<const CopyItem> copies) {
  for (const Event& event : slot.released) stream.wait(event);
  stream.copy_pinned(copies);
  slot.copied_event = stream.record();
}

void add_copy(std::vector<CopyItem>& copies, const CopyItem& row) {
  CopyItem* const last = copies.empty() ? nullptr : &copies.back();
  if (last != nullptr && last->target + last->size_bytes == row.target &&
      last->source + last->size_bytes == row.source)
    last->size_bytes += row.size_bytes;
  else
    copies.push_back(row);
}

void add_rows(std::vector<CopyItem>& copies, const Slot& slot,
              const std::function<const std::byte*(std::size_t row)>& source) {
  for (std::size_t row = 0; row < slot.fetch.size(); ++row)
    if (const std::byte* const from = source(row))
      add_copy(copies, {slot.fetch[row].target, from, slot.fetch[row].size_bytes});
}

void copy_rows(Stream& stream, Slot& slot, std::vector<CopyItem>& scratch,
               const std::function<const std::byte*(std::size_t row)>& source) {
  scratch.clear();
  add_rows(scratch, slot, source);
  queue_copies(stream, slot, scratch);
}

}  // namespace shard
