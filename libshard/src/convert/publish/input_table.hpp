// inputs.csv has the size and the digest of every input of a data set, so that a later run can name the
// inputs that changed and convert only their shards. It has no dates: the file is a function of the inputs.
//
//   path,size_bytes,xxh3
//   cat/1.jpg,24117,5f0c9a...        in the order of the plan; path: a key; xxh3: 16 hexadecimal digits
//   cat/2.jpg,,                      an input that could not be read
//
// Until the data set is complete, the rows of a finished shard are in its receipt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/plan/plan.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

inline constexpr const char* kInputsHeader = "path,size_bytes,xxh3\n";

struct InputRow {
  std::uint64_t index = 0;  // position in the plan that the row was written for
  std::string key;
  std::optional<std::uint64_t> size_bytes;
  std::optional<std::uint64_t> digest;  // XXH3-64 of the file's bytes
};
std::string serialize_row(const InputRow& row);

// Calls `on_row` for every recorded row of `out`, in order. `there` null: the data set is complete, and its
// rows are those of inputs.csv. Else they are those of the receipts of the unfinished conversion `there`.
// Returns false, perhaps after some rows, if there is no such file or if it is damaged. Errors: io.
bool read_input_rows(const std::filesystem::path& out, const PlanRecord* there,
                     const std::function<void(InputRow&&)>& on_row);

// What differs between the recorded inputs of `out` (see above) and those of the plan: a line for each of the
// first few, each after a line feed, and the number of further ones. Empty if no difference is known.
std::string describe_changes(const std::filesystem::path& out, const PlanRecord* there, const Plan& plan);

// Reads an RFC 4180 file and calls `on_row` with the fields of each row. Returns false if there is no such
// file, if it is not valid CSV, or if `on_row` returns false. Errors: io.
bool read_csv(const std::filesystem::path& path,
              const std::function<bool(std::vector<std::string>&)>& on_row);

}  // namespace shard::convert
