#include <iostream>
#include <memory>

#include "shard/loader/loader.hpp"

int main() {
  auto data = std::make_shared<const shard::Dataset>(shard::Dataset::open("out/train"));
  shard::LoaderOptions options;  // shuffled; crop, flip, normalise, dtype and layout as you say
  options.order.batch_size = 4;
  options.transform.flip_probability = 0.5;
  shard::Loader loader(data, shard::make_host_device(2), options);  // or make_cuda_device(0)
  for (shard::Batch& batch : loader.epoch(0)) {
    batch.wait();  // on the host; for kernels: batch.wait_on(shard::cuda_stream(your_stream))
    std::cout << batch.index() << ": " << batch.size() << " images at " << batch.images() << '\n';
  }
}
