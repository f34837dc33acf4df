// rejects.csv and inputs.csv of complete data sets, as they are copied and joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/digest/checksum.hpp"
#include "base/files/publish.hpp"
#include "shard/convert/tables.hpp"
#include "shard/dataset.hpp"

namespace shard::convert {

inline constexpr std::string_view kRejectsHeader = "path,reason\n";

// A table that is written. Its digest goes into dataset.json.
class TableFile {
 public:
  // `folder` / `name`, which starts with the line `header`.
  TableFile(const std::filesystem::path& folder, const char* name, std::string_view header);
  void append(std::string_view text);
  void append(std::span<const std::byte> bytes);
  // Replaces an existing file.
  void publish() { file_.publish(); }
  // Of what was appended so far.
  TableSummary summary() const { return {name_, size_bytes_, digest_.digest()}; }

 private:
  PendingFile file_;
  std::string name_;
  std::uint64_t size_bytes_ = 0;
  Xxh3Stream digest_;
};

// Appends the rows of `from`, which starts with the line `header`, to `to`. `recorded`: what dataset.json
// says of it, if it does. `guard`: of the folder of `from`.
// Errors: not_found, io, corrupt (also if it is not what was recorded),
// resource (the data set is being changed).
void append_rows(const TableGuard& guard, TableFile& to, const std::filesystem::path& from,
                 std::string_view header, const TableSummary* recorded);

// Where an append keeps the files that it puts into the data set (append.hpp),
// below the folder of the data set.
inline constexpr const char* kAppendLog = ".shardify-next/joined";

// Whether the data set has this file. Errors: io.
bool has_table(const std::filesystem::path& folder, const char* name);

}  // namespace shard::convert
