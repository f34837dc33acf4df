// Mlp: pixels -> hidden (ReLU) -> classes, softmax cross entropy, SGD with momentum. Written once, against
// Backend.
//
//   images [batch, inputs]  x  w1 [inputs, hidden] + b1  ->  relu  ->  x  w2 [hidden, classes] + b2  ->
//   logits
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend.hpp"
#include "shard/loader/loader.hpp"

namespace train {

struct MlpShape {
  std::size_t inputs = 0;
  std::size_t hidden = 0;
  std::size_t classes = 0;
  std::size_t parameters() const { return (inputs + 1) * hidden + (hidden + 1) * classes; }
};

class Mlp {
 public:
  // `backend` is borrowed. Weights are drawn from the seed, the same on every device.
  Mlp(Backend& backend, MlpShape shape, std::size_t batch_size, std::uint64_t seed);

  // Both take float32 [batch, channel, row, column] and i64 labels, after Batch::wait_on; rows that are
  // padding are left out. They throw Error(corrupt) for a label that is no class.
  void train(const shard::Batch& batch, float rate, float momentum);
  void evaluate(const shard::Batch& batch);  // adds to the backend's totals, learns nothing

  // All weights, then all velocities: what a checkpoint holds. Both wait for the work before them. set_values
  // throws Error(corrupt) for another number of values.
  std::vector<float> values();
  void set_values(std::span<const float> values);

 private:
  // The rows of the batch and their logits.
  struct Pass {
    Matrix images;
    const std::int64_t* labels = nullptr;
    Matrix hidden;
    Matrix logits;
  };
  Pass forward(const shard::Batch& batch);

  Backend& backend_;
  MlpShape shape_;
  std::size_t batch_size_;
  std::unique_ptr<shard::Block> values_;       // weights: w1, b1, w2, b2; then velocities
  std::unique_ptr<shard::Block> gradients_;    // in the order of the weights
  std::unique_ptr<shard::Block> activations_;  // hidden, logits, and the gradients of both
};

}  // namespace train
