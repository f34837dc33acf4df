#include "codec/stored_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "codec/sample_errors.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

struct FormRow {
  CodecSpec::Kind codec;
  MakeStoredForm* make;
};
constexpr std::array kForms{
    FormRow{CodecSpec::Kind::none, make_raw_form},
    FormRow{CodecSpec::Kind::packed, make_packed_form},
    FormRow{CodecSpec::Kind::zstd, make_host_decoded_form},
    FormRow{CodecSpec::Kind::jpeg, make_jpeg_form},
};

}  // namespace

StoredSample StoredForm::locate(const Dataset& dataset, const Dataset::Location& at) const {
  if (fixed_size()) return {most_bytes_to_device(), nullptr};
  const StoredImages& samples = images(dataset.shard(at.shard));
  return {samples.spec_of(at.sample).size_bytes(), nullptr};
}

StoredSample StoredForm::locate_file(const Dataset& dataset, const Dataset::Location& at) const {
  return locate(dataset, at);
}

SampleSize StoredForm::size_of(const Dataset& dataset, const Dataset::Location& at) const {
  if (!is_free()) return {recorded().height, recorded().width};
  const SampleSpec spec = images(dataset.shard(at.shard)).spec_of(at.sample);
  return {spec.height, spec.width};
}

std::uint64_t StoredForm::share_of(std::uint64_t image_bytes) const noexcept {
  if (!of_.field) return image_bytes;
  const std::uint64_t own = std::uint64_t{recorded().channels} * size_bytes(recorded().dtype);
  const std::uint64_t of = of_.image_pixel_bytes;
  return image_bytes / of * own + image_bytes % of * own / of;
}

std::uint64_t StoredForm::bounded(std::uint64_t most, const LoaderOptions& options) const noexcept {
  const std::uint64_t all = most * options.most_rows();
  const std::uint64_t least = most * (options.mix.enabled() ? 2 : 1);
  return std::min(std::max(share_of(options.memory.batch_bytes), least), std::max(all, least));
}

std::uint64_t StoredForm::room_bytes(const LoaderOptions& options) const noexcept {
  if (!is_free()) return most_bytes_to_device() * options.most_rows();
  return bounded(most_bytes_to_device(), options);
}

std::uint64_t StoredForm::decoded_room_bytes(const LoaderOptions& options) const noexcept {
  if (!is_free()) return most_decoded() * options.most_rows();
  constexpr std::uint64_t kAlign = TransformWork::kUnpackedAlign;
  return bounded(round_up(most_decoded(), kAlign), options);
}

std::uint64_t StoredForm::late_group_bytes(const LoaderOptions& options) const noexcept {
  // So large that copies and kernels of a group take longer than to queue them. Pinned memory takes time
  // when a loader starts, so small batches have smaller groups.
  constexpr std::uint64_t kLeast = std::uint64_t{8} << 20U;
  constexpr std::uint64_t kMost = std::uint64_t{32} << 20U;
  const std::uint64_t room = options.memory.batch_bytes;  // 0: not decided yet
  const std::uint64_t usual = room == 0 ? kMost : std::clamp(room / 2, kLeast, kMost);
  constexpr std::uint64_t kAlign = 256;
  const std::uint64_t least = most_bytes_to_device() * (options.mix.enabled() ? 2 : 1);
  return round_up(std::max(least, share_of(std::min(usual, options.memory.pinned_bytes / 8))), kAlign);
}

std::uint64_t StoredForm::checksum(const ShardReader&, std::uint64_t,
                                   std::span<const std::byte> bytes) const {
  return xxh3(bytes);
}

std::string StoredForm::name_of(const ShardReader& shard, std::uint64_t sample) const {
  return name_of_sample(shard, sample, of_.field);
}

std::unique_ptr<const StoredForm> make_stored_form(const DatasetInfo& info,
                                                   std::optional<std::size_t> field) {
  StoredField of{field ? info.fields[*field].spec : info.spec, field, info.largest(field)};
  if (field && info.spec.is_free())
    of.image_pixel_bytes = std::uint64_t{info.spec.channels} * size_bytes(info.spec.dtype);
  if (field) of.images_may_be_late = make_stored_form(info)->may_be_late();
  of.unindexed_files = info.unindexed_files && !field;
  std::uint64_t stored = 0;
  for (const ShardSummary& shard : info.shards) stored += shard.size_bytes;
  of.mean_stored_bytes = stored / std::max<std::uint64_t>(info.samples(), 1) + 1;
  const CodecSpec& codec = field ? info.fields[*field].codec : info.codec;
  if (info.mixed_codecs) return make_host_decoded_form(of);
  for (const FormRow& row : kForms)
    if (row.codec == codec.kind) return row.make(of);
  throw Error(ErrorCode::unsupported,
              fmt::format("this loader cannot read samples of codec {}", to_string(codec)));
}

}  // namespace shard
