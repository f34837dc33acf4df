// RandAugment, TrivialAugmentWide, AutoAugment and AugMix as instructions: which operations, and how strong.
#pragma once

#include <vector>

#include "shard/loader/augment.hpp"
#include "transform/augment/operation_draws.hpp"

namespace shard::augment {

// Append what is drawn for one sample.
void draw(const ops::RandAugment& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program);
void draw(const ops::TrivialAugment& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program);
void draw(const ops::AutoAugment& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program);
void draw(const ops::AugMix& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program);

}  // namespace shard::augment
