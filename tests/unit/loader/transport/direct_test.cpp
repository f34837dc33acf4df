// direct: queues that fail with reads under way, and refusals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "base/unique_handle.hpp"
#include "direct/direct_alignment.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "transport/transport.hpp"

namespace shard::testing {
namespace {

namespace fs = std::filesystem;

// What a test knows of a queue, also when the queue is gone.
struct QueueState {
  enum class Call { none, start, flush, next_done };
  Call fails = Call::none;
  std::uint64_t after = 0;  // so many such calls
  bool gone_with_reads = false;
  std::uint64_t drained = 0;
};

// Reads only when it is asked for what is done: a request that was forgotten in it would be touched late.
class LateQueue final : public ReadQueue {
 public:
  explicit LateQueue(QueueState& state) : state_(state) {}
  LateQueue(const LateQueue&) = delete;
  LateQueue& operator=(const LateQueue&) = delete;
  ~LateQueue() override { state_.gone_with_reads = state_.gone_with_reads || !under_way_.empty(); }
  std::string_view name() const noexcept override { return "late"; }
  void start(ReadRequest& request) override {
    fail(QueueState::Call::start);
    under_way_.push_back(&request);
  }
  void flush() override { fail(QueueState::Call::flush); }
  ReadRequest& next_done() override {
    fail(QueueState::Call::next_done);
    ReadRequest& request = *under_way_.front();
    under_way_.pop_front();
    request.result =
        ::pread(request.descriptor, request.target, request.size_bytes, static_cast<off_t>(request.offset));
    return request;
  }
  void drain() noexcept override {
    state_.drained += under_way_.size();
    under_way_.clear();
  }

 private:
  void fail(QueueState::Call call) {
    if (call != state_.fails) return;
    if (state_.after == 0) throw Error(ErrorCode::io, "the test fails the queue");
    --state_.after;
  }
  QueueState& state_;
  std::deque<ReadRequest*> under_way_;
};

class DirectTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBatch = 6;
  static constexpr std::size_t kSlots = 3;

  void make(const DatasetShape& shape) {
    fs::remove_all(dir_.path() / "data");
    fs::create_directory(dir_.path() / "data");
    write_dataset(dir_.path() / "data", shape);
    shape_ = shape;
    data_ = Dataset::open(dir_.path() / "data");
    options_.batch_size = kBatch;
    options_.prefetch = kSlots - 1;
    context_.dataset = &*data_;
    context_.forms = {make_stored_form(data_->info())};
    context_.device = device_;
    context_.options = &options_;
    context_.copy_stream = stream_.get();
    context_.pool = &pool_;
  }
  static DatasetShape two_shards() {
    DatasetShape shape;
    shape.shards = {40, 40};
    return shape;
  }
  // Null, and the test skipped, where there is no O_DIRECT.
  std::unique_ptr<Transport> direct() {
    std::unique_ptr<Transport> transport;
    const UniqueFd probe(
        ::open((dir_.path() / "data" / kDatasetFile).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    if (!probe) return nullptr;
    transport = make_direct(context_, detail_);
    slots_ = std::vector<Slot>(kSlots);
    for (Slot& slot : slots_) {
      slot.number = static_cast<std::size_t>(&slot - slots_.data());
      slot.images = device_->allocate_device(kBatch * size());
      transport->prepare(slot);
    }
    return transport;
  }
  std::uint64_t size() const { return data_->info().spec.size_bytes(); }
  // Brings samples [n x batch, (n + 1) x batch) into slot n modulo the number of slots.
  Slot& begin(Transport& transport, std::size_t n) {
    Slot& slot = slots_[n % kSlots];
    slot.fetch.clear();
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      const std::uint64_t sample = n * kBatch + i;
      slot.fetch.push_back(
          {sample, 0, data_->locate(sample), slot.images->data() + i * size(), size(), i * size(), true});
    }
    transport.begin(slot);
    return slot;
  }
  void end_and_expect(Transport& transport, std::size_t n) {
    Slot& slot = slots_[n % kSlots];
    transport.end(slot);
    slot.copied_event.wait();
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      const auto expected = sample_of(shape_, n * kBatch + i);
      EXPECT_EQ(std::memcmp(slot.images->data() + i * size(), expected.data(), size()), 0)
          << "batch " << n << ", sample " << i;
    }
  }

  TempDir dir_;
  DatasetShape shape_;
  std::optional<Dataset> data_;
  std::shared_ptr<Device> device_ = make_host_device(2);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  LoaderOptions options_;
  ThreadPool pool_{2};
  TransportContext context_;
  std::string detail_;
  std::vector<Slot> slots_;
};

TEST_F(DirectTest, ReadsWithLargerAlignmentsThanAPage) {
  DatasetShape small;
  small.shards = {20, 17};
  DatasetShape compressed = small;
  compressed.codec = {CodecSpec::Kind::zstd, 1};
  DatasetShape pages = small;  // each sample would be aligned, if the first one were
  pages.spec = {DType::u8, Layout::nhwc, 4, 64, 64};
  for (const DatasetShape& shape : {small, compressed, pages}) {
    for (const std::uint32_t alignment : {1U, 4096U, 16384U, 65536U}) {
      SCOPED_TRACE(alignment);
      make(shape);
      context_.least_alignment = alignment;
      const auto transport = direct();
      if (!transport) GTEST_SKIP() << "no O_DIRECT here";
      if (alignment > 4096) {
        EXPECT_NE(detail_.find("aligned to " + std::to_string(alignment)), std::string::npos) << detail_;
      }
      for (std::size_t n = 0; n < 6; ++n) {
        begin(*transport, n);
        end_and_expect(*transport, n);
      }
    }
  }
}

TEST_F(DirectTest, DrainsAQueueThatFailsBeforeASlotIsUsedAgain) {
  using Call = QueueState::Call;
  for (const Call call : {Call::start, Call::flush, Call::next_done}) {
    // try_out() makes one call of each
    for (const std::uint64_t after : {1U, 2U, 3U, 8U}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(call)) + " after " + std::to_string(after));
      make(two_shards());
      QueueState state{call, after};
      context_.make_queue = [&](unsigned) { return std::make_unique<LateQueue>(state); };
      {
        auto transport = direct();
        if (!transport) GTEST_SKIP() << "no O_DIRECT here";
        EXPECT_EQ(transport->remark(), "");
        std::uint64_t failed = 0;
        for (std::size_t n = 0; n < 12; n += 2) {  // two at a time
          Slot& first = begin(*transport, n);
          static_cast<void>(first);
          begin(*transport, n + 1);
          for (const std::size_t ended : {n, n + 1}) {
            try {
              end_and_expect(*transport, ended);
            } catch (const Error& error) {
              ++failed;
              EXPECT_EQ(to_string(error.code()), "io");
              EXPECT_NE(std::string(error.what()).find("the test fails the queue"), std::string::npos)
                  << error.what();
            }
          }
        }
        EXPECT_GE(failed, call == Call::flush ? 0U : 1U);  // the last flush of a batch loses none
        EXPECT_LE(failed, 2U) << "what comes later is read by threads";
        EXPECT_NE(transport->remark().find("32 threads read, because the queue failed"), std::string::npos)
            << transport->remark();
      }
      EXPECT_FALSE(state.gone_with_reads);
    }
  }
}

TEST_F(DirectTest, ReadsByThreadsWhereAQueueCannotBeUsed) {
  make(two_shards());
  QueueState state{QueueState::Call::next_done, 0};
  context_.make_queue = [&](unsigned) { return std::make_unique<LateQueue>(state); };
  const auto transport = direct();
  if (!transport) GTEST_SKIP() << "no O_DIRECT here";
  EXPECT_NE(detail_.find("32 threads"), std::string::npos) << detail_;
  EXPECT_NE(detail_.find("the test fails the queue"), std::string::npos) << detail_;
  EXPECT_EQ(state.drained, 1U);
  EXPECT_FALSE(state.gone_with_reads);
  begin(*transport, 0);
  end_and_expect(*transport, 0);
}

TEST_F(DirectTest, IsDrainedWhenItEndsWithReadsUnderWay) {
  make(two_shards());
  QueueState state;
  context_.make_queue = [&](unsigned) { return std::make_unique<LateQueue>(state); };
  auto transport = direct();
  if (!transport) GTEST_SKIP() << "no O_DIRECT here";
  begin(*transport, 0);
  begin(*transport, 1);
  transport.reset();
  EXPECT_EQ(state.drained, 2 * kBatch);
  EXPECT_FALSE(state.gone_with_reads);
}

// Not only a filesystem without O_DIRECT: whatever refuses the file, another transport can be chosen.
TEST_F(DirectTest, IsUnsupportedWhereAFileCannotBeOpenedAgain) {
  make({});
  const fs::path shard = data_->shard(0).path();
  fs::permissions(shard, fs::perms::none);
  const uid_t user = ::geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(user == 0 ? ::seteuid(kNobody) : 0, 0);
  EXPECT_SHARD_ERROR(make_direct(context_, detail_), ErrorCode::unsupported, "Permission denied");
  ASSERT_EQ(user == 0 ? ::seteuid(user) : 0, 0);
  fs::permissions(shard, fs::perms::owner_all);
}

}  // namespace
}  // namespace shard::testing
