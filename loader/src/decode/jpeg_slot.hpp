// One group of images of a JpegDecoder at a time: a stream, and the memory of what is in flight in it.
//
//   files    -> pinned -> device -> kernels      -> pixels -> transform -> the batch     by_kernels()
//   files    -> libjpeg-turbo -> pinned -> copy  -> pixels -> transform -> the batch     by_host()
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "decode/jpeg_input.hpp"
#include "shard/loader/device.hpp"
#include "transform/jpeg_work.hpp"

namespace shard::jpeg {

// What all groups of a call have in common.
struct Call {
  const JpegDecodeOptions* options = nullptr;
  SampleSpec spec;  // of an image, or free
  std::span<Input> inputs;
  std::span<const JpegBatch::Image> images;
  std::byte* target = nullptr;
  Event ready;  // before the target is written

  // What the image becomes.
  SampleSpec delivered(std::size_t input) const;
  // Its pixels are the batch's, as they are decoded.
  bool is_plain(std::size_t input) const;
};

// Runs row(i, decoder) for each i below `count` on threads; a single one on the calling thread.
using RunRow = std::function<void(std::size_t, HostJpeg&)>;
using RunOnThreads = std::function<void(std::size_t count, const RunRow& row)>;

class Slot {
 public:
  explicit Slot(Device& device) : device_(device), stream_(device.create_stream()) {}

  // What an image takes of the memory in flight.
  std::uint64_t bytes_by_kernels(const Call& call, std::size_t input) const;  // sets Input::workspace_bytes
  static std::uint64_t bytes_by_host(const Input& input);

  // `group`: numbers of inputs, growing. Queues; the slot must be finished first.
  void by_kernels(const Call& call, std::span<const std::size_t> group, const RunOnThreads& run);
  // Decodes, and queues the rest. A file that cannot be decoded gets its failure; its image becomes zeros.
  void by_host(const Call& call, std::span<const std::size_t> group, const RunOnThreads& run);
  // Waits. Adds the inputs of by_kernels() that the kernels have refused to `refused`.
  void finish(std::vector<std::size_t>& refused);

 private:
  std::byte* device_room(std::unique_ptr<Block>& block, std::uint64_t size);
  std::byte* pinned_room(std::unique_ptr<Block>& block, std::uint64_t size);
  void place_pixels(const Call& call, std::span<const std::size_t> group);
  void transform(const Call& call, std::span<const std::size_t> group);
  void transform_run(const Call& call, std::span<const std::size_t> run, const std::byte* const* sources);

  Device& device_;
  std::unique_ptr<Block> files_;      // on the device
  std::unique_ptr<Block> pixels_;     // on the device
  std::unique_ptr<Block> workspace_;  // on the device
  std::unique_ptr<Block> staging_;    // pinned: files, or pixels of the host
  std::unique_ptr<Block> faults_;     // pinned
  std::unique_ptr<Stream> stream_;    // ends before what it uses
  Event done_;
  std::vector<std::size_t> group_;  // in flight by kernels
  std::vector<std::byte*> places_;  // of the group's whole images
  // Scratch.
  std::vector<const std::byte*> sources_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::size_t> unpinned_;
  std::vector<CopyItem> items_;
  std::vector<JpegWork::Image> images_;
  std::vector<SampleCrop> crops_;
  std::vector<SampleSize> sizes_;
};

}  // namespace shard::jpeg
