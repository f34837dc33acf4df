// Dataset: a folder with dataset.json, the shards it names, and rejects.csv.
//
// dataset.json is written last and atomically: a folder that has it is complete. It ends in a digest of
// itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shard/shard_reader.hpp"
#include "shard/shard_writer.hpp"

namespace shard {

struct DatasetInfo {
  SampleSpec spec;
  Normalization normalization;
  Pipeline pipeline;
  Codec codec;
  std::string fingerprint;
  std::vector<ColumnSpec> columns{{"labels", DType::i64, {}}};
  std::vector<std::string>
      classes;                // escaped names; class id = position; empty when labels come from a table
  std::string source_digest;  // 16 hexadecimal digits over the sorted list of inputs, their sizes and labels
  std::uint64_t inputs = 0;   // samples + rejects
  std::uint64_t rejects = 0;
  std::vector<ShardSummary>
      shards;  // in order; sample i of the data set lies in the shard that holds the i-th sample
  std::uint64_t samples() const noexcept;
};

// JSON with a digest of everything before it; deterministic.
std::string serialize_dataset(const DatasetInfo& info);
// Errors: corrupt, unsupported. File names in it are plain names (no '/', not "." or "..").
DatasetInfo parse_dataset(std::string_view json);

inline constexpr const char* kDatasetFile = "dataset.json";
inline constexpr const char* kRejectsFile = "rejects.csv";
inline constexpr const char* kInputsFile = "inputs.csv";  // size and digest of each input

enum class FolderState { absent, empty, foreign, incomplete, complete };
// foreign: not empty and not ours. incomplete: a conversion to be resumed (kPlanFile and no dataset.json).
FolderState folder_state(const std::filesystem::path& folder);
inline constexpr const char* kPlanFile = "conversion.json";

// Atomically creates or replaces `path` with `content`: temporary file, write, fsync, rename, fsync of the
// folder. Errors: io.
void publish_file(const std::filesystem::path& path, std::string_view content);

class Dataset {
 public:
  // Reads dataset.json and checks that each shard file exists with the size stated; shards are mapped at
  // first use, and looked up in the folder that was opened, wherever it or this process moves. One
  // descriptor, the folder's, stays open. Errors: not_found (also: incomplete conversion, saying so),
  // corrupt, unsupported, resource, io.
  static Dataset open(const std::filesystem::path& folder);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  const std::filesystem::path& folder() const noexcept;
  const DatasetInfo& info() const noexcept;
  std::uint64_t size() const noexcept;  // samples

  struct Location {
    std::uint32_t shard = 0;
    std::uint64_t sample = 0;  // inside the shard
  };
  Location locate(std::uint64_t index) const;  // binary search; throws invalid_argument when index >= size()

  // The shard, opened at its first use; stays open as long as the data set. Thread safe, takes no lock, and
  // may be called in a child after fork(). Throws corrupt when the file does not match dataset.json (digest
  // of the head, samples, spec, codec, fingerprint), naming both; else as ShardReader::open().
  const ShardReader& shard(std::uint32_t index) const;
  // The same shard if it is open already, else null: never opens one. Thread safe. `index`: less than the
  // number of shards.
  const ShardReader* opened(std::uint32_t index) const noexcept;

 private:
  struct Impl;
  explicit Dataset(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
