#include "shardctl/duplicates/find.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/parallel.hpp"
#include "cli/text.hpp"
#include "shardctl/draw/picture.hpp"
#include "shardctl/draw/pixels.hpp"
#include "shardctl/duplicates/digest_groups.hpp"
#include "shardctl/duplicates/near_groups.hpp"
#include "shardctl/duplicates/perceptual_hash.hpp"
#include "shardctl/duplicates/same_bytes.hpp"

namespace shard::ctl {
namespace {

// Turns samples of one data set into pictures and hashes them. One per thread.
class SampleHasher {
 public:
  explicit SampleHasher(const DatasetInfo& info) : denormalizer_(info.spec, info.normalization) {}

  // Errors: those of Source::read().
  void read(const Source& source, std::uint64_t index) {
    picture_.resize(source.read(index, sample_));
    denormalizer_.rgb(sample_, picture_.rgb);
  }
  // Of what was read. Nothing: plain; then plain_digest() tells pictures apart.
  std::optional<std::uint64_t> hash() { return hasher_.hash(picture_.view()); }
  std::uint64_t plain_digest() const {
    const std::array<std::uint64_t, 3> parts{xxh3(std::as_bytes(std::span(picture_.rgb))), picture_.height,
                                             picture_.width};
    return xxh3(std::as_bytes(std::span(parts)));
  }

 private:
  Denormalizer denormalizer_;
  PerceptualHasher hasher_;
  std::vector<std::byte> sample_;
  Picture picture_;
};

// What a thread has found.
struct Hashed {
  std::vector<HashedSample> structured;
  std::vector<HashedSample> plain;  // with digests of their pixels
};

template <class Part>
std::vector<HashedSample> joined(std::vector<Hashed>& parts, Part part) {
  std::size_t size = 0;
  for (Hashed& of : parts) size += (of.*part).size();
  std::vector<HashedSample> all;
  all.reserve(size);
  for (Hashed& of : parts) {
    all.insert(all.end(), (of.*part).begin(), (of.*part).end());
    std::exchange(of.*part, {});
  }
  return all;
}

}  // namespace

Found find_equal(const SetList& sets, bool verify, unsigned threads, cli::Progress& progress,
                 Damage& damage) {
  sets.require_same_bytes_for_same_pixels();
  Found found;
  found.members =
      group_by_digest(sets.size(), threads, [&](std::uint64_t sample) { return sets.digest(sample); });
  if (!verify) return found;
  std::atomic<std::uint64_t> done{0};
  const std::size_t count = found.members.size();
  const auto read = [&](std::uint64_t sample, std::vector<std::byte>& out) {
    const std::uint64_t number = ++done;
    if (progress.due())
      progress.update(fmt::format("{} of {} compared", number, cli::counted(count, "duplicate")));
    return damage.survives(sample, [&] { sets.read(sample, out); });
  };
  keep_same_bytes(found.members, threads, read);
  return found;
}

Found find_near(const SetList& sets, unsigned distance, unsigned threads, cli::Progress& progress,
                Damage& damage) {
  std::vector<Hashed> hashed(threads);
  std::uint64_t begin = 0;  // of the data set
  for (std::size_t set = 0; set < sets.sets(); ++set) {
    const Source& source = sets.source(set);
    std::vector<std::unique_ptr<SampleHasher>> hashers(threads);
    parallel_for(threads, source.size(), [&](unsigned thread, std::uint64_t index) {
      if (!hashers[thread]) hashers[thread] = std::make_unique<SampleHasher>(source.info());
      SampleHasher& hasher = *hashers[thread];
      const std::uint64_t sample = begin + index;
      if (!damage.survives(sample, [&] { hasher.read(source, index); })) return;
      if (const auto hash = hasher.hash())
        hashed[thread].structured.push_back({*hash, sample});
      else
        hashed[thread].plain.push_back({hasher.plain_digest(), sample});
      if (progress.due()) progress.update(fmt::format("{} of {} samples", sample + 1, sets.size()));
    });
    begin += source.size();
  }
  progress.update("comparing");
  std::vector<HashedSample> plain = joined(hashed, &Hashed::plain);
  Found found;
  found.plain = plain.size();
  Members equal = group_by_hash(std::move(plain), 0, threads);
  found.members = group_by_hash(joined(hashed, &Hashed::structured), distance, threads);
  const std::uint32_t groups = found.members.empty() ? 0 : found.members.back().group + 1;
  for (Member& member : equal) member.group += groups;
  found.members.insert(found.members.end(), equal.begin(), equal.end());
  number_groups(found.members);
  return found;
}

}  // namespace shard::ctl
