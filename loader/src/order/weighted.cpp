// Sampling by weights, and uniformly.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/digest/checksum.hpp"
#include "order/epoch_key.hpp"
#include "shard/error.hpp"
#include "shard/loader/sampling.hpp"

namespace shard {

namespace {

// The sum. Throws unless every weight is 0 or more and the sum is above 0 and finite.
double check_weights(std::span<const double> weights) {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  if (weights.empty()) refuse("there are no weights: one is needed for each sample");
  if (weights.size() > std::numeric_limits<std::uint32_t>::max())
    refuse(fmt::format("there are {} weights; at most {} samples can be weighted: use groups", weights.size(),
                       std::numeric_limits<std::uint32_t>::max()));
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      refuse(fmt::format("the weight of sample {} is {}; weights must be 0 or more", i, weights[i]));
    sum += weights[i];
  }
  if (!(sum > 0)) refuse(fmt::format("all {} weights are 0: no sample could be drawn", weights.size()));
  if (!std::isfinite(sum)) refuse("the sum of the weights is beyond the largest number: scale them down");
  return sum;
}

std::uint64_t digest_of(const char* kind, std::span<const double> weights) {
  return xxh3(fmt::format("{} {} {}", kind, weights.size(), to_hex(xxh3(std::as_bytes(weights)))));
}

// Sampling by weights, of each part of the samples.
std::vector<Sampling::Share> split_weights(std::span<const double> weights,
                                           std::span<const std::uint16_t> part_of, std::size_t parts,
                                           bool replacement) {
  std::vector<std::vector<double>> of_part(parts);
  for (std::size_t i = 0; i < weights.size(); ++i) of_part[part_of[i]].push_back(weights[i]);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Sampling::Share> shares(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    const double sum = std::accumulate(of_part[part].begin(), of_part[part].end(), 0.0);
    if (sum > 0) shares[part] = {Sampling::weighted(of_part[part], replacement), sum / all};
    of_part[part] = {};
  }
  return shares;
}

// Position q: a random column, and then its own sample or its alias.
class AliasTable final : public Sampling {
 public:
  explicit AliasTable(std::span<const double> weights)
      : thresholds_(weights.size()), aliases_(weights.size()), digest_(digest_of("weighted", weights)) {
    const double scale = static_cast<double>(weights.size()) / check_weights(weights);
    // What each column still has to give away (above 1) or to get (below 1).
    std::vector<double> mass(weights.begin(), weights.end());
    std::vector<std::uint32_t> small;
    std::vector<std::uint32_t> large;
    for (std::uint32_t i = 0; i < mass.size(); ++i) {
      mass[i] *= scale;
      (mass[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const std::uint32_t low = small.back();
      const std::uint32_t high = large.back();
      small.pop_back();
      set(low, mass[low], high);
      mass[high] -= 1 - mass[low];
      if (mass[high] < 1) {
        large.pop_back();
        small.push_back(high);
      }
    }
    for (const std::uint32_t i : large) set(i, 1, i);
    // Rounding alone leaves these; a sample of weight 0 must not be drawn by it.
    const auto any =
        static_cast<std::uint32_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
    for (const std::uint32_t i : small) set(i, weights[i] > 0 ? 1 : 0, weights[i] > 0 ? i : any);
  }

  std::uint64_t samples() const noexcept override { return aliases_.size(); }
  std::uint64_t digest() const noexcept override { return digest_; }

  void draw(const Epoch& epoch, std::span<std::uint64_t> positions) const override {
    const std::uint64_t columns = epoch_key(epoch.seed, epoch.number, kColumns);
    const std::uint64_t thresholds = epoch_key(epoch.seed, epoch.number, kThresholds);
    for (std::uint64_t& position : positions) {
      const std::uint64_t column = scaled(random_at(columns, position), samples());
      const bool own = random_at(thresholds, position) < thresholds_[column];
      position = own || thresholds_[column] == kAlways ? column : aliases_[column];
    }
  }
  std::vector<Share> split(std::span<const std::uint16_t> part_of, std::size_t parts) const override {
    std::vector<double> weights(samples());
    for (std::size_t column = 0; column < weights.size(); ++column) {
      const double own =
          thresholds_[column] == kAlways ? 1 : std::ldexp(static_cast<double>(thresholds_[column]), -64);
      weights[column] += own;
      if (own < 1) weights[aliases_[column]] += 1 - own;
    }
    return split_weights(weights, part_of, parts, true);
  }

 private:
  static constexpr std::uint64_t kAlways = ~std::uint64_t{0};

  void set(std::uint32_t column, double probability, std::uint32_t alias) {
    thresholds_[column] =
        probability >= 1 ? kAlways : static_cast<std::uint64_t>(std::ldexp(probability, 64));
    aliases_[column] = alias;
  }

  std::vector<std::uint64_t> thresholds_;  // in 2^-64
  std::vector<std::uint32_t> aliases_;
  std::uint64_t digest_;
};

// The samples of an epoch in the order of their keys.
class WithoutReplacement final : public Sampling {
 public:
  explicit WithoutReplacement(std::span<const double> weights)
      : weights_(weights.begin(), weights.end()),
        digest_(digest_of("weighted, without replacement", weights)) {
    check_weights(weights);
    drawable_ = static_cast<std::uint64_t>(
        std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; }));
  }

  std::uint64_t samples() const noexcept override { return weights_.size(); }
  std::uint64_t longest_epoch() const noexcept override { return drawable_; }
  std::uint64_t digest() const noexcept override { return digest_; }

  void draw(const Epoch& epoch, std::span<std::uint64_t> positions) const override {
    const std::shared_ptr<const Table> drawn = table(epoch);
    for (std::uint64_t& position : positions) position = drawn->samples[position];
  }
  std::vector<Share> split(std::span<const std::uint16_t> part_of, std::size_t parts) const override {
    return split_weights(weights_, part_of, parts, false);
  }

 private:
  struct Table {
    Epoch epoch;
    std::vector<std::uint32_t> samples;
  };

  std::shared_ptr<const Table> table(const Epoch& epoch) const {
    const std::lock_guard lock(mutex_);
    if (table_ && table_->epoch.seed == epoch.seed && table_->epoch.number == epoch.number &&
        table_->epoch.length == epoch.length)
      return table_;
    table_.reset();
    const std::uint64_t stream = epoch_key(epoch.seed, epoch.number, kKeys);
    std::vector<std::pair<double, std::uint32_t>> keys;
    keys.reserve(drawable_);
    for (std::uint32_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      const double uniform =
          std::ldexp(static_cast<double>((random_at(stream, i) >> 11U) + 1), -53);  // (0, 1]
      keys.emplace_back(-std::log(uniform) / weights_[i], i);
    }
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(epoch.length);
    std::nth_element(keys.begin(), end == keys.end() ? end - 1 : end, keys.end());
    std::sort(keys.begin(), end);
    auto fresh = std::make_shared<Table>(Table{epoch, {}});
    for (auto key = keys.begin(); key != end; ++key) fresh->samples.push_back(key->second);
    table_ = std::move(fresh);
    return table_;
  }

  std::vector<double> weights_;
  std::uint64_t drawable_ = 0;
  std::uint64_t digest_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Table> table_;  // of the epoch that was asked for last
};

class Uniform final : public Sampling {
 public:
  explicit Uniform(std::uint64_t samples) : samples_(samples) {}
  std::uint64_t samples() const noexcept override { return samples_; }
  std::uint64_t digest() const noexcept override { return xxh3(fmt::format("uniform {}", samples_)); }
  void draw(const Epoch& epoch, std::span<std::uint64_t> positions) const override {
    const std::uint64_t stream = epoch_key(epoch.seed, epoch.number, kUniform);
    for (std::uint64_t& position : positions) position = scaled(random_at(stream, position), samples_);
  }
  std::vector<Share> split(std::span<const std::uint16_t> part_of, std::size_t parts) const override {
    std::vector<std::uint64_t> counts(parts);
    for (const std::uint16_t part : part_of) ++counts[part];
    std::vector<Share> shares(parts);
    for (std::size_t part = 0; part < parts; ++part)
      if (counts[part] != 0)
        shares[part] = {uniform(counts[part], true),
                        static_cast<double>(counts[part]) / static_cast<double>(samples_)};
    return shares;
  }

 private:
  std::uint64_t samples_;
};

}  // namespace

std::shared_ptr<const Sampling> Sampling::weighted(std::span<const double> weights, bool replacement) {
  if (replacement) return std::make_shared<const AliasTable>(weights);
  return std::make_shared<const WithoutReplacement>(weights);
}

std::shared_ptr<const Sampling> Sampling::uniform(std::uint64_t samples, bool replacement) {
  if (replacement) return std::make_shared<const Uniform>(samples);
  const Part all{samples, 1.0};
  return mix({&all, 1});
}

}  // namespace shard
