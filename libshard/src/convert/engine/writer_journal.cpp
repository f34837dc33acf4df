#include "convert/engine/writer_journal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/steps.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using WriterJson = nlohmann::ordered_json;

void remove_shard(const fs::path& out, std::uint64_t shard) {
  std::error_code error;
  // The receipt first: a shard without one is made again.
  if (fs::exists(receipt_path(out, shard), error)) remove_file(receipt_path(out, shard));
  if (fs::exists(out / shard_name(shard), error)) remove_file(out / shard_name(shard));
}

std::uint64_t rows_of(const Receipt& receipt) { return receipt.shard.samples + receipt.rejects.size(); }

}  // namespace

std::string serialize_columns(const std::vector<ColumnSpec>& columns) {
  WriterJson json = WriterJson::array();
  for (const ColumnSpec& column : columns)
    json.push_back({{"name", column.name},
                    {"kind", to_string(column.kind)},
                    {"dtype", to_string(column.dtype)},
                    {"row_shape", column.row_shape}});
  return json.dump();
}

std::vector<ColumnSpec> parse_columns(const std::string& text) {
  const char* const what = "conversion.json names columns that this version does not know";
  try {
    std::vector<ColumnSpec> columns;
    for (const WriterJson& json : WriterJson::parse(text)) {
      ColumnSpec column;
      json.at("name").get_to(column.name);
      json.at("row_shape").get_to(column.row_shape);
      const auto kind = column_kind_from_string(json.at("kind").get<std::string>());
      const auto dtype = dtype_from_string(json.at("dtype").get<std::string>());
      if (!kind || !dtype) throw Error(ErrorCode::corrupt, what);
      column.kind = *kind;
      column.dtype = *dtype;
      columns.push_back(std::move(column));
    }
    return columns;
  } catch (const WriterJson::exception&) {
    throw Error(ErrorCode::corrupt, what);
  }
}

DatasetSpec writer_spec(const WriterOptions& options, const std::vector<ColumnSpec>& columns) {
  if (!options.tensor) {
    Options with = options;
    with.samples_per_shard = options.rows_per_shard(columns);
    return spec_of(with, columns, {}, options.image_fields);
  }
  DatasetSpec spec;
  spec.spec = *options.tensor;
  spec.provenance["tensor"] =
      fmt::format("{} [{}]", to_string(spec.spec.dtype), fmt::join(spec.spec.shape(), ", "));
  spec.codec = options.codec;
  spec.columns = columns;
  spec.fields = options.image_fields;
  spec.fingerprint = fingerprint_of(spec, options.rows_per_shard(columns));
  return spec;
}

PlanRecord writer_record(const WriterOptions& options, const std::vector<ColumnSpec>& columns) {
  PlanRecord record = record_of(writer_spec(options, columns), options.rows_per_shard(columns));
  std::string names;
  for (const std::string& name : options.classes) names += name + '\0';
  // Not of the inputs, which are not known: a conversion of files does not continue what a Writer has begun.
  record.source_digest = to_hex(xxh3("writer " + names));
  record.names_digest = record.source_digest;
  record.inputs = record.samples_per_shard;
  record.options["source"] = "a program (Writer)";
  if (!options.classes.empty())
    record.options["classes"] = fmt::format("{} ({})", options.classes.size(), to_hex(xxh3(names)));
  record.writer = serialize_columns(columns);
  return record;
}

std::uint64_t keep_full_shards(const fs::path& out, const PlanRecord& record) {
  // A shard may have fewer rows because its columns filled it: then another one follows.
  // The last one may have been cut short by close().
  std::uint64_t shards = 0;
  std::uint64_t last = record.samples_per_shard;
  while (const auto receipt = finished_shard(out, record, shards)) {
    last = rows_of(*receipt);
    ++shards;
  }
  if (last != record.samples_per_shard) --shards;
  std::vector<std::uint64_t> others = receipts_in(out);
  for (const std::string& name : names_in(out))
    if (const auto number = shard_number(name)) others.push_back(*number);
  for (const std::uint64_t shard : others)
    if (shard >= shards) remove_shard(out, shard);
  flush_folder(out);
  return shards;
}

}  // namespace shard::convert
