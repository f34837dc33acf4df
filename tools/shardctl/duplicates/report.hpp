// What `shardctl duplicates` prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shardctl/duplicates/find.hpp"
#include "shardctl/duplicates/set_list.hpp"

namespace shard::ctl {

struct DuplicatesSummary {
  std::uint64_t groups = 0;
  std::uint64_t samples = 0;  // in groups
  std::uint64_t across = 0;   // groups of more than one data set
  std::uint64_t labels_differ = 0;
  std::uint64_t surplus() const noexcept { return samples - groups; }
};
DuplicatesSummary summarize(const SetList& sets, const Members& members);

// How they were found.
struct DuplicatesQuery {
  std::optional<unsigned> near;
  bool verified = false;
};

// Tables list the first groups and members; JSON and CSV list all.
void print_table(const SetList& sets, const Found& found, const DuplicatesSummary& summary,
                 const DuplicatesQuery& query);
void print_json(const SetList& sets, const Found& found, const DuplicatesSummary& summary,
                const DuplicatesQuery& query, std::uint64_t damaged);
// group,set,index,label,key,distance,labels_differ. Replaces the file, atomically.
void write_csv(const std::string& path, const SetList& sets, const Members& members);

}  // namespace shard::ctl
