// Dataset: a folder with dataset.json, the shards it names, and rejects.csv; or one shard file alone; or
// several of these as one; or a selection of the samples of any of them.
//
// dataset.json is written last and atomically, so a folder that has it is complete. It ends with a digest of
// itself.
//
//   const shard::Dataset data = shard::Dataset::open("train/");
//   std::vector<std::byte> sample(data.info().spec.size_bytes());
//   for (std::uint64_t i = 0; i < data.size(); ++i) {
//     data.read(i, sample);
//     use(sample, data.label(i), data.key(i));
//   }
//   const auto [train, validation] = data.split(0.9);
//   const shard::Dataset both = shard::Dataset::open({"monday/", "tuesday/"});
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shard/error.hpp"
#include "shard/selection.hpp"
#include "shard/shard_reader.hpp"
#include "shard/shard_writer.hpp"
#include "shard/target_kinds.hpp"

namespace shard {

class HoldingFile;

// One of the conversions that a data set was put together from (`shardctl join`, `shardify --append`).
struct SourcePart {
  // What the data set of this conversion alone says.
  std::string source_digest;
  std::uint64_t inputs = 0;
  std::uint64_t rejects = 0;
  // How many of the shards are its own.
  std::uint64_t shards = 0;
  bool operator==(const SourcePart&) const = default;
};

// rejects.csv or inputs.csv as it was written.
struct TableSummary {
  std::string file;
  std::uint64_t size_bytes = 0;
  // XXH3-64 of its bytes.
  std::uint64_t digest = 0;
  bool operator==(const TableSummary&) const = default;
};

struct DatasetInfo : DatasetSpec {
  DatasetInfo() = default;
  explicit DatasetInfo(DatasetSpec of) : DatasetSpec(std::move(of)) {}

  // Escaped names; the class id is the position. Empty if the labels come from a table.
  std::vector<std::string> classes;
  // 16 hexadecimal digits over the sorted list of inputs, their sizes and labels.
  // With parts: over their digests.
  std::string source_digest;
  // inputs = samples + rejects.
  std::uint64_t inputs = 0;
  std::uint64_t rejects = 0;
  // The conversions whose shards these are, in order: at least two. Empty: all shards are of one conversion.
  std::vector<SourcePart> parts;
  // Inputs per shard, of which rejects were left out; the last shard of each part has the rest. It is part of
  // the fingerprint. 0: not recorded (data sets of earlier versions).
  std::uint64_t samples_per_shard = 0;
  // The columns that the conversion knows to be boxes or keypoints. Shards do not record it.
  // See known_targets().
  TargetKinds targets;
  // Of several data sets whose codecs differ in more than their level, also of further image fields. `codec`
  // is that of the first.
  bool mixed_codecs = false;
  // Codec jpeg, and some samples are JPEG files that nobody has converted: their indices are made where they
  // are decoded.
  bool unindexed_files = false;
  // The samples of the data set are those of the first shard, then of the second, and so on.
  std::vector<ShardSummary> shards;
  // The tables beside dataset.json. Empty: not recorded (data sets of earlier versions).
  std::vector<TableSummary> tables;
  // Null: the table is not recorded.
  const TableSummary* table(std::string_view file) const noexcept;
  std::uint64_t samples() const noexcept;
  // What the largest samples of a free image field have: of fields[*field], or of the main images. Of a field
  // that is not free, each sample has its spec, and frame_bytes is 0 here.
  LargestSample largest(std::optional<std::size_t> field = {}) const;
};

// Which columns are certainly boxes or keypoints: DatasetInfo::targets, and in data sets of versions
// that did not record them, the columns of --coco, --yolo and --voc, which are known by what else
// these conversions record.
TargetKinds known_targets(const DatasetInfo& info);

// JSON with a digest of everything before it; deterministic.
std::string serialize_dataset(const DatasetInfo& info);
// Errors: corrupt, unsupported. File names in it are plain names (no '/', not "." or "..").
DatasetInfo parse_dataset(std::string_view json);

inline constexpr const char* kDatasetFile = "dataset.json";
inline constexpr const char* kRejectsFile = "rejects.csv";
// Size and digest of each input.
inline constexpr const char* kInputsFile = "inputs.csv";

// foreign: not empty, and not made by a conversion. incomplete: a conversion that can be resumed (kPlanFile
// exists, dataset.json does not).
enum class FolderState { absent, empty, foreign, incomplete, complete };
FolderState folder_state(const std::filesystem::path& folder);
inline constexpr const char* kPlanFile = "conversion.json";

// What a path of a data set names: FOLDER#NAME is the selection NAME of FOLDER,
// which save_selection() has written. A path that exists is itself.
struct DatasetPath {
  std::filesystem::path folder;  // or shard file
  std::string selection;         // empty: all samples
};
DatasetPath parse_dataset_path(const std::filesystem::path& path);
// 1 to 64 letters, digits, '-', '_' and '.', not beginning with '.'. Throws invalid_argument.
void check_selection_name(const std::string& name);

// Creates or replaces `path` with `content`, atomically: temporary file, write, fsync, rename, fsync of the
// folder. Errors: io.
void publish_file(const std::filesystem::path& path, std::string_view content);

// A cheap handle: copies share the mappings, which stay until the last of them is gone (or the last loader or
// batch that uses them). Several threads may call const members at once. Only assignment and destruction are
// allowed on a handle that was moved from.
class Dataset {
 public:
  // A folder: reads dataset.json and checks that each shard file exists with the recorded size. Shards are
  // mapped at their first use. They are looked up in the folder that was opened, even if it is renamed later
  // or the working folder changes. One descriptor, the folder's, stays open.
  // A regular file: opens it as the only shard of a data set; `info` is what its header says.
  // FOLDER#NAME: opens the selection that save_selection(NAME) has written there.
  // Errors: not_found (also for an incomplete conversion, which the message says), corrupt, unsupported,
  // resource, io.
  static Dataset open(const std::filesystem::path& path);
  // Several data sets as one: the samples of the first, then those of the second, and so on. Sample,
  // normalization and columns must agree. Classes are joined by name: those of the first data set keep their
  // labels, new ones follow, and labels are mapped when they are read. The codecs may differ. Errors: those
  // of open() and concat().
  static Dataset open(std::span<const std::filesystem::path> paths);
  static Dataset open(std::initializer_list<std::filesystem::path> paths);
  // Errors: invalid_argument, naming the two data sets and what differs.
  static Dataset concat(std::span<const Dataset> parts);

  // The selected samples, in the order of this data set, as a data set. It shares the mappings, and
  // needs at most 0.15 bytes for each sample of the shards that it touches. info() has these shards
  // only, with the number of selected samples of each. Errors: invalid_argument (nothing is selected),
  // and those of the selection.
  Dataset select(const Selection& selection) const;
  // The samples whose key's hash is in the first `fraction` of all hashes, and the others:
  // Selection::hashed(). A split of a part is independent of the split that made it, also with the
  // same seed: it takes the first hash of the seed that has not cut the data yet. FOLDER#NAME knows by
  // which hashes it was cut.
  std::pair<Dataset, Dataset> split(double fraction, std::uint64_t seed = 0) const;
  // Cross validation: the samples to train with, and those of part k of n, which are held out.
  std::pair<Dataset, Dataset> fold(std::uint32_t k, std::uint32_t n, std::uint64_t seed = 0) const;
  // How many hashes of this seed have cut the data: the level for Selection::hashed() of a further,
  // independent cut.
  std::uint32_t cuts(std::uint64_t seed) const;
  // Writes which samples this data set has to the file NAME.selection in its folder, atomically, for
  // open("FOLDER#NAME") (docs/format.md, "Selections"). Not a copy: the data set that is opened later must
  // have the same shards, else open() throws corrupt and says so. Errors: those of check_selection_name();
  // invalid_argument (a lone shard; several data sets as one); io.
  void save_selection(const std::string& name) const;
  // Says which samples of which shards the data set has, by a digest of the shards' heads and of the
  // selection. 0: exactly those of one folder or file.
  std::uint64_t selection_digest() const;

  // Shards are on a server (shard/remote.hpp), and not all of them were in the cache, proven,
  // when this object was made.
  bool is_remote() const noexcept;

  // Some samples are those of images that are not converted (convert::open_source()).
  bool is_unconverted() const noexcept;
  // Of such images: the files that hold those of many samples, as tar archives do. They live as long as the
  // data set, and each is there once. For loaders.
  std::vector<const HoldingFile*> holding_files() const;

  // As it was given to open(). Of several data sets: their paths, with " + " between them.
  const std::filesystem::path& path() const noexcept;
  // The folder that the shards are in; the first one if there are several.
  const std::filesystem::path& folder() const noexcept;
  // Opened from a shard file, without a dataset.json.
  bool is_lone_shard() const noexcept;
  // Of a selection: `samples` of a shard counts the selected ones, and `inputs` is their sum.
  const DatasetInfo& info() const noexcept;
  // Number of samples.
  std::uint64_t size() const noexcept;

  // `sample` counts all samples of the shard, also those that are not selected.
  struct Location {
    std::uint32_t shard = 0;
    std::uint64_t sample = 0;
  };
  // Binary searches. Throws invalid_argument if index >= size().
  Location locate(std::uint64_t index) const;

  // Sample `index`, decoded, is copied to `out` (info().spec.size_bytes() long). Its checksum is not
  // compared. Errors: those of locate(), shard() and StoredImages::read().
  void read(std::uint64_t index, std::span<std::byte> out) const;
  // Errors: those of locate() and shard(); label() also unsupported if labels are not I64 [N].
  std::int64_t label(std::uint64_t index) const;
  // An escaped key (keys.hpp).
  std::string key(std::uint64_t index) const;
  // Copies what column `name` has for the sample to `out`, which is resized: one row, or any number of them
  // if the column is ragged, or UTF-8 text. Labels are as they are stored. Errors: not_found (no such
  // column), and those of locate(), shard() and ShardReader::read_column().
  void read_column(std::uint64_t index, std::string_view name, std::vector<std::byte>& out) const;
  // Errors: those of read_column(), and unsupported if the column is not text.
  std::string text(std::uint64_t index, std::string_view name) const;
  // The sample of a further image field, info().fields[field], decoded, is copied to `out` (as long as the
  // field's spec says). Errors: those of locate(), shard(), ShardReader::images() and
  // StoredImages::read().
  void read_field(std::size_t field, std::uint64_t index, std::span<std::byte> out) const;
  // The label in this data set of a sample that has the label `stored` in that shard. Errors: corrupt.
  std::int64_t label_of(std::uint32_t shard, std::int64_t stored) const;
  // Some labels of the shard are not as they are stored.
  bool maps_labels(std::uint32_t shard) const noexcept;

  // Opens the shard at its first use; it stays open as long as the data set. It takes no lock, and may be
  // called in a child after fork(). Throws corrupt, naming both files, if the shard does not match
  // dataset.json (digest of the head, samples, spec, codec, fingerprint). Other errors: as
  // ShardReader::open().
  const ShardReader& shard(std::uint32_t index) const;
  // The same shard if it is already open, else null. `index` is less than the number of shards.
  const ShardReader* opened(std::uint32_t index) const noexcept;
  // The shard's file, and what the dataset.json beside it says. Valid as long as the data set.
  struct Source {
    std::filesystem::path path;
    const DatasetInfo& dataset;
    const ShardSummary& shard;
  };
  Source source(std::uint32_t index) const;

 private:
  friend class DatasetPart;
  friend class FrameView;
  friend class ShardStore;
  struct Impl;
  explicit Dataset(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shard
