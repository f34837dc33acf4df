// Every way in which a CUDA stream copies many ranges brings the same bytes.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cuda/batched_copy.hpp"
#include "shard/loader/cuda_device.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

// SHARD_CUDA_COPY until this ends.
class CopyVariable {
 public:
  explicit CopyVariable(const char* value) {
    if (const char* const before = std::getenv(kName)) before_ = before;
    ::setenv(kName, value, 1);
  }
  CopyVariable(const CopyVariable&) = delete;
  CopyVariable& operator=(const CopyVariable&) = delete;
  ~CopyVariable() {
    if (before_)
      ::setenv(kName, before_->c_str(), 1);
    else
      ::unsetenv(kName);
  }

 private:
  static constexpr const char* kName = "SHARD_CUDA_COPY";
  std::optional<std::string> before_;
};

TEST(ChooseCopy, RefusesAnUnknownWay) {
  const CopyVariable variable("fast");
  EXPECT_SHARD_ERROR(choose_copy(true), ErrorCode::invalid_argument,
                     "SHARD_CUDA_COPY is \"fast\"; it can be driver, driver-13, kernel or one-by-one");
}

TEST(ChooseCopy, RefusesAKernelWhereNoneReadsTheMemory) {
  const CopyVariable variable("kernel");
  EXPECT_SHARD_ERROR(choose_copy(false), ErrorCode::unsupported, "SHARD_CUDA_COPY=kernel");
  EXPECT_EQ(choose_copy(true).method, CopyMethod::kernel);
}

class CopiesCuda : public ::testing::TestWithParam<const char*> {};

// Ranges of pinned and of registered memory, of any size and alignment, more than one launch takes.
TEST_P(CopiesCuda, BringRangesOfAnySizeAndAlignment) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device on this machine";
  const CopyVariable variable(GetParam());
  std::shared_ptr<Device> device;
  try {
    device = make_cuda_device(0);
  } catch (const Error& error) {
    const std::string asked = std::string("SHARD_CUDA_COPY=") + GetParam();
    if (std::string(error.what()).find(asked) == std::string::npos) throw;
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(device->info().copy_note.empty(), device->info().batched_copy);

  constexpr std::size_t kBytes = std::size_t{8} << 20U;
  std::mt19937 random(7);
  const std::unique_ptr<Block> pinned = device->allocate_pinned(kBytes);
  void* const mapping =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* const mapped = static_cast<std::byte*>(mapping);
  for (std::byte* memory : {pinned->data(), mapped})
    std::generate(memory, memory + kBytes, [&] { return static_cast<std::byte>(random()); });
  {
    std::unique_ptr<Registration> registration;
    if (device->info().registers_read_only) registration = device->register_read_only({mapped, kBytes}, {});
    const std::unique_ptr<Block> target = device->allocate_device(2 * kBytes);
    std::vector<CopyItem> items;
    std::vector<std::byte> expected(2 * kBytes);
    const std::unique_ptr<Stream> stream = device->create_stream();
    std::uint64_t at = 0;
    for (const std::uint64_t size : {1U, 15U, 16U, 37U, 4096U, 33'000U, 150'528U, 3U}) {
      for (int i = 0; i < 40; ++i) {
        const std::byte* const memory = registration && i % 2 == 0 ? mapped : pinned->data();
        const std::uint64_t alignment = i % 3 == 0 ? 16 : i % 3 == 1 ? 4 : 1;
        const std::uint64_t from = random() % (kBytes - size) / alignment * alignment;
        at = (at + alignment - 1) / alignment * alignment;
        if (at + size > 2 * kBytes) break;
        items.push_back({target->data() + at, memory + from, size});
        std::copy_n(memory + from, size, expected.begin() + static_cast<std::ptrdiff_t>(at));
        at += size;
      }
    }
    ASSERT_GT(items.size(), 260U);
    std::vector<std::byte> zeros(2 * kBytes);
    const std::vector<CopyItem> clear{{target->data(), zeros.data(), zeros.size()}};
    stream->copy(clear);
    stream->copy_pinned(items);
    std::vector<std::byte> found(2 * kBytes);
    const std::vector<CopyItem> back{{found.data(), target->data(), found.size()}};
    stream->copy_to_host(back);
    stream->synchronize();
    EXPECT_TRUE(found == expected);
  }
  ::munmap(mapping, kBytes);
}

INSTANTIATE_TEST_SUITE_P(Ways, CopiesCuda, ::testing::Values("driver", "driver-13", "kernel", "one-by-one"),
                         [](const auto& way) {
                           std::string name = way.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace shard
