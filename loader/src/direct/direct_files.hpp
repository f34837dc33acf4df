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
  // At most as many descriptors as this process may still open, less a share for others; at most 256.
  explicit DirectFiles(Dataset dataset);
  // At most `descriptors`, at least 1.
  DirectFiles(Dataset dataset, std::size_t descriptors);

  // The file of a shard, which is opened if it is not open yet. Null: all descriptors are of files that are
  // in use (somebody holds their pointers), so the caller must first release one. Errors: those of
  // DirectFile; resource, if no further file can be opened and none of ours is in use.
  std::shared_ptr<const DirectFile> open(std::uint32_t shard);

  std::size_t descriptors() const noexcept { return limit_; }
  std::size_t open_files() const noexcept { return files_.size(); }

 private:
  struct Entry {
    std::uint32_t shard = 0;
    std::shared_ptr<const DirectFile> file;
  };
  bool close_one();  // closes the least recently used file that is not in use; false: there is none

  Dataset dataset_;
  std::size_t limit_;
  std::list<Entry> files_;  // the one used last comes first
  std::unordered_map<std::uint32_t, std::list<Entry>::iterator> by_shard_;
};

}  // namespace shard
