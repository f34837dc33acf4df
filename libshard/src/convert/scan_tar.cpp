// Lists tar archives: which members are inputs, which folders are classes, which numbers are labels.
//
//   a tar of class folders       cats/1.jpg, ...                 as the unpacked folder
//   a WebDataset                 0001.jpg, 0001.cls, ...         the label is the number in the .cls member
//   tars inside a tar            n01440764.tar, ... (ImageNet)   the class is the name of the inner one
//
// Members are read where they lie in the archives, so nothing is unpacked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>

#include "base/cpu_count.hpp"
#include "base/parallel.hpp"
#include "base/quote.hpp"
#include "convert/open_archive.hpp"
#include "convert/scan.hpp"
#include "convert/tar.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::convert {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxArchives = 1'000'000;
constexpr std::uint64_t kMaxNumberBytes = 64;  // of a .cls member
constexpr std::size_t kAheadBytes = 4096;
constexpr unsigned kRemoteListings =
    64;  // archives on servers at the same time: listing one is a request after the other

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && std::equal(end.rbegin(), end.rend(), text.rbegin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

// What stands between braces: "a,b,c" or "000..146". Empty: neither.
std::vector<std::string> alternatives(std::string_view inside) {
  std::vector<std::string> all;
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) {
    if (inside.find(',') == std::string_view::npos) return {};
    for (std::size_t begin = 0; begin <= inside.size();) {
      const std::size_t end = std::min(inside.find(',', begin), inside.size());
      all.emplace_back(inside.substr(begin, end - begin));
      begin = end + 1;
    }
    return all;
  }
  const std::string_view first = inside.substr(0, dots);
  const std::string_view last = inside.substr(dots + 2);
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  const auto number = [](std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
  };
  if (!number(first, from) || !number(last, to) || from > to) return {};
  if (to - from >= kMaxArchives)
    throw Error(ErrorCode::invalid_argument, fmt::format("{{{}}} names {} archives; at most {} are taken",
                                                         inside, to - from + 1, kMaxArchives));
  const std::size_t width = first.size() > 1 && first.front() == '0' ? first.size() : 0;
  for (std::uint64_t i = 0; i <= to - from; ++i) all.push_back(fmt::format("{:0{}}", from + i, width));
  return all;
}

}  // namespace

std::vector<std::string> expanded_pattern(const std::string& pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string::npos; open = pattern.find('{', open + 1)) {
    const std::size_t close = pattern.find('}', open);
    if (close == std::string::npos) break;
    const std::vector<std::string> parts =
        alternatives(std::string_view(pattern).substr(open + 1, close - open - 1));
    if (parts.empty()) continue;
    std::vector<std::string> all;
    for (const std::string& rest : expanded_pattern(pattern.substr(close + 1)))
      for (const std::string& part : parts) all.push_back(pattern.substr(0, open) + part + rest);
    if (all.size() > kMaxArchives)
      throw Error(ErrorCode::invalid_argument, fmt::format("{} names {} archives; at most {} are taken",
                                                           quoted(pattern), all.size(), kMaxArchives));
    std::sort(all.begin(), all.end());
    return all;
  }
  return {pattern};
}

namespace {

// What one archive has.
class Contents {
 public:
  Contents(std::uint32_t number, const fs::path& path, const std::set<std::string>& wanted)
      : number_(number), name_(path.string()), wanted_(wanted) {}

  void list() {
    archive_ = std::make_shared<const OpenArchive>(name_);
    archive_bytes = archive_->size();
    archive_stamp = archive_->stamp();
    list_part(0, archive_->size(), "", escape_key(name_), true);
    ahead_ = {};
    if (archive_->is_remote()) kept = archive_;
    archive_.reset();
  }

  std::shared_ptr<const OpenArchive> kept;  // one on a server

  std::uint64_t archive_bytes = 0;
  std::uint64_t archive_stamp = 0;
  std::vector<Input> inputs;
  std::vector<Reject> rejects;
  std::vector<Skip> skipped;
  std::vector<std::pair<std::string, std::int64_t>> numbers;
  std::vector<SideMember> side;

 private:
  // The bytes [begin, begin + size) are an archive; its members get `folder` in front of their names.
  void list_part(std::uint64_t begin, std::uint64_t size, const std::string& folder, const std::string& key,
                 bool outer) {
    TarListing found = list_tar(
        [&](std::uint64_t offset, std::span<std::byte> out) {
          const auto there =
              static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size - std::min(size, offset)));
          return read(begin + offset, out.first(there));
        },
        size);
    for (TarMember& member : found.members) {
      member.name.insert(0, folder);
      member.offset += begin;
      take(std::move(member), outer);
    }
    if (!found.problem.empty()) rejects.push_back({key, found.problem});
  }

  // On a server, a little more at once: small members lie between headers.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) {
    if (!archive_->is_remote() || out.size() > kAheadBytes) return archive_->read(offset, out);
    if (offset < ahead_begin_ || offset + out.size() > ahead_begin_ + ahead_.size()) {
      ahead_.resize(kAheadBytes);
      ahead_begin_ = offset;
      ahead_.resize(archive_->read(offset, ahead_));
    }
    const std::size_t there =
        std::min(out.size(), ahead_.size() - static_cast<std::size_t>(std::min<std::uint64_t>(
                                                 offset - ahead_begin_, ahead_.size())));
    std::copy_n(ahead_.begin() + static_cast<std::ptrdiff_t>(offset - ahead_begin_), there, out.begin());
    return there;
  }

  void take(TarMember member, bool outer) {
    if (!member.problem.empty()) {
      rejects.push_back(
          {escape_key(member.name), fmt::format("in the archive {}: {}", escape_key(name_), member.problem)});
    } else if (const auto reason = skip_by_path(member.name)) {
      skipped.push_back({escape_key(member.name), *reason});
    } else if (ends_with(member.name, ".tar")) {
      if (outer)
        list_part(member.offset, member.size_bytes, member.name.substr(0, member.name.size() - 4) + "/",
                  escape_key(member.name), false);
      else
        rejects.push_back(
            {escape_key(member.name), "an archive in an archive in an archive: unpack one of them"});
    } else if (ends_with(member.name, ".cls")) {
      take_number(member);
    } else if (is_wanted(member.name)) {
      std::string sample = sample_name(member.name);
      side.push_back(
          {sample, member.name.substr(sample.size() + 1), number_, member.offset, member.size_bytes});
    } else if (has_image_name(member.name) || has_image_bytes(member)) {
      inputs.push_back({std::move(member.name), number_, Input::kNoPage, member.offset, member.size_bytes});
    } else {
      skipped.push_back({escape_key(member.name), SkipReason::no_image});
    }
  }

  bool is_wanted(const std::string& name) const {
    const std::size_t sample = sample_name(name).size();
    return sample < name.size() && wanted_.contains(name.substr(sample + 1)) && !has_image_name(name);
  }

  bool has_image_bytes(const TarMember& member) {
    std::array<std::byte, image::kFileKindBytes> begin{};
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), member.size_bytes));
    return has_image_content(
        std::span<const std::byte>(begin).first(read(member.offset, std::span(begin).first(size))));
  }

  void take_number(const TarMember& member) {
    std::string text(std::min(member.size_bytes, kMaxNumberBytes), '\0');
    text.resize(read(member.offset, std::as_writable_bytes(std::span(text))));
    const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
    std::int64_t value = 0;
    const auto [last, error] =
        std::from_chars(text.data() + begin, text.data() + std::max(begin, end), value);
    if (begin >= end || error != std::errc{} || last != text.data() + end)
      rejects.push_back(
          {escape_key(member.name), fmt::format("the label {} is not a whole number", quoted_excerpt(text))});
    else
      numbers.emplace_back(sample_name(member.name), value);
  }

  std::uint32_t number_;
  std::string name_;
  const std::set<std::string>& wanted_;
  std::shared_ptr<const OpenArchive> archive_;  // only while it is listed: there may be many
  // Of an archive on a server: the bytes of the last request.
  std::vector<std::byte> ahead_;
  std::uint64_t ahead_begin_ = 0;
};

template <class T>
void append(std::vector<T>& all, std::vector<T>&& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

// As tar does when it unpacks: of several members with one name the last one counts. The others are rejects, so that nothing is
// lost silently.
void keep_last(InputList& list) {
  std::stable_sort(list.inputs.begin(), list.inputs.end(),
                   [](const Input& a, const Input& b) { return a.path < b.path; });
  std::vector<Input> kept;
  kept.reserve(list.inputs.size());
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    Input& input = list.inputs[i];
    if (i + 1 < list.inputs.size() && list.inputs[i + 1].path == input.path)
      list.rejects.push_back(
          {input.key(), fmt::format("another member of this name comes later; this one is in {}, at byte {}",
                                    escape_key(list.archives[input.archive].string()), input.offset)});
    else
      kept.push_back(std::move(input));
  }
  list.inputs = std::move(kept);
}

// Of several members with one name the last one counts.
void sort_side(std::vector<SideMember>& side) {
  const auto name = [](const SideMember& member) { return std::tie(member.sample, member.extension); };
  std::stable_sort(side.begin(), side.end(),
                   [&](const SideMember& a, const SideMember& b) { return name(a) < name(b); });
  std::reverse(side.begin(), side.end());
  side.erase(std::unique(side.begin(), side.end(),
                         [&](const SideMember& a, const SideMember& b) { return name(a) == name(b); }),
             side.end());
  std::reverse(side.begin(), side.end());
}

}  // namespace

bool names_tars(const std::string& images) {
  std::error_code error;
  if (fs::is_directory(images, error)) return false;
  for (const char* compressed : {".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"})
    if (ends_with(images, compressed))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} is compressed, so its members cannot be read in place: decompress it "
                              "to a .tar first",
                              quoted(images)));
  return ends_with(images, ".tar");
}

InputList scan_tars(const std::string& images, const std::set<std::string>& side) {
  InputList list;
  for (std::string& name : expanded_pattern(images)) list.archives.emplace_back(std::move(name));
  std::vector<std::optional<Contents>> contents(list.archives.size());
  const unsigned threads = is_remote(images) ? kRemoteListings : std::min(cpu_count(), 8U);
  parallel_for(threads, contents.size(), [&](unsigned, std::uint64_t i) {
    contents[i].emplace(static_cast<std::uint32_t>(i), list.archives[i], side);
    contents[i]->list();
  });
  for (auto& part : contents) {
    list.archive_bytes.push_back(part->archive_bytes);
    list.archive_stamps.push_back(part->archive_stamp);
    list.kept.push_back(std::move(part->kept));
    append(list.inputs, std::move(part->inputs));
    append(list.rejects, std::move(part->rejects));
    append(list.skipped, std::move(part->skipped));
    append(list.numbers, std::move(part->numbers));
    append(list.side, std::move(part->side));
    part.reset();
  }
  std::stable_sort(list.numbers.begin(), list.numbers.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  sort_side(list.side);
  keep_last(list);
  for (const Input& input : list.inputs) {
    const std::size_t slash = input.path.find('/');
    const std::string_view folder = std::string_view(input.path).substr(0, slash);
    if (slash != std::string::npos && (list.folders.empty() || list.folders.back() != folder))
      list.folders.emplace_back(folder);
  }
  return list;
}

}  // namespace shard::convert
