// The rows of `tiers` as people and programs read them. Pure functions.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands/tiers/tiers_bench.hpp"
#include "report/plot.hpp"

namespace shard::bench {

std::string tiers_table(const std::vector<TierRow>& rows);
// Which tiers keep a GPU of `need` samples a second fed, with which contender; `need` 0: nothing.
std::string need_text(const std::vector<TierRow>& rows, double need);
// By data set: the storage bandwidth from which precomputed samples beat images.
std::string break_even_text(const std::vector<TierRow>& rows);
// What was left out, and what is not steady.
std::string tiers_notes(const std::vector<TierRow>& rows);
nlohmann::ordered_json tiers_json(const std::vector<TierRow>& rows);
BarChart tiers_chart(const std::vector<TierRow>& rows);

}  // namespace shard::bench
