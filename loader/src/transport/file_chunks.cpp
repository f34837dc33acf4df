#include "transport/file_chunks.hpp"

#include <algorithm>
#include <utility>

#include "shard/error.hpp"

namespace shard {

FileChunks::FileChunks(Device& device, Stream& stream, const ChunkMemory& memory)
    : device_(device), stream_(stream), all_(memory.threads) {
  for (Own& own : all_)
    for (std::uint64_t i = 0; i < memory.of_each; ++i) {
      own.chunks.push_back(std::make_unique<FileChunk>());
      own.chunks.back()->memory = device.allocate_pinned(memory.chunk_bytes);
    }
}

FileChunks::Own& FileChunks::own() {
  const std::thread::id thread = std::this_thread::get_id();
  const std::lock_guard lock(own_mutex_);
  const auto end = all_.begin() + static_cast<std::ptrdiff_t>(taken_);
  const auto found = std::find_if(all_.begin(), end, [&](const Own& own) { return own.thread == thread; });
  if (found != end) return *found;
  if (taken_ == all_.size()) throw Error(ErrorCode::resource, "more threads read files than were planned");
  device_.enter_thread();
  all_[taken_].thread = thread;
  return all_[taken_++];
}

FileChunk& FileChunks::take() {
  Own& own = this->own();
  FileChunk& chunk = *own.chunks[own.next];
  if (chunk.waits) static_cast<void>(flush());
  chunk.copied.wait();
  own.next = (own.next + 1) % own.chunks.size();
  return chunk;
}

void FileChunks::copy(FileChunk& chunk, std::vector<CopyItem> copies) {
  chunk.waits = true;
  {
    const std::lock_guard lock(waiting_mutex_);
    waiting_.push_back({&chunk, std::move(copies)});
  }
  if (const std::unique_lock lock(stream_mutex_, std::try_to_lock); lock) queue_waiting();
}

void FileChunks::copy_registered(std::span<const CopyItem> copies) {
  static_cast<void>(own());  // the thread may use the device
  const auto lock = flush();
  stream_.copy_pinned(copies);
}

std::unique_lock<std::mutex> FileChunks::flush() {
  std::unique_lock lock(stream_mutex_);
  queue_waiting();
  if (failure_) std::rethrow_exception(failure_);
  return lock;
}

void FileChunks::queue_waiting() noexcept {
  for (;;) {
    queued_.clear();
    {
      const std::lock_guard lock(waiting_mutex_);
      std::swap(queued_, waiting_);
    }
    if (queued_.empty()) return;
    try {
      for (const Waiting& one : queued_) stream_.copy_pinned(one.copies);
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
    Event copied;
    try {
      copied = stream_.record();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
    for (const Waiting& one : queued_) {
      one.chunk->copied = copied;
      one.chunk->waits = false;
    }
  }
}

}  // namespace shard
