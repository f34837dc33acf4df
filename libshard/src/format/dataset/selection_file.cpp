#include "format/dataset/selection_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <system_error>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "format/dataset/dataset_view.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFormat = "shard selection 1";
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 31U;
constexpr std::string_view kDigits = "0123456789abcdef";

[[noreturn]] void corrupt_selection(const std::string& why) { throw Error(ErrorCode::corrupt, why); }

std::string file_name(const std::string& name) { return name + ".selection"; }

// Runs of members as "3 5-9", both ends included.
std::string runs_text(const SampleSet& members) {
  std::string text;
  for (auto run = members.run_from(0); run.begin < run.end; run = members.run_from(run.end))
    text += run.end - run.begin == 1 ? fmt::format(" {}", run.begin)
                                     : fmt::format(" {}-{}", run.begin, run.end - 1);
  return text;
}

// Two hexadecimal digits for each 8 samples; the lowest bit is the first sample.
std::string bits_text(const SampleSet& members) {
  std::vector<unsigned char> bytes((members.universe() + 7) / 8);
  for (auto run = members.run_from(0); run.begin < run.end; run = members.run_from(run.end))
    for (std::uint64_t i = run.begin; i < run.end; ++i)
      bytes[i / 8] |= static_cast<unsigned char>(1U << (i % 8));
  std::string text = " ";
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string shard_text(const SampleSet* members) {
  if (members == nullptr) return "all";
  std::string runs = runs_text(*members);
  if (runs.size() <= (members->universe() + 3) / 4) return "runs" + runs;
  return "bits" + bits_text(*members);
}

// Takes words and numbers from the front of a line.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  bool empty() const noexcept { return rest_.empty(); }
  std::string_view next() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }

 private:
  std::string_view rest_;
};

std::uint64_t number(std::string_view text) {
  const auto value = number_of<std::uint64_t>(text);
  if (!value) corrupt_selection(fmt::format("{} is not a number", quoted_excerpt(text)));
  return *value;
}

// " cut SEED LEVELS" for each seed, ascending.
HashCuts read_cuts(Words words) {
  HashCuts cuts;
  while (!words.empty()) {
    if (words.next() != "cut") corrupt_selection("behind the number of samples stands what is not a cut");
    const std::uint64_t seed = number(words.next());
    const std::uint64_t levels = number(words.next());
    if (levels < 1 || levels >= UINT32_MAX || (!cuts.empty() && seed <= cuts.rbegin()->first))
      corrupt_selection(fmt::format("the cut by seed {} is not in order, or has {} levels", seed, levels));
    cuts.emplace(seed, static_cast<std::uint32_t>(levels));
  }
  return cuts;
}

// Reads one line of a shard that has `samples` samples, the first of which is `first` of the data set.
void read_shard(Words words, std::uint64_t first, std::uint64_t samples, SampleBits& bits) {
  const std::string_view kind = words.next();
  if (kind == "all") {
    for (std::uint64_t i = 0; i < samples; ++i) bits.set(first + i);
  } else if (kind == "runs") {
    std::uint64_t from = 0;
    while (!words.empty()) {
      const std::string_view run = words.next();
      const std::size_t dash = std::min(run.find('-'), run.size());
      const std::uint64_t begin = number(run.substr(0, dash));
      const std::uint64_t last = dash < run.size() ? number(run.substr(dash + 1)) : begin;
      if (begin < from || last < begin || last >= samples)
        corrupt_selection(fmt::format("the run {} is not in order, or not in the {} samples of its shard",
                                      quoted_excerpt(run), samples));
      for (std::uint64_t i = begin; i <= last; ++i) bits.set(first + i);
      from = last + 1;
    }
  } else if (kind == "bits") {
    const std::string_view digits = words.next();
    if (digits.size() != (samples + 7) / 8 * 2)
      corrupt_selection(fmt::format("{} digits for {} samples", digits.size(), samples));
    for (std::uint64_t i = 0; i < digits.size() * 4; ++i) {
      const std::size_t value = kDigits.find(digits[i / 8 * 2 + (i % 8 < 4 ? 1 : 0)]);
      if (value == std::string_view::npos) corrupt_selection("bits are hexadecimal digits");
      if ((value >> (i % 4) & 1U) == 0) continue;
      if (i >= samples) corrupt_selection("a bit beyond the last sample");
      bits.set(first + i);
    }
  } else {
    corrupt_selection(fmt::format("{} is not \"all\", \"runs\" or \"bits\"", quoted_excerpt(kind)));
  }
}

}  // namespace

void check_selection_name(const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (!name.empty() && name.size() <= 64 && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), good))
    return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "{} cannot be the name of a selection: expected 1 to 64 letters, digits, '-', '_' and '.', not "
          "beginning with '.'",
          quoted(name)));
}

DatasetPath parse_dataset_path(const fs::path& path) {
  std::error_code error;
  const std::string& text = path.native();
  const std::size_t at = text.rfind('#');
  if (is_remote(path) && at != std::string::npos) {
    std::string name = text.substr(at + 1);
    check_selection_name(name);
    return {text.substr(0, at), std::move(name)};
  }
  if (at == std::string::npos || at == 0 || text.find('/', at) != std::string::npos || is_present(path))
    return {path, {}};
  const fs::path folder = text.substr(0, at);
  if (!fs::is_directory(folder, error)) return {path, {}};
  std::string name = text.substr(at + 1);
  check_selection_name(name);
  return {folder, std::move(name)};
}

std::uint64_t digest_of_shards(const DatasetInfo& info) {
  Xxh3Stream stream;
  for (const ShardSummary& shard : info.shards)
    stream.update(fmt::format("{} {} {}\n", shard.file, shard.samples, to_hex(shard.head_digest)));
  return stream.digest();
}

RecordedSelection parse_selection(std::string_view text, const DatasetInfo& info) {
  const auto line = [&text] {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) corrupt_selection("it ends in the middle of a line: it was cut");
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(end + 1);
    return found;
  };
  const std::string_view whole = text;
  if (line() != kFormat)
    corrupt_selection(fmt::format("it does not begin with the line {}", quoted_excerpt(kFormat)));
  // The digest first: what was damaged is not what was changed.
  const std::size_t last = whole.rfind("\ndigest xxh3:");
  if (last == std::string_view::npos || !whole.ends_with('\n'))
    corrupt_selection("it does not end with its digest: it was cut");
  const std::string_view digest = whole.substr(last + 13, whole.size() - last - 14);
  if (from_hex(digest) != xxh3(whole.substr(0, last + 1)))
    corrupt_selection("its content does not match its digest: it was edited or damaged");
  text = whole.substr(kFormat.size() + 1, last - kFormat.size());
  Words data(line());
  if (data.next() != "data" || from_hex(data.next()) != digest_of_shards(info))
    corrupt_selection(
        "the data set has changed since this selection was written (shards were added, removed or made "
        "again): write it again, for "
        "instance by the same shardctl split (which moves no sample from one part to another)");
  Words samples(line());
  const bool states = samples.next() == "samples";
  const std::uint64_t stated = number(samples.next());
  if (samples.next() != "of" || number(samples.next()) != info.samples())
    corrupt_selection(fmt::format("it is not of {} samples", info.samples()));
  HashCuts cuts = read_cuts(samples);
  SampleBits bits(info.samples());
  std::uint64_t next_shard = 0;
  std::uint64_t first = 0;
  while (!text.empty()) {
    Words words(line());
    if (words.next() != "shard") corrupt_selection("a line is not of a shard");
    const std::uint64_t shard = number(words.next());
    if (shard < next_shard || shard >= info.shards.size())
      corrupt_selection(fmt::format("shard {} is not in order, or not one of {}", shard, info.shards.size()));
    for (; next_shard < shard; ++next_shard) first += info.shards[next_shard].samples;
    read_shard(words, first, info.shards[shard].samples, bits);
    first += info.shards[next_shard++].samples;
  }
  std::uint64_t found = 0;
  for (const std::uint64_t word : bits.words()) found += static_cast<std::uint64_t>(std::popcount(word));
  if (!states || found != stated)
    corrupt_selection(fmt::format("it states {} samples, and has {}", stated, found));
  return {std::move(bits), std::move(cuts)};
}

RecordedSelection read_selection(const DatasetPart& part, const std::string& name) {
  const fs::path path = part.folder() / file_name(name);
  std::vector<std::byte> bytes;
  try {
    bytes = part.read_document(file_name(name), kMaxBytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    throw Error(ErrorCode::not_found,
                fmt::format("{} has no selection {}: there is no file {}", quoted(part.folder()),
                            quoted(name), quoted(file_name(name))));
  }
  try {
    return parse_selection(as_text(bytes), part.info());
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quoted(path), error.what()));
  }
}

void Dataset::save_selection(const std::string& name) const {
  check_selection_name(name);
  const DatasetPart* const part = impl_->shards.front().part.get();
  std::string text = fmt::format("{}\ndata {}\nsamples {} of {}", kFormat,
                                 to_hex(digest_of_shards(part->info())), size(), part->info().samples());
  for (const auto& [seed, levels] : impl_->cuts) text += fmt::format(" cut {} {}", seed, levels);
  text += '\n';
  std::int64_t before = -1;
  for (const ViewShard& shard : impl_->shards) {
    if (shard.part.get() != part || shard.index <= before)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} is several data sets as one: save a selection of each of them", quoted(path())));
    before = shard.index;
    text += fmt::format("shard {} {}\n", shard.index, shard_text(shard.members.get()));
  }
  if (shard::is_remote(part->folder()))
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is on a server: save the selection in a copy of the data set, and upload it",
                            quoted(path())));
  if (part->is_unconverted())
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} is not converted: selections are saved in the folder of a data set", quoted(path())));
  if (part->is_lone_shard())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is a shard alone: selections are saved in the folder of a data set", quoted(path())));
  replace_file(part->folder() / file_name(name), text + fmt::format("digest xxh3:{}\n", to_hex(xxh3(text))));
}

}  // namespace shard
