// A shard's file opened a second time, for reads past the page cache.
#pragma once

#include "base/unique_handle.hpp"
#include "shard/shard_reader.hpp"

namespace shard {

class DirectFile {
 public:
  // Opens the shard's path; it must still be the file that is mapped. Errors: unsupported (the filesystem has
  // no O_DIRECT), resource (too many open files), corrupt (it was replaced), io; naming the path.
  explicit DirectFile(const ShardReader& shard);
  int descriptor() const noexcept { return descriptor_.get(); }

 private:
  UniqueFd descriptor_;
};

}  // namespace shard
