// Executes programs on the host, with vectors for the CPU it runs on. Same bits as the CUDA kernel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shard/loader/augment.hpp"
#include "transform/augment/augment_kernels.hpp"

namespace shard::augment {

// Everything one thread needs; reused from sample to sample.
class Interpreter {
 public:
  Interpreter();
  // The memory for pixels of `spec`, u8 [row, column, channel], which the caller fills before run().
  std::uint8_t* input(const SampleSpec& spec);
  // Returns where the result is: memory of this object, valid until the next call.
  const std::uint8_t* run(std::span<const Instruction> program);

 private:
  using Table = std::array<std::uint8_t, 256>;

  void execute(const Instruction& instruction);
  void add_table(const Instruction& instruction);
  void apply_tables();
  void reset_tables();
  std::uint64_t gray_sum() const;
  std::array<std::uint32_t, 256> histogram(std::uint32_t channel) const;
  void sharpen(float rest);
  void blur(const Instruction& instruction);
  void move(const Instruction& instruction);
  void turn(std::int32_t turns);
  void shift(const Instruction& instruction);
  void erase(const Instruction& instruction);
  // The result is in the other buffer.
  void swap() noexcept { std::swap(now_, other_); }

  AugmentKernels kernels_;
  std::uint32_t channels_ = 0;
  std::uint32_t height_ = 0;
  std::uint32_t width_ = 0;
  std::size_t values_ = 0;
  std::uint8_t* now_ = nullptr;
  std::uint8_t* other_ = nullptr;
  std::vector<std::uint8_t> first_;
  std::vector<std::uint8_t> second_;
  std::vector<std::uint8_t> copy_;
  std::vector<float> sum_;
  std::vector<float> row_;
  // Of channels 0 to 3; applied when an instruction needs the pixels. One table for all channels: tables_[0].
  std::array<Table, 4> tables_{};
  bool pending_ = false;
  bool per_channel_ = false;
};

}  // namespace shard::augment
