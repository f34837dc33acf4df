// A shard's file opened a second time, for reads past the page cache.
#pragma once

#include <cstdint>

#include "shard/shard_reader.hpp"
#include "shard/unique_handle.hpp"

namespace shard {

class DirectFile {
 public:
  // The very file that `shard` has mapped, whatever stands under its name now. Errors: unsupported (the
  // filesystem has no O_DIRECT), resource (too many open files), io; naming the path.
  explicit DirectFile(const ShardReader& shard);
  int descriptor() const noexcept { return descriptor_.get(); }
  // Offsets, sizes and addresses of reads are multiples of this: 512 to 4096 bytes (what statx() says where
  // the kernel knows, else 4096).
  std::uint32_t alignment() const noexcept { return alignment_; }

 private:
  UniqueFd descriptor_;
  std::uint32_t alignment_ = 4096;
};

}  // namespace shard
