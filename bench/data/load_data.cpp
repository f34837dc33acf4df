#include "data/load_data.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

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

void put(ShardWriter& writer, std::uint64_t row, std::uint64_t index, std::span<const std::byte> sample) {
  const std::uint64_t label = index % 1000;
  std::vector<std::byte> labels(sizeof label);
  std::memcpy(labels.data(), &label, sizeof label);
  writer.put(row, std::to_string(index), labels, sample);
}

void fill_random(std::vector<std::byte>& sample, std::uint64_t index) {
  std::uint64_t state = index * 0x9E3779B97F4A7C15U + 1;
  for (std::size_t at = 0; at + 8 <= sample.size(); at += 8) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t word = state ^ (state >> 29U);
    std::memcpy(sample.data() + at, &word, 8);
  }
}

}  // namespace

void make_random_dataset(const std::string& folder, std::uint64_t samples, const SampleSpec& spec,
                         unsigned threads) {
  if (folder_state(folder) == FolderState::complete) return;
  std::filesystem::create_directories(folder);
  DatasetInfo info = info_for(spec, samples);
  const ShardWriterOptions options{info};
  const std::uint64_t per_shard = std::max<std::uint64_t>(1, (std::uint64_t{256} << 20U) / spec.size_bytes());
  const std::uint64_t shards = (samples + per_shard - 1) / per_shard;
  info.shards.resize(shards);
  parallel_for(threads, shards, [&](unsigned, std::uint64_t s) {
    std::vector<std::byte> sample(spec.size_bytes());
    const std::uint64_t count = std::min(per_shard, samples - s * per_shard);
    ShardWriter writer = ShardWriter::create(shard_path(folder, s), count, options);
    for (std::uint64_t i = 0; i < count; ++i) {
      fill_random(sample, s * per_shard + i);
      put(writer, i, s * per_shard + i, sample);
    }
    info.shards[s] = writer.publish();
  });
  publish_file(std::filesystem::path(folder) / kDatasetFile, serialize_dataset(info));
}

void make_sparse_dataset(const std::string& folder, std::uint64_t samples, std::uint64_t shards,
                         const SampleSpec& spec) {
  if (folder_state(folder) == FolderState::complete) return;
  std::filesystem::create_directories(folder);
  DatasetInfo info = info_for(spec, samples);
  const std::uint64_t per_shard = (samples + shards - 1) / shards;
  const std::vector<std::byte> zeros(spec.size_bytes());
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
    for (std::uint64_t i = 0; i < count; ++i) put(writer, i, i, zeros);
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
