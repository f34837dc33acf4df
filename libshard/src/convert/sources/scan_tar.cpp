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
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>

#include "base/bytes.hpp"
#include "base/system/cpu_count.hpp"
#include "base/system/parallel.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "convert/archives/tar.hpp"
#include "convert/archives/tar_index_file.hpp"
#include "convert/sources/open_archive.hpp"
#include "convert/sources/sample_parts.hpp"
#include "convert/sources/source_kind.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::convert {
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxNumberBytes = 64;  // of a .cls member
constexpr std::size_t kAheadBytes = 4096;
constexpr unsigned kRemoteListings =
    64;  // archives on servers at the same time: listing one is a request after the other

bool ends_with(std::string_view name, std::string_view lower_end) {
  return name.size() >= lower_end.size() &&
         is_in_lower_case(name.substr(name.size() - lower_end.size()), lower_end);
}

// What one archive has.
class Contents {
 public:
  Contents(std::uint32_t number, const std::string& path, const std::set<std::string>& wanted)
      : archive{path}, number_(number), name_(path), wanted_(wanted) {}

  void list() {
    open_ = std::make_shared<const OpenArchive>(archive.path);
    archive.size_bytes = open_->size();
    archive.stamp = open_->stamp();
    if (open_->is_remote())
      list_part(0, open_->size(), "", name_, true);
    else
      list_file();
    ahead_ = {};
    if (open_->is_remote()) archive.open = open_;
    open_.reset();
  }

  Archive archive;
  std::vector<Input> inputs;
  std::vector<RefusedMember> refused;
  std::optional<Reject> problem;  // of the archive itself
  std::vector<Skip> skipped;
  std::vector<SamplePart> parts;
  bool wrote_index = false;

 private:
  // With an index that is kept, or that will be.
  void list_file() {
    TarIndexFile file(kept_files_folder(), archive.path, open_->fd());
    index_ = file.read();
    if (!index_) {
      file.flush();
      new_index_.emplace();
    }
    list_part(0, open_->size(), "", name_, true);
    wrote_index = new_index_ && file.write(*new_index_);
    index_.reset();
    new_index_.reset();
  }

  TarListing members_of(std::uint64_t begin, std::uint64_t size) {
    if (index_)
      if (std::optional<TarListing> known = index_->take(begin, size)) return std::move(*known);
    TarListing found = list_tar(
        [&](std::uint64_t offset, std::span<std::byte> out) {
          const auto there =
              static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size - std::min(size, offset)));
          return read(begin + offset, out.first(there));
        },
        size);
    if (new_index_) new_index_->add(begin, size, found);
    return found;
  }

  // The bytes [begin, begin + size) are an archive; its members get `folder` in front of their names.
  void list_part(std::uint64_t begin, std::uint64_t size, const std::string& folder, const std::string& name,
                 bool outer) {
    TarListing found = members_of(begin, size);
    inputs.reserve(inputs.size() + found.members.size());
    // Of archives that are there twice the last one counts, with all that is in it.
    std::map<std::string, std::uint64_t> last;
    for (const TarMember& member : found.members)
      if (ends_with(member.name, ".tar")) last[member.name] = member.offset;
    for (TarMember& member : found.members) {
      const auto other = last.find(member.name);
      const bool replaced = other != last.end() && other->second != member.offset;
      member.name.insert(0, folder);
      member.offset += begin;
      if (replaced)
        refuse(member.name, member.offset,
               fmt::format("another member of this name comes later; this one is in {}, at byte {}",
                           escape_key(name_), member.offset));
      else
        take(std::move(member), outer);
    }
    if (found.problem.empty()) return;
    if (outer)
      problem = {escape_key(name), found.problem};
    else
      refuse(name, begin, found.problem);
  }

  // On a server, a little more at once: small members lie between headers.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) {
    if (!open_->is_remote() || out.size() > kAheadBytes) return open_->read(offset, out);
    if (offset < ahead_begin_ || offset + out.size() > ahead_begin_ + ahead_.size()) {
      ahead_.resize(kAheadBytes);
      ahead_begin_ = offset;
      ahead_.resize(open_->read(offset, ahead_));
    }
    const std::size_t there =
        std::min(out.size(), ahead_.size() - static_cast<std::size_t>(std::min<std::uint64_t>(
                                                 offset - ahead_begin_, ahead_.size())));
    std::copy_n(ahead_.begin() + static_cast<std::ptrdiff_t>(offset - ahead_begin_), there, out.begin());
    return there;
  }

  // The first bytes of a member.
  std::size_t read_front(std::uint64_t offset, std::span<std::byte> out) {
    if (index_)
      if (const auto known = index_->read(offset, out.size())) {
        std::copy_n(as_byte_span(*known).begin(), known->size(), out.begin());
        return known->size();
      }
    const std::size_t there = read(offset, out);
    if (new_index_ && there == out.size()) new_index_->add(offset, out);
    return there;
  }

  void refuse(const std::string& name, std::uint64_t offset, std::string reason) {
    refused.push_back({name, std::move(reason), number_, offset});
  }

  void take(TarMember member, bool outer) {
    if (!member.problem.empty()) {
      refuse(member.name, member.offset,
             fmt::format("in the archive {}: {}", escape_key(name_), member.problem));
      // It comes behind others of its name, which no longer count.
      if (ends_with(member.name, ".cls"))
        add_part(member, true);
      else if (is_wanted(member.name))
        add_part(member, false);
    } else if (const auto reason = skip_by_path(member.name)) {
      skipped.push_back({escape_key(member.name), *reason});
    } else if (ends_with(member.name, ".tar")) {
      if (outer)
        list_part(member.offset, member.size_bytes, member.name.substr(0, member.name.size() - 4) + "/",
                  member.name, false);
      else
        refuse(member.name, member.offset, "an archive in an archive in an archive: unpack one of them");
    } else if (ends_with(member.name, ".cls")) {
      take_number(member);
    } else if (is_wanted(member.name)) {
      add_part(member, false);
    } else if (has_image_name(member.name) || has_image_bytes(member)) {
      inputs.push_back({std::move(member.name), number_, Input::kNoPage, member.offset, member.size_bytes});
    } else {
      skipped.push_back({escape_key(member.name), SkipReason::no_image});
    }
  }

  bool is_wanted(const std::string& name) const {
    if (wanted_.empty()) return false;
    const std::size_t sample = sample_name(name).size();
    return sample < name.size() && wanted_.contains(name.substr(sample + 1)) && !has_image_name(name);
  }

  bool has_image_bytes(const TarMember& member) {
    std::array<std::byte, image::kFileKindBytes> begin{};
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), member.size_bytes));
    return has_image_content(
        std::span<const std::byte>(begin).first(read_front(member.offset, std::span(begin).first(size))));
  }

  void add_part(const TarMember& member, bool label, std::optional<std::int64_t> number = std::nullopt) {
    std::string sample = sample_name(member.name);
    std::string extension = member.name.substr(sample.size() + 1);
    parts.push_back({std::move(sample), std::move(extension), number_, label, member.offset,
                     member.size_bytes, number,
                     member.problem.empty() ? nullptr : std::make_shared<const std::string>(member.problem)});
  }

  void take_number(const TarMember& member) {
    std::string text(std::min(member.size_bytes, kMaxNumberBytes), '\0');
    text.resize(read_front(member.offset, std::as_writable_bytes(std::span(text))));
    auto value = number_of<std::int64_t>(trimmed(text));
    if (member.size_bytes > kMaxNumberBytes) value.reset();
    if (!value)
      refuse(member.name, member.offset,
             fmt::format("the label {} is not a whole number", quoted_excerpt(text)));
    add_part(member, true, value);
  }

  std::uint32_t number_;
  std::string name_;
  const std::set<std::string>& wanted_;
  std::shared_ptr<const OpenArchive> open_;  // only while it is listed: there may be many
  // Of an archive that is a file: what is known of it, or what is found in it.
  std::optional<TarIndex> index_;
  std::optional<TarIndexWriter> new_index_;
  // Of an archive on a server: the bytes of the last request.
  std::vector<std::byte> ahead_;
  std::uint64_t ahead_begin_ = 0;
};

template <class T>
void append(std::vector<T>& all, std::vector<T>&& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
  more = {};
}

// Top-level folders, which are classes.
void take_folders(InputList& list) {
  for (const Input& input : list.inputs) {
    const std::size_t slash = input.path.find('/');
    const std::string_view folder = std::string_view(input.path).substr(0, slash);
    if (slash != std::string::npos && (list.folders.empty() || list.folders.back() != folder))
      list.folders.emplace_back(folder);
  }
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

InputList scan_tars(const ScanOptions& options) {
  InputList list;
  std::vector<std::string> names = expanded_pattern(options.images);
  std::sort(names.begin(), names.end());  // their order means nothing
  std::vector<std::optional<Contents>> contents(names.size());
  const unsigned threads = is_remote(options.images) ? kRemoteListings : std::min(cpu_count(), 8U);
  parallel_for(threads, contents.size(), [&](unsigned, std::uint64_t i) {
    contents[i].emplace(static_cast<std::uint32_t>(i), names[i], options.side);
    contents[i]->list();
  });
  if (std::any_of(contents.begin(), contents.end(), [](const auto& part) { return part->wrote_index; }))
    tidy_kept_files(kept_files_folder());
  std::vector<SamplePart> parts;
  std::vector<RefusedMember> refused;
  std::size_t inputs = 0;
  for (const auto& part : contents) inputs += part->inputs.size();
  list.inputs.reserve(inputs);
  for (auto& part : contents) {
    list.archives.push_back(std::move(part->archive));
    append(list.inputs, std::move(part->inputs));
    append(parts, std::move(part->parts));
    append(refused, std::move(part->refused));
  }
  keep_last(list, refused, thread_count(options.jobs));
  separate_archives(list, refused);
  assign_parts(list, std::move(parts));
  reject_refused(list, std::move(refused));
  take_folders(list);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    for (Skip& skip : contents[i]->skipped) skip.key.insert(0, escape_key(list.archives[i].prefix));
    append(list.skipped, std::move(contents[i]->skipped));
    if (contents[i]->problem) list.rejects.push_back(std::move(*contents[i]->problem));
  }
  for (Input& input : list.inputs) input.path.insert(0, list.archives[input.archive].prefix);
  return list;
}

}  // namespace shard::convert
