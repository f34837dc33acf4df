// export --files: the JPEG files of a data set with codec jpeg, in a folder, under their keys. Files that the
// conversion stored as they were are those files, byte for byte; inputs.csv proves it.
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unordered_set>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/convert/tables.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/file_names.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/dataset/source.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;

// Which files are inputs of the conversion, by key and digest.
class InputDigests {
 public:
  explicit InputDigests(const Source& source, const std::string& path) {
    if (is_remote(path) || !source.is_dataset() || source.info().provenance.contains("further_images"))
      return;
    const fs::path table = fs::path(parse_dataset_path(path).folder) / kInputsFile;
    known_ = convert::read_inputs(
        table, [&](const std::string& key, std::uint64_t digest) { digests_.insert(of(key, digest)); });
  }
  // False: nothing is known about any file.
  bool known() const noexcept { return known_; }
  bool has(std::string_view key, std::uint64_t digest) const { return digests_.contains(of(key, digest)); }

 private:
  static std::uint64_t of(std::string_view key, std::uint64_t digest) { return xxh3(key) ^ digest; }
  bool known_ = false;
  std::unordered_set<std::uint64_t> digests_;
};

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return;
  if (!error) error = std::error_code(errno, std::generic_category());
  throw Error(
      ErrorCode::io,
      fmt::format("cannot write {}: {}{}", quoted(path), error.message(),
                  error == std::errc::filename_too_long ? "; --format tar takes names of any length" : ""));
}

void require_files(const Source& source, const std::string& path) {
  const CodecSpec& codec = source.info().codec;
  if (codec.kind != CodecSpec::Kind::jpeg)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: codec {} keeps pixels and no files: --format tar writes them as PNG",
                            quoted(path), to_string(codec)));
}

}  // namespace

int export_files(const ExportOptions& options) {
  const Source source = Source::open(options.path, options.verify ? Check::digests : Check::none);
  require_files(source, options.path);
  const fs::path folder = options.folder;
  make_folder(folder);
  require_only(folder, [](const std::string&) { return false; });

  const InputDigests inputs(source, options.path);
  FileNames names;
  for (std::uint32_t i = 0; i < source.shards(); ++i)
    source.each_of(i, [&](std::uint64_t, std::uint64_t at) { names.add(source.shard(i).key(at)); });
  Damage damage;
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  std::vector<std::byte> sample;
  std::vector<std::byte> file;
  std::uint64_t written = 0;
  std::uint64_t bytes = 0;
  std::uint64_t originals = 0;
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardReader& reader = source.shard(i);
    source.each_of(i, [&](std::uint64_t index, std::uint64_t at) {
      const bool whole = damage.survives(index, [&] {
        if (options.verify) reader.verify_sample(at, sample);
        reader.images().read_file(at, file);
      });
      if (progress.due()) progress.update(fmt::format("{} of {} samples", index + 1, source.size()));
      if (!whole) return;
      const std::string key = reader.key(at);
      const bool is_input = inputs.has(key, xxh3(file));
      write_file(folder / names.name_of(key, is_input), file);
      ++written;
      bytes += file.size();
      originals += is_input ? 1 : 0;
    });
    reader.check_unchanged();
  }
  progress.finish();
  if (damage.found()) damage.report(fmt::format("{} of {} files were written", written, source.size()));
  if (!options.quiet) {
    cli::out("{}: {}, {}\n", path_text(folder), cli::counted(written, "file"), cli::human_bytes(bytes));
    if (inputs.known())
      cli::out("{} of them are the files that were converted, byte for byte (inputs.csv)\n",
               cli::human_count(originals));
  }
  return damage.found() ? kExitDifferent : kExitOk;
}

}  // namespace shard::ctl
