// rejects.csv and inputs.csv of a complete data set, beside its shards (docs/format.md).
//
// `shardify --append` replaces them and then dataset.json, each atomically, but not all at once. A reader
// that needs them to fit together makes a TableGuard, reads dataset.json, then the tables, and then asks it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "shard/convert/listing.hpp"
#include "shard/error.hpp"

namespace shard::convert {

class TableGuard {
 public:
  // Reads dataset.json. Errors: not_found, io.
  explicit TableGuard(std::filesystem::path folder);
  // Throws resource if what was read since then may not fit together.
  void check() const;

 private:
  std::filesystem::path folder_;
  std::uint64_t digest_;  // of the file
};

// Whether an append has started to put its files into the data set in `folder`,
// and not replaced dataset.json yet. Errors: io.
bool append_is_pending(const std::filesystem::path& folder);

// Calls `on_reject` for each row of a rejects.csv, in order. Returns false, perhaps after some rows, if there
// is no such file or if it is damaged. Errors: io.
bool read_rejects(const std::filesystem::path& file, const std::function<void(Reject&&)>& on_reject);

// Calls `on_input` with key and XXH3-64 for each input of an inputs.csv that could be read, in order. Returns
// false, perhaps after some rows, if there is no such file or if it is damaged. Errors: io.
bool read_inputs(const std::filesystem::path& file,
                 const std::function<void(const std::string& key, std::uint64_t digest)>& on_input);

}  // namespace shard::convert
