#include "backend.hpp"

namespace train {

void Backend::upload(float* target, std::span<const float> source) {
  const shard::CopyItem item{reinterpret_cast<std::byte*>(target),
                             reinterpret_cast<const std::byte*>(source.data()), source.size_bytes()};
  stream_->copy({&item, 1});
  stream_->synchronize();
}

void Backend::download(std::span<float> target, const float* source) {
  const shard::CopyItem item{reinterpret_cast<std::byte*>(target.data()),
                             reinterpret_cast<const std::byte*>(source), target.size_bytes()};
  stream_->copy_to_host({&item, 1});
  stream_->synchronize();
}

}  // namespace train
