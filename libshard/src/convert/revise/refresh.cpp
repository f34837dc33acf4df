#include "convert/revise/refresh.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <unordered_map>

#include "base/digest/checksum.hpp"
#include "base/files/publish.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/plan/further_reader.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/pixel_bound.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/error.hpp"
#include "shard/shard_reader.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using Digests = std::vector<std::optional<std::uint64_t>>;

Digests digest_inputs(const Plan& plan, const Options& options, const Hooks& hooks) {
  Digests digests(plan.list.inputs.size());
  const unsigned threads = options.threads();
  std::vector<InputReader> readers;
  std::vector<FurtherReader> further;
  for (unsigned i = 0; i < threads; ++i) {
    readers.emplace_back(plan.list);
    further.emplace_back(plan.further);
  }
  parallel_for(threads, digests.size(), [&](unsigned thread, std::uint64_t i) {
    if (hooks.cancel != nullptr && *hooks.cancel) throw Error(ErrorCode::cancelled, "interrupted");
    try {
      const std::span<const std::byte> file = readers[thread].read(plan.list.inputs[i]);
      plan.require_same(i, file.size(), readers[thread].stamp());
      digests[i] = further[thread].read(i, xxh3(file));
    } catch (const UnreadableInput&) {
      return;  // no digest, so the shard of this input is converted again
    }
  });
  return digests;
}

// What the folder records of its shards: their files and rejects.
struct Known {
  std::map<std::uint64_t, ShardSummary> shards;
  std::unordered_map<std::string, std::string> reasons;  // of rejects, by key
  struct Counts {                                        // recorded in receipts, not in a complete data set
    image::WarningCounts warnings;
    JpegCounts jpeg;
  };
  std::map<std::uint64_t, Counts> counts;
};

Known known_shards(const fs::path& out, const PlanRecord* there) {
  Known known;
  if (there != nullptr) {
    for (const std::uint64_t shard : receipts_in(out)) {
      const auto receipt = finished_shard(out, *there, shard);
      if (!receipt) continue;
      if (receipt->shard.samples != 0) known.shards[shard] = receipt->shard;
      known.counts[shard] = {receipt->warnings, receipt->jpeg};
      for (const Reject& reject : receipt->rejects) known.reasons[reject.key] = reject.reason;
    }
    return known;
  }
  for (const ShardSummary& shard : read_dataset_info(out).shards)
    if (const auto number = shard_number(shard.file)) known.shards[*number] = shard;
  read_csv(out / kRejectsFile, [&](std::vector<std::string>& fields) {
    if (fields.size() == 2) known.reasons[fields[0]] = fields[1];
    return true;
  });
  return known;
}

// Whether a stored sample has the labels and columns that the plan has for an input.
bool has_rows(const ShardReader& reader, std::uint64_t sample, const Plan& plan, std::uint64_t input) {
  std::vector<std::byte> was;
  const auto same = [&](const std::string& name, std::span<const std::byte> is) {
    const auto column = reader.columns().find(name);
    if (column == reader.columns().end()) return false;
    reader.read_column(column->second, sample, was);
    return std::equal(was.begin(), was.end(), is.begin(), is.end());
  };
  return same(plan.labels.column.name, plan.label_row(input)) &&
         std::all_of(plan.columns.begin(), plan.columns.end(),
                     [&](const ColumnTable& column) { return same(column.spec().name, column.rows(input)); });
}

// The new receipt of a shard whose inputs have not changed. Nothing if its file is not what the plan would
// give.
std::optional<Receipt> receipt_of(const Plan& plan, const fs::path& out, const PlanRecord& record,
                                  std::uint64_t shard, const Known& known, const Digests& digests) {
  Receipt receipt;
  receipt.shard.file = shard_name(shard);
  if (const auto found = known.counts.find(shard); found != known.counts.end()) {
    receipt.warnings = found->second.warnings;
    receipt.jpeg = found->second.jpeg;
  }
  std::optional<ShardReader> reader;
  if (const auto found = known.shards.find(shard); found != known.shards.end()) {
    receipt.shard = found->second;
    try {
      reader.emplace(ShardReader::open(out / receipt.shard.file));
      reader->verify_head();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::resource) throw;
      return std::nullopt;  // missing or damaged
    }
    if (reader->size() != receipt.shard.samples || reader->file_size_bytes() != receipt.shard.size_bytes ||
        reader->header().head_digest != receipt.shard.head_digest ||
        reader->header().fingerprint != record.fingerprint)
      return std::nullopt;
  }
  const std::uint64_t first = shard * plan.per_shard;
  std::uint64_t sample = 0;
  for (std::uint64_t i = first; i < first + plan.shard_inputs(shard); ++i) {
    const std::string key = plan.list.inputs[i].key();
    receipt.inputs += serialize_row({i, key, plan.size_of(i), digests[i]});
    if (reader && sample < reader->size() && reader->key(sample) == key) {
      if (!has_rows(*reader, sample, plan, i)) return std::nullopt;
      ++sample;
    } else if (const auto reason = known.reasons.find(key); reason != known.reasons.end()) {
      if (pixel_bound_of(reason->second).value_or(record.max_pixels) < record.max_pixels) return std::nullopt;
      receipt.rejects.push_back({key, reason->second});
    } else {
      return std::nullopt;
    }
  }
  if (reader && sample != reader->size()) return std::nullopt;
  return receipt;
}

void copy_bytes(const fs::path& from, const fs::path& to) {
  const UniqueFd fd(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  const auto fail = [&] {
    throw Error(ErrorCode::io,
                fmt::format("cannot read {}: {}", quoted(from), std::generic_category().message(errno)));
  };
  if (!fd) fail();
  PendingFile file(to);
  std::string piece(std::size_t{1} << 20U, '\0');
  for (;;) {
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    if (count == 0) break;
    file.append(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
  }
  file.publish();
}

}  // namespace

Refresh::Refresh(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks)
    : plan_(plan), out_(options.out) {
  std::optional<PlanRecord> there;
  std::optional<DatasetInfo> info;
  PlanRecord before;
  if (dataset_is_there(out_)) {
    info = read_dataset_info(out_);
    refuse_parts(*info, out_, record.source_digest);
    before = recorded_plan(*info, record);
  } else {
    there = read_plan(out_);
    before = *there;
  }
  const bool same_source = before.source_digest == record.source_digest;
  before.source_digest = record.source_digest;  // the inputs may differ
  before.inputs = record.inputs;
  require_same_plan(before, record, out_);

  digests_ = digest_inputs(plan, options, hooks);
  const auto& inputs = plan.list.inputs;
  std::vector<bool> same(inputs.size());
  std::map<std::uint64_t, std::uint64_t> rows;  // how many each shard had
  std::size_t next = 0;
  const PlanRecord* const receipts = there ? &*there : nullptr;
  read_input_rows(out_, receipts, [&](InputRow&& row) {
    ++rows[row.index / plan.per_shard];
    // A shard is kept only under its number, so its inputs must have the same positions.
    next = row.index;
    if (next >= inputs.size() || inputs[next].key() != row.key) return;
    same[next] = row.digest && row.digest == digests_[next] && row.size_bytes == plan.size_of(next);
  });
  const Known known = known_shards(out_, receipts);
  for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
    const std::uint64_t count = plan.shard_inputs(shard);
    const auto begin = same.begin() + static_cast<std::ptrdiff_t>(shard * plan.per_shard);
    const auto then = rows.find(shard);
    if (then == rows.end() || then->second != count ||
        std::find(begin, begin + static_cast<std::ptrdiff_t>(count), false) !=
            begin + static_cast<std::ptrdiff_t>(count))
      continue;
    if (auto receipt = receipt_of(plan, out_, record, shard, known, digests_))
      kept_.emplace(shard, std::move(*receipt));
  }
  if (!info || !same_source || kept_.size() != plan.shards()) return;
  nothing_changed_ = true;
  summary_ = summary_of(*info);
  summary_.was_complete = true;
}

void Refresh::carry_over(const fs::path& staging, const PlanRecord& record) const {
  for (const std::uint64_t shard : receipts_in(staging)) {
    const auto receipt = finished_shard(staging, record, shard);
    if (!receipt || shard >= plan_.shards()) continue;
    std::string now;
    for (std::uint64_t i = shard * plan_.per_shard; i < shard * plan_.per_shard + plan_.shard_inputs(shard);
         ++i)
      now += serialize_row({i, plan_.list.inputs[i].key(), plan_.size_of(i), digests_[i]});
    if (receipt->inputs == now) continue;
    remove_file(staging / kDatasetFile);
    remove_file(receipt_path(staging, shard));
  }
  for (const auto& [shard, receipt] : kept_) {
    if (finished_shard(staging, record, shard)) continue;
    const fs::path to = staging / receipt.shard.file;
    if (receipt.shard.samples != 0) {
      remove_file(to);  // left by a run that was stopped before it wrote the receipt
      if (::linkat(AT_FDCWD, (out_ / receipt.shard.file).c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) !=
          0)
        copy_bytes(out_ / receipt.shard.file, to);
      flush_folder(staging);
    }
    publish_file(receipt_path(staging, shard), serialize_receipt(receipt, record, shard));
  }
}

}  // namespace shard::convert
