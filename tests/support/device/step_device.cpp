#include "support/device/step_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/system/streaming_copy.hpp"
#include "shard/error.hpp"
#include "transform/augment/mix.hpp"
#include "transform/check_work.hpp"
#include "transform/host_transform.hpp"
#include "transform/targets/host_targets.hpp"

namespace shard::testing {

namespace {

class HeapBlock final : public Block {
 public:
  HeapBlock(StepDevice& device, std::uint64_t size) : device_(device), bytes_(size, std::byte{0xEE}) {}
  HeapBlock(const HeapBlock&) = delete;
  HeapBlock& operator=(const HeapBlock&) = delete;
  ~HeapBlock() override { device_.note_end(bytes_.data(), bytes_.size(), "the end of a block"); }
  std::byte* data() const noexcept override { return const_cast<std::byte*>(bytes_.data()); }
  std::uint64_t size_bytes() const noexcept override { return bytes_.size(); }

 private:
  StepDevice& device_;
  std::vector<std::byte> bytes_;
};

// Registrations of the same range share it, as those of the CUDA device do.
class SharedRange final : public Registration {
 public:
  explicit SharedRange(std::shared_ptr<const std::span<const std::byte>> range) : range_(std::move(range)) {}
  std::span<const std::byte> range() const noexcept override { return *range_; }

 private:
  std::shared_ptr<const std::span<const std::byte>> range_;
};

void merge(Clock& into, const Clock& from) {
  for (const auto& [stream, at] : from) into[stream] = std::max(into[stream], at);
}

}  // namespace

bool StepEvent::done() {
  std::lock_guard lock(device_.mutex_);
  if (error_) std::rethrow_exception(error_);
  return done_;
}

void StepEvent::wait() {
  std::unique_lock lock(device_.mutex_);
  device_.changed_.wait(lock, [&] { return done_; });
  merge(device_.host_, clock_);
  if (error_) std::rethrow_exception(error_);
}

bool StepEvent::wait_for(std::chrono::milliseconds timeout) {
  std::unique_lock lock(device_.mutex_);
  if (!device_.changed_.wait_for(lock, timeout, [&] { return done_; })) return false;
  merge(device_.host_, clock_);
  if (error_) std::rethrow_exception(error_);
  return true;
}

StepStream::~StepStream() {
  std::unique_lock lock(device_.mutex_);
  while (!pieces_.empty()) {  // what it waits for may be in another stream
    const auto& all = device_.streams_;
    if (!device_.step_locked(*this) && std::none_of(all.begin(), all.end(), [&](StepStream* stream) {
          return device_.step_locked(*stream);
        }))
      break;
  }
  merge(device_.host_, clock_);
  std::erase(device_.streams_, this);
}

void StepStream::push(Piece piece) {
  pieces_.push_back(std::move(piece));
  device_.changed_.notify_all();
}

void StepStream::copy_items(std::span<const CopyItem> items) {
  std::lock_guard lock(device_.mutex_);
  merge(clock_, device_.host_);
  ++clock_[id_];
  for (const CopyItem& item : items) {
    device_.note_access(*this, item.source, item.size_bytes, false);
    device_.note_access(*this, item.target, item.size_bytes, true);
  }
  std::vector<CopyItem> owned(items.begin(), items.end());
  push({[this, owned] {
          if (std::exchange(reported_, false)) error_ = nullptr;
          try {
            guarded("copy", [&] {
              for (const CopyItem& item : owned) std::memcpy(item.target, item.source, item.size_bytes);
            });
          } catch (const Error&) {
            if (!error_) error_ = std::current_exception();
          }
        },
        nullptr});
}

void StepStream::transform(const TransformWork& work) {
  std::lock_guard lock(device_.mutex_);
  merge(clock_, device_.host_);
  ++clock_[id_];
  for (std::size_t i = 0; i < work.sources.size(); ++i)
    device_.note_access(*this, work.sources[i],
                        work.frame_bytes.empty() ? stored_spec(work, i).size_bytes() : work.frame_bytes[i],
                        false);
  if (!work.frame_bytes.empty())
    device_.note_access(*this, reinterpret_cast<std::byte*>(work.broken),
                        work.sources.size() * sizeof(std::uint32_t), true);
  if (work.workspace != nullptr) device_.note_access(*this, work.workspace, work.workspace_bytes, true);
  if (work.only_decodes()) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < work.sources.size(); ++i) bytes += unpacked_room(stored_spec(work, i));
    device_.note_access(*this, work.target, bytes, true);
  } else if (work.patch == 0) {
    device_.note_access(*this, work.target, work.delivered.size_bytes() * work.sources.size(), true);
  } else {
    for (std::size_t i = 0; i < work.sources.size(); ++i) {
      const std::uint64_t patches = std::uint64_t{work.crops[i].resized_height / work.patch} *
                                    (work.crops[i].resized_width / work.patch);
      device_.note_access(*this, work.target + work.tokens[i] * work.delivered.size_bytes(),
                          patches * work.delivered.size_bytes(), true);
    }
  }
  auto sources = std::make_shared<std::vector<const std::byte*>>(work.sources.begin(), work.sources.end());
  auto crops = std::make_shared<std::vector<SampleCrop>>(work.crops.begin(), work.crops.end());
  auto frames =
      std::make_shared<std::vector<std::uint64_t>>(work.frame_bytes.begin(), work.frame_bytes.end());
  TransformWork owned = work;
  owned.sources = *sources;
  owned.crops = *crops;
  auto sizes = std::make_shared<std::vector<SampleSize>>(work.sizes.begin(), work.sizes.end());
  owned.sizes = *sizes;
  auto tokens = std::make_shared<std::vector<std::uint32_t>>(work.tokens.begin(), work.tokens.end());
  owned.tokens = *tokens;
  owned.frame_bytes = *frames;
  auto files = std::make_shared<std::vector<jpeg::FrameFile>>(work.files.begin(), work.files.end());
  owned.files = *files;
  auto instructions =
      std::make_shared<std::vector<Instruction>>(work.instructions.begin(), work.instructions.end());
  auto begins = std::make_shared<std::vector<std::uint32_t>>(work.begins.begin(), work.begins.end());
  owned.instructions = *instructions;
  owned.begins = *begins;
  auto pairs = std::make_shared<std::vector<MixPair>>(work.pairs.begin(), work.pairs.end());
  owned.pairs = *pairs;
  push({[owned, sources, crops, sizes, tokens, frames, files, instructions, begins, pairs] {
          transform_rows(owned, 0, sources->size());
          augment::mix_pairs(owned, 0, pairs->size());
        },
        nullptr});
}

void StepStream::follow(const TargetWork& work) {
  targets::check_targets(work);
  std::lock_guard lock(device_.mutex_);
  merge(clock_, device_.host_);
  ++clock_[id_];
  for (std::size_t i = 0; i < work.sources.size(); ++i)
    device_.note_access(*this, work.sources[i], targets::stored_spec(work, i).size_bytes(), false);
  device_.note_access(*this, work.target, work.row_bytes() * work.sources.size(), true);
  if (work.bilinear) device_.note_access(*this, work.scratch, work.row_bytes() * work.sources.size(), true);
  const auto owned = targets::owned_copy(work);
  push({[owned] { targets::follow_rows(*owned, 0, owned->sources.size()); }, nullptr});
}

Event StepStream::record() {
  std::lock_guard lock(device_.mutex_);
  auto event = std::make_shared<StepEvent>(device_, *this, clock_);
  push({[this, event] {
          event->done_ = true;
          event->error_ = error_;
          reported_ = true;
        },
        nullptr});
  return Event(event);
}

void StepStream::wait(const Event& event) {
  if (event.impl() == nullptr) return;
  std::lock_guard lock(device_.mutex_);
  auto* impl = static_cast<StepEvent*>(event.impl());
  merge(clock_, impl->clock());
  push({[] {}, std::shared_ptr<StepEvent>(std::make_shared<Event>(event), impl)});
}

StepDevice::StepDevice() {
  info_.name = "step";
  info_.registers_read_only = true;
  info_.batched_copy = true;
}

StepDevice::~StepDevice() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  if (runner_.joinable()) runner_.join();
}

std::unique_ptr<Block> StepDevice::allocate_pinned(std::uint64_t size) {
  return std::make_unique<HeapBlock>(*this, size);
}

std::unique_ptr<Registration> StepDevice::register_read_only(std::span<const std::byte> range,
                                                             const std::stop_token&) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const std::span<const std::byte>>& known = registered_[range.data()];
  auto shared = known.lock();
  if (!shared || shared->size() != range.size()) {
    shared = {new std::span<const std::byte>(range), [this](const std::span<const std::byte>* whole) {
                note_end(whole->data(), whole->size(), "the end of a registration");
                delete whole;
              }};
    known = shared;
  }
  return std::make_unique<SharedRange>(std::move(shared));
}

std::unique_ptr<Stream> StepDevice::create_stream() {
  std::lock_guard lock(mutex_);
  auto stream = std::make_unique<StepStream>(*this, next_stream_++);
  streams_.push_back(stream.get());
  return stream;
}

void StepDevice::note_access(const StepStream& stream, const std::byte* begin, std::uint64_t size,
                             bool write) {
  const std::byte* end = begin + size;
  for (const Access& earlier : accesses_) {
    const bool apart = end <= earlier.begin || earlier.end <= begin;
    if (apart || (!write && !earlier.write) || before_or_equal(earlier.stream, earlier.at, stream.clock_))
      continue;
    races_.push_back(fmt::format("{} of stream {} races with {} of stream {}", write ? "write" : "read",
                                 stream.id_, earlier.write ? "write" : "read", earlier.stream));
  }
  std::erase_if(accesses_,
                [&](const Access& earlier) {  // covered by this one: later accesses race with both or neither
                  return write && begin <= earlier.begin && earlier.end <= end &&
                         before_or_equal(earlier.stream, earlier.at, stream.clock_);
                });
  accesses_.push_back({begin, end, stream.id_, stream.clock_.at(stream.id_), write});
}

void StepDevice::note_end(const std::byte* begin, std::uint64_t size, const char* what) {
  std::lock_guard lock(mutex_);
  std::erase_if(accesses_, [&](const Access& earlier) {
    if (begin + size <= earlier.begin || earlier.end <= begin) return false;
    if (!before_or_equal(earlier.stream, earlier.at, host_))
      races_.push_back(fmt::format("{} races with {} of stream {}", what, earlier.write ? "write" : "read",
                                   earlier.stream));
    return true;  // what lies here later is other memory
  });
}

bool StepDevice::step_locked(StepStream& stream) {
  if (stream.pieces_.empty()) return false;
  StepStream::Piece& piece = stream.pieces_.front();
  if (piece.needs && !piece.needs->done_) return false;
  piece.body();
  stream.pieces_.pop_front();
  changed_.notify_all();
  return true;
}

bool StepDevice::step(Stream& stream) {
  std::lock_guard lock(mutex_);
  return step_locked(static_cast<StepStream&>(stream));
}

void StepDevice::step_to_locked(const StepEvent& event) {
  while (!event.done_) {
    const StepStream::Piece& front = event.stream_.pieces_.front();
    if (front.needs) step_to_locked(*front.needs);
    step_locked(event.stream_);
  }
}

void StepDevice::step_to(const Event& event) {
  std::lock_guard lock(mutex_);
  step_to_locked(static_cast<const StepEvent&>(*event.impl()));
}

void StepDevice::run_freely(std::uint64_t seed) {
  runner_ = std::thread([this, seed] {
    std::mt19937_64 random(seed);
    std::unique_lock lock(mutex_);
    while (!quit_) {
      std::vector<StepStream*> order = streams_;
      std::shuffle(order.begin(), order.end(), random);
      const bool any = std::any_of(order.begin(), order.end(), [&](StepStream* stream) {
        return !stream->held_ && step_locked(*stream);
      });
      if (!any) changed_.wait(lock);
    }
  });
}

void StepDevice::hold(Stream& stream) {
  const std::lock_guard lock(mutex_);
  static_cast<StepStream&>(stream).held_ = true;
}

void StepDevice::let_go(Stream& stream) {
  const std::lock_guard lock(mutex_);
  static_cast<StepStream&>(stream).held_ = false;
  changed_.notify_all();
}

std::vector<std::string> StepDevice::races() {
  std::lock_guard lock(mutex_);
  return races_;
}

}  // namespace shard::testing
