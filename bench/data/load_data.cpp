#include "data/load_data.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "base/digest/mix64.hpp"
#include "base/system/parallel.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/shard_reader.hpp"
#include "shard/shard_writer.hpp"

namespace shard::bench {

namespace {

DatasetInfo info_for(const SampleSpec& spec, std::uint64_t samples) {
  DatasetInfo info;
  info.spec = spec;
  info.normalization = convert::kImagenet;
  info.fingerprint = "0000000000000000";
  info.source_digest = "0000000000000000";
  info.inputs = samples;
  return info;
}

std::filesystem::path shard_path(const std::string& folder, std::uint64_t shard) {
  return std::filesystem::path(folder) / ("shard-" + std::to_string(shard) + ".safetensors");
}

// Of a sample: `spec`, or if `any_size` with rows and columns of 0.6 to 1.4 of it.
SampleSpec spec_of(const SampleSpec& spec, bool any_size, std::uint64_t index) {
  if (!any_size) return spec;
  const auto side = [&](std::uint32_t mean, std::uint64_t salt) {
    const std::uint64_t share = 600 + mix64(2 * index + salt) % 801;
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(mean * share / 1000, 1));
  };
  SampleSpec sized = spec;
  sized.height = side(spec.height, 0);
  sized.width = side(spec.width, 1);
  return sized;
}

SampleSpec recorded(SampleSpec spec, bool any_size) {
  if (any_size) spec.height = spec.width = 0;
  return spec;
}

// `sample`: of `of`, or of more.
void put(ShardWriter& writer, std::uint64_t row, std::uint64_t index, const SampleSpec& of, bool any_size,
         std::span<const std::byte> sample) {
  const std::uint64_t label = index % 1000;
  std::vector<std::byte> labels(sizeof label);
  std::memcpy(labels.data(), &label, sizeof label);
  const std::span<const std::byte> bytes = sample.first(of.size_bytes());
  if (any_size)
    writer.put(row, std::to_string(index), labels, SampleValues(bytes, of.height, of.width));
  else
    writer.put(row, std::to_string(index), labels, bytes);
}

void fill_random(std::span<std::byte> sample, std::uint64_t index) {
  std::uint64_t state = index * 0x9E3779B97F4A7C15U + 1;
  for (std::size_t at = 0; at + 8 <= sample.size(); at += 8) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t word = state ^ (state >> 29U);
    std::memcpy(sample.data() + at, &word, 8);
  }
}

}  // namespace

void make_random_dataset(const std::string& folder, std::uint64_t samples, const SampleSpec& spec,
                         unsigned threads, bool any_size) {
  if (folder_state(folder) == FolderState::complete) return;
  std::filesystem::create_directories(folder);
  DatasetInfo info = info_for(recorded(spec, any_size), samples);
  const ShardWriterOptions options{info};
  const std::uint64_t per_shard = std::max<std::uint64_t>(1, (std::uint64_t{256} << 20U) / spec.size_bytes());
  const std::uint64_t shards = (samples + per_shard - 1) / per_shard;
  info.shards.resize(shards);
  parallel_for(threads, shards, [&](unsigned, std::uint64_t s) {
    std::vector<std::byte> sample(2 * spec.size_bytes());
    const std::uint64_t count = std::min(per_shard, samples - s * per_shard);
    ShardWriter writer = ShardWriter::create(shard_path(folder, s), count, options);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t index = s * per_shard + i;
      const SampleSpec of = spec_of(spec, any_size, index);
      fill_random(std::span(sample).first(of.size_bytes()), index);
      put(writer, i, index, of, any_size, sample);
    }
    info.shards[s] = writer.publish();
  });
  publish_file(std::filesystem::path(folder) / kDatasetFile, serialize_dataset(info));
}

void make_sparse_dataset(const std::string& folder, std::uint64_t samples, std::uint64_t shards,
                         const SampleSpec& spec, bool any_size) {
  if (folder_state(folder) == FolderState::complete) return;
  std::filesystem::create_directories(folder);
  DatasetInfo info = info_for(recorded(spec, any_size), samples);
  const std::uint64_t per_shard = (samples + shards - 1) / shards;
  const std::vector<std::byte> zeros(2 * spec.size_bytes());
  // One shard of each size is written; the others are its head and a hole.
  std::map<std::uint64_t, std::pair<ShardSummary, std::vector<std::byte>>> written;
  for (std::uint64_t s = 0, done = 0; done < samples; ++s) {
    const std::uint64_t count = std::min(per_shard, samples - done);
    done += count;
    const std::filesystem::path path = shard_path(folder, s);
    if (const auto it = written.find(count); it != written.end()) {
      publish_file(path, {reinterpret_cast<const char*>(it->second.second.data()), it->second.second.size()});
      std::filesystem::resize_file(path, it->second.first.size_bytes);
      info.shards.push_back(it->second.first);
      info.shards.back().file = path.filename().native();
      continue;
    }
    ShardWriter writer = ShardWriter::create(path, count, ShardWriterOptions{info});
    for (std::uint64_t i = 0; i < count; ++i) put(writer, i, i, spec_of(spec, any_size, i), any_size, zeros);
    info.shards.push_back(writer.publish());
    const ShardReader reader = ShardReader::open(path);
    const auto head = reader.mapping().first(reader.header().images_begin);
    written[count] = {info.shards.back(), {head.begin(), head.end()}};
    std::filesystem::resize_file(path, head.size());
    std::filesystem::resize_file(path, info.shards.back().size_bytes);
  }
  publish_file(std::filesystem::path(folder) / kDatasetFile, serialize_dataset(info));
}

}  // namespace shard::bench
