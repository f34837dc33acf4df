// info: what a data set, a shard or any safetensors file holds, and where its tensors lie.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include <memory>
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/sizes.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

using cli::Table;
using Align = cli::Table::Align;

constexpr std::size_t kListed = 20;  // classes and shards in the human form; --json has all

Json tensors_json(const SafetensorsHeader& header) {
  Json list = Json::array();
  for (const TensorInfo& tensor : header.tensors) {
    list.push_back({{"name", tensor.name},
                    {"dtype", tensor.dtype_name()},
                    {"shape", tensor.shape},
                    {"offset", header.data_begin + tensor.begin},
                    {"size_bytes", tensor.size_bytes()}});
  }
  return list;
}

std::string tensors_table(const SafetensorsHeader& header) {
  Table table({Align::left, Align::left, Align::left, Align::right, Align::right}, "  ");
  table.add_row({"tensor", "dtype", "shape", "file offset", "bytes"});
  for (const TensorInfo& tensor : header.tensors) {
    table.add_row({escape_key(tensor.name), std::string(tensor.dtype_name()), shape_text(tensor.shape),
                   std::to_string(header.data_begin + tensor.begin), std::to_string(tensor.size_bytes())});
  }
  return table.to_string();
}

// Class id -> samples; empty when labels are no class ids.
std::map<std::int64_t, std::uint64_t> count_classes(const Source& source) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardReader& reader = source.shard(i);
    bool ids = true;
    source.each_of(i, [&](std::uint64_t, std::uint64_t sample) {
      const auto id = class_id(reader, sample);
      ids = ids && id;
      if (ids) ++counts[*id];
    });
    if (!ids) return {};
  }
  for (std::size_t id = 0; id < source.info().classes.size(); ++id)
    counts[static_cast<std::int64_t>(id)] += 0;
  return counts;
}

std::string class_name(const DatasetInfo& info, std::int64_t id) {
  const bool named = id >= 0 && static_cast<std::uint64_t>(id) < info.classes.size();
  return named ? info.classes[static_cast<std::size_t>(id)] : std::to_string(id);
}

std::uint64_t total_bytes(const DatasetInfo& info) {
  std::uint64_t bytes = 0;
  for (const ShardSummary& shard : info.shards) bytes += shard.size_bytes;
  return bytes;
}

// A Python string literal of a path, whatever its bytes.
std::string python_path(const std::filesystem::path& path) {
  const std::string raw = path.string();
  const std::string escaped = escape_key(raw);  // \xHH where a plain literal would not do
  const bool plain = escaped == raw;
  std::string literal;
  for (const char c : escaped) literal += c == '"' ? std::string("\\\"") : std::string(1, c);
  if (plain) return "\"" + literal + "\"";
  // bytes literals take no characters beyond ASCII: those become \xHH as well
  std::string bytes;
  for (const char c : literal) {
    bytes += static_cast<unsigned char>(c) < 0x80 ? std::string(1, c)
                                                  : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return "os.fsdecode(b\"" + bytes + "\")";
}

std::string memmap_snippet(const ShardReader& reader) {
  if (reader.is_remote()) return {};
  const SafetensorsHeader& header = reader.header().container;
  const std::string path = python_path(reader.path());
  const TensorInfo* images = header.find("images");
  const TensorInfo* labels = header.find("labels");
  if (images == nullptr) return {};
  const auto line = [&](const char* name, const TensorInfo& tensor) {
    return fmt::format("  {} = np.memmap({}, \"{}\", \"r\", {}, ({}{}))\n", name, path,
                       npy_name(tensor.dtype), header.data_begin + tensor.begin,
                       fmt::join(tensor.shape, ", "), tensor.shape.size() == 1 ? "," : "");
  };
  std::string text =
      fmt::format("\nTo read it with numpy:\n  import {}numpy as np\n", path[0] == 'o' ? "os, " : "");
  text += line("images", *images);
  if (labels != nullptr) text += line("labels", *labels);
  if (images->dtype == DType::bf16) {
    text += "numpy has no bfloat16: these are its bits; images.view(ml_dtypes.bfloat16) gives the numbers.\n";
  }
  return text;
}

// Of samples of any size, which are no array. Where they are on a server, too.
std::string dataset_snippet(const std::string& path) {
  const std::string literal = python_path(path);
  return fmt::format(
      "\nTo read a sample in Python, with its own rows and columns:\n  import {}shardloader as sl\n"
      "  image, label = sl.Dataset({})[0]\n",
      literal[0] == 'o' ? "os, " : "", literal);
}

// Values of all samples of a shard whose samples are of any size.
std::uint64_t values_in_shard(const StoredImages& images, std::uint64_t samples) {
  std::uint64_t values = 0;
  for (std::uint64_t sample = 0; sample < samples; ++sample) values += images.spec_of(sample).elements();
  return values;
}

// As stored, without heads: 8 times the bytes of the elements for codec none.
double bits_per_value(const Source& source) {
  const SampleSpec& spec = source.info().spec;
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;  // also those that are not selected
  std::uint64_t values = 0;   // of samples of any size
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardHeader& header = source.shard(i).header();
    bytes += header.images_end - header.images_begin;
    samples += header.samples;
    if (spec.is_free()) values += values_in_shard(source.shard(i).images(), header.samples);
  }
  if (spec.is_free()) return 8.0 * static_cast<double>(bytes) / static_cast<double>(values);
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(samples) /
         static_cast<double>(spec.elements());
}

// Of the main images and of each further field; none where all samples have one size.
struct Sizes {
  explicit Sizes(const Source& source) {
    const DatasetInfo& info = source.info();
    if (info.spec.is_free()) images = size_statistics(source);
    for (std::size_t f = 0; f < info.fields.size(); ++f)
      fields.push_back(info.fields[f].spec.is_free() ? std::optional(size_statistics(source, f))
                                                     : std::nullopt);
  }
  std::optional<SizeStatistics> images;
  std::vector<std::optional<SizeStatistics>> fields;
};

// "mask u8 nhwc [4, 5, 1] packed", and of any size what the largest has.
std::string field_row(const FieldSpec& field, const std::optional<SizeStatistics>& sizes) {
  std::string text = field_text(field);
  if (sizes)
    text += fmt::format("; at most {} rows, {} columns, {} bytes", sizes->height.most, sizes->width.most,
                        cli::human_count(sizes->largest_bytes));
  return text;
}

// The shapes, and the sizes that most samples have.
void print_sizes(const SizeStatistics& sizes) {
  cli::write_out("\nWidth to height:\n");
  Table aspects({Align::left, Align::right}, "  ");
  for (std::size_t i = 0; i < kAspects.size(); ++i)
    aspects.add_row({std::string(kAspects[i]), cli::human_count(sizes.aspects[i])});
  cli::write_out(aspects.to_string());
  cli::out("\n{}:\n", cli::counted(sizes.different, "size"));
  Table frequent({Align::right, Align::right, Align::right}, "  ");
  frequent.add_row({"height", "width", "samples"});
  for (const SizeStatistics::Size& size : sizes.frequent)
    frequent.add_row(
        {std::to_string(size.height), std::to_string(size.width), cli::human_count(size.samples)});
  cli::write_out(frequent.to_string());
  if (sizes.different > sizes.frequent.size())
    cli::out("  and {} more, of no more samples each\n",
             cli::human_count(sizes.different - sizes.frequent.size()));
}

void print_description(Table& table, const DatasetInfo& info, const Sizes& sizes, double bits_a_value) {
  const SampleSpec& spec = info.spec;
  std::string sample = spec_text(spec);
  if (!spec.is_free()) sample += fmt::format(", {} bytes", cli::human_count(spec.size_bytes()));
  table.add_row({"sample", sample});
  if (sizes.images)
    for (const auto& [name, value] : size_rows(*sizes.images)) table.add_row({name, value});
  std::string codec = to_string(info.codec);
  if (info.codec.kind != CodecSpec::Kind::none) codec += fmt::format(", {:.2f} bits per value", bits_a_value);
  table.add_row({"codec", codec});
  for (std::size_t c = 1; c < info.columns.size(); ++c)
    table.add_row({"column " + escape_key(info.columns[c].name), to_string(info.columns[c])});
  for (std::size_t f = 0; f < info.fields.size(); ++f)
    table.add_row({"field " + escape_key(info.fields[f].name), field_row(info.fields[f], sizes.fields[f])});
  table.add_row({"normalisation", fmt::format("mean {}, std {} ({})", fmt::join(info.normalization.mean, ","),
                                              fmt::join(info.normalization.std, ","),
                                              spec.dtype == DType::u8 || spec.dtype == DType::u16
                                                  ? "to be applied after loading"
                                                  : "applied")});
  for (const auto& [key, value] : info.provenance) table.add_row({"pipeline " + key, escape_key(value)});
  table.add_row({"fingerprint", info.fingerprint});
  if (convert::has_wrong_pages(info.provenance))
    table.add_row({"WRONG PIXELS", cli::with_flags(convert::kWrongPages)});
}

Json description_json(const DatasetInfo& info, const Sizes& sizes) {
  const SampleSpec& spec = info.spec;
  Json json;
  json["spec"] = {{"dtype", to_string(spec.dtype)},
                  {"layout", to_string(spec.layout)},
                  {"channels", spec.channels},
                  {"height", spec.height},
                  {"width", spec.width},
                  {"shape", spec.shape()},
                  {"sample_bytes", spec.is_free() ? Json(nullptr) : Json(spec.size_bytes())}};
  if (sizes.images) json["sizes"] = size_json(*sizes.images);
  json["codec"] = to_string(info.codec);
  for (std::size_t f = 0; f < info.fields.size(); ++f) {
    const FieldSpec& field = info.fields[f];
    json["fields"].push_back({{"name", field.name},
                              {"role", to_string(field.role)},
                              {"dtype", to_string(field.spec.dtype)},
                              {"layout", to_string(field.spec.layout)},
                              {"shape", field.spec.shape()},
                              {"mean", floats_json(field.normalization.mean)},
                              {"std", floats_json(field.normalization.std)},
                              {"codec", to_string(field.codec)}});
    if (sizes.fields[f]) json["fields"].back()["sizes"] = size_json(*sizes.fields[f]);
  }
  json["normalization"] = {{"mean", floats_json(info.normalization.mean)},
                           {"std", floats_json(info.normalization.std)}};
  json["pipeline"] = info.provenance;
  json["fingerprint"] = info.fingerprint;
  if (convert::has_wrong_pages(info.provenance)) json["wrong_pixels"] = cli::with_flags(convert::kWrongPages);
  return json;
}

Json classes_json(const DatasetInfo& info, const std::map<std::int64_t, std::uint64_t>& counts) {
  Json list = Json::array();
  for (const auto& [id, count] : counts)
    list.push_back({{"id", id}, {"name", class_name(info, id)}, {"samples", count}});
  return list;
}

Json parts_json(const DatasetInfo& info) {
  Json parts = Json::array();
  for (const SourcePart& part : info.parts)
    parts.push_back({{"source_digest", part.source_digest},
                     {"inputs", part.inputs},
                     {"rejects", part.rejects},
                     {"shards", part.shards}});
  return parts;
}

int print_source_json(const Source& source, const std::string& path) {
  const DatasetInfo& info = source.info();
  Json json;
  json["kind"] = source.is_part() ? "part" : source.is_dataset() ? "dataset" : "shard";
  json["path"] = path_text(path);
  if (source.is_dataset() && !source.is_part()) {
    json["state"] = "complete";
    json["inputs"] = info.inputs;
    json["rejects"] = info.rejects;
    json["source_digest"] = info.source_digest;
    if (!info.parts.empty()) json["parts"] = parts_json(info);
  }
  json["samples"] = source.size();
  json["size_bytes"] = total_bytes(info);
  json["bytes_per_sample"] = static_cast<double>(total_bytes(info)) / static_cast<double>(source.size());
  json.update(description_json(info, Sizes(source)));
  json["bits_per_value"] = bits_per_value(source);
  json["classes"] = classes_json(info, count_classes(source));
  json["shards"] = Json::array();
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardSummary& shard = info.shards[i];
    json["shards"].push_back({{"file", shard.file},
                              {"samples", shard.samples},
                              {"size_bytes", shard.size_bytes},
                              {"head_digest", fmt::format("{:016x}", shard.head_digest)},
                              {"tensors", tensors_json(source.shard(i).header().container)}});
  }
  cli::write_out(json_text(json, 2) + "\n");
  return kExitOk;
}

int print_source(const Source& source, const std::string& path) {
  const DatasetInfo& info = source.info();
  const bool part = source.is_part();
  cli::out("{}: {}\n", path_text(path),
           part                  ? "part of a data set"
           : source.is_dataset() ? "a complete data set"
                                 : "a shard");
  Table table({Align::left, Align::left}, "  ");
  table.add_row({"samples", cli::human_count(source.size())});
  if (source.is_dataset() && !part) {
    table.add_row({"rejects", fmt::format("{} of {} inputs{}", cli::human_count(info.rejects),
                                          cli::human_count(info.inputs),
                                          info.rejects > 0 ? ", listed in rejects.csv" : "")});
    if (!info.parts.empty())
      table.add_row({"parts", fmt::format("put together from {} conversions (--json lists them)",
                                          cli::human_count(info.parts.size()))});
  }
  const std::uint64_t bytes = total_bytes(info);
  table.add_row(
      {"size",
       part ? fmt::format("in {} of {}", cli::counted(info.shards.size(), "shard"), cli::human_bytes(bytes))
            : fmt::format("{} in {}, {:.0f} bytes per sample", cli::human_bytes(bytes),
                          cli::counted(info.shards.size(), "shard"),
                          static_cast<double>(bytes) / static_cast<double>(source.size()))});
  const Sizes sizes(source);
  print_description(table, info, sizes, bits_per_value(source));
  cli::write_out(table.to_string());
  if (sizes.images) print_sizes(*sizes.images);

  const auto counts = count_classes(source);
  if (!counts.empty()) {
    cli::out("\n{} class{}:\n", cli::human_count(counts.size()), counts.size() == 1 ? "" : "es");
    Table classes({Align::right, Align::left, Align::right}, "  ");
    classes.add_row({"id", "class", "samples"});
    for (const auto& [id, count] : counts) {
      if (classes.rows() > kListed) break;
      classes.add_row({std::to_string(id), class_name(info, id), cli::human_count(count)});
    }
    cli::write_out(classes.to_string());
    if (counts.size() > kListed) cli::out("  and {} more (--json lists all)\n", counts.size() - kListed);
  }
  if (source.is_dataset()) {
    cli::write_out("\n");
    Table shards({Align::left, Align::right, Align::right}, "  ");
    shards.add_row({"shard", "samples", "bytes"});
    for (std::size_t i = 0; i < std::min(info.shards.size(), kListed); ++i) {
      const ShardSummary& shard = info.shards[i];
      shards.add_row({shard.file, cli::human_count(shard.samples), cli::human_count(shard.size_bytes)});
    }
    cli::write_out(shards.to_string());
    if (info.shards.size() > kListed)
      cli::out("  and {} more (--json lists all)\n", info.shards.size() - kListed);
  }
  const ShardReader& first = source.shard(0);
  cli::out("\nTensors of {}:\n{}", path_text(first.path().filename()),
           tensors_table(first.header().container));
  cli::write_out(info.spec.is_free() ? dataset_snippet(path) : memmap_snippet(first));
  return kExitOk;
}

int print_safetensors(const SafetensorsHeader& header, std::uint64_t file_bytes, const InfoOptions& options) {
  if (options.json) {
    const Json json = {{"kind", "safetensors"},
                       {"path", path_text(options.path)},
                       {"size_bytes", file_bytes},
                       {"metadata", header.metadata},
                       {"tensors", tensors_json(header)}};
    cli::write_out(json_text(json, 2) + "\n");
    return kExitOk;
  }
  cli::out("{}: a safetensors file (not a shard), {}, {}\n", path_text(options.path),
           cli::human_bytes(file_bytes), cli::counted(header.tensors.size(), "tensor"));
  Table table({Align::left, Align::left}, "  ");
  for (const auto& [key, value] : header.metadata) table.add_row({escape_key(key), escape_key(value)});
  if (table.rows() > 0) cli::out("metadata:\n{}", table.to_string());
  cli::write_out(tensors_table(header));
  return kExitOk;
}

int print_incomplete(const InfoOptions& options) {
  const auto shards = list_shard_files(options.path);
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  for (const std::string& file : shards) {
    const ShardReader reader = ShardReader::open(std::filesystem::path(options.path) / file);
    samples += reader.size();
    bytes += reader.file_size_bytes();
  }
  if (options.json) {
    const Json json = {{"kind", "dataset"},     {"path", path_text(options.path)},
                       {"state", "incomplete"}, {"samples", samples},
                       {"size_bytes", bytes},   {"shards_published", shards.size()}};
    cli::write_out(json_text(json, 2) + "\n");
    return kExitOk;
  }
  cli::out(
      "{}: an incomplete conversion: {} published, {}, {}\nrun the same shardify command "
      "again to finish it\n",
      path_text(options.path), cli::counted(shards.size(), "shard"), cli::counted(samples, "sample"),
      cli::human_bytes(bytes));
  return kExitOk;
}

}  // namespace

int info(const InfoOptions& options) {
  std::error_code error;
  const bool file =
      std::filesystem::exists(options.path, error) && !std::filesystem::is_directory(options.path, error);
  if (!file) {
    if (require_dataset_folder(parse_dataset_path(options.path).folder) == FolderState::incomplete)
      return print_incomplete(options);
  } else {
    const SafetensorsFile head = read_safetensors_head(options.path);
    if (head.header.metadata.count("shard.profile") == 0)
      return print_safetensors(head.header, head.size_bytes, options);
  }
  const Source source = Source::open(options.path);
  source.open_shards();
  return options.json ? print_source_json(source, options.path) : print_source(source, options.path);
}

void add_info(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* const command = app.add_subcommand("info", R"(
      Describe a data set or shard, and list its tensors with their offsets)");
  add_path(command, options->path, "The folder of a data set, a shard, or any safetensors file");
  add_json(command, options->json);
  command->callback([&chosen, options] { chosen = [options] { return info(*options); }; });
}

}  // namespace shard::ctl
