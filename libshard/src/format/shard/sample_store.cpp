#include "format/shard/sample_store.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"

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
      framed_(codec.framed(spec)),
      as_it_is_(codec.kind == CodecSpec::Kind::none),
      has_files_(codec.kind == CodecSpec::Kind::jpeg),
      spec_(spec),
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
  if (is_free()) sizes_.resize(count);
  if (has_files_) files_.resize(count);
}

SampleSpec SampleStore::spec_of(const SampleValues& sample) const {
  SampleSpec of = spec_;
  if (is_free()) {
    of = spec_.sized(sample.height, sample.width);
    if (of.is_free()) throw Error(ErrorCode::invalid_argument, "0 rows and 0 columns: give its own");
    of.check();
  }
  if (sample.frame) {
    check_frame(sample, of);
    return of;
  }
  if (sample.bytes.size() == of.size_bytes()) return of;
  const std::string size = is_free() ? fmt::format(" for {} rows and {} columns", of.height, of.width) : "";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} bytes: they must be {}{}", sample.bytes.size(), of.size_bytes(), size));
}

void SampleStore::check_frame(const SampleValues& sample, const SampleSpec& of) const {
  if (!has_files_) throw Error(ErrorCode::invalid_argument, "a finished frame: only codec jpeg has them");
  const FrameSpec frame(of, sample.frame->file);
  try {
    codec_.check_file(frame);
    if (sample.bytes.size() > codec_.most_frame_bytes(frame))
      throw Error(ErrorCode::corrupt,
                  fmt::format("a frame of {} bytes: at most {} for a sample of {} bytes", sample.bytes.size(),
                              codec_.most_frame_bytes(frame), of.size_bytes()));
    codec_.check_frame(sample.bytes, frame);
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, error.what());
  }
}

// What is lossy is stored as it will be decoded.
std::uint64_t SampleStore::stored_checksum(std::span<const std::byte> frame, const FrameSpec& of) const {
  thread_local std::vector<std::byte> decoded;
  decoded.resize(static_cast<std::size_t>(of.sample.size_bytes()));
  codec_.decode(frame, decoded, of);
  return xxh3(decoded);
}

std::span<const std::byte> SampleStore::make_frame(std::size_t index, const SampleValues& sample,
                                                   std::vector<std::byte>& encoded) {
  std::span<const std::byte> frame = sample.bytes;
  if (sample.frame) {
    files_[index] = sample.frame->file;
    checksums_[index] = sample.frame->checksum;
  } else if (!as_it_is_) {
    FrameSpec of(spec_of(sample));
    frame = encoded = codec_.encode(sample.bytes, of);
    if (has_files_) files_[index] = of.file;
    checksums_[index] = codec_.lossy() ? stored_checksum(frame, of) : xxh3(sample.bytes);
  } else {
    checksums_[index] = xxh3(sample.bytes);
  }
  frame_checksums_[index] = as_it_is_ ? checksums_[index] : xxh3(frame);
  frame_sizes_[index] = frame.size();
  return frame;
}

void SampleStore::put(std::uint64_t index, const SampleValues& sample, std::mutex& mutex) {
  const auto i = static_cast<std::size_t>(index);
  if (!framed_) {
    checksums_[i] = xxh3(sample.bytes);
    return pwrite_all(fd_, sample.bytes, begin_ + index * spec_.size_bytes(), path_);
  }
  if (is_free()) sizes_[i] = {sample.height, sample.width};
  std::vector<std::byte> encoded;
  const std::span<const std::byte> frame = make_frame(i, sample, encoded);
  std::unique_lock lock(mutex);
  const std::optional<std::uint64_t> place = take_turn(index, frame.size());
  if (!place && encoded.empty()) {
    lock.unlock();  // the copy takes time
    encoded.assign(frame.begin(), frame.end());
    lock.lock();
  }
  if (!place) {
    waiting_bytes_ += frame.size();
    waiting_.emplace(index, std::move(encoded));
    return;
  }
  lock.unlock();
  pwrite_all(fd_, frame, *place, path_);
}

std::optional<std::uint64_t> SampleStore::take_turn(std::uint64_t index, std::uint64_t frame_bytes) {
  if (next_ != index) return std::nullopt;
  ++next_;
  frames_bytes_ += frame_bytes;
  return begin_ + frames_bytes_ - frame_bytes;
}

void SampleStore::drain(std::unique_lock<std::mutex>& lock, std::span<const SampleState> states,
                        std::exception_ptr& failure) {
  if (!framed_) return;
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
    lock.unlock();  // others write the frames behind it meanwhile
    std::exception_ptr error;
    try {
      pwrite_all(fd_, frame, at, path_);
    } catch (...) {
      error = std::current_exception();
    }
    waiting_bytes_ -= frame.size();
    lock.lock();
    if (error && !failure) failure = error;
  }
}

std::uint64_t SampleStore::stored_bytes(std::uint64_t samples) const noexcept {
  return framed_ ? frames_bytes_ : samples * spec_.size_bytes();
}

LargestSample SampleStore::largest(std::span<const SampleState> states) const noexcept {
  LargestSample largest;
  for (std::size_t i = 0; is_free() && i < states.size(); ++i) {
    if (states[i] != SampleState::stored) continue;
    const auto [height, width] = sizes_[i];
    largest.include({height, width, spec_.sized(height, width).size_bytes(), frame_sizes_[i]});
  }
  return largest;
}

void SampleStore::place(int fd, std::uint64_t begin, std::span<const SampleState> states) const {
  std::vector<std::byte> buffer;
  if (framed_) return move_range({fd_, begin_}, {fd, begin}, frames_bytes_, buffer, path_);
  const std::uint64_t row_bytes = spec_.size_bytes();
  // Closing gaps only moves down; after that all rows move together.
  const bool same_file = fd == fd_;
  const std::uint64_t target = same_file ? std::min(begin, begin_) : begin;
  std::uint64_t placed = 0;
  for (std::uint64_t i = 0; i < states.size();) {
    std::uint64_t run = 0;  // neighbours move together
    while (i + run < states.size() && states[static_cast<std::size_t>(i + run)] == SampleState::stored) ++run;
    if (run > 0)
      move_range({fd_, begin_ + i * row_bytes}, {fd, target + placed * row_bytes}, run * row_bytes, buffer,
                 path_);
    placed += run;
    i += run + 1;
  }
  if (target != begin) move_range({fd, target}, {fd, begin}, placed * row_bytes, buffer, path_);
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
    if (is_free()) {
      store_u32(head, at.shapes + sample * kShapeBytes, sizes_[i].height);
      store_u32(head, at.shapes + sample * kShapeBytes + 4, sizes_[i].width);
    }
    if (has_files_) store_jpeg_file(head, at.jpeg_files + sample * kJpegFileBytes, files_[i]);
    ++sample;
  }
}

}  // namespace shard
