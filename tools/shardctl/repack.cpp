// repack: the samples of a data set with another codec, without their images. Every sample is checked on the
// way, and the checksums of the samples stay what they were, except with codec jpeg, which changes pixels.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>

#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/publish.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/convert/tables.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMaxRejectsBytes = std::uint64_t{4} << 30;

DatasetInfo repacked_info(const DatasetInfo& from, const CodecSpec& codec) {
  DatasetInfo info = from;
  info.provenance.erase("sample_digests");  // all are known then
  // The samples are no longer what a conversion with this codec makes.
  if (from.codec.kind == CodecSpec::Kind::jpeg) info.provenance["decoded_from"] = to_string(from.codec);
  if (codec.kind == CodecSpec::Kind::jpeg) info.provenance["encoded_from"] = to_string(from.codec);
  info.fingerprint = convert::fingerprint_with_codec(info, codec);
  info.codec = codec;
  info.shards.clear();
  return info;
}

// New, empty, or with shards of a repack that was stopped.
void prepare_folder(const fs::path& folder, const DatasetInfo& from) {
  make_folder(folder);
  remove_stale_temporaries(folder);
  require_only(folder, [&](const std::string& name) {
    return name == kRejectsFile || name == kInputsFile ||
           std::any_of(from.shards.begin(), from.shards.end(),
                       [&](const auto& shard) { return shard.file == name; });
  });
}

// The rows of each column of a sample.
using Rows = std::vector<std::vector<std::byte>>;
void read_columns(const ShardReader& reader, const std::vector<ColumnSpec>& columns, std::uint64_t sample,
                  Rows& rows) {
  rows.resize(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c)
    reader.read_column(reader.columns().at(columns[c].name), sample, rows[c]);
}

// A sample of a field that keeps its codec, in `bytes`. Codec jpeg would lose something once more, so its
// frame stays.
SampleValues kept_field(const StoredImages& images, std::uint64_t sample, std::vector<std::byte>& bytes) {
  const FrameSpec of = images.frame_spec(sample);
  if (images.codec().lossy()) {
    images.read_frame(sample, bytes);
    SampleValues values(bytes, of.sample.height, of.sample.width);
    values.frame = {of.file, images.checksum(sample)};
    return values;
  }
  bytes.resize(static_cast<std::size_t>(of.sample.size_bytes()));
  images.read(sample, bytes);
  return {bytes, of.sample.height, of.sample.width};
}

// Whether a stored frame is what the codec makes of the sample.
bool is_frame_of(const StoredImages& images, std::uint64_t at, const SampleValues& sample) {
  FrameSpec of(images.spec_of(at));
  if (of.sample.size_bytes() != sample.bytes.size()) return false;
  return images.frame_checksum(at) == xxh3(images.codec().encode(sample.bytes, of));
}

SampleValues values_of(const StoredImages& images, std::uint64_t sample, std::span<const std::byte> bytes) {
  const SampleSpec of = images.spec_of(sample);
  return {bytes, of.height, of.width};
}

// A shard that an earlier run has finished: it must hold the same samples.
ShardSummary finished_shard(const fs::path& path, const ShardReader& from, const DatasetInfo& info) {
  const ShardReader there = ShardReader::open(path);
  const ShardHeader& header = there.header();
  bool same = !difference(header, info) && there.size() == from.size();
  Rows row;
  Rows expected;
  std::vector<std::byte> pixels;
  for (std::uint64_t sample = 0; same && sample < from.size(); ++sample) {
    same = there.key(sample) == from.key(sample);
    if (same && there.images().codec().lossy()) {
      from.verify_sample(sample, pixels);
      same = is_frame_of(there.images(), sample, values_of(from.images(), sample, pixels));
    } else if (same && !from.images().has_checksum(sample)) {
      from.verify_sample(sample, pixels);
      same = there.images().checksum(sample) == xxh3(pixels);
    } else {
      same = same && there.images().checksum(sample) == from.images().checksum(sample);
    }
    for (std::size_t f = 0; same && f < info.fields.size(); ++f)
      same = there.images(f).checksum(sample) == from.images(f).checksum(sample);
    if (!same) break;
    read_columns(there, info.columns, sample, row);
    read_columns(from, info.columns, sample, expected);
    same = row == expected;
  }
  if (!same)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: holds other samples, or these with another codec; give a new or empty folder",
                    quoted(path)));
  return {path.filename().string(), there.size(), there.file_size_bytes(), header.head_digest,
          header.largest_of_free()};
}

// Piece by piece: a row per input may be gigabytes.
void copy_text(const fs::path& from, const fs::path& to) {
  std::ifstream in(from, std::ios::binary);
  PendingFile out(to);
  std::string piece(std::size_t{1} << 20U, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    out.append(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
  if (in.bad() || !in.eof()) throw Error(ErrorCode::io, fmt::format("{}: cannot be read", quoted(from)));
  out.publish();
}

// What a thread keeps.
struct Buffers {
  std::vector<std::byte> sample;
  Rows columns;
  Rows fields;
  std::vector<std::span<const std::byte>> rows;  // views of them
  std::vector<SampleValues> images;
};

void refuse_second_loss(const DatasetInfo& from, const CodecSpec& codec, const std::string& path) {
  if (codec.kind == CodecSpec::Kind::jpeg && from.codec.kind == CodecSpec::Kind::jpeg)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} has codec {}: encoding its samples once more would only lose more of them; for "
                    "another quality convert the images again",
                    quoted(path), to_string(from.codec)));
}

// What the threads of a repack share.
struct Repacking {
  const Dataset& source;
  ShardWriterOptions options;
  std::vector<Buffers> buffers;  // by thread
  cli::Progress& progress;
  std::uint64_t done = 0;  // samples
};

// Writes shard `number` to `path`.
ShardSummary repack_shard(Repacking& all, std::uint32_t number, const fs::path& path) {
  const ShardReader& reader = all.source.shard(number);
  const DatasetSpec& spec = all.options;
  all.options.planned_key_bytes = 0;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample)
    all.options.planned_key_bytes += reader.key(sample).size();
  all.options.planned_rows.clear();
  for (const ColumnSpec& column : spec.columns)
    all.options.planned_rows.push_back(reader.columns().at(column.name).bytes.size() / column.row_bytes());
  ShardWriter writer = ShardWriter::create(path, reader.size(), all.options);
  const auto threads = static_cast<unsigned>(all.buffers.size());
  parallel_for(threads, reader.size(), [&](unsigned thread, std::uint64_t sample) {
    Buffers& own = all.buffers[thread];
    reader.verify_sample(sample, own.sample);
    read_columns(reader, spec.columns, sample, own.columns);
    own.rows.assign(own.columns.begin(), own.columns.end());
    own.fields.resize(spec.fields.size());
    own.images.clear();
    for (std::size_t f = 0; f < own.fields.size(); ++f)
      own.images.push_back(kept_field(reader.images(f), sample, own.fields[f]));
    writer.put(sample, reader.key(sample), own.rows, values_of(reader.images(), sample, own.sample),
               own.images);
    if (all.progress.due())
      all.progress.update(fmt::format("{} of {} samples, {} of {} shards", all.done + sample,
                                      all.source.size(), number, all.source.info().shards.size()));
  });
  return writer.publish();
}

void print_repacked(const RepackOptions& options, const DatasetInfo& from, const DatasetInfo& to,
                    std::uint64_t samples) {
  const auto bytes = [](const DatasetInfo& of) {
    std::uint64_t sum = 0;
    for (const ShardSummary& shard : of.shards) sum += shard.size_bytes;
    return sum;
  };
  cli::out("{}: {} samples, codec {} -> {}, {} -> {} ({:.2f} of it)\n", path_text(options.folder),
           cli::human_count(samples), to_string(from.codec), to_string(to.codec),
           cli::human_bytes(bytes(from)), cli::human_bytes(bytes(to)),
           static_cast<double>(bytes(to)) / static_cast<double>(bytes(from)));
  if (to.codec.kind == CodecSpec::Kind::jpeg)
    cli::out("all samples were encoded with quality {}: their pixels are no longer those of {}\n",
             to.codec.level, path_text(options.path));
}

}  // namespace

int repack(const RepackOptions& options) {
  const CodecSpec codec = codec_spec_from_string(options.codec);
  if (!parse_dataset_path(options.path).selection.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is part of a data set; repack takes whole ones", quoted(options.path)));
  if (is_remote(options.path))
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} is on a server, and repack reads folders: bring it here with `shardctl copy` first",
                    quoted(options.path)));
  std::optional<convert::TableGuard> guard;
  if (folder_state(options.path) == FolderState::complete) guard.emplace(options.path);
  const Dataset source = Dataset::open(options.path);
  const DatasetInfo& from = source.info();
  refuse_second_loss(from, codec, options.path);
  DatasetInfo info = repacked_info(from, codec);
  static_cast<void>(Codec(codec, info.spec));  // throws, before there is a folder, if it cannot hold them
  const fs::path folder = options.folder;
  prepare_folder(folder, from);

  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  Repacking all{source, ShardWriterOptions(info), std::vector<Buffers>(thread_count(options.jobs)), progress};
  for (std::uint32_t i = 0; i < from.shards.size(); ++i) {
    const fs::path path = folder / from.shards[i].file;
    info.shards.push_back(fs::exists(path) ? finished_shard(path, source.shard(i), info)
                                           : repack_shard(all, i, path));
    all.done += source.shard(i).size();
  }
  progress.finish();
  const std::vector<std::byte> rejects = read_file(fs::path(options.path) / kRejectsFile, kMaxRejectsBytes);
  publish_file(folder / kRejectsFile,
               std::string_view(reinterpret_cast<const char*>(rejects.data()), rejects.size()));
  // The inputs are the same. Data sets of earlier versions do not have this file.
  if (fs::exists(fs::path(options.path) / kInputsFile))
    copy_text(fs::path(options.path) / kInputsFile, folder / kInputsFile);
  if (guard) guard->check();
  publish_file(folder / kDatasetFile, serialize_dataset(info));

  if (!options.quiet) print_repacked(options, from, info, source.size());
  return kExitOk;
}

void add_repack(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<RepackOptions>();
  CLI::App* const command = app.add_subcommand("repack", R"(
      Write a data set with another codec, without decoding images again

      The checksums of the samples stay the same, except with codec jpeg, which encodes them with its quality and so changes
      pixels. A stopped repack continues with the same command.)");
  add_path(command, options->path, "The folder of a data set");
  command->add_option("NEW", options->folder, "The folder to write: new, empty, or of a stopped repack")
      ->required();
  command
      ->add_option("--codec", options->codec,
                   "none, packed, zstd[:1..19], or jpeg[:1..100]: encoded with this quality, 95 by default")
      ->type_name("none|packed|zstd|jpeg")
      ->required();
  add_jobs(command, options->jobs);
  add_quiet(command, options->quiet, "Print nothing");
  runs(command, chosen, [options] { return repack(*options); });
}

}  // namespace shard::ctl
