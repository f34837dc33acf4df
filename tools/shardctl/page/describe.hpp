// What the page says, as the JSON that its script shows.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/duplicates/groups.hpp"
#include "shardctl/duplicates/set_list.hpp"
#include "shardctl/page/channels.hpp"
#include "shardctl/page/classes.hpp"
#include "shardctl/page/rejects.hpp"

namespace shard::ctl {

// Name, spec, codec, provenance, sizes and shards.
Json describe_source(const Source& source, const std::string& path);
void add_classes(Json& data, const Source& source, const std::vector<PageClass>& classes);
void add_channels(Json& data, const ChannelStatistics& statistics);
// The samples whose pictures are there. `per_class` as they were chosen.
void add_samples(Json& data, const Source& source, const std::vector<ShownSample>& samples,
                 const std::set<std::uint64_t>& pictures, std::uint64_t per_class);
// `indices`: whose pictures write_augmented() made, of these epochs.
void add_augmented(Json& data, const Source& source, const std::string& policy,
                   const std::vector<std::uint64_t>& indices, std::uint32_t epochs);
void add_rejects(Json& data, const Source& source, const Rejects& rejects);

// The first groups and members of each, and which samples need a picture for that.
inline constexpr std::size_t kPageGroups = 100;
inline constexpr std::size_t kPageMembers = 20;
std::set<std::uint64_t> pictured_duplicates(const Members& members);
void add_duplicates(Json& data, const SetList& sets, const Members& members,
                    const std::set<std::uint64_t>& pictures);
void add_no_duplicates(Json& data, const std::string& why);

}  // namespace shard::ctl
