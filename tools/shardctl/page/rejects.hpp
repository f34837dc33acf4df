// The inputs that a conversion did not store, grouped by their reasons.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace shard::ctl {

struct RejectGroup {
  std::string reason;  // of the first
  std::uint64_t count = 0;
  std::vector<std::pair<std::string, std::string>> examples;  // path and reason of the first ones
};

struct Rejects {
  std::vector<RejectGroup> groups;  // largest first
  std::uint64_t total = 0;
  bool readable = true;  // false: the file is missing or damaged, after so many rows
};

// Reasons that differ only in numbers and in what stands in quotation marks are one group. At most
// kMostReasons groups (the last one takes what is left) with kRejectExamples each, whatever the
// file holds. Errors: io.
inline constexpr std::size_t kMostReasons = 50;
inline constexpr std::size_t kRejectExamples = 20;
Rejects read_rejects(const std::filesystem::path& file);

// The kind of a reason: each number and each quoted text is replaced by one mark.
std::string reason_kind(const std::string& reason);

}  // namespace shard::ctl
