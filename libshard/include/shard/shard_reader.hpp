// ShardReader: one shard file, mapped and checked. An object exists only for a file that obeys every rule of
// docs/format.md.
//
// The mapping is read-only and shared. No descriptor stays open, and nothing that grows with the number of
// samples is kept in memory. Keys, labels, checksums and frame tables are checked when the file is opened,
// and read from the mapping when they are requested. Several threads may call const members at once, also in
// a child after fork().
//
// StoredImages, at the end of this file: the images of one of its fields.
//
// If the file is cut while it is open, functions that copy (key, label, read_rows, verify_*, and those of
// StoredImages except frame) throw io or corrupt, naming the file. Views (mapping, StoredImages::frame,
// Column::bytes) borrow from the reader; reading a view of a cut file is a SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/codec.hpp"
#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"
#include "shard/safetensors.hpp"

namespace shard {

class DatasetPart;
class RemoteFile;
class StoredImages;
class UnconvertedSamples;
struct UnconvertedShard;
struct FdTraits;
template <class Traits>
class UniqueHandle;

// The contents of a shard's header, checked by the rules of the profile (docs/format.md).
struct ShardHeader : DatasetSpec {
  SafetensorsHeader container;
  std::uint64_t samples = 0;
  // XXH3-64 of the bytes before head_end, with zeros as its own digits.
  std::uint64_t head_digest = 0;
  // File offset of the first image: of a further field if there are any, else images_begin.
  std::uint64_t head_end = 0;
  // File offsets of `images` or `image_frames`: a multiple of 4096, and the size of the file.
  std::uint64_t images_begin = 0;
  std::uint64_t images_end = 0;
  // File offsets of the rows or frames of each further field, in the order of `fields`.
  // Each begins at a multiple of 4096.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::vector<Range> field_ranges;
  // Of the main images, then of each further field: what their largest samples have, if they are free, as the
  // head says. (A ShardReader has compared it with the samples.)
  std::vector<LargestSample> largest;
  // Those of fields that are free: ShardSummary::largest.
  std::vector<LargestSample> largest_of_free() const;
};

// Pure. Throws corrupt or unsupported, naming the rule. `head` as for parse_safetensors.
ShardHeader parse_shard_header(std::span<const std::byte> head, std::uint64_t file_size_bytes);

// Identifies the file that was opened, whatever is under its path now.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const FileIdentity&) const = default;
};
// Of an open file. Errors: io, also if it is not a regular file. `path` is for messages.
FileIdentity file_identity(int descriptor, const std::filesystem::path& path);

// Bytes of a file, from `begin` on.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
};

// Stored bytes of one sample in the file, and their XXH3-64.
struct StoredSampleRange {
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t digest = 0;
};

// A value that each sample has beside its image. The spans are views of the mapping.
struct Column {
  DType dtype = DType::i64;
  // Without the sample axis; empty: a row is one element.
  std::vector<std::uint64_t> row_shape;
  std::uint64_t row_bytes = 0;
  // rows x row_bytes, C order, little-endian. A fixed column has as many rows as there are samples.
  std::span<const std::byte> bytes;
  ColumnKind kind = ColumnKind::fixed;
  // If it is ragged or text: u64 [samples + 1], the row at which each sample begins.
  std::span<const std::byte> offsets;
};

class ShardReader {
 public:
  // Reads and checks everything before the images. `path` may be an address (shard/remote.hpp). Errors, each
  // naming the path: not_found, io, corrupt, unsupported, resource (open files, mappings, address space; the
  // message says which limit to raise).
  static ShardReader open(const std::filesystem::path& path);
  // The same for a file that is known to have `size_bytes`, else corrupt: on a server it saves a request.
  static ShardReader open(const std::filesystem::path& path, std::uint64_t size_bytes);
  ShardReader(ShardReader&&) noexcept;
  ShardReader& operator=(ShardReader&&) noexcept;
  ~ShardReader();

  const std::filesystem::path& path() const noexcept;
  const ShardHeader& header() const noexcept;
  std::uint64_t size() const noexcept;  // samples
  std::uint64_t file_size_bytes() const noexcept;
  // The whole file; of a shard on a server, its bytes before the images.
  std::span<const std::byte> mapping() const noexcept;
  // On a server (https://...): its head is here, and samples are read by range when they are requested, and
  // compared with their digests. StoredImages::frame() throws unsupported while no copy is mapped, and
  // reopen() fails with EREMOTE.
  bool is_remote() const noexcept;
  // Images that nobody has converted (convert::open_source()): each sample is made of its image when it is
  // read. StoredImages::frame() throws unsupported, and checksums are those of what is made.
  bool is_unconverted() const noexcept;
  // What makes such samples. Null of a shard that is a file.
  const UnconvertedSamples* unconverted() const noexcept;
  // Its samples are in the mapping, and proven: a file, or a shard on a server of which a copy in the cache
  // or the transit area is mapped that nobody has changed since (change() looks whether). Until a loader
  // removes it from the transit area, StoredImages::frame() can be used.
  bool samples_mapped() const noexcept;
  const FileIdentity& identity() const noexcept;  // of the file that is mapped

  // Compares the file that is under the path now with the one that was opened, by device, inode and size.
  // Returns what is different and what to do, or an empty string. A file that was deleted or replaced counts
  // as changed, although the mapping still holds its bytes. A relative path means the same as in open().
  // Of a shard on a server, it is empty. If its copy in the cache was changed, it is not samples_mapped() any
  // more: every sample is compared with its digest.
  std::string change() const;
  // Opens the file under the path for reading, with further flags of open(2) and close-on-exec. The caller
  // compares its file_identity() and closes the descriptor. -1: errno says why.
  int reopen(int flags) const noexcept;
  // Throws corrupt, naming the path, if change() is not empty.
  void check_unchanged() const;

  // The functions below throw invalid_argument if sample >= size().
  std::string key(std::uint64_t sample) const;
  // "labels" and the further columns.
  const std::map<std::string, Column>& columns() const noexcept;
  // One of them. Throws not_found, naming those that there are.
  const Column& column(std::string_view name) const;
  // Copies rows of one of columns(), which must be fixed, from sample `first` on, until `out` is full (a
  // multiple of row_bytes). Errors: invalid_argument, io, corrupt.
  void read_rows(const Column& column, std::uint64_t first, std::span<std::byte> out) const;
  // The rows of one of columns() that belong to a sample: the first of them, and how many.
  // A fixed column has one. Errors: io, corrupt.
  struct Rows {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  Rows rows_of(const Column& column, std::uint64_t sample) const;
  // Copies these rows, of any kind of column, to `out`, which is resized. Errors: io, corrupt.
  void read_column(const Column& column, std::uint64_t sample, std::vector<std::byte>& out) const;
  // The text of a sample. Errors: unsupported (the column is not text), io,
  // corrupt (also if it is not UTF-8).
  std::string text(const Column& column, std::uint64_t sample) const;
  // The label of a sample. Throws unsupported if labels are not I64 [N].
  std::int64_t label(std::uint64_t sample) const;

  // How many bytes all images of the sample have in the file.
  std::uint64_t stored_bytes(std::uint64_t sample) const;

  // The main images, or those of header().fields[*field]. Valid as long as this object, also after a move.
  // Throws invalid_argument if there is no such field.
  const StoredImages& images(std::optional<std::size_t> field = {}) const;
  // The position of the field with this name. Throws not_found, naming those that there are.
  std::size_t field_index(std::string_view name) const;

  // Checks the whole head: head digest, order of keys, offsets, UTF-8 rules, and that padding
  // is zero. Throws corrupt.
  void verify_head() const;
  // The stored samples of all image fields, in the order of the file: how many there are, one of them,
  // and the first that begins at `offset` or behind it (stored_samples(): none). Errors: io, corrupt
  // (the file was changed).
  std::uint64_t stored_samples() const noexcept;
  StoredSampleRange stored_sample(std::uint64_t number) const;
  std::uint64_t first_stored_from(std::uint64_t offset) const;
  // The ranges of `file`, which should have the bytes of this shard, that do not match the digests in the
  // head: samples, padding, and the head itself. Samples whose number is `proven` are not read. Errors: io
  // (it is too short, or cannot be read).
  std::vector<FileRange> damaged_ranges(int file,
                                        const std::function<bool(std::uint64_t)>& proven = {}) const;
  // Compares the stored frames and the decoded sample, of each image field, with their XXH3-64. `scratch` is
  // resized as needed, and has the decoded sample of the main images at the end. Throws corrupt.
  void verify_sample(std::uint64_t sample, std::vector<std::byte>& scratch) const;

 private:
  friend class DatasetPart;
  friend class StoredImages;
  struct Impl;
  explicit ShardReader(std::unique_ptr<Impl> impl) noexcept;
  // `path`: of the images, for messages.
  static ShardReader of_images(const std::filesystem::path& path, UnconvertedShard shard);
  // `folder` is the open folder of `path`, in which the file is looked up. It may have been renamed since.
  static ShardReader open_in(std::shared_ptr<const UniqueHandle<FdTraits>> folder,
                             const std::filesystem::path& path);
  // `path`: the address, for messages. `copy`: an open file to read the head from, instead of the server,
  // which is not adopted; -1: none. Errors: also io.
  static ShardReader open_remote(std::unique_ptr<const RemoteFile> file, const std::filesystem::path& path,
                                 int copy = -1);
  // Whether `file` begins with the head of this shard. Errors: io (it is too short).
  bool has_head(int file) const;
  // How much a copy of this shard can be relied on.
  enum class CopyState : std::uint8_t {
    none,      // the mapping has the head alone
    doubtful,  // others may have written to it: each sample is compared with its digest
    proven     // all of it matched its digests, or its proof
  };
  // From now on, samples are read from `file`, which has all bytes of this shard on a server. Thread safe;
  // views of the head stay valid.
  void adopt(int file, CopyState state) const;
  // The same for a file `name` in `folder`, which change() looks at. Not more than once.
  void adopt_named(int file, std::shared_ptr<const UniqueHandle<FdTraits>> folder, std::string name,
                   CopyState state) const;
  // Ends adopt(): samples come from the server again. A sample that is being read meanwhile does not match
  // its digest, and is requested there.
  void abandon() const;
  bool has_samples() const noexcept;  // on a server, and adopt() was called
  std::unique_ptr<Impl> impl_;
};

// The images of one field of a shard, the main one or a further one: one per sample. Borrowed from a
// ShardReader, which also says what several threads may do.
class StoredImages {
 public:
  // Of a further field. Empty: the main images.
  const std::string& name() const noexcept { return name_; }
  // Of all decoded samples. It may be free, so that each has its own rows and columns.
  const SampleSpec& spec() const noexcept { return spec_; }
  // If spec() is free: the largest of this shard.
  const LargestSample& largest() const noexcept { return largest_; }
  // What decodes the frames: codec().decode(bytes of a frame, sample, frame_spec(sample)).
  const Codec& codec() const noexcept { return codec_; }
  // The samples are stored as frames, each of its own length. Codec none and samples of one size: as rows of
  // spec().size_bytes().
  bool framed() const noexcept { return framed_; }

  // The functions below throw invalid_argument if sample >= ShardReader::size(). Errors of all: io, corrupt
  // (the file was changed).
  //
  // Of one decoded sample, with its rows and columns.
  SampleSpec spec_of(std::uint64_t sample) const;
  // The same, and with codec jpeg what the head says of the file in its frame. So the size of the frame and
  // the memory for decoding it are known.
  FrameSpec frame_spec(std::uint64_t sample) const;
  // XXH3-64 of the sample before the codec.
  std::uint64_t checksum(std::uint64_t sample) const;
  // False: nobody has decoded this JPEG file yet, so checksum() is 0. That of its frame is known.
  bool has_checksum(std::uint64_t sample) const;
  // XXH3-64 of frame(): the same if samples are not framed().
  std::uint64_t frame_checksum(std::uint64_t sample) const;
  // The stored bytes of the sample: one frame, or a row if they are not framed(). Throws unsupported if the
  // shard is on a server, and no copy is mapped, or if it is not converted.
  std::span<const std::byte> frame(std::uint64_t sample) const;
  // How many bytes frame() has.
  std::uint64_t frame_bytes(std::uint64_t sample) const;
  // Copies the frame to `out`, which is resized.
  void read_frame(std::uint64_t sample, std::vector<std::byte>& out) const;
  // The same to `out`, which must have frame_bytes(), else invalid_argument.
  void read_frame(std::uint64_t sample, std::span<std::byte> out) const;
  // Codec jpeg: copies the JPEG file of the sample to `out`, which is resized. Throws unsupported with other
  // codecs.
  void read_file(std::uint64_t sample, std::vector<std::byte>& out) const;
  // Copies the sample to `out` (spec_of(sample).size_bytes() long, else invalid_argument) and decodes it if
  // necessary.
  // Throws corrupt, naming path, field and sample, if a frame does not hold exactly one sample.
  void read(std::uint64_t sample, std::span<std::byte> out) const;

 private:
  friend class ShardReader;
  StoredImages(const ShardReader::Impl& shard, std::string name, const SampleSpec& spec,
               const LargestSample& largest, const CodecSpec& codec_spec, Codec codec,
               ShardHeader::Range range);
  std::string tensor(std::string_view part) const;
  // Of a shard that is not converted: 0, or behind it those of further fields.
  std::size_t number() const noexcept;
  // For messages: "field "mask": ".
  std::string place() const;
  // Where a sample is stored.
  FileRange range_of(std::uint64_t sample) const;
  // Checks the tables of offsets and sizes, which must fit each other and the bytes that are there. `head`:
  // of the shard.
  void check_frames(std::span<const std::byte> head) const;
  void check_frame(std::uint64_t sample, std::uint64_t size, const FrameSpec& of) const;
  void check_size(std::uint64_t sample, const SampleSpec& of) const;
  void check_file(std::uint64_t sample, const FrameSpec& of) const;
  // A row of the table of sizes.
  SampleSpec size_at(std::span<const std::byte> bytes, std::size_t at) const;
  // The stored bytes of a sample, which begin at `begin` in the file.
  void load_stored(std::uint64_t sample, std::uint64_t begin, std::span<std::byte> out) const;
  // The sample, which is `of`. `check_frame`: compares the stored frame with its checksum, and checks all
  // that decoding does not.
  void load(std::uint64_t sample, const FrameSpec& of, std::span<std::byte> out, bool check_frame) const;
  // Compares the stored frame and the decoded sample with their digests. `scratch` becomes the sample.
  void verify(std::uint64_t sample, std::vector<std::byte>& scratch) const;

  const ShardReader::Impl* shard_;
  std::string name_;
  SampleSpec spec_;
  LargestSample largest_;
  CodecSpec codec_spec_;
  bool framed_;
  Codec codec_;
  // Offsets in the file: of all rows or frames, and of the tables.
  ShardHeader::Range range_;
  std::string offsets_name_;  // of the tensor
  std::uint64_t checksums_, frame_offsets_, frame_checksums_, shapes_, jpeg_files_;
};

}  // namespace shard
