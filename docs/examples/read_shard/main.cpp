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
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    data.read(i, sample);  // copies and decodes; its shard is mapped at first use
    std::cout << data.key(i) << '\t' << data.label(i) << '\t' << sample.size() << '\n';
  }
} catch (const shard::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
