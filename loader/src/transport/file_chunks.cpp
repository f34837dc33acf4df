#include "transport/file_chunks.hpp"

#include <algorithm>

#include "shard/error.hpp"

namespace shard {

FileChunks::FileChunks(Device& device, const ChunkMemory& memory) : device_(device), all_(memory.threads) {
  for (Own& own : all_)
    for (std::uint64_t i = 0; i < memory.of_each; ++i)
      own.chunks.push_back({device.allocate_pinned(memory.chunk_bytes), {}});
}

FileChunks::Own& FileChunks::own() {
  const std::thread::id thread = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
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
  FileChunk& chunk = own.chunks[own.next];
  chunk.copied.wait();
  own.next = (own.next + 1) % own.chunks.size();
  return chunk;
}

}  // namespace shard
