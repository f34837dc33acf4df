// ls: one line per sample: index, label, key, and its size if each has its own; or, for a safetensors file
// that is no shard, one line per tensor.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <memory>
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/sizes.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

constexpr std::size_t kMaxLabelColumn = 30;

// Labels as JSON: a class id, or the numbers of a table's row.
Json label_json(const ShardReader& reader, std::uint64_t sample) {
  if (const auto id = class_id(reader, sample)) return *id;
  const std::string row = label_row_text(reader, sample, ',');
  if (row.empty()) return nullptr;
  Json list = Json::array();
  for (std::size_t begin = 0; begin <= row.size();) {
    const std::size_t end = std::min(row.find(',', begin), row.size());
    const Json number =
        Json::parse(row.substr(begin, end - begin), nullptr, false);  // nan, inf: no JSON numbers
    list.push_back(number.is_number() ? number : Json(row.substr(begin, end - begin)));
    begin = end + 1;
  }
  return list;
}

// What --columns adds: the columns beside the labels.
std::vector<ColumnSpec> listed_columns(const Source& source, const LsOptions& options) {
  const std::vector<ColumnSpec>& all = source.info().columns;
  if (!options.columns) return {};
  if (!options.csv && !options.json)
    throw Error(ErrorCode::invalid_argument, "--columns without --csv or --json: give one of them");
  return {all.begin() + 1, all.end()};
}

// A text, or a list of numbers; a list of rows if a row is more than one number and the column is ragged.
Json column_json(const ShardReader& reader, const ColumnSpec& spec, std::uint64_t sample) {
  const Column& column = reader.column(spec.name);
  if (spec.kind == ColumnKind::text) return reader.text(column, sample);
  std::vector<std::byte> bytes;
  reader.read_column(column, sample, bytes);
  const std::uint64_t each = spec.row_bytes() / size_bytes(spec.dtype);
  Json rows = Json::array();
  for (std::uint64_t at = 0; at < bytes.size() / size_bytes(spec.dtype); ++at) {
    const std::string text = element_text(spec.dtype, bytes, at);
    const Json number = Json::parse(text, nullptr, false);  // nan, inf: no JSON numbers
    if (at % each == 0) rows.push_back(Json::array());
    rows.back().push_back(number.is_discarded() ? Json(text) : number);
  }
  if (spec.row_shape.empty())
    for (Json& row : rows) row = Json(row[0]);
  return spec.kind == ColumnKind::fixed ? rows[0] : rows;
}

// Of the text for the largest samples: of any size, else 0.
std::size_t size_width(const Source& source) {
  const DatasetInfo& info = source.info();
  if (!info.spec.is_free()) return 0;
  const LargestSample largest = info.largest();
  return size_text(info.spec.sized(largest.height, largest.width)).size();
}

std::size_t label_width(const Source& source) {
  std::size_t width = 1;
  for (const std::string& name : source.info().classes)
    width = std::max(width, std::min(name.size(), kMaxLabelColumn));
  return width;
}

// The header of a safetensors file that is no shard; nothing for anything else, whose errors come from
// opening it.
std::optional<SafetensorsHeader> foreign_header(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    SafetensorsFile file = read_safetensors_head(path);
    if (!file.header.metadata.contains("shard.profile")) return std::move(file.header);
  } catch (const Error&) {
  }
  return std::nullopt;
}

// Its tensors in place of samples.
int list_tensors(const SafetensorsHeader& header, const LsOptions& options) {
  cli::Table table(
      {cli::Table::Align::left, cli::Table::Align::left, cli::Table::Align::left, cli::Table::Align::right},
      "");
  Json list = Json::array();
  if (options.csv) cli::write_out("tensor,dtype,shape,bytes\n");
  for (const TensorInfo& tensor : header.tensors) {
    const std::string dtype(tensor.dtype_name());
    if (options.json) {
      list.push_back({{"tensor", tensor.name},
                      {"dtype", dtype},
                      {"shape", tensor.shape},
                      {"size_bytes", tensor.size_bytes()}});
    } else if (options.csv) {
      cli::out("{},{},{},{}\n", csv_field(escape_key(tensor.name)), dtype,
               csv_field(shape_text(tensor.shape)), tensor.size_bytes());
    } else {
      table.add_row(
          {escape_key(tensor.name), dtype, shape_text(tensor.shape), std::to_string(tensor.size_bytes())});
    }
  }
  cli::write_out(options.json ? json_text(list, 2) + "\n" : options.csv ? std::string() : table.to_string());
  return kExitOk;
}

}  // namespace

int ls(const LsOptions& options) {
  if (const auto header = foreign_header(options.path)) return list_tensors(*header, options);
  const Source source = Source::open(options.path);
  source.open_shards();
  const std::size_t index_width = std::to_string(source.size() - 1).size();
  const std::size_t class_width = label_width(source);
  const std::size_t width_of_size = size_width(source);
  const bool sized = width_of_size != 0;
  const std::vector<ColumnSpec> columns = listed_columns(source, options);
  if (options.csv) {
    std::string header = "index,label,class,key";
    if (sized) header += ",height,width";
    for (const ColumnSpec& column : columns) header += "," + csv_field(escape_key(column.name));
    cli::write_out(header + "\n");
  }
  if (options.json) cli::write_out("[");
  bool first = true;
  Damage damage("shard");
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    if (!damage.survives(i, [&] { source.shard(i); })) continue;
    const ShardReader& reader = source.shard(i);
    source.each_of(i, [&](std::uint64_t index, std::uint64_t sample) {
      const std::string key(reader.key(sample));
      const std::string name = label_name(source, reader, sample);
      if (options.json) {
        Json line = {{"index", index}, {"label", label_json(reader, sample)}, {"class", name}, {"key", key}};
        if (sized) {
          const SampleSpec spec = reader.images().spec_of(sample);
          line["height"] = spec.height;
          line["width"] = spec.width;
        }
        for (const ColumnSpec& column : columns)
          line["columns"][column.name] = column_json(reader, column, sample);
        cli::out("{}\n{}", first ? "" : ",", json_text(line));
        first = false;
      } else if (options.csv) {
        std::string line = fmt::format("{},{},{},{}", index, csv_field(label_row_text(reader, sample, ' ')),
                                       csv_field(name), csv_field(key));
        if (sized) {
          const SampleSpec spec = reader.images().spec_of(sample);
          line += fmt::format(",{},{}", spec.height, spec.width);
        }
        for (const ColumnSpec& column : columns)
          line += "," + csv_field(column_text(reader, reader.column(column.name), sample));
        cli::write_out(line + "\n");
      } else if (sized) {
        cli::out("{:>{}}  {:<{}}  {:>{}}  {}\n", index, index_width, name, class_width,
                 size_text(reader.images().spec_of(sample)), width_of_size, key);
      } else {
        cli::out("{:>{}}  {:<{}}  {}\n", index, index_width, name, class_width, key);
      }
    });
  }
  if (options.json) cli::write_out("\n]\n");
  if (!damage.found()) return kExitOk;
  damage.report("their samples are not listed");
  return kExitDifferent;
}

void add_ls(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<LsOptions>();
  CLI::App* const command = app.add_subcommand("ls", R"(
      Print index, label, class and key of every sample

      Of samples of any size also their width and height. For a safetensors file that is not a shard, print its tensors.)");
  add_path(command, options->path);
  CLI::Option* csv = command->add_flag("--csv", options->csv, "Print CSV: index,label,class,key");
  command->add_flag("--json", options->json, "Print JSON: a list with one line per sample")->excludes(csv);
  command->add_flag("--columns", options->columns,
                    "With --csv or --json: also print the columns beside the labels");
  runs(command, chosen, [options] { return ls(*options); });
}

}  // namespace shard::ctl
