#include "base/system/simd_targets.hpp"

#include <hwy/highway.h>

#include <cstdint>

#include "shard/error.hpp"

namespace shard {
namespace {

std::int64_t available() {
  hwy::SetSupportedTargetsForTest(0);  // nothing hidden
  return hwy::SupportedTargets() & HWY_TARGETS;
}

void allow(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (std::int64_t left = available(); left != 0; left &= left - 1)
    names.emplace_back(hwy::TargetName(left & -left));
  return names;
}

void use_simd_target(const std::string& name) {
  if (name.empty()) {
    available();
    allow(0);
    return;
  }
  for (std::int64_t left = available(); left != 0; left &= left - 1) {
    if (name == hwy::TargetName(left & -left)) {
      allow(left & -left);
      return;
    }
  }
  throw Error(ErrorCode::invalid_argument,
              "no instruction set " + name + ": simd_targets() lists the available ones");
}

}  // namespace shard
