// Source: the samples of a data set folder or of one shard file, seen alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "shard/dataset.hpp"

namespace shard::ctl {

// Const members may be called from several threads at once. Readers are owned by the source.
class Source {
 public:
  // Errors: those of Dataset::open and ShardReader::open; a folder that is no data set says what it is.
  static Source open(const std::string& path);

  const DatasetInfo& info() const noexcept { return dataset_ ? dataset_->info() : shard_info_; }
  bool is_dataset() const noexcept { return dataset_.has_value(); }
  std::uint64_t size() const noexcept { return dataset_ ? dataset_->size() : reader_->size(); }
  std::uint32_t shards() const noexcept;
  const ShardReader& shard(std::uint32_t index) const { return dataset_ ? dataset_->shard(index) : *reader_; }

  struct Sample {
    const ShardReader& reader;
    std::uint64_t index;  // inside the shard
  };
  // Throws invalid_argument when index >= size().
  Sample locate(std::uint64_t index) const;
  // The sample's bytes (spec.size_bytes() of them). Errors: corrupt, io; a file cut meanwhile is one of them.
  void read(std::uint64_t index, std::span<std::byte> out) const;

 private:
  Source() = default;
  std::optional<Dataset> dataset_;
  std::optional<ShardReader> reader_;
  DatasetInfo shard_info_;  // of reader_: what its header says
};

// A path for messages and tables: escaped as keys are, so that no name can break the line or the terminal.
std::string path_text(const std::filesystem::path& path);

// Throws unless `folder` is a complete or incomplete data set; messages say what it is instead.
FolderState require_dataset_folder(const std::filesystem::path& folder);

}  // namespace shard::ctl
