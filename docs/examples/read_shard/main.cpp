// Prints the key, label and size of every sample of a data set.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

int main(int argc, char** argv) try {
  const auto data = shard::Dataset::open(argc > 1 ? argv[1] : "out/train");
  std::vector<std::byte> sample(data.info().spec.size_bytes());
  for (std::uint32_t s = 0; s < data.info().shards.size(); ++s) {
    const shard::ShardReader& reader = data.shard(s);  // mapped and checked
    for (std::uint64_t i = 0; i < reader.size(); ++i) {
      reader.read(i, sample);  // copies and decodes; reader.frame(i) is the stored row in the mapping
      std::cout << reader.key(i) << '\t' << reader.label(i) << '\t' << sample.size() << '\n';
    }
  }
} catch (const shard::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
