// DirectFiles: the descriptors of a data set's shards for reads past the page cache. The least recently used
// are closed, so that any number of shards is read with few descriptors.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "direct/direct_file.hpp"
#include "shard/dataset.hpp"

namespace shard {

// Not thread safe.
class DirectFiles {
 public:
  // As many descriptors as this process may still open, less what others need, 256 at most.
  explicit DirectFiles(Dataset dataset);
  // At most `descriptors`, at least 1.
  DirectFiles(Dataset dataset, std::size_t descriptors);

  // The file of a shard, opened or open already. Null: all descriptors belong to files that are in use (whose
  // pointers somebody holds), so that one of them must be given back first. Errors: those of DirectFile;
  // resource, when not even one more file can be opened and none of ours is in use.
  std::shared_ptr<const DirectFile> open(std::uint32_t shard);

  std::size_t descriptors() const noexcept { return limit_; }
  std::size_t open_files() const noexcept { return files_.size(); }

 private:
  struct Entry {
    std::uint32_t shard = 0;
    std::shared_ptr<const DirectFile> file;
  };
  bool close_one();  // the one that was used longest ago and is in use no more

  Dataset dataset_;
  std::size_t limit_;
  std::list<Entry> files_;  // the one used last comes first
  std::unordered_map<std::uint32_t, std::list<Entry>::iterator> by_shard_;
};

}  // namespace shard
