// Samples that lie against memory that must not be touched.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "base/system/simd_targets.hpp"
#include "support/transform/random_work.hpp"
#include "transform/host_transform.hpp"
#include "transform/transform_kernels.hpp"

namespace shard {
namespace {

using testing::Random;
using testing::RandomWork;

// `size` bytes between two pages without access, at the begin or the end of what lies between.
class GuardedBytes {
 public:
  GuardedBytes(std::size_t size, bool at_end) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (size + page - 1) / page * page;
    length_ = inner + 2 * page;
    begin_ = static_cast<std::byte*>(mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (begin_ == MAP_FAILED || mprotect(begin_ + page, inner, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("no guarded memory");
    data_ = begin_ + page + (at_end ? inner - size : 0);
  }
  ~GuardedBytes() { munmap(begin_, length_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t length_ = 0;
  std::byte* data_ = nullptr;
};

TEST(TransformBounds, NeitherReadsOutsideASampleNorWritesOutsideItsRow) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    Random random(21);
    for (int round = 0; round < 200; ++round) {
      RandomWork work = testing::random_work(random, round % 20 == 0 ? 200 : 24);
      for (bool at_end : {false, true}) {
        const GuardedBytes source(work.stored.size_bytes(), at_end);
        const GuardedBytes batch(work.delivered.size_bytes(), at_end);
        std::memcpy(source.data(), work.samples[0].data(), work.samples[0].size());
        work.sources.assign(1, source.data());
        work.crops.resize(1);
        transform_rows(work.work(batch.data()), 0, 1);  // a signal ends the test program when it strays
      }
    }
  }
  use_simd_target("");
}

}  // namespace
}  // namespace shard
