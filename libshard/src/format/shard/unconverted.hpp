// Shards of images that nobody has converted (shard::convert::open_source()): what else a file says of its
// samples is in memory, and each sample is made of its image when it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shard/codec.hpp"
#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"
#include "shard/jpeg_file.hpp"

namespace shard {

struct DatasetInfo;

// An image that cannot be a sample. A conversion would make it a reject.
class UnusableImage : public Error {
 public:
  // `reason`: that of rejects.csv.
  UnusableImage(ErrorCode code, const std::string& what, std::string reason)
      : Error(code, what), reason_(std::move(reason)) {}
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

inline constexpr std::uint64_t kMadeAlignment = 16;

// One sample: its image, then those of further fields. Each is decoded or, with codec jpeg, a frame, or
// pixels whose file has no bytes and which are followed by zeros up to a multiple of kMadeAlignment.
struct MadeSample {
  struct Image {
    FrameSpec spec;
    std::vector<std::byte> bytes;
  };
  std::vector<Image> images;
  // It was stored, or kept: nothing was read of the image itself.
  bool is_cached = false;
  // Its file has 16 bits of which 8 keep little (image::Warning::few_bits).
  bool is_few_bits = false;
};

// A file on this machine that holds the files of many samples, as a tar archive does. Thread safe.
class HoldingFile {
 public:
  virtual ~HoldingFile() = default;
  virtual const std::filesystem::path& path() const noexcept = 0;
  virtual std::uint64_t size_bytes() const noexcept = 0;
  // All of it, read-only and shared. It is mapped by the first call. Errors: io, resource; invalid_argument
  // (see check_unchanged()).
  virtual std::span<const std::byte> mapping() const = 0;
  // Errors: invalid_argument (it is not the one that was listed), io.
  virtual void check_unchanged() const = 0;
};

// The samples of one shard. Thread safe, also in a child after fork().
class UnconvertedSamples {
 public:
  virtual ~UnconvertedSamples() = default;
  // Of a sample of any size, known before it is made: of the image (0), or of a further field.
  virtual SampleSpec spec_of(std::size_t image, std::uint64_t sample) const = 0;
  // Makes the sample, or returns what is still there of it because somebody keeps it. Errors: UnusableImage;
  // invalid_argument (the file is not the one that was listed); resource, io.
  virtual std::shared_ptr<const MadeSample> make(std::uint64_t sample) const = 0;

  // Of a sample without further fields that is a frame: the file in it, known before that is read. Nothing:
  // the sample has to be made.
  virtual std::optional<jpeg::FrameFile> file_of(std::uint64_t) const { return std::nullopt; }
  // Reads that file to `out`, which has its size. False: it cannot be read, or is not the one that was
  // listed, and make() says why.
  virtual bool read_file(std::uint64_t, std::span<std::byte>) const { return false; }

  // Where that file lies in one of Dataset::holding_files(), whole and as it is. Null: in none. Whoever reads
  // it there asks HoldingFile::check_unchanged() afterwards.
  struct Place {
    const HoldingFile* file = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  virtual Place place_of(std::uint64_t) const { return {}; }
};

struct UnconvertedShard {
  // Codec none, or jpeg for images of any size. Fields have codec none.
  DatasetSpec spec;
  std::uint64_t samples = 0;
  // Of the main images, then of each further field: those that are free.
  std::vector<LargestSample> largest;
  // Escaped keys, one after the other, and where each begins: samples + 1 numbers.
  std::string keys;
  std::vector<std::uint64_t> key_offsets;
  // In the order of spec.columns: the rows of all samples. Of a ragged column or of text also where the rows
  // of each sample begin: samples + 1 numbers.
  struct Rows {
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> offsets;
  };
  std::vector<Rows> columns;
  std::unique_ptr<const UnconvertedSamples> maker;
};

// All shards. Thread safe.
class UnconvertedSet {
 public:
  virtual ~UnconvertedSet() = default;
  virtual const DatasetInfo& info() const noexcept = 0;
  virtual UnconvertedShard shard(std::uint32_t number) const = 0;
  // The same samples with codec jpeg, so that a device may decode them. Null: they are not as their files
  // are.
  virtual std::shared_ptr<const UnconvertedSet> with_frames() const = 0;
  // See UnconvertedSamples::place_of(). They live as long as the set.
  virtual std::vector<const HoldingFile*> holding_files() const { return {}; }
};

}  // namespace shard
