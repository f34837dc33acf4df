// ShardWriter: writes one shard so that nothing partial is ever visible.
//
//   create -> put / skip every planned sample, in any order, from any thread -> publish
//
// The bytes go to a temporary file beside the target, preallocated to the planned size (codec none). The file
// is locked with flock while its writer lives, so that a later run can recognise one that was left behind.
// publish() closes the gaps of skipped samples, writes the head, fsyncs, renames and fsyncs the folder. A
// writer that is destroyed before publish() removes its file. The bytes of the published shard depend on the
// samples only, not on the order or the number of threads.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"
#include "shard/jpeg_frame.hpp"

namespace shard {

struct ShardWriterOptions : DatasetSpec {
  ShardWriterOptions() = default;
  explicit ShardWriterOptions(DatasetSpec of) : DatasetSpec(std::move(of)) {}

  // A hint: the total length of all planned keys in bytes. With the right number, publish() does not have to
  // move rows. 0: not known.
  std::uint64_t planned_key_bytes = 0;
  // A hint like that: how many rows all samples have of each column that is ragged or text. Empty: not known.
  std::vector<std::uint64_t> planned_rows;
  // False: the file grows as samples are stored, for a shard that may get far fewer than planned. True: its
  // space is taken at the start (codec none), so a full disk is found before work is lost.
  bool preallocate = true;
  // True: the target may exist. publish() keeps a file with the same bytes and replaces any other. The target
  // is never removed before.
  bool may_exist = false;
};

// The description of a published shard in dataset.json.
struct ShardSummary {
  // Name without folder.
  std::string file;
  std::uint64_t samples = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t head_digest = 0;
  // Of each image field that is free, the main one first, then further ones in their order.
  std::vector<LargestSample> largest{};
  bool operator==(const ShardSummary&) const = default;
};

// The values of one sample in one image field, in stored order. With codec jpeg also a finished frame.
struct SampleValues {
  std::span<const std::byte> bytes;
  // Its rows and columns, if the field is free. Else they do not count.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  // `bytes` are a frame of this file.
  struct Frame {
    jpeg::FrameFile file;
    // XXH3-64 of the decoded sample, upright.
    std::uint64_t checksum = 0;
  };
  std::optional<Frame> frame{};

  SampleValues() = default;
  // A sample of one size is its bytes: a span, or what converts to one.
  template <class Bytes>
  requires std::convertible_to<const Bytes&, std::span<const std::byte>> SampleValues(const Bytes& values)
      : bytes(values) {}  // NOLINT(google-explicit-constructor)
  SampleValues(std::span<const std::byte> values, std::uint32_t rows, std::uint32_t columns)
      : bytes(values), height(rows), width(columns) {}
  // A file that is stored as it is. The caller has decoded it, by the rules of docs/format.md, and found no
  // damage.
  SampleValues(const JpegFrame& of, std::uint64_t checksum)
      : bytes(of.bytes),
        height(of.file.upright_height()),
        width(of.file.upright_width()),
        frame(Frame{of.file, checksum}) {}
};

class ShardWriter {
 public:
  // `path` must not exist, unless options.may_exist. `planned` samples, 1 to 2^32. Errors: invalid_argument,
  // io (ENOSPC, EACCES, ...), each naming path.
  static ShardWriter create(const std::filesystem::path& path, std::uint64_t planned,
                            ShardWriterOptions options);
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) noexcept;
  ~ShardWriter();

  // Stores planned sample `index`. `sample` has the size of its spec, and `key` is an escaped key (keys.hpp).
  // `rows` has the bytes of each column, in the order of options.columns: one row, any number of them if the
  // column is ragged, or UTF-8 text. `fields` has the samples of options.fields, in their order. Thread safe;
  // once for each index. Compression and hashing run on the caller's thread. Frames of variable size are
  // written in the order of the indices, so frames that wait for an earlier one are held in memory. Errors:
  // invalid_argument (sizes, text that is not UTF-8, a finished frame that is none of the field or larger
  // than the format allows), io.
  void put(std::uint64_t index, std::string_view key, std::span<const std::span<const std::byte>> rows,
           const SampleValues& sample, std::span<const SampleValues> fields = {});
  // For fixed columns alone and no further fields: their rows, one after the other.
  void put(std::uint64_t index, std::string_view key, std::span<const std::byte> columns,
           const SampleValues& sample);
  // Leaves out planned sample `index` (its input was rejected). Thread safe.
  void skip(std::uint64_t index);

  // Of frames that wait in memory for earlier ones. Thread safe.
  std::uint64_t waiting_bytes() const noexcept;

  // To be called once, after every index was put or skipped, and at least one was put. If `expected` is given
  // and the shard does not match it, throws corrupt and keeps the existing file. Errors: io, corrupt; the
  // temporary file is then removed.
  ShardSummary publish(const ShardSummary* expected = nullptr);

 private:
  struct Impl;
  explicit ShardWriter(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

// Removes temporary files in `folder` whose writers have ended: those of this node whose lock is free, and
// those of any node whose last write was more than 24 hours ago. Returns their number. Errors: io.
std::uint64_t remove_stale_temporaries(const std::filesystem::path& folder);

}  // namespace shard
