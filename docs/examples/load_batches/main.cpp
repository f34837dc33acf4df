#include <iostream>

#include "shard/loader/loader.hpp"

int main() {
  auto data = shard::Dataset::open("out/train");
  shard::LoaderOptions options;
  options.batch_size = 4;
  shard::Loader loader(data, shard::make_host_device(2), options);  // on a GPU: make_cuda_device(0)
  for (shard::Batch& batch : loader.epoch(0)) {
    batch.wait();  // for kernels instead: batch.wait_on(shard::cuda_stream(your_stream))
    std::cout << batch.index() << ": " << batch.size() << " images at " << batch.images().data << '\n';
  }
}
