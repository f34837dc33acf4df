// ShardReader: one shard file, mapped and checked. An object exists only for a file that keeps every rule of
// docs/format.md.
//
// The mapping is read-only and shared. No descriptor stays open, and nothing that grows with the number of
// samples is kept in memory: keys, labels, checksums and frame tables are checked when the file is opened,
// and read from the mapping when they are asked for. Const members may be called from several threads at
// once, and in a child after fork().
//
// Functions that copy (key, checksum, label, read_rows, read_frame, read, verify_*) survive a file that is
// cut under the reader: they throw io or corrupt, naming it. Views (mapping, frame, Column::bytes) borrow
// from the reader; reading a view of a file that was cut is a SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/codec.hpp"
#include "shard/safetensors.hpp"
#include "shard/sample_spec.hpp"

namespace shard {

struct FdTraits;
template <class Traits>
class UniqueHandle;

// Everything the header of a shard says, checked against the profile (docs/format.md).
struct ShardHeader {
  SafetensorsHeader tensors;
  std::uint64_t samples = 0;
  SampleSpec spec;
  Normalization normalization;
  Pipeline pipeline;
  Codec codec;
  std::string fingerprint;  // 16 hexadecimal digits over all options that shape the bytes
  std::uint64_t head_digest =
      0;  // XXH3-64 of the bytes before `images` / `image_frames`, digest field as zeros
  std::uint64_t images_begin = 0;  // file offset of `images` or `image_frames`, a multiple of 4096
  std::uint64_t images_end = 0;    // = file size
};

// Pure: throws corrupt or unsupported, naming the rule. `head` as for parse_safetensors.
ShardHeader parse_shard_header(std::span<const std::byte> head, std::uint64_t file_size_bytes);

// Which file was opened, whatever stands under its path now.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const FileIdentity&) const = default;
};
// Of an open file. Errors: io, also for what is not a regular file; `path` is for messages.
FileIdentity file_identity(int descriptor, const std::filesystem::path& path);

// A tensor whose first axis is the sample: delivered with each sample.
struct Column {
  DType dtype = DType::i64;
  std::vector<std::uint64_t> row_shape;  // without the sample axis; empty for [N]
  std::uint64_t row_bytes = 0;
  std::span<const std::byte> bytes;  // samples x row_bytes, C order, little-endian; a view of the mapping
};

class ShardReader {
 public:
  // Reads and checks everything before the images. Errors: not_found, io, corrupt, unsupported, resource
  // (open files, mappings, address space: the message says which limit to raise); each names the path.
  static ShardReader open(const std::filesystem::path& path);
  ShardReader(ShardReader&&) noexcept;
  ShardReader& operator=(ShardReader&&) noexcept;
  ~ShardReader();

  const std::filesystem::path& path() const noexcept;
  const ShardHeader& header() const noexcept;
  std::uint64_t size() const noexcept;  // samples
  std::uint64_t file_size_bytes() const noexcept;
  std::span<const std::byte> mapping() const noexcept;  // the whole file
  const FileIdentity& identity() const noexcept;        // of the file that is mapped

  // Compares what stands under the path now with the file that was opened, by device, inode and size: what is
  // different and what to do; empty: nothing. A file that was deleted or replaced counts as changed, although
  // the mapping still holds its bytes. A relative path means what it meant in open().
  std::string change() const;
  // Opens what stands under the path for reading, with further flags of open(2), close-on-exec. The caller
  // compares its file_identity() and closes the descriptor. -1: errno says why.
  int reopen(int flags) const noexcept;
  // Throws corrupt, naming the path, when change() is not empty.
  void check_unchanged() const;

  // These throw invalid_argument when sample >= size().
  std::string key(std::uint64_t sample) const;
  std::uint64_t checksum(std::uint64_t sample) const;             // XXH3-64 of the sample before the codec
  const std::map<std::string, Column>& columns() const noexcept;  // "labels" and further ones
  // Rows of one of columns(), from sample `first` on, as many as fill `out` (a multiple of row_bytes).
  // Errors: invalid_argument, io, corrupt.
  void read_rows(const Column& column, std::uint64_t first, std::span<std::byte> out) const;
  // Label of a sample when labels are I64 [N]; throws unsupported otherwise.
  std::int64_t label(std::uint64_t sample) const;

  // The sample as it is stored: a row of spec().size_bytes() bytes (codec none), or one frame.
  std::span<const std::byte> frame(std::uint64_t sample) const;
  // A copy of the frame; `out` is resized. Errors: io, corrupt.
  void read_frame(std::uint64_t sample, std::vector<std::byte>& out) const;
  // What turns a frame into a sample: codec().decode(bytes of a frame, sample).
  const SampleCodec& codec() const noexcept;
  // The sample's bytes into `out` (spec.size_bytes() long), decompressed where the codec needs it.
  // Errors: corrupt, naming path and sample, when a frame does not hold exactly one sample or the file was
  // changed; io.
  void read(std::uint64_t sample, std::span<std::byte> out) const;

  // Whole-head check: head digest, key order and UTF-8 rules. Throws corrupt.
  void verify_head() const;
  // Checks the stored frame and the decoded sample against their XXH3-64; `scratch` is resized as needed.
  // Throws corrupt.
  void verify_sample(std::uint64_t sample, std::vector<std::byte>& scratch) const;

 private:
  friend class Dataset;
  struct Impl;
  explicit ShardReader(std::unique_ptr<Impl> impl) noexcept;
  // `folder`: the open folder of `path`, from which the file is looked up; it may have been moved since.
  static ShardReader open_in(std::shared_ptr<const UniqueHandle<FdTraits>> folder,
                             const std::filesystem::path& path);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
