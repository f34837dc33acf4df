#include "shardctl/duplicates/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/files/publish.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/keys.hpp"
#include "shardctl/dataset/json_text.hpp"

namespace shard::ctl {
namespace {

using cli::Table;
using Align = cli::Table::Align;

constexpr std::size_t kListedGroups = 20;   // in the table
constexpr std::size_t kListedMembers = 10;  // of each of them

std::string group_json(const SetList& sets, std::span<const Member> group) {
  Json samples = Json::array();
  for (const Member& member : group) {
    const SetList::Place place = sets.place(member.sample);
    samples.push_back({{"set", place.set},
                       {"index", place.index},
                       {"label", sets.label(member.sample)},
                       {"key", sets.key(member.sample)},
                       {"distance", member.distance}});
  }
  return json_text({{"group", group.front().group},
                    {"across", sets.is_across(group)},
                    {"labels_differ", sets.labels_differ(group)},
                    {"samples", std::move(samples)}});
}

std::string totals_line(const DuplicatesSummary& summary, bool several_sets) {
  std::string text = fmt::format("{} in {}, {} too many", cli::counted(summary.samples, "sample"),
                                 cli::counted(summary.groups, "group"), cli::human_count(summary.surplus()));
  if (several_sets) text += fmt::format("; across data sets: {}", cli::counted(summary.across, "group"));
  if (summary.labels_differ > 0)
    text += fmt::format("; with different labels: {}", cli::counted(summary.labels_differ, "group"));
  return text + "\n";
}

}  // namespace

DuplicatesSummary summarize(const SetList& sets, const Members& members) {
  DuplicatesSummary summary;
  for_each_group(members, [&](std::span<const Member> group) {
    ++summary.groups;
    summary.samples += group.size();
    if (sets.is_across(group)) ++summary.across;
    if (sets.labels_differ(group)) ++summary.labels_differ;
  });
  return summary;
}

void print_table(const SetList& sets, const Found& found, const DuplicatesSummary& summary,
                 const DuplicatesQuery& query) {
  if (summary.groups == 0) {
    cli::out("no {} among {}\n", query.near ? "near duplicates" : "duplicates",
             cli::counted(sets.size(), "sample"));
  } else {
    Table table(
        {Align::right, Align::left, Align::right, Align::right, Align::left, Align::left, Align::left});
    std::vector<std::string> header{"group", "set", "index"};
    if (query.near) header.emplace_back("bits");
    for (const char* name : {"label", "key"}) header.emplace_back(name);
    table.add_row(header);
    for_each_group(found.members, [&](std::span<const Member> group) {
      if (group.front().group >= kListedGroups) return;
      const bool differ = sets.labels_differ(group);
      for (std::size_t i = 0; i < std::min(group.size(), kListedMembers); ++i) {
        const SetList::Place place = sets.place(group[i].sample);
        std::vector<std::string> row{i == 0 ? std::to_string(group[i].group) : std::string(),
                                     path_text(sets.path(place.set)), std::to_string(place.index)};
        if (query.near) row.push_back(std::to_string(group[i].distance));
        row.push_back(sets.label(group[i].sample));
        row.push_back(sets.key(group[i].sample));
        if (i == 0 && differ) row.emplace_back("labels differ");
        table.add_row(std::move(row));
      }
      if (group.size() > kListedMembers)
        table.add_row({"", fmt::format("and {} more", cli::human_count(group.size() - kListedMembers))});
    });
    cli::write_out(table.to_string());
    if (summary.groups > kListedGroups)
      cli::out("and {} more groups (--json and --csv list all)\n",
               cli::human_count(summary.groups - kListedGroups));
    cli::write_out(totals_line(summary, sets.sets() > 1));
  }
  if (found.plain > 0)
    cli::out("{} of almost one colour: only equal ones of them are found\n",
             cli::counted(found.plain, "sample"));
}

void print_json(const SetList& sets, const Found& found, const DuplicatesSummary& summary,
                const DuplicatesQuery& query, std::uint64_t damaged) {
  Json head;
  head["sets"] = Json::array();
  for (std::size_t set = 0; set < sets.sets(); ++set)
    head["sets"].push_back({{"path", path_text(sets.path(set))}, {"samples", sets.source(set).size()}});
  head["near"] = query.near ? Json(*query.near) : Json(nullptr);
  head["verified"] = query.verified;
  head["damaged"] = damaged;
  if (query.near) head["plain"] = found.plain;
  head["samples"] = summary.samples;
  head["surplus"] = summary.surplus();
  head["groups_across"] = summary.across;
  head["groups_with_different_labels"] = summary.labels_differ;
  std::string text = json_text(head);
  text.pop_back();
  cli::write_out(text + ", \"groups\": [");
  for_each_group(found.members, [&](std::span<const Member> group) {
    cli::out("{}\n{}", group.front().group == 0 ? "" : ",", group_json(sets, group));
  });
  cli::write_out("\n]}\n");
}

void write_csv(const std::string& path, const SetList& sets, const Members& members) {
  PendingFile file(path);
  file.append("group,set,index,label,key,distance,labels_differ\n");
  for_each_group(members, [&](std::span<const Member> group) {
    const bool differ = sets.labels_differ(group);
    for (const Member& member : group) {
      const SetList::Place place = sets.place(member.sample);
      file.append(fmt::format("{},{},{},{},{},{},{}\n", member.group,
                              csv_field(path_text(sets.path(place.set))), place.index,
                              csv_field(sets.label(member.sample)), csv_field(sets.key(member.sample)),
                              member.distance, differ ? "yes" : "no"));
    }
  });
  file.publish();
}

}  // namespace shard::ctl
