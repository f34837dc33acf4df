// Source: the samples of a data set folder or of one shard file, seen alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shard/dataset.hpp"

namespace shard::ctl {

enum class Check : std::uint8_t {
  // Whatever is read is compared with its digest: the head of a shard when it is first used, a sample when it
  // is read.
  digests,
  none,
};

// Const members may be called from several threads at once. Readers are owned by the source.
class Source {
 public:
  // Errors: those of Dataset::open and ShardReader::open; a folder that is no data set says what it is.
  static Source open(const std::string& path, Check check = Check::digests);

  const DatasetInfo& info() const noexcept { return data_.info(); }
  bool is_dataset() const noexcept { return !data_.is_lone_shard(); }
  // A selection of a data set: FOLDER#NAME.
  bool is_part() const noexcept { return data_.path() != data_.folder() && is_dataset(); }
  std::uint64_t size() const noexcept { return data_.size(); }
  std::uint32_t shards() const noexcept;
  // Errors: corrupt when the head of the shard does not have its digest.
  const ShardReader& shard(std::uint32_t index) const;

  // Before all shards are used: opens those on a server, several at a time.
  // Does nothing where they are files.
  void open_shards() const;

  struct Sample {
    const ShardReader& reader;
    std::uint64_t index;  // inside the shard
  };
  // Calls f(index, sample) for the samples of a shard that belong to the data set;
  // `sample` counts inside the shard.
  template <class F>
  void each_of(std::uint32_t shard, const F& f) const {
    const std::uint64_t begin = first_[shard];
    for (std::uint64_t index = begin; index < begin + info().shards[shard].samples; ++index)
      f(index, data_.locate(index).sample);
  }
  // Throws invalid_argument when index >= size(), and what shard() throws.
  Sample locate(std::uint64_t index) const;
  // The sample's bytes (those of its spec). Errors: corrupt, also when the bytes do not have their
  // checksum; io; a file cut meanwhile is one of them.
  // `field`: of a further image field, info().fields[*field].
  void read(std::uint64_t index, std::span<std::byte> out, std::optional<std::size_t> field = {}) const;
  // The same into `out`, which gets their number. Returns what the sample is: of a free field, with its rows
  // and columns.
  SampleSpec read(std::uint64_t index, std::vector<std::byte>& out,
                  std::optional<std::size_t> field = {}) const;
  SampleSpec spec_of(std::uint64_t index, std::optional<std::size_t> field = {}) const;

 private:
  Source(Dataset data, Check check);
  Dataset data_;
  Check check_;
  std::vector<std::uint64_t> first_;                // of each shard: the index of its first sample
  std::unique_ptr<std::once_flag[]> head_checked_;  // [shards]
};

// A path for messages and tables: escaped as keys are, so that no name can break the line or the terminal.
std::string path_text(const std::filesystem::path& path);

// Throws unless `folder` is a complete or incomplete data set; messages say what it is instead.
FolderState require_dataset_folder(const std::filesystem::path& folder);

}  // namespace shard::ctl
