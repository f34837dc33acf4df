#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "format/codec/codec_check.hpp"
#include "format/dataset/dataset_builder.hpp"
#include "format/dataset/dataset_json.hpp"
#include "shard/keys.hpp"

namespace shard {
namespace {

[[noreturn]] void corrupt(const std::string& why) { DatasetBuilder::corrupt(why); }

void check_digest(std::string_view json) {
  if (json.size() <= kDigestTailBytes) corrupt(fmt::format("it has only {} bytes", json.size()));
  const std::string_view body = json.substr(0, json.size() - kDigestTailBytes);
  const std::string_view tail = json.substr(body.size());
  const auto stated = from_hex(tail.substr(kDigestBefore.size(), kDigestDigits));
  if (!tail.starts_with(kDigestBefore) || !tail.ends_with(kDigestAfter) || !stated) {
    corrupt("it does not end in its digest: it was cut, extended or edited");
  }
  const std::uint64_t found = xxh3(body);
  if (found != *stated) {
    corrupt(fmt::format("its XXH3-64 is {}, its last line says {}: it was edited or damaged", to_hex(found),
                        to_hex(*stated)));
  }
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

void check_unique(const std::vector<ShardSummary>& shards) {
  std::vector<std::uint32_t> order(shards.size());  // fewer than 2^20
  std::iota(order.begin(), order.end(), 0U);
  const auto file = [&](std::uint32_t i) -> const std::string& { return shards[i].file; };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return file(a) < file(b); });
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](std::uint32_t a, std::uint32_t b) { return file(a) == file(b); });
  if (twice != order.end()) corrupt(fmt::format("shard file {} occurs twice", quoted_excerpt(file(*twice))));
}

std::size_t count_free(const DatasetSpec& spec) {
  const auto further = std::count_if(spec.fields.begin(), spec.fields.end(),
                                     [](const FieldSpec& field) { return field.spec.is_free(); });
  return static_cast<std::size_t>(further) + (spec.spec.is_free() ? 1 : 0);
}

void check_shards(const DatasetInfo& info, std::uint64_t samples) {
  if (info.shards.empty()) corrupt("it names no shards");
  std::uint64_t sum = 0;
  const std::size_t free_fields = count_free(info);
  check_unique(info.shards);
  for (const ShardSummary& shard : info.shards) {
    if (!is_plain_name(shard.file))
      corrupt(fmt::format("shard file {}: it must be a plain name", quoted_excerpt(shard.file)));
    if (shard.samples < 1 || shard.samples > kMaxSamples)
      corrupt(fmt::format("shard {} has {} samples: it must have 1 to {}", quoted_excerpt(shard.file),
                          shard.samples, kMaxSamples));
    if (shard.largest.size() != free_fields)
      corrupt(fmt::format("shard {} has the largest samples of {} image fields: {} have samples of any size",
                          quoted_excerpt(shard.file), shard.largest.size(), free_fields));
    const auto total = checked_add(sum, shard.samples);
    if (!total) corrupt("the samples of the shards overflow 64 bits");
    sum = *total;
  }
  if (sum != samples) corrupt(fmt::format("it states {} samples, its shards have {}", samples, sum));
  const auto inputs = checked_add(samples, info.rejects);
  if (!inputs || *inputs != info.inputs)
    corrupt(fmt::format("inputs is {}: it must be the sum of {} samples and {} rejects", info.inputs, samples,
                        info.rejects));
}

void check_parts(const DatasetInfo& info) {
  if (info.parts.empty()) return;
  if (info.parts.size() == 1) corrupt("it has one part: a data set of one conversion names none");
  std::optional<std::uint64_t> inputs = 0;
  std::optional<std::uint64_t> rejects = 0;
  std::optional<std::uint64_t> shards = 0;
  const auto add = [](std::optional<std::uint64_t>& sum, std::uint64_t value) {
    if (sum) sum = checked_add(*sum, value);
  };
  for (const SourcePart& part : info.parts) {
    if (!from_hex(part.source_digest))
      corrupt("source_digest of a part must be 16 lower-case hexadecimal digits");
    add(inputs, part.inputs);
    add(rejects, part.rejects);
    add(shards, part.shards);
  }
  if (inputs != info.inputs || rejects != info.rejects || shards != info.shards.size())
    corrupt("inputs, rejects and shards must be the sums over the parts");
}

void check_targets(const DatasetInfo& info) {
  for (const auto& target : info.targets) {
    const auto column = std::find_if(info.columns.begin(), info.columns.end(),
                                     [&](const ColumnSpec& of) { return of.name == target.first; });
    if (column == info.columns.end())
      corrupt(fmt::format("targets names {}, which is no column", quoted_excerpt(target.first)));
    if (!fits(target.second, *column))
      corrupt(fmt::format("targets: column {} is {}, which {} are not", quoted_excerpt(target.first),
                          to_string(*column), to_string(target.second)));
  }
}

void check_tables(const DatasetInfo& info) {
  for (const TableSummary& table : info.tables) {
    if (!is_plain_name(table.file))
      corrupt(fmt::format("table {}: it must be a plain name", quoted_excerpt(table.file)));
    if (info.table(table.file) != &table)
      corrupt(fmt::format("table {} occurs twice", quoted_excerpt(table.file)));
  }
}

[[noreturn]] void unsupported(const std::string& why) {
  throw Error(ErrorCode::unsupported, "dataset.json: " + why);
}

SampleSpec spec_from(const std::string& dtype_name, const std::string& layout_name,
                     std::span<const std::uint64_t> shape) {
  const auto dtype = dtype_from_string(dtype_name);
  const auto layout = layout_from_string(layout_name);
  if (!dtype) unsupported(fmt::format("dtype {} is not known", quoted_excerpt(dtype_name)));
  if (!layout) unsupported(fmt::format("layout {} is not known", quoted_excerpt(layout_name)));
  try {
    return spec_of_shape(*dtype, *layout, shape);
  } catch (const Error& error) {
    corrupt(fmt::format("shape: {}", error.what()));
  }
}

CodecSpec codec_from(const std::string& name) {
  try {
    return codec_spec_from_string(name);
  } catch (const Error& error) {
    unsupported(error.what());
  }
}

void set_spec(DatasetInfo& info, const DatasetBuilder& built) {
  info.spec = spec_from(built.dtype_name, built.layout_name, built.shape);
  info.normalization = {built.mean, built.std};
  info.codec = codec_from(built.codec_name);
  for (std::size_t i = 0; i < info.fields.size(); ++i) {
    const DatasetBuilder::Field& from = built.fields[i];
    FieldSpec& field = info.fields[i];
    const auto role = field_role_from_string(from.role);
    if (!role)
      unsupported(fmt::format("field {} has the role {}: this build knows image and mask",
                              quoted_excerpt(field.name), quoted_excerpt(from.role)));
    field.role = *role;
    field.spec = spec_from(from.dtype, from.layout, from.shape);
    field.normalization = {from.mean, from.std};
    field.codec = codec_from(from.codec);
  }
}

// How many shards the text can have, so that they are stored at once: a list that grows has three times the
// memory of its entries for a moment.
std::size_t most_shards(std::string_view json) {
  constexpr std::string_view kMember = "\"head_digest\"";
  constexpr std::size_t kLeastBytes = 76;  // of an entry
  std::size_t members = 0;
  for (std::size_t at = json.find(kMember); at != std::string_view::npos; at = json.find(kMember, at + 1))
    ++members;
  return std::min({members, json.size() / kLeastBytes, DatasetBuilder::kMaxShards});
}

}  // namespace

DatasetInfo parse_dataset(std::string_view json) {
  if (json.size() > kMaxDatasetBytes)
    corrupt(fmt::format("it has {} bytes: at most {} are read", json.size(), kMaxDatasetBytes));
  check_digest(json);
  DatasetBuilder built;
  built.info.shards.reserve(most_shards(json));
  parse_json(json, built, "dataset.json");
  if (built.format_name != kDatasetFormat)
    corrupt(
        fmt::format("format is {}: it must be \"{}\"", quoted_excerpt(built.format_name), kDatasetFormat));
  if (built.version < 1 || built.version > kLastVersion) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("dataset.json: version {}: this build reads versions 1 to {}; install a later one",
                    built.version, kLastVersion));
  }
  for (std::string_view section : DatasetBuilder::kSections) {
    if (!built.sections.contains(std::string(section))) corrupt(fmt::format("\"{}\" is missing", section));
  }
  DatasetInfo& info = built.info;
  set_spec(info, built);
  const NeededVersion needed = needed_version(info);
  if (built.version < needed.version)
    corrupt(fmt::format("version {} does not have {}", built.version, needed.use));
  try {
    check_normalization(info.normalization, info.spec);
    check_codec(info.codec, info.spec);
    check_provenance(info.provenance);
    check_columns(info.columns);
    check_fields(info);
    for (const std::string& name : info.classes) unescape_key(name);
  } catch (const Error& error) {
    corrupt(error.what());
  }
  if (!from_hex(info.fingerprint) || !from_hex(info.source_digest))
    corrupt("fingerprint and source_digest must be 16 lower-case hexadecimal digits");
  check_shards(info, built.samples);
  check_parts(info);
  check_targets(info);
  check_tables(info);
  return std::move(info);
}

}  // namespace shard
