// Compares transform_rows() with the reference of reference_transform.hpp.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/transform/random_work.hpp"
#include "support/transform/reference_transform.hpp"
#include "transform/host_transform.hpp"

namespace shard::testing {

inline std::vector<std::byte> transformed(const RandomWork& random) {
  std::vector<std::byte> batch(random.target_bytes());
  transform_rows(random.work(batch.data()), 0, random.samples.size());
  return batch;
}

inline void expect_reference(const RandomWork& random) {
  const std::vector<std::byte> got = transformed(random);
  std::vector<std::byte> unused(1);
  ASSERT_EQ(got, reference_transform(random.work(unused.data()))) << random.describe();
}

}  // namespace shard::testing
