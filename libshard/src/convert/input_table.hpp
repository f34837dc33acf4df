// inputs.csv: the size and the digest of every input that a data set was made of, so that a later run can say
// what has changed and convert only that again. Dates do not enter: the file is a function of the inputs.
//
//   path,size_bytes,xxh3
//   cat/1.jpg,24117,5f0c9a...        in the order of the plan; path: a key; xxh3: 16 hexadecimal digits
//   cat/2.jpg,,                      an input that could not be read
//
// Until the data set is complete, the rows of a finished shard stand in its receipt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/journal.hpp"
#include "convert/plan.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

inline constexpr const char* kInputsHeader = "path,size_bytes,xxh3\n";

struct InputRow {
  std::uint64_t index = 0;  // position in the plan of then
  std::string key;
  std::optional<std::uint64_t> size_bytes;
  std::optional<std::uint64_t> digest;  // XXH3-64 of the file's bytes
};
std::string serialize_row(const InputRow& row);

// Calls `take` for every row that `out` holds, in order: those of inputs.csv when the data set is complete,
// else those of the receipts of the conversion `there`. False, perhaps after some rows: there is no such
// file, or it is damaged. Errors: io.
bool read_input_rows(const std::filesystem::path& out, const PlanRecord* there,
                     const std::function<void(InputRow&&)>& take);

// What differs between the inputs of the data set or unfinished conversion in `out` and those of the plan: a
// line each for the first few, beginning with a line feed, and how many more there are. Empty when nothing
// can be said.
std::string describe_changes(const std::filesystem::path& out, const PlanRecord* there, const Plan& plan);

// Rows of an RFC 4180 file: calls `take` with the fields of each. False when it is none. Errors: io.
bool read_csv(const std::filesystem::path& path, const std::function<bool(std::vector<std::string>&)>& take);

}  // namespace shard::convert
