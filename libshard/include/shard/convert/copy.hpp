// Copies a whole data set: from a folder or a server to a folder, or from a folder to an object store.
//
//   shards, several at a time   each is proven by its digests, and appears under its name then
//     -> rejects.csv, inputs.csv, selections
//     -> dataset.json
//
// So a copy that was stopped, however, is no data set yet, and the same call goes on: what is there is proven
// and not moved again. A folder or prefix that holds another data set is refused, and nothing in it changes;
// one with an equal data set is complete. Where the same data set lacks shards, these are copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// Bytes of shards. Moved ones were received or sent, or copied from folder to folder.
struct CopyProgress {
  std::uint64_t total_bytes = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t kept_bytes = 0;  // were there
};

struct CopySummary {
  bool was_complete = false;  // the same data set was there, with all of its shards
  DatasetInfo info;
  std::uint64_t copied_shards = 0;
  std::uint64_t kept_shards = 0;
  CopyProgress bytes;
  std::vector<std::string> files;  // beside the shards and dataset.json, by name
  std::vector<std::string> notes;  // which files of `from` are not known, and why: sentences for a person
  std::uint64_t requests = 0;      // to servers
  std::uint64_t retries = 0;       // of these
};

class Copy {
 public:
  // `from` and `to` as in Dataset::open(); `to` is a folder or s3://BUCKET/PREFIX. Opens `from`, and changes
  // nothing. Errors: invalid_argument (no whole data set; `to` is in `from`, or such a combination is not
  // possible), and those of Dataset::open().
  static std::unique_ptr<Copy> open(const std::string& from, const std::string& to);
  virtual ~Copy() = default;

  // Once. Errors: invalid_argument (`to` holds something else), resource (another process writes there; not
  // enough room), corrupt (a shard of `from` is damaged, or was changed meanwhile), io, and those of servers.
  virtual CopySummary run() = 0;
  // Thread safe.
  virtual CopyProgress progress() const = 0;
};

}  // namespace shard::convert
