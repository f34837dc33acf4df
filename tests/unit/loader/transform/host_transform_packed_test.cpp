// Frames of codec packed on the host: the same batch as from the samples themselves, and a word for each
// frame that is none.
#include <gtest/gtest.h>

#include <vector>

#include "support/expect_error.hpp"
#include "support/transform/random_work.hpp"
#include "transform/host_transform.hpp"

namespace shard {
namespace {

using testing::Random;
using testing::RandomWork;

struct Made {
  std::vector<std::byte> batch;
  std::vector<std::uint32_t> broken;
};

Made transform(const RandomWork& random) {
  Made made;
  made.batch.resize(random.target_bytes());
  made.broken.resize(random.samples.size());
  TransformWork work = random.work(made.batch.data());
  work.broken = made.broken.data();
  transform_rows(work, 0, random.samples.size());
  return made;
}

RandomWork random_bytes_work(Random& random, std::uint32_t largest) {
  RandomWork work;
  do {
    work = testing::random_work(random, largest);
  } while (work.stored.dtype != DType::u8);
  testing::make_smooth(random, work);
  return work;
}

TEST(TransformPacked, GivesTheBatchOfTheSamplesThemselves) {
  Random random(41);
  for (int round = 0; round < 400; ++round) {
    const RandomWork plain = random_bytes_work(random, 90);
    const Made made = transform(testing::packed_work(plain));
    EXPECT_EQ(made.broken, std::vector<std::uint32_t>(plain.samples.size()));
    ASSERT_EQ(made.batch, transform(plain).batch) << plain.describe();
  }
}

TEST(TransformPacked, TakesNoiseThatIsStoredAsItIs) {
  Random random(42);
  for (int round = 0; round < 50; ++round) {
    RandomWork plain = random_bytes_work(random, 60);
    for (auto& sample : plain.samples) random.fill(sample);
    ASSERT_EQ(transform(testing::packed_work(plain)).batch, transform(plain).batch) << plain.describe();
  }
}

TEST(TransformPacked, SaysWhichFramesAreBrokenAndMakesTheOthers) {
  Random random(43);
  int broken = 0;
  for (int round = 0; round < 400; ++round) {
    RandomWork plain = random_bytes_work(random, 60);
    RandomWork packed = testing::packed_work(plain);
    const Codec codec({CodecSpec::Kind::packed}, plain.stored);
    std::vector<std::uint32_t> expected;
    for (std::size_t i = 0; i < packed.samples.size(); ++i) {
      if (random.coin()) testing::break_frame(random, packed.samples[i]);
      packed.sources[i] = packed.samples[i].data();
      packed.frame_bytes[i] = packed.samples[i].size();
      try {
        codec.decode(packed.samples[i], plain.samples[i]);
        expected.push_back(0);
      } catch (const Error&) {
        expected.push_back(1);
        ++broken;
      }
    }
    const Made made = transform(packed);
    ASSERT_EQ(made.broken, expected);
    const std::vector<std::byte> right = transform(plain).batch;
    const std::size_t row = plain.delivered.size_bytes();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] != 0) continue;
      ASSERT_TRUE(std::equal(right.begin() + static_cast<std::ptrdiff_t>(i * row),
                             right.begin() + static_cast<std::ptrdiff_t>((i + 1) * row),
                             made.batch.begin() + static_cast<std::ptrdiff_t>(i * row)));
    }
  }
  EXPECT_GT(broken, 100);
}

TEST(TransformPacked, RefusesWorkThatMissesSomething) {
  Random random(44);
  const RandomWork packed = testing::packed_work(random_bytes_work(random, 20));
  std::vector<std::byte> batch(packed.target_bytes());
  EXPECT_SHARD_ERROR(transform_rows(packed.work(batch.data()), 0, 1), ErrorCode::invalid_argument,
                     "no place to say which frames are broken");
  std::vector<std::uint32_t> broken(packed.samples.size());
  TransformWork work = packed.work(batch.data());
  work.broken = broken.data();
  work.stored.dtype = work.delivered.dtype = DType::f16;
  EXPECT_SHARD_ERROR(transform_rows(work, 0, 1), ErrorCode::invalid_argument, "frames hold u8 samples");
  work = packed.work(batch.data());
  work.broken = broken.data();
  const std::vector<std::uint64_t> more(packed.samples.size() + 1, 16);
  work.frame_bytes = more;
  EXPECT_SHARD_ERROR(transform_rows(work, 0, 1), ErrorCode::invalid_argument, "each source needs them");
}

}  // namespace
}  // namespace shard
