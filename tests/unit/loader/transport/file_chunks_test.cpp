// Chunks that threads read files into: what a thread writes reaches the device unchanged, however often it
// uses its chunks again, and copies come before what is queued after flush().
#include "transport/file_chunks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/device/forwarding_stream.hpp"
#include "support/expect_error.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kChunk = 4096;
constexpr std::size_t kThreads = 4;

// Each call takes a while, so that threads meet.
class SlowStream final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  void copy(std::span<const CopyItem> items) override {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (fails) throw Error(ErrorCode::io, "the copy was refused");
    ForwardingStream::copy(items);
  }
  bool fails = false;
};

class FileChunksTest : public ::testing::Test {
 protected:
  const std::shared_ptr<Device> device_ = make_host_device(1);
  SlowStream stream_{device_->create_stream()};
};

TEST_F(FileChunksTest, WhatThreadsWriteReachesTheDevice) {
  constexpr std::size_t kRounds = 100;
  FileChunks chunks(*device_, stream_, {kThreads, 2, kChunk});
  std::vector<std::byte> target(kThreads * kRounds * kChunk);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t round = 0; round < kRounds; ++round) {
        FileChunk& chunk = chunks.take();
        const std::size_t number = t * kRounds + round;
        std::memset(chunk.memory->data(), static_cast<int>(number % 251), kChunk);
        chunks.copy(chunk, {{target.data() + number * kChunk, chunk.memory->data(), kChunk}});
      }
    });
  for (std::thread& thread : threads) thread.join();
  Event all;
  {
    const auto lock = chunks.flush();
    all = stream_.record();
  }
  all.wait();
  for (std::size_t number = 0; number < kThreads * kRounds; ++number)
    for (std::size_t i = 0; i < kChunk; ++i)
      ASSERT_EQ(target[number * kChunk + i], static_cast<std::byte>(number % 251)) << number << ", " << i;
}

TEST_F(FileChunksTest, AStreamThatRefusesIsAnErrorOfFlush) {
  FileChunks chunks(*device_, stream_, {1, 2, kChunk});
  std::vector<std::byte> target(kChunk);
  stream_.fails = true;
  FileChunk& chunk = chunks.take();
  chunks.copy(chunk, {{target.data(), chunk.memory->data(), kChunk}});
  EXPECT_SHARD_ERROR(static_cast<void>(chunks.flush()), ErrorCode::io, "the copy was refused");
  stream_.fails = false;
  EXPECT_NE(&chunks.take(), &chunk);
  EXPECT_EQ(&chunks.take(), &chunk);  // nobody waits for what was not queued
  EXPECT_SHARD_ERROR(static_cast<void>(chunks.flush()), ErrorCode::io, "the copy was refused");
}

TEST_F(FileChunksTest, MoreThreadsThanPlannedAreAnError) {
  FileChunks chunks(*device_, stream_, {1, 1, kChunk});
  static_cast<void>(chunks.take());
  std::thread([&] {
    EXPECT_SHARD_ERROR(static_cast<void>(chunks.take()), ErrorCode::resource, "more threads");
  }).join();
}

}  // namespace
}  // namespace shard::testing
