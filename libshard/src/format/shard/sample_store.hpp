// SampleStore: the images of one field (the main one, or a further one) while their shard is written.
//
// Without codec, the row of a planned sample is written to its planned place at once. With other codecs, its
// frame follows the frames of all samples before it, and so do samples of free fields. A frame whose turn it
// is is written by the thread that made it. Frames that come too early wait in memory; once the sizes of all
// before them are known, each thread writes the next of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "shard/codec.hpp"
#include "shard/dataset_spec.hpp"
#include "shard/shard_writer.hpp"

namespace shard {

// Of a planned sample: open, then claimed by the one call that may store it, then stored or skipped.
enum class SampleState : std::uint8_t { open, claimed, stored, skipped };

// put() may be called by several threads for different samples.
// Everything else is guarded by the writer's lock.
class SampleStore {
 public:
  // Errors: invalid_argument (codec and spec do not fit each other).
  SampleStore(const CodecSpec& codec, const SampleSpec& spec, const Normalization& normalization,
              std::uint64_t planned);

  bool framed() const noexcept { return framed_; }
  bool is_free() const noexcept { return spec_.is_free(); }
  // Frames hold JPEG files, of which the head has a table.
  bool has_files() const noexcept { return has_files_; }
  // What a sample is. Throws invalid_argument (saying why) if it cannot be one of these.
  SampleSpec spec_of(const SampleValues& sample) const;
  // Before the first put(), and takes the memory of the tables: the file, open as long as this object, and
  // where the first planned sample begins. `path` is for messages.
  void write_to(int fd, std::uint64_t begin, const std::filesystem::path& path);

  // Stores a claimed sample, for which spec_of() does not throw. `mutex`: the writer's. Errors: those of
  // Codec::encode(); io.
  void put(std::uint64_t index, const SampleValues& sample, std::mutex& mutex);
  // Writes frames before which no other frame is missing, and lets other threads have the lock meanwhile;
  // they may write further ones, also the caller's. All are written when the last of these calls has
  // returned.
  // An error becomes the `failure`, if there was none.
  void drain(std::unique_lock<std::mutex>& lock, std::span<const SampleState> states,
             std::exception_ptr& failure);

  // Of frames that wait for earlier ones. Thread safe.
  std::uint64_t waiting_bytes() const noexcept { return waiting_bytes_.load(std::memory_order_relaxed); }

  // When every sample was stored or skipped: how many bytes they have without gaps.
  std::uint64_t stored_bytes(std::uint64_t samples) const noexcept;
  // If it is free: of the stored samples.
  LargestSample largest(std::span<const SampleState> states) const noexcept;
  // Puts them to [begin, begin + stored_bytes()) of `fd`, which may be the file they are in. Errors: io.
  void place(int fd, std::uint64_t begin, std::span<const SampleState> states) const;
  // Fills the tables of the stored samples. The places are positions in `head`;
  // those of frames count for codecs with frames only, that of shapes for free fields, that of files for
  // codec jpeg.
  struct Tables {
    std::size_t checksums = 0;
    std::size_t frame_offsets = 0;
    std::size_t frame_checksums = 0;
    std::size_t shapes = 0;
    std::size_t jpeg_files = 0;
  };
  void write_tables(std::span<std::byte> head, const Tables& at, std::span<const SampleState> states) const;

 private:
  Codec codec_;
  bool framed_;
  bool as_it_is_;  // codec none: a frame is the sample
  bool has_files_;
  SampleSpec spec_;
  std::uint64_t planned_;
  int fd_ = -1;
  std::uint64_t begin_ = 0;
  std::filesystem::path path_;
  std::vector<std::uint64_t> checksums_;  // by planned sample
  std::vector<std::uint64_t> frame_checksums_;
  std::vector<std::uint64_t> frame_sizes_;
  struct Size {
    std::uint32_t height = 0;
    std::uint32_t width = 0;
  };
  std::vector<Size> sizes_;             // free
  std::vector<jpeg::FrameFile> files_;  // codec jpeg

  // The frame and its digests; `encoded` has the frame, unless it is what the caller gave.
  std::span<const std::byte> make_frame(std::size_t index, const SampleValues& sample,
                                        std::vector<std::byte>& encoded);
  std::uint64_t stored_checksum(std::span<const std::byte> frame, const FrameSpec& of) const;
  void check_frame(const SampleValues& sample, const SampleSpec& of) const;

  // Where the frame of a sample begins, if it is the next one; then the one behind it is. With the lock held.
  std::optional<std::uint64_t> take_turn(std::uint64_t index, std::uint64_t frame_bytes);

  std::map<std::uint64_t, std::vector<std::byte>> waiting_;
  std::atomic<std::uint64_t> waiting_bytes_{0};
  std::uint64_t next_ = 0;  // first planned sample whose frame has no place yet
  std::uint64_t frames_bytes_ = 0;
};

}  // namespace shard
