#include <algorithm>
#include <map>
#include <set>

#include "commands/tiers/tiers_bench.hpp"
#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

std::string cache_of(const ReportJson& row) {
  if (yes(row, "emulated")) return "emulated";
  const std::string cache = word(row, "cache");
  return cache == "around" ? "O_DIRECT" : cache;
}

std::string tier_of(const ReportJson& row) {
  const std::string name = word(row, "tier");
  return name.substr(0, name.find(" (emulated)"));
}

double rate_of(const ReportJson& row) { return number(row, "samples_per_second"); }

// By bandwidth alone: where precomputed samples are faster than the fastest decoding that was measured for
// real.
void note_break_even(PageSection& section, const ReportJson& rows) {
  double decoding = 0;
  double image_bytes = 0;
  std::map<std::string, double> sets;
  for (const ReportJson& row : rows) {
    if (!(rate_of(row) > 0)) continue;
    if (!yes(row, "decodes")) sets[word(row, "dataset")] = number(row, "bytes_per_sample");
    if (!yes(row, "decodes") || yes(row, "emulated") || rate_of(row) <= decoding) continue;
    decoding = rate_of(row);
    image_bytes = number(row, "bytes_per_sample");
  }
  if (decoding == 0)
    section.notes.emplace_back("The break-even with decoding is not known: no decoding was measured.");
  for (const auto& [name, bytes] : sets) {
    if (decoding == 0) break;
    const double from = break_even(decoding, bytes, image_bytes);
    section.notes.push_back(fmt::format(
        "{}: a sample takes {} bytes, an image {}. This machine decodes {} images/s: by bandwidth alone "
        "precomputed "
        "samples are faster {}.",
        name, people(std::round(bytes)), people(std::round(image_bytes)), people(std::round(decoding)),
        from > 0 ? fmt::format("where storage gives more than {} MB/s, images where it gives less",
                               people(from / 1e6))
                 : "at any bandwidth"));
  }
}

class Filler {
 public:
  Filler(PageSection& section, const ReportJson& json) : section_(section), json_(json) {
    table_.caption = fmt::format("Into {}, {} images, {} threads decode, batches of {}, order {}",
                                 device_of(json), people(json, "images"), people(json, "threads"),
                                 people(json, "batch_size"), word(json, "order"));
    const std::string delivered = word(json, "delivered");
    if (!delivered.empty()) table_.caption += ", " + delivered;
  }
  void fill() {
    const ReportJson& rows = member(json_, "rows");
    bool beyond = false;
    for (const ReportJson& row : rows) {
      add(row);
      beyond = beyond || number(row, "share_of_limit") > kBeyondLimit;
    }
    if (!best_.empty())
      section_.says = fmt::format("At most {} times what decoding on the fly gives from the same tier: {}.",
                                  people(most_), best_);
    section_.charts.push_back(chart_);
    section_.tables.push_back(table_);
    note_break_even(section_, rows);
    if (beyond) section_.notes.emplace_back(kWhyBeyondLimit);
    section_.notes.insert(section_.notes.end(), limits_.begin(), limits_.end());
    for (const ReportJson& tier : member(json_, "tiers")) {
      const std::string emulated = word(tier, "emulated");
      section_.notes.push_back(
          yes(tier, "server")
              ? fmt::format("{}: {}; cold: the first epoch, into an empty cache; warm: from the cache",
                            word(tier, "name"), word(tier, "path"))
          : emulated.empty()
              ? fmt::format("{}: {} ({} on {})", word(tier, "name"), word(tier, "path"),
                            word(tier, "filesystem"), word(tier, "source"))
              : fmt::format("{}: {}; real reads, held back; samples in sequence, images one request each",
                            word(tier, "name"), emulated));
    }
  }

 private:
  void add(const ReportJson& row) {
    const bool decodes = yes(row, "decodes");
    const bool emulated = yes(row, "emulated");
    const std::string cache = cache_of(row), tier = tier_of(row), by = word(row, "contender");
    const std::string data = decodes ? "JPEG" : word(row, "dataset");
    const double rate = rate_of(row);
    if (!(rate > 0)) {
      const std::string problem = word(row, "problem");
      return table_.leave_out({tier, cache, data, by}, problem.empty() ? "not measured" : problem, emulated);
    }
    const double limit = number(row, "limit_samples_per_second");
    const double times = number(row, "speed_up_over_decoding");
    table_.add(
        {tier, cache, data, by, people(std::round(rate)), people(number(row, "bytes_per_second") / 1e9),
         limit > 0 ? percent(rate / limit) : "not known", people(std::round(number(row, "bytes_per_sample"))),
         people(row, "cores"), times > 0 && !decodes ? people(times) : "-"},
        emulated);
    if (limit > 0)
      limits_.insert(
          fmt::format("Limit of {}, {}: {}.", decodes ? "decoding" : by, cache, word(row, "limit_is")));
    const std::string name =
        fmt::format("{}{}: {}{}", tier, emulated ? "" : ", " + cache, by, decodes ? "" : " of " + data);
    chart_.bars.push_back({name, rate, limit > 0 ? limit : 0, decodes ? 0 : chart_.group(data), emulated});
    if (range_of(member(row, "samples"), "samples_per_second").unsteady()) section_.unsteady.push_back(name);
    if (!decodes && !emulated && times > most_) {
      most_ = times;
      best_ = fmt::format("{}, {} samples/s", name, people(std::round(rate)));
    }
  }

  PageSection& section_;
  const ReportJson& json_;
  PageTable table_{"",
                   {"tier", "cache", "data", "by", "samples/s", "GB/s", "of the limit", "bytes/sample",
                    "cores", "x decode"},
                   4};
  PageChart chart_{"Samples a second by storage tier", "samples/s", {"JPEG, decoded on the fly"}};
  std::set<std::string> limits_;
  double most_ = 0;
  std::string best_;
};

}  // namespace

PageSection tiers_section(const ReportJson& json) {
  return section_of("tiers", "Rates of the storage tiers", json,
                    [](PageSection& section, const ReportJson& from) { Filler(section, from).fill(); });
}

// Which tiers keep a GPU of `need` samples per second fed, with what.
std::string need_text(const ReportJson& rows, double need) {
  if (need <= 0) return {};
  struct Place {
    std::string name, best;
    double shards = 0, images = 0;
  };
  std::vector<Place> places;
  for (const ReportJson& row : rows) {
    if (!(rate_of(row) > 0)) continue;
    const std::string name = fmt::format("{}, {}", word(row, "tier"), cache_of(row));
    auto at =
        std::find_if(places.begin(), places.end(), [&](const Place& place) { return place.name == name; });
    if (at == places.end()) at = places.insert(at, Place{name, {}});
    if (yes(row, "decodes")) {
      at->images = rate_of(row);
    } else if (rate_of(row) > at->shards) {
      at->shards = rate_of(row);
      at->best = fmt::format("{} ({} of {})", name, word(row, "contender"), word(row, "dataset"));
    }
  }
  std::vector<std::string> shards, images, neither;
  for (const Place& place : places) {
    if (place.shards >= need) shards.push_back(place.best);
    if (place.images >= need) images.push_back(place.name);
    if (place.shards < need && place.images < need) neither.push_back(place.name);
  }
  const auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? "none of these" : joined(names, "; ");
  };
  std::string text = fmt::format(
      "A GPU that takes {:.0f} samples/s is kept fed with precomputed samples from: {}. By decoding on the "
      "fly from: "
      "{}.",
      need, list(shards), list(images));
  if (!neither.empty()) text += fmt::format(" It starves with both on: {}.", list(neither));
  return text + "\n";
}

}  // namespace shard::bench
