#include "mlp.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "shard/error.hpp"

namespace train {
namespace {

float* floats(const std::unique_ptr<shard::Block>& block) { return reinterpret_cast<float*>(block->data()); }

// Where each layer stands in a vector of all parameters.
template <typename T>
struct Layers {
  Layers(T* values, const MlpShape& s)
      : w1(values), b1(w1 + s.inputs * s.hidden), w2(b1 + s.hidden), b2(w2 + s.hidden * s.classes) {}
  T* w1;
  T* b1;
  T* w2;
  T* b2;
};

}  // namespace

Mlp::Mlp(Backend& backend, MlpShape shape, std::size_t batch_size, std::uint64_t seed)
    : backend_(backend),
      shape_(shape),
      batch_size_(batch_size),
      values_(backend.allocate(2 * shape.parameters())),
      gradients_(backend.allocate(shape.parameters())),
      activations_(backend.allocate(2 * batch_size * (shape.hidden + shape.classes))) {
  std::vector<float> values(2 * shape.parameters());
  const Layers<float> layers(values.data(), shape);
  std::mt19937_64 random(seed);
  const auto draw = [&](float* begin, float* end, std::size_t fan_in) {  // uniform, variance 1 / (3 fan_in)
    const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
    std::generate(begin, end, [&] {
      return static_cast<float>(bound * (static_cast<double>(random() >> 11U) * 0x1p-52 - 1));
    });
  };
  draw(layers.w1, layers.b1, shape.inputs);
  draw(layers.w2, layers.b2, shape.hidden);
  set_values(values);
}

Mlp::Pass Mlp::forward(const shard::Batch& batch) {
  // Padding stands at the end of a batch, so the real samples are its first rows.
  const auto rows = static_cast<std::size_t>(std::count(batch.mask().begin(), batch.mask().end(), 1));
  for (const std::int64_t label : batch.labels().first(rows))
    if (label < 0 || static_cast<std::uint64_t>(label) >= shape_.classes)
      throw shard::Error(shard::ErrorCode::corrupt, "label " + std::to_string(label) + " is none of the " +
                                                        std::to_string(shape_.classes) + " classes");

  const Layers<const float> weights(floats(values_), shape_);
  float* const hidden = floats(activations_);
  float* const logits = hidden + batch_size_ * shape_.hidden;
  Pass pass;
  pass.images = {batch.images().as<float>(), rows, shape_.inputs};
  pass.labels = batch.column("labels").as<std::int64_t>();
  pass.hidden = {hidden, rows, shape_.hidden};
  pass.logits = {logits, rows, shape_.classes};
  backend_.multiply(pass.images, {weights.w1, shape_.inputs, shape_.hidden}, hidden);
  backend_.add_bias(hidden, rows, shape_.hidden, weights.b1, true);
  backend_.multiply(pass.hidden, {weights.w2, shape_.hidden, shape_.classes}, logits);
  backend_.add_bias(logits, rows, shape_.classes, weights.b2, false);
  return pass;
}

void Mlp::evaluate(const shard::Batch& batch) {
  const Pass pass = forward(batch);
  backend_.softmax_loss(pass.logits, pass.labels, nullptr);
}

void Mlp::train(const shard::Batch& batch, float rate, float momentum) {
  const Pass pass = forward(batch);
  const std::size_t rows = pass.images.rows;
  float* const values = floats(values_);
  const Layers<float> weights(values, shape_);
  const Layers<float> gradients(floats(gradients_), shape_);
  float* const d_hidden = floats(activations_) + batch_size_ * (shape_.hidden + shape_.classes);
  float* const d_logits = d_hidden + batch_size_ * shape_.hidden;

  backend_.softmax_loss(pass.logits, pass.labels, d_logits);
  const Matrix by_logits{d_logits, rows, shape_.classes};
  backend_.multiply(pass.hidden.t(), by_logits, gradients.w2);
  backend_.sum_rows(by_logits, gradients.b2);
  backend_.multiply(by_logits, Matrix{weights.w2, shape_.hidden, shape_.classes}.t(), d_hidden);
  backend_.relu_backward(d_hidden, pass.hidden.data, rows * shape_.hidden);
  const Matrix by_hidden{d_hidden, rows, shape_.hidden};
  backend_.multiply(pass.images.t(), by_hidden, gradients.w1);
  backend_.sum_rows(by_hidden, gradients.b1);
  backend_.sgd(values, values + shape_.parameters(), gradients.w1, shape_.parameters(), rate, momentum);
}

std::vector<float> Mlp::values() {
  std::vector<float> values(2 * shape_.parameters());
  backend_.download(values, floats(values_));
  return values;
}

void Mlp::set_values(std::span<const float> values) {
  if (values.size() != 2 * shape_.parameters())
    throw shard::Error(shard::ErrorCode::corrupt,
                       std::to_string(values.size()) + " values for a network that has " +
                           std::to_string(2 * shape_.parameters()) + " weights and velocities");
  backend_.upload(floats(values_), values);
}

}  // namespace train
