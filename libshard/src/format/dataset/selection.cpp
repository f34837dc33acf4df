#include "shard/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/digest/checksum.hpp"
#include "base/digest/mix64.hpp"
#include "base/text/quote.hpp"
#include "format/dataset/dataset_view.hpp"
#include "format/dataset/sample_set.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

[[noreturn]] void refuse_selection(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

// The samples of each shard, in the order of the data set.
SampleBits choose(const Dataset& data,
                  const std::function<bool(std::uint32_t shard, std::uint64_t sample)>& take) {
  SampleBits bits(data.size());
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    const Dataset::Location at = data.locate(i);
    if (take(at.shard, at.sample)) bits.set(i);
  }
  return bits;
}

// The least hash that does not belong to the first `fraction` of all hashes, and whether there is one.
struct Bound {
  std::uint64_t hash = 0;
  bool beyond_all = false;
};
Bound bound_of(double fraction) {
  if (fraction >= 1) return {0, true};
  return {static_cast<std::uint64_t>(std::ldexp(fraction, 64)), false};
}
bool below(std::uint64_t hash, Bound bound) noexcept { return bound.beyond_all || hash < bound.hash; }

std::uint64_t hash_of(const std::string& key, std::uint64_t seed, std::uint32_t level) noexcept {
  const std::uint64_t first = mix64(xxh3(key) ^ mix64(seed));
  return level == 0 ? first : mix64(first ^ mix64(level));
}

HashCuts both(const HashCuts& a, const HashCuts& b) {
  HashCuts all = a;
  for (const auto& [seed, levels] : b) all[seed] = std::max(all[seed], levels);
  return all;
}

}  // namespace

Selection Selection::indices(std::vector<std::uint64_t> indices) {
  return Selection([all = std::move(indices)](const Dataset& data) {
    SampleBits bits(data.size());
    for (const std::uint64_t index : all) {
      if (index >= data.size())
        refuse_selection(fmt::format("a selection has the index {}; {} has {} samples, numbered from 0",
                                     index, quoted(data.path()), data.size()));
      if (bits[index])
        refuse_selection(fmt::format(
            "a selection has the index {} twice; to draw samples more often, use weights", index));
      bits.set(index);
    }
    return bits;
  });
}

Selection Selection::ranges(std::vector<Range> ranges) {
  return Selection([all = std::move(ranges)](const Dataset& data) {
    SampleBits bits(data.size());
    for (const auto& [begin, end] : all) {
      if (begin > end || end > data.size())
        refuse_selection(
            fmt::format("a selection has the range {} to {}; it must lie in the {} samples of {}", begin, end,
                        data.size(), quoted(data.path())));
      set_bits(bits.words(), begin, end);
    }
    return bits;
  });
}

Selection Selection::classes(std::vector<std::string> names) {
  return Selection([all = std::move(names)](const Dataset& data) {
    const std::vector<std::string>& known = data.info().classes;
    if (known.empty())
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} has no classes: its labels come from a table; select by label",
                              quoted(data.path())));
    std::unordered_set<std::int64_t> labels;
    for (const std::string& name : all) {
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end())
        refuse_selection(fmt::format("{} has no class {}; it has {} classes, the first is {}",
                                     quoted(data.path()), quoted_key(name), known.size(),
                                     quoted_key(known.front())));
      labels.insert(found - known.begin());
    }
    return Selection::labels([&](std::int64_t label) { return labels.count(label) != 0; }).apply(data);
  });
}

Selection Selection::labels(std::function<bool(std::int64_t)> predicate) {
  return Selection([take = std::move(predicate)](const Dataset& data) {
    return choose(data, [&](std::uint32_t shard, std::uint64_t sample) {
      return take(data.label_of(shard, data.shard(shard).label(sample)));
    });
  });
}

Selection Selection::column(std::string name, std::function<bool(std::span<const std::byte>)> predicate) {
  return Selection([name = std::move(name), take = std::move(predicate)](const Dataset& data) {
    std::vector<std::byte> row;
    return choose(data, [&](std::uint32_t shard, std::uint64_t sample) {
      const ShardReader& reader = data.shard(shard);
      reader.read_column(reader.column(name), sample, row);
      return take(row);
    });
  });
}

Selection Selection::where(std::function<bool(const Dataset&, std::uint64_t)> predicate) {
  return Selection([take = std::move(predicate)](const Dataset& data) {
    SampleBits bits(data.size());
    for (std::uint64_t i = 0; i < data.size(); ++i)
      if (take(data, i)) bits.set(i);
    return bits;
  });
}

Selection Selection::hashed(double from, double to, std::uint64_t seed, std::uint32_t level) {
  if (level == UINT32_MAX)
    refuse_selection("a part of a data set has the level 2^32 - 1: the last is one less");
  if (!(from >= 0 && from <= to && to <= 1))
    refuse_selection(
        fmt::format("a part of a data set is from {} to {}; expected 0 <= from <= to <= 1", from, to));
  const auto rule = [begin = bound_of(from), end = bound_of(to), seed, level](const Dataset& data) {
    return choose(data, [&](std::uint32_t shard, std::uint64_t sample) {
      const std::uint64_t hash = hash_of(data.shard(shard).key(sample), seed, level);
      return !below(hash, begin) && below(hash, end);
    });
  };
  return Selection(rule, {{seed, level + 1}});
}

Selection Selection::bits(SampleBits bits) {
  return Selection([all = std::move(bits)](const Dataset& data) {
    if (all.size() != data.size())
      refuse_selection(fmt::format("a selection is for {} samples; {} has {}", all.size(),
                                   quoted(data.path()), data.size()));
    return all;
  });
}

Selection operator&(const Selection& a, const Selection& b) {
  const auto rule = [a, b](const Dataset& data) {
    SampleBits bits = a.apply(data);
    const SampleBits other = b.apply(data);
    for (std::size_t i = 0; i < bits.words().size(); ++i) bits.words()[i] &= other.words()[i];
    return bits;
  };
  return Selection(rule, both(a.cuts_, b.cuts_));
}

Selection operator|(const Selection& a, const Selection& b) {
  const auto rule = [a, b](const Dataset& data) {
    SampleBits bits = a.apply(data);
    const SampleBits other = b.apply(data);
    for (std::size_t i = 0; i < bits.words().size(); ++i) bits.words()[i] |= other.words()[i];
    return bits;
  };
  return Selection(rule, both(a.cuts_, b.cuts_));
}

Selection operator!(const Selection& a) {
  const auto rule = [a](const Dataset& data) {
    SampleBits bits = a.apply(data);
    for (std::uint64_t& word : bits.words()) word = ~word;
    if (bits.size() % 64 != 0) bits.words().back() &= ~std::uint64_t{0} >> (64 - bits.size() % 64);
    return bits;
  };
  return Selection(rule, a.cuts_);
}

SampleBits Selection::apply(const Dataset& data) const { return (*rule_)(data); }

namespace {

// The shard's samples whose bits, from `first` on, are set;
// `known` are those that the shard has in the data set.
SampleSet members_of(const SampleBits& bits, std::uint64_t first, std::uint64_t count, const SampleSet* known,
                     std::uint64_t universe) {
  SampleSet members(universe);
  const std::span<const std::uint64_t> words = bits.words();
  for (std::uint64_t at = first; at < first + count;) {
    const std::uint64_t word = words[at / 64] >> (at % 64);
    if (word == 0) {
      at = (at / 64 + 1) * 64;
      continue;
    }
    const std::uint64_t begin = at + static_cast<std::uint64_t>(std::countr_zero(word));
    std::uint64_t end = begin;
    while (end < first + count && bits[end]) ++end;
    if (begin >= first + count) break;
    if (known == nullptr) {
      members.add(begin - first, end - first);
    } else {
      for (std::uint64_t i = begin; i < end; ++i) {
        const std::uint64_t sample = (*known)[i - first];
        members.add(sample, sample + 1);
      }
    }
    at = end;
  }
  members.finish();
  return members;
}

}  // namespace

Dataset Dataset::select(const Selection& selection) const {
  const SampleBits bits = selection.apply(*this);
  const Impl& from = *impl_;
  std::vector<ViewShard> shards;
  DatasetInfo info = from.info;
  info.shards.clear();
  info.parts.clear();
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < from.shards.size(); ++i) {
    const std::uint64_t count = from.info.shards[i].samples;
    ViewShard shard = from.shards[i];
    ShardSummary summary = from.info.shards[i];
    const std::uint64_t universe = shard.part->info().shards[shard.index].samples;
    auto members =
        std::make_shared<const SampleSet>(members_of(bits, first, count, shard.members.get(), universe));
    first += count;
    summary.samples = members->size();
    if (summary.samples == 0) continue;
    shard.members = summary.samples == universe ? nullptr : std::move(members);
    shards.push_back(std::move(shard));
    info.shards.push_back(std::move(summary));
  }
  if (shards.empty())
    refuse_selection(fmt::format("the selection has none of the {} samples of {}", size(), quoted(path())));
  info.inputs = info.samples();
  info.rejects = 0;
  auto impl = std::make_shared<Impl>(std::move(shards), std::move(info), from.path);
  impl->add_cuts(from.cuts);
  impl->add_cuts(selection.cuts());
  return Dataset(std::move(impl));
}

std::uint32_t Dataset::cuts(std::uint64_t seed) const {
  const auto found = impl_->cuts.find(seed);
  return found == impl_->cuts.end() ? 0 : found->second;
}

std::pair<Dataset, Dataset> Dataset::split(double fraction, std::uint64_t seed) const {
  const std::uint32_t level = cuts(seed);
  return {select(Selection::hashed(0, fraction, seed, level)),
          select(Selection::hashed(fraction, 1, seed, level))};
}

std::pair<Dataset, Dataset> Dataset::fold(std::uint32_t k, std::uint32_t n, std::uint64_t seed) const {
  if (n < 2 || k >= n)
    refuse_selection(fmt::format("fold {} of {}: expected k from 0 to n - 1, and n at least 2", k, n));
  const Selection held_out =
      Selection::hashed(static_cast<double>(k) / n, static_cast<double>(k + 1) / n, seed, cuts(seed));
  return {select(!held_out), select(held_out)};
}

}  // namespace shard
