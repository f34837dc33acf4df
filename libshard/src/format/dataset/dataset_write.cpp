#include <limits>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/publish.hpp"
#include "base/text/json.hpp"
#include "format/dataset/dataset_json.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/dataset.hpp"

namespace shard {
namespace {

// [\n    a,\n    b\n  ]
template <class Items, class Write>
std::string lines(const Items& items, char open, char close, Write write) {
  std::string text(1, open);
  bool first = true;
  for (const auto& item : items) {
    text += first ? "\n    " : ",\n    ";
    first = false;
    text += write(item);
  }
  if (!first) text += "\n  ";
  return text + close;
}

}  // namespace

std::uint64_t DatasetInfo::samples() const noexcept {
  std::uint64_t sum = 0;
  for (const ShardSummary& shard : shards) sum += shard.samples;
  return sum;
}

LargestSample DatasetInfo::largest(std::optional<std::size_t> field) const {
  const SampleSpec& of = field ? fields.at(*field).spec : spec;
  if (!of.is_free()) return {of.height, of.width, of.size_bytes(), 0};
  std::size_t number = field && spec.is_free() ? 1 : 0;  // among the free ones
  for (std::size_t i = 0; field && i < *field; ++i) number += fields[i].spec.is_free() ? 1 : 0;
  LargestSample largest;
  for (const ShardSummary& shard : shards) largest.include(shard.largest.at(number));
  return largest;
}

const TableSummary* DatasetInfo::table(std::string_view file) const noexcept {
  for (const TableSummary& table : tables)
    if (table.file == file) return &table;
  return nullptr;
}

std::string serialize_dataset(const DatasetInfo& info) {
  std::string text = "{\n";
  const auto member = [&](std::string_view name, const std::string& json) {
    text += fmt::format("  \"{}\": {},\n", name, json);
  };
  member("format", json_quote(kDatasetFormat));
  member("version", fmt::to_string(needed_version(info).version));
  member("samples", fmt::to_string(info.samples()));
  member("inputs", fmt::to_string(info.inputs));
  member("rejects", fmt::to_string(info.rejects));
  if (info.samples_per_shard != 0) member("samples_per_shard", fmt::to_string(info.samples_per_shard));
  member("source_digest", json_quote(info.source_digest));
  if (!info.parts.empty())
    member("parts", lines(info.parts, '[', ']', [](const SourcePart& part) {
             return fmt::format("{{\"source_digest\": {}, \"inputs\": {}, \"rejects\": {}, \"shards\": {}}}",
                                json_quote(part.source_digest), part.inputs, part.rejects, part.shards);
           }));
  member("fingerprint", json_quote(info.fingerprint));
  member("dtype", json_quote(to_string(info.spec.dtype)));
  member("layout", json_quote(to_string(info.spec.layout)));
  member("shape", fmt::format("[{}]", fmt::join(info.spec.shape(), ", ")));
  member("mean", fmt::format("[{}]", fmt::join(info.normalization.mean, ", ")));
  member("std", fmt::format("[{}]", fmt::join(info.normalization.std, ", ")));
  member("codec", json_quote(to_string(info.codec)));
  member("pipeline", lines(info.provenance, '{', '}', [](const auto& entry) {
           return json_quote(entry.first) + ": " + json_quote(entry.second);
         }));
  member("columns", lines(info.columns, '[', ']', [](const ColumnSpec& column) {
           const std::string kind = column.kind == ColumnKind::fixed
                                        ? ""
                                        : fmt::format(", \"kind\": \"{}\"", to_string(column.kind));
           return fmt::format("{{\"name\": {}, \"dtype\": \"{}\", \"row_shape\": [{}]{}}}",
                              json_quote(column.name), to_string(column.dtype),
                              fmt::join(column.row_shape, ", "), kind);
         }));
  if (!info.fields.empty())
    member("fields", lines(info.fields, '[', ']', [](const FieldSpec& field) {
             return fmt::format(
                 "{{\"name\": {}, \"role\": \"{}\", \"dtype\": \"{}\", \"layout\": \"{}\", \"shape\": [{}], "
                 "\"mean\": [{}], \"std\": [{}], \"codec\": \"{}\"}}",
                 json_quote(field.name), to_string(field.role), to_string(field.spec.dtype),
                 to_string(field.spec.layout), fmt::join(field.spec.shape(), ", "),
                 fmt::join(field.normalization.mean, ", "), fmt::join(field.normalization.std, ", "),
                 to_string(field.codec));
           }));
  if (!info.targets.empty())
    member("targets", lines(info.targets, '{', '}', [](const auto& target) {
             return fmt::format("{}: \"{}\"", json_quote(target.first), to_string(target.second));
           }));
  member("classes", lines(info.classes, '[', ']', [](const std::string& name) { return json_quote(name); }));
  member("shards", lines(info.shards, '[', ']', [](const ShardSummary& shard) {
           std::string largest;
           for (const LargestSample& of : shard.largest)
             largest += fmt::format("{}[{}, {}, {}, {}]", largest.empty() ? ", \"largest\": [" : ", ",
                                    of.height, of.width, of.sample_bytes, of.frame_bytes);
           if (!largest.empty()) largest += ']';
           return fmt::format(
               "{{\"file\": {}, \"samples\": {}, \"size_bytes\": {}, \"head_digest\": \"xxh3:{}\"{}}}",
               json_quote(shard.file), shard.samples, shard.size_bytes, to_hex(shard.head_digest), largest);
         }));
  if (!info.tables.empty())
    member("tables", lines(info.tables, '[', ']', [](const TableSummary& table) {
             return fmt::format("{{\"file\": {}, \"size_bytes\": {}, \"digest\": \"xxh3:{}\"}}",
                                json_quote(table.file), table.size_bytes, to_hex(table.digest));
           }));
  const std::string digest = to_hex(xxh3(text));
  text += kDigestBefore;
  text += digest;
  text += kDigestAfter;
  return text;
}

void publish_file(const std::filesystem::path& path, std::string_view content) {
  replace_file(path, content);
}

}  // namespace shard
