// Verifies inputs.csv and rejects.csv of a complete data set, besides its shards (shard/verify.hpp).
//
//   dataset.json has their digests        every byte is checked
//   it has none (earlier versions)        rejects.csv: its form, and as many lines as there are rejects
//                                         inputs.csv: its form, and its keys are those of the samples and
//                                         rejects, in their order; what it says of the sizes and digests of
//                                         inputs cannot be checked, nor can reasons of rejects
#pragma once

#include <filesystem>
#include <string_view>

#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/verify.hpp"

namespace shard::convert {

enum class TableCheck { absent, by_digest, by_form, damaged };
std::string_view to_string(TableCheck check) noexcept;  // "absent", "digest", "form", "damaged"

struct TableChecks {
  TableCheck inputs = TableCheck::absent;
  TableCheck rejects = TableCheck::absent;
};

// `path`: the folder of `info`, or its address. What is wrong goes to `findings`.
// Errors: resource, and those of the server.
TableChecks verify_tables(const std::filesystem::path& path, const DatasetInfo& info,
                          VerifyFindings& findings);

}  // namespace shard::convert
