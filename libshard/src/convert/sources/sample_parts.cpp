#include "convert/sources/sample_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/system/parallel_sort.hpp"
#include "base/text/quote.hpp"
#include "shard/convert/input_name.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

using Parts = std::span<const SamplePart>;

// How many images a sample has in an archive, and whether others have any.
struct ImagesOfSample {
  std::uint64_t here = 0;
  bool elsewhere = false;
};

// Their paths are the name of the sample, alone or with a dot behind it,
// so they lie in two places of the sorted list.
ImagesOfSample images_of_sample(const std::vector<Input>& inputs, const std::string& sample,
                                std::uint32_t archive) {
  ImagesOfSample found;
  const auto count = [&](const std::string& begin, bool whole) {
    auto at = std::lower_bound(inputs.begin(), inputs.end(), begin,
                               [](const Input& input, const std::string& path) { return input.path < path; });
    for (; at != inputs.end() && (whole ? at->path == begin : at->path.starts_with(begin)); ++at) {
      if (at->archive == archive)
        ++found.here;
      else
        found.elsewhere = true;
    }
  };
  count(sample, true);
  count(sample + ".", false);
  return found;
}

// Whether it does not matter which label counts.
bool all_equal(Parts parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const SamplePart& part) {
    return part.number && parts.front().number && *part.number == *parts.front().number;
  });
}

bool one_name(Parts parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const SamplePart& part) { return part.extension == parts.front().extension; });
}

struct Choice {
  const SamplePart* part = nullptr;
  std::string problem;
};

// `named`: the members of one name in all archives, sorted by archive.
Choice choose_part(const InputList& list, const Input& input, const std::string& sample, Parts named) {
  const auto mine =
      std::equal_range(named.begin(), named.end(), input.archive, [](const auto& a, const auto& b) {
        const auto archive_of = [](const auto& of) {
          if constexpr (std::is_same_v<std::decay_t<decltype(of)>, SamplePart>)
            return of.archive;
          else
            return of;
        };
        return archive_of(a) < archive_of(b);
      });
  const Parts own(mine.first, mine.second);
  const auto name_of = [&](const SamplePart& part) {
    return quoted_key(escape_key(fmt::format("{}.{}", sample, part.extension)));
  };
  if (own.empty()) {
    const auto images = images_of_sample(list.inputs, sample, input.archive);
    if (images.elsewhere) return {};  // it may belong to those
    if (named.front().archive != named.back().archive)
      return {nullptr, fmt::format("{} is in {} and in {}, and not in the archive of the image: which one "
                                   "belongs to it cannot be told",
                                   name_of(named.front()), quoted(list.archives[named.front().archive].path),
                                   quoted(list.archives[named.back().archive].path))};
    return {&named.back(), {}};
  }
  if (own.size() > 1 && !all_equal(own)) {
    const std::string& first = name_of(own.front());
    if (!one_name(own))
      return {nullptr, fmt::format("its sample has {} and {}: which one belongs to it cannot be told", first,
                                   name_of(*std::find_if(own.begin(), own.end(), [&](const SamplePart& part) {
                                     return part.extension != own.front().extension;
                                   })))};
    if (images_of_sample(list.inputs, sample, input.archive).here > 1)
      return {nullptr,
              fmt::format("{} is in its archive {} times, and its sample has several images: which one "
                          "belongs to which cannot be told",
                          first, own.size())};
  }
  return {&own.back(), {}};
}

void assign(InputList& list, const Input& input, const std::string& sample, Parts named) {
  const std::string& extension = named.front().extension;
  const bool label = named.front().label;
  Choice choice = choose_part(list, input, sample, named);
  const std::string path = list.archives[input.archive].prefix + input.path;
  if (choice.part != nullptr && choice.part->problem)
    choice = {nullptr, fmt::format("its member .{} cannot be read: {}", choice.part->extension,
                                   *choice.part->problem)};
  if (!label) {
    if (choice.part != nullptr)
      list.side.push_back(
          {path, extension, choice.part->archive, choice.part->offset, choice.part->size_bytes, nullptr});
    else if (!choice.problem.empty())
      list.side.push_back({path, extension, input.archive, 0, 0,
                           std::make_shared<const std::string>(std::move(choice.problem))});
    return;
  }
  if (choice.part != nullptr && choice.part->number)
    list.numbers.emplace_back(path, *choice.part->number);
  else if (choice.part != nullptr)
    list.unclear_numbers.emplace_back(path, "has no label: its .cls member is not a whole number");
  else if (!choice.problem.empty())
    list.unclear_numbers.emplace_back(path, "has no label: " + choice.problem);
}

// "a/train-000.tar" -> "train-000/", or "a/train-000/" where several archives have the same name.
std::vector<std::string> prefixes_of(const std::vector<Archive>& archives) {
  const auto without_ending = [](std::string name) {
    name.resize(name.size() - std::string_view(".tar").size());
    return name + "/";
  };
  std::vector<std::string> names;
  for (const auto& archive : archives) names.push_back(without_ending(archive.path.filename().string()));
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return names;
  names.clear();
  for (const auto& archive : archives)
    names.push_back(without_ending(archive.path.lexically_normal().relative_path().string()));
  sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the archive {} is named twice: name each archive once",
                            quoted(twice->substr(0, twice->size() - 1) + ".tar")));
  return names;
}

}  // namespace

namespace {

auto place_of(const Input& input) { return std::tie(input.path, input.archive, input.offset); }
auto place_of(const RefusedMember& member) { return std::tie(member.name, member.archive, member.offset); }

// The last of the members with the name of `of` in its archive; null: there is none.
template <class Member, class Of>
const Member* last_of_name(const std::vector<Member>& sorted, const Of& of) {
  const auto name = [](const auto& place) { return std::tie(std::get<0>(place), std::get<1>(place)); };
  const auto wanted = place_of(of);
  const auto behind = std::upper_bound(
      sorted.begin(), sorted.end(), name(wanted),
      [&](const auto& place, const Member& member) { return place < name(place_of(member)); });
  if (behind == sorted.begin() || name(place_of(*std::prev(behind))) != name(wanted)) return nullptr;
  return &*std::prev(behind);
}

template <class Member>
void sort_by_place(std::vector<Member>& members, unsigned threads) {
  parallel_sort(threads, members, [](const Member& a, const Member& b) { return place_of(a) < place_of(b); });
}

}  // namespace

void keep_last(InputList& list, std::vector<RefusedMember>& refused, unsigned threads) {
  sort_by_place(list.inputs, threads);
  sort_by_place(refused, threads);
  auto kept = list.inputs.begin();
  std::vector<RefusedMember> replaced;
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    Input& input = list.inputs[i];
    const bool again = i + 1 < list.inputs.size() && list.inputs[i + 1].path == input.path &&
                       list.inputs[i + 1].archive == input.archive;
    const RefusedMember* const other = last_of_name(refused, input);
    if (!again && (other == nullptr || other->offset < input.offset)) {
      if (&*kept != &input) *kept = std::move(input);
      ++kept;
      continue;
    }
    const std::string archive = escape_key(list.archives[input.archive].path.string());
    replaced.push_back({input.path,
                        fmt::format("another member of this name comes later; this one is in {}, at byte {}",
                                    archive, input.offset),
                        input.archive, input.offset});
  }
  list.inputs.erase(kept, list.inputs.end());
  std::move(replaced.begin(), replaced.end(), std::back_inserter(refused));
  sort_by_place(refused, threads);
}

void separate_archives(InputList& list, const std::vector<RefusedMember>& refused) {
  const auto elsewhere = [&](const RefusedMember& member) {
    const auto at =
        std::lower_bound(list.inputs.begin(), list.inputs.end(), member.name,
                         [](const Input& input, const std::string& path) { return input.path < path; });
    return at != list.inputs.end() && at->path == member.name && at->archive != member.archive;
  };
  const bool same =
      std::adjacent_find(list.inputs.begin(), list.inputs.end(),
                         [](const auto& a, const auto& b) { return a.path == b.path; }) != list.inputs.end();
  if (!same && std::none_of(refused.begin(), refused.end(), elsewhere)) return;
  const std::vector<std::string> prefixes = prefixes_of(list.archives);
  for (std::size_t i = 0; i < prefixes.size(); ++i) list.archives[i].prefix = prefixes[i];
}

void reject_refused(InputList& list, std::vector<RefusedMember>&& refused) {
  for (std::size_t i = 0; i < refused.size(); ++i) {
    const RefusedMember& member = refused[i];
    const bool again = i + 1 < refused.size() && refused[i + 1].name == member.name &&
                       refused[i + 1].archive == member.archive;
    const bool last = !again && last_of_name(list.inputs, member) == nullptr;
    const std::string& prefix = list.archives[member.archive].prefix;
    const std::string key =
        escape_key(last ? prefix + member.name : fmt::format("{}{}@{}", prefix, member.name, member.offset));
    // Of another archive, with nothing that is stored.
    if (!list.rejects.empty() && list.rejects.back().key == key)
      list.rejects.back().reason += "; " + member.reason;
    else
      list.rejects.push_back({key, member.reason});
  }
}

void assign_parts(InputList& list, std::vector<SamplePart>&& parts) {
  // All labels of a sample are one kind, however they are written.
  const auto kind = [](const SamplePart& part) {
    return part.label ? std::string_view("cls") : std::string_view(part.extension);
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const SamplePart& a, const SamplePart& b) {
    return std::tuple(std::string_view(a.sample), kind(a), a.archive) <
           std::tuple(std::string_view(b.sample), kind(b), b.archive);
  });
  list.has_numbers =
      std::any_of(parts.begin(), parts.end(), [](const SamplePart& part) { return part.label; });
  for (const Input& input : std::span(list.inputs).first(parts.empty() ? 0 : list.inputs.size())) {
    const std::string sample = sample_name(input.path);
    auto first =
        std::lower_bound(parts.begin(), parts.end(), sample,
                         [](const SamplePart& part, const std::string& of) { return part.sample < of; });
    while (first != parts.end() && first->sample == sample) {
      const auto last = std::find_if(first, parts.end(), [&](const SamplePart& part) {
        return part.sample != sample || kind(part) != kind(*first);
      });
      assign(list, input, sample, Parts(first, last));
      first = last;
    }
  }
  std::sort(list.numbers.begin(), list.numbers.end());
  std::sort(list.unclear_numbers.begin(), list.unclear_numbers.end());
  std::sort(list.side.begin(), list.side.end(), [](const SideMember& a, const SideMember& b) {
    return std::tie(a.input, a.extension) < std::tie(b.input, b.extension);
  });
}

}  // namespace shard::convert
