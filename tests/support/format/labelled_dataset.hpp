// Data sets whose labels and keys say which sample is which, for tests of selections and of joined data sets.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {

// Three shards; the label of each sample is its number in the shard, of as many classes as given.
class LabelledDataset : public ::testing::Test {
 protected:
  struct Part {
    std::vector<std::uint64_t> shards{300, 200, 100};
    std::vector<std::string> classes{};
    CodecSpec codec{};
    SampleSpec spec{DType::u8, Layout::nhwc, 3, 4, 5};
  };
  std::filesystem::path write(const std::string& name, const Part& part) const {
    const std::filesystem::path folder = dir_.path() / name;
    std::filesystem::create_directory(folder);
    DatasetInfo info;
    info.spec = part.spec;
    info.codec = part.codec;
    info.fingerprint = "0123456789abcdef";
    info.source_digest = "fedcba9876543210";
    info.classes = part.classes;
    const ShardWriterOptions options{info};
    for (const std::uint64_t n : part.shards) {
      const std::string file = "s" + std::to_string(info.shards.size()) + ".safetensors";
      ShardWriter writer = ShardWriter::create(folder / file, n, options);
      for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t label = part.classes.empty() ? i : i % part.classes.size();
        std::vector<std::byte> row(8);
        std::memcpy(row.data(), &label, 8);
        writer.put(i, name + "/" + std::to_string(info.shards.size()) + "/" + std::to_string(i), row,
                   sample_bytes(options.spec, i));
      }
      info.shards.push_back(writer.publish());
      info.inputs += n;
    }
    publish_file(folder / kDatasetFile, serialize_dataset(info));
    return folder;
  }
  Dataset open(const std::string& name, const Part& part) const { return Dataset::open(write(name, part)); }
  static std::vector<std::string> keys(const Dataset& data) {
    std::vector<std::string> all;
    for (std::uint64_t i = 0; i < data.size(); ++i) all.push_back(data.key(i));
    return all;
  }

  TempDir dir_;
};

}  // namespace shard::testing
