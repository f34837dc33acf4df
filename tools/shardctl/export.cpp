// export --format npy: images.npy, labels.npy, keys.txt and classes.txt; memory stays at a few samples.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <filesystem>
#include <memory>

#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/npy.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;

void prepare_folder(const fs::path& folder) {
  make_folder(folder);
  require_only(folder, [](const std::string& name) {
    // Left by an export that was killed, of this or an earlier version.
    return is_temporary_name(name) || (name.starts_with(".") && name.ends_with(".partial"));
  });
  remove_temporaries(folder);
}

void write_labels(const Source& source, PendingFile& file) {
  const auto& columns = source.shard(0).columns();
  const auto labels = columns.find("labels");
  if (labels == columns.end()) {
    throw Error(ErrorCode::unsupported, fmt::format("{}: has no labels", quoted(source.shard(0).path())));
  }
  std::vector<std::uint64_t> shape{source.size()};
  shape.insert(shape.end(), labels->second.row_shape.begin(), labels->second.row_shape.end());
  file.append(npy_header(npy_name(labels->second.dtype), shape));
  std::vector<std::byte> rows;
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardReader& reader = source.shard(i);
    const Column& column = reader.columns().at("labels");
    rows.resize(column.row_bytes);
    source.each_of(i, [&](std::uint64_t, std::uint64_t sample) {
      reader.read_rows(column, sample, rows);
      file.append(rows);
    });
    reader.check_unchanged();
  }
}

// NAME.npy of each column beside the labels; of those that are ragged or text the rows of all samples,
// and NAME_offsets.npy.
class ColumnFiles {
 public:
  ColumnFiles(const Source& source, const fs::path& folder) {
    for (std::size_t c = 1; c < source.info().columns.size(); ++c)
      write(source, source.info().columns[c], folder);
  }
  const std::vector<std::string>& names() const { return names_; }
  std::vector<PendingFile*> files() const {
    std::vector<PendingFile*> all;
    for (const auto& file : files_) all.push_back(file.get());
    return all;
  }

 private:
  PendingFile& add(const fs::path& folder, const std::string& name, const std::string& header) {
    names_.push_back(name);
    PendingFile& file = *files_.emplace_back(std::make_unique<PendingFile>(folder / name));
    file.append(header);
    return file;
  }

  void write(const Source& source, const ColumnSpec& spec, const fs::path& folder) {
    for (const std::string& taken : {std::string("images"), std::string("labels")})
      if (spec.name == taken || spec.name + "_offsets" == taken) refuse(spec);
    if (spec.name.find('/') != std::string::npos || spec.name.find('\0') != std::string::npos ||
        spec.name.starts_with('.'))
      refuse(spec);
    const bool fixed = spec.kind == ColumnKind::fixed;
    std::vector<std::uint64_t> ends{0};
    std::vector<std::byte> rows;
    const auto each = [&](const auto& use) {
      for (std::uint32_t i = 0; i < source.shards(); ++i) {
        const ShardReader& reader = source.shard(i);
        source.each_of(
            i, [&](std::uint64_t, std::uint64_t sample) { use(reader, reader.column(spec.name), sample); });
        reader.check_unchanged();
      }
    };
    if (!fixed)
      each([&](const ShardReader& reader, const Column& column, std::uint64_t sample) {
        ends.push_back(ends.back() + reader.rows_of(column, sample).count);
      });
    std::vector<std::uint64_t> shape{fixed ? source.size() : ends.back()};
    shape.insert(shape.end(), spec.row_shape.begin(), spec.row_shape.end());
    const bool widen = spec.dtype == DType::bf16;
    PendingFile& file =
        add(folder, spec.name + ".npy", npy_header(npy_name(widen ? DType::f32 : spec.dtype), shape));
    std::vector<std::byte> wide;
    each([&](const ShardReader& reader, const Column& column, std::uint64_t sample) {
      reader.read_column(column, sample, rows);
      if (widen) {
        wide.resize(rows.size() * 2);
        widen_bf16(rows, wide);
      }
      file.append(std::span<const std::byte>(widen ? wide : rows));
    });
    if (fixed) return;
    add(folder, spec.name + "_offsets.npy", npy_header("<i8", {ends.size()}))
        .append(std::as_bytes(std::span(ends)));
  }

  [[noreturn]] static void refuse(const ColumnSpec& spec) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("column {} cannot be a file of this name: it is one of the others, or no plain name",
                    quoted(spec.name)));
  }

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<PendingFile>> files_;
};

// All are read also after the first damage, so that every damaged one is named; they are no longer written
// then.
void write_images(const Source& source, PendingFile& file, bool quiet, Damage& damage) {
  const SampleSpec& spec = source.info().spec;
  const bool widen = spec.dtype == DType::bf16;
  std::vector<std::uint64_t> shape{source.size()};
  for (const std::uint32_t axis : spec.shape()) shape.push_back(axis);
  file.append(npy_header(npy_name(widen ? DType::f32 : spec.dtype), shape));
  cli::Progress progress(quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  std::vector<std::byte> sample(spec.size_bytes());
  std::vector<std::byte> wide(widen ? spec.size_bytes() * 2 : 0);
  for (std::uint64_t index = 0; index < source.size(); ++index) {
    const bool whole = damage.survives(index, [&] { source.read(index, sample); });
    if (whole && !damage.found()) {
      if (widen) widen_bf16(sample, wide);
      file.append(widen ? std::span<const std::byte>(wide) : std::span<const std::byte>(sample));
    }
    if (progress.due()) progress.update(fmt::format("{} of {} samples", index + 1, source.size()));
  }
}

}  // namespace

int export_npy(const ExportOptions& options) {
  const Source source = Source::open(options.path, options.verify ? Check::digests : Check::none);
  if (source.info().spec.is_free())
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: its samples are of any size, and images.npy is one array of one size: --format "
                    "tar writes each sample as a file of its own size",
                    quoted(options.path)));
  const fs::path folder = options.folder;
  prepare_folder(folder);

  PendingFile images(folder / "images.npy");
  PendingFile labels(folder / "labels.npy");
  PendingFile keys(folder / "keys.txt");
  PendingFile classes(folder / "classes.txt");
  write_labels(source, labels);
  const ColumnFiles columns(source, folder);
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardReader& reader = source.shard(i);
    source.each_of(i, [&](std::uint64_t, std::uint64_t sample) {
      keys.append(reader.key(sample));
      keys.append("\n");
    });
  }
  for (const std::string& name : source.info().classes) classes.append(name + "\n");
  Damage damage;
  write_images(source, images, options.quiet, damage);
  if (damage.found()) {
    damage.report("nothing was written");
    return kExitDifferent;
  }
  // Nothing is visible before all are written.
  std::vector<PendingFile*> files = columns.files();
  files.insert(files.end(), {&labels, &keys, &classes, &images});
  for (PendingFile* file : files) file->flush();
  for (PendingFile* file : files) file->publish();

  if (!options.quiet) {
    std::string others;
    for (const std::string& name : columns.names()) others += ", " + escape_key(name);
    cli::out("{}: {} samples in images.npy, labels.npy, keys.txt, classes.txt{}\n", path_text(folder),
             cli::human_count(source.size()), others);
    if (source.info().spec.dtype == DType::bf16) {
      cli::write_out("note: numpy has no bfloat16; images.npy holds the same numbers as float32\n");
    }
  }
  return kExitOk;
}

namespace {

int export_as(ExportOptions options, const std::string& files, bool npy_given, bool format_given) {
  if (!files.empty()) {
    if (npy_given || format_given || !options.folder.empty())
      throw Error(ErrorCode::invalid_argument,
                  "--files names what is written, and the folder: give it alone");
    options.folder = files;
    return export_files(options);
  }
  if (npy_given && options.format != "npy")
    throw Error(ErrorCode::invalid_argument, "--npy is another word for --format npy: give one of them");
  if (options.format == "parquet")
    throw Error(ErrorCode::unsupported,
                fmt::format("shardctl writes no Parquet: pip install 'shardloader[parquet]', then run python "
                            "-m shardloader export "
                            "{} --parquet {}",
                            options.path, options.folder.empty() ? "FILE.parquet" : options.folder));
  if (options.folder.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("export needs --output PATH{}",
                            options.format == "npy" ? ", --npy DIR or --files DIR" : ""));
  return options.format == "tar" ? export_tar(options) : export_npy(options);
}

}  // namespace

void add_export(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* const command = app.add_subcommand(
      "export", "Write the samples as .npy files, as a WebDataset, or as the files they were");
  add_path(command, options->path);
  command
      ->add_option("--npy", options->folder, R"(
      The folder to write, new or empty: images.npy (bfloat16 becomes float32), labels.npy, keys.txt, classes.txt)")
      ->type_name("DIR");
  const auto files = std::make_shared<std::string>();
  command
      ->add_option("--files", *files, R"(
      The folder to write, new or empty: of a data set with codec jpeg the JPEG files, under their keys. Those that were stored
      as they are become the same files, byte for byte)")
      ->type_name("DIR");
  command
      ->add_option("--format", options->format, R"(
      npy: as --npy; tar: a WebDataset, with KEY.png (KEY.jpg with codec jpeg, else KEY.npy), KEY.cls and KEY.json for each
      sample, which shardify reads again; parquet: says which Python command writes it)")
      ->check(CLI::IsMember({"npy", "tar", "parquet"}))
      ->capture_default_str()
      ->type_name("npy|tar|parquet");
  command->add_option("-o,--output", options->folder, "The folder or, of tar, the file to write")
      ->type_name("PATH");
  add_verify(command, options->verify);
  add_quiet(command, options->quiet, "Print nothing");
  const CLI::Option* const npy = command->get_option("--npy");
  const CLI::Option* const format = command->get_option("--format");
  runs(command, chosen, [options, files, npy, format] {
    return export_as(*options, *files, npy->count() != 0, format->count() != 0);
  });
}

}  // namespace shard::ctl
