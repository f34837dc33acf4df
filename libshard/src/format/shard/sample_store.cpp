#include "format/shard/sample_store.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"

namespace shard {
namespace {

constexpr std::size_t kMoveBytes = std::size_t{4} << 20;

struct PlaceInFile {
  int fd = -1;
  std::uint64_t begin = 0;
};

// Copies `size` bytes. In one file the ranges may overlap.
void move_range(PlaceInFile from, PlaceInFile to, std::uint64_t size, std::vector<std::byte>& buffer,
                const std::filesystem::path& path) {
  if (from.fd == to.fd && from.begin == to.begin) return;
  buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, kMoveBytes)));
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t step = std::min<std::uint64_t>(size - done, kMoveBytes);
    const std::uint64_t at = to.begin < from.begin ? done : size - done - step;  // towards the overlap last
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(step));
    pread_all(from.fd, piece, from.begin + at, path);
    pwrite_all(to.fd, piece, to.begin + at, path);
    done += step;
  }
}

}  // namespace

SampleStore::SampleStore(const CodecSpec& codec, const SampleSpec& spec, const Normalization& normalization,
                         std::uint64_t planned)
    : codec_(codec, spec, normalization),
      framed_(codec.framed()),
      row_bytes_(spec.size_bytes()),
      planned_(planned) {}

void SampleStore::write_to(int fd, std::uint64_t begin, const std::filesystem::path& path) {
  fd_ = fd;
  begin_ = begin;
  path_ = path;
  const auto count = static_cast<std::size_t>(planned_);
  checksums_.resize(count);
  if (!framed_) return;
  frame_checksums_.resize(count);
  frame_sizes_.resize(count);
}

void SampleStore::put(std::uint64_t index, std::span<const std::byte> sample, std::mutex& mutex) {
  const auto i = static_cast<std::size_t>(index);
  checksums_[i] = xxh3(sample);
  if (!framed_) return pwrite_all(fd_, sample, begin_ + index * row_bytes_, path_);
  std::vector<std::byte> frame = codec_.encode(sample);
  frame_checksums_[i] = xxh3(frame);
  frame_sizes_[i] = frame.size();
  const std::lock_guard lock(mutex);
  waiting_.emplace(index, std::move(frame));
}

void SampleStore::drain(std::unique_lock<std::mutex>& lock, std::span<const SampleState> states,
                        std::exception_ptr& failure) {
  if (!framed_ || draining_) return;  // that thread will look again before it leaves
  draining_ = true;
  while (!failure && next_ < states.size()) {
    const SampleState state = states[static_cast<std::size_t>(next_)];
    if (state == SampleState::skipped) {
      ++next_;
      continue;
    }
    if (state != SampleState::stored) break;
    const auto node = waiting_.extract(next_++);
    const std::vector<std::byte>& frame = node.mapped();
    const std::uint64_t at = begin_ + frames_bytes_;
    frames_bytes_ += frame.size();
    lock.unlock();
    std::exception_ptr error;
    try {
      pwrite_all(fd_, frame, at, path_);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !failure) failure = error;
  }
  draining_ = false;
}

std::uint64_t SampleStore::stored_bytes(std::uint64_t samples) const noexcept {
  return framed_ ? frames_bytes_ : samples * row_bytes_;
}

void SampleStore::place(int fd, std::uint64_t begin, std::span<const SampleState> states) const {
  std::vector<std::byte> buffer;
  if (framed_) return move_range({fd_, begin_}, {fd, begin}, frames_bytes_, buffer, path_);
  // Closing gaps only moves down; after that all rows move together.
  const bool same_file = fd == fd_;
  const std::uint64_t target = same_file ? std::min(begin, begin_) : begin;
  std::uint64_t placed = 0;
  for (std::uint64_t i = 0; i < states.size();) {
    std::uint64_t run = 0;  // neighbours move together
    while (i + run < states.size() && states[static_cast<std::size_t>(i + run)] == SampleState::stored) ++run;
    if (run > 0)
      move_range({fd_, begin_ + i * row_bytes_}, {fd, target + placed * row_bytes_}, run * row_bytes_, buffer,
                 path_);
    placed += run;
    i += run + 1;
  }
  if (target != begin) move_range({fd, target}, {fd, begin}, placed * row_bytes_, buffer, path_);
}

void SampleStore::write_tables(std::span<std::byte> head, const Tables& at,
                               std::span<const SampleState> states) const {
  std::size_t sample = 0;
  std::uint64_t frame_end = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] != SampleState::stored) continue;
    store_u64(head, at.checksums + sample * 8, checksums_[i]);
    if (framed_) {
      frame_end += frame_sizes_[i];
      store_u64(head, at.frame_offsets + (sample + 1) * 8, frame_end);
      store_u64(head, at.frame_checksums + sample * 8, frame_checksums_[i]);
    }
    ++sample;
  }
}

}  // namespace shard
