// StoredForm: what a loader must know about how samples are stored. There are four implementations, each in
// a file of this folder; stored_form.cpp has a table of them. Nothing else in the loader asks for the codec.
//
//   codec    stored        reaches the device    decoded
//   none     the sample    as it is stored       -
//   zstd     a frame       as the sample         by the host, on the way
//   packed   a frame       as it is stored       by the device, in the transform
//   jpeg     a frame       as it is stored       by the device, before the transforms of all views; by the
//                                                host device, for one view, in the transform
//   mixed    a frame       as the sample         by the host, on the way
//
// mixed: a data set that was put together from several, whose codecs differ.
//
// Samples may be of any size (SampleSpec::is_free()). Then each has its own bytes, decoded too.
//
// Each image field of a data set has a form: `images`, and further fields, which have a codec of their own.
// To decode one frame on the host, images(shard).codec() is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/loader_options.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

inline constexpr std::uint64_t kLateGroups = 2;

// The bytes of one sample that go to the device.
struct StoredSample {
  std::uint64_t size_bytes = 0;
  // Where they are mapped. Null if the size was known without looking this up.
  const std::byte* mapped = nullptr;
  // Codec jpeg.
  jpeg::FrameFile file{};
  // A file that is read when it is staged, and has no index (UnconvertedSamples::file_of()).
  bool is_file = false;
};

// What is known of the frames of a batch, or of some of its rows.
struct StoredFrames {
  std::span<const std::uint64_t> sizes;
  std::span<const jpeg::FrameFile> files;  // of another codec than jpeg: not used, and may be empty
  // 1 where the frame has undefined bytes instead of an index. Empty: all have one.
  std::span<const std::uint8_t> unindexed{};

  StoredFrames part(std::size_t first, std::size_t rows) const {
    return {sizes.subspan(first, rows), files.empty() ? files : files.subspan(first, rows),
            unindexed.empty() ? unindexed : unindexed.subspan(first, rows)};
  }
};

// Which image field of a data set.
struct StoredField {
  SampleSpec recorded{};
  // A position in DatasetInfo::fields. Empty: `images`.
  std::optional<std::size_t> field{};
  // DatasetInfo::largest(), of samples of any size.
  LargestSample largest{};
  // Bytes of a pixel of the images, decoded.
  std::uint64_t image_pixel_bytes = 1;
  // More than the mean frame: of a shard, by its samples.
  std::uint64_t mean_stored_bytes = 0;
  // There may be no room for some images of a batch (StoredForm::may_be_late()).
  bool images_may_be_late = true;
  bool unindexed_files = false;  // DatasetInfo::unindexed_files
};

// Immutable and thread safe. The default implementations are for codec none.
class StoredForm {
 public:
  explicit StoredForm(const StoredField& of) : of_(of) {}
  StoredForm(const StoredForm&) = delete;
  StoredForm& operator=(const StoredForm&) = delete;
  virtual ~StoredForm() = default;

  // What the data set says of samples.
  const SampleSpec& recorded() const noexcept { return of_.recorded; }
  // The most bytes of a sample that go to the device.
  virtual std::uint64_t most_bytes_to_device() const noexcept { return most_decoded_bytes(); }
  // The same of a usual sample, if that is only a bound.
  virtual std::uint64_t usual_bytes_to_device() const noexcept { return most_bytes_to_device(); }
  // Every sample has most_bytes_to_device().
  virtual bool fixed_size() const noexcept { return !is_free(); }
  // Samples are of any size.
  bool is_free() const noexcept { return recorded().is_free(); }
  // There may be no room for all samples of a batch: room_bytes() is for what batches usually have.
  virtual bool may_be_late() const noexcept { return is_free(); }
  // The most bytes that the transform reads of a sample.
  std::uint64_t most_decoded() const noexcept {
    return is_free()
               ? largest().sample_bytes / size_bytes(recorded().dtype) * size_bytes(transform_input().dtype)
               : transform_input().size_bytes();
  }
  // Rows and columns of a sample. Errors: those of Dataset::shard(); corrupt.
  SampleSize size_of(const Dataset& dataset, const Dataset::Location& at) const;
  // Room for the samples of a batch that go to the device, in one block. Samples of any size: what
  // MemoryOptions::batch_bytes allows, and at least one sample (two: samples are mixed). Of a further field,
  // whose samples have the sizes of their images, the same share by its bytes per pixel.
  virtual std::uint64_t room_bytes(const LoaderOptions& options) const noexcept;
  // The same for samples that are decoded on the device.
  virtual std::uint64_t decoded_room_bytes(const LoaderOptions& options) const noexcept;
  // The bytes of one of kLateGroups groups of samples for which there was no room (LateMemory): at least
  // those of the largest sample.
  virtual std::uint64_t late_group_bytes(const LoaderOptions& options) const noexcept;
  // The bytes of one sample that go to the device. Errors: corrupt (naming shard and sample), those of
  // Dataset::shard().
  virtual StoredSample locate(const Dataset& dataset, const Dataset::Location& at) const;
  // The same of a sample that is read from its file: UnconvertedSamples::file_of() has one.
  virtual StoredSample locate_file(const Dataset& dataset, const Dataset::Location& at) const;

  // What a shard has of this field.
  const StoredImages& images(const ShardReader& shard) const { return shard.images(of_.field); }
  // Path, number and key of a sample, and the name of a further field, for messages.
  std::string name_of(const ShardReader& shard, std::uint64_t sample) const;

  // True if the host decodes samples, so that the device does not get the mapped bytes.
  virtual bool decoded_by_host() const noexcept { return false; }
  // XXH3-64 of the sample that goes to the device as `bytes`. Errors: corrupt.
  virtual std::uint64_t checksum(const ShardReader& shard, std::uint64_t sample,
                                 std::span<const std::byte> bytes) const;

  // True if the device decodes samples. It then reports which are not valid (verdict.hpp).
  virtual bool decoded_by_device() const noexcept { return false; }
  // The dtype, layout and shape of a sample that the transform reads.
  virtual SampleSpec transform_input() const { return recorded(); }
  // True if a view's transform unpacks samples into device memory first: decoded_room_bytes().
  virtual bool needs_scratch(const TransformOptions&, const DeviceInfo&) const noexcept { return false; }
  // True if frames are decoded before the transforms of a batch of so many views, which then read samples:
  // decoded_room_bytes().
  virtual bool decodes_first(std::size_t /*views*/, const DeviceInfo&) const noexcept { return false; }
  // True if a FrameDecoder does it, in as many parts of a batch as the room asks for.
  virtual bool decodes_in_parts() const noexcept { return false; }
  // What a FrameDecoder needs on a device for each frame that it decodes at a time
  // (TransformWork::workspace_bytes): usually, and at least.
  struct Workspace {
    std::uint64_t usual_bytes = 0;
    std::uint64_t least_bytes = 0;
    // The same of JpegIndexWork; 0: all frames have an index.
    std::uint64_t usual_index_bytes = 0;
    std::uint64_t least_index_bytes = 0;
  };
  virtual Workspace workspace(const LoaderOptions&, const DeviceInfo&) const noexcept { return {}; }
  // Sets what the transform needs besides addresses. `scratch`: decoded_room_bytes(), if needed. Both must
  // live as long as `work` is used.
  virtual void describe(TransformWork& /*work*/, const StoredFrames& /*frames*/,
                        std::byte* /*scratch*/) const {}

 protected:
  const LargestSample& largest() const noexcept { return of_.largest; }
  std::uint64_t most_decoded_bytes() const noexcept {
    return is_free() ? largest().sample_bytes : recorded().size_bytes();
  }
  std::uint64_t mean_stored_bytes() const noexcept { return of_.mean_stored_bytes; }
  bool images_may_be_late() const noexcept { return of_.images_may_be_late; }
  bool has_unindexed_files() const noexcept { return of_.unindexed_files; }

 private:
  // `image_bytes` of images have room for as many pixels as the result has of this field.
  std::uint64_t share_of(std::uint64_t image_bytes) const noexcept;
  // MemoryOptions::batch_bytes, between one sample and all.
  std::uint64_t bounded(std::uint64_t most, const LoaderOptions& options) const noexcept;

  StoredField of_;
};

// Of the images, and of each further field that is delivered.
using StoredForms = std::vector<std::shared_ptr<const StoredForm>>;

// The form of a data set's samples, or of those of a further field, by a table of codecs in stored_form.cpp.
std::unique_ptr<const StoredForm> make_stored_form(const DatasetInfo& info,
                                                   std::optional<std::size_t> field = {});

using MakeStoredForm = std::unique_ptr<const StoredForm>(const StoredField& of);
MakeStoredForm make_raw_form, make_packed_form, make_jpeg_form, make_host_decoded_form;

}  // namespace shard
