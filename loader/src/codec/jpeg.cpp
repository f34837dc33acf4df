// Codec jpeg: the files themselves and an index, decoded by the device: on a GPU by kernels, which need no
// more than the frame and what the shard's head says of it; on the host by libjpeg-turbo.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "codec/jpeg_workspace.hpp"
#include "codec/stored_form.hpp"
#include "format/shard/unconverted.hpp"
#include "jpeg/frame.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kGroupAlign = 256;
constexpr std::uint64_t kLeastMean = 4096;  // headers, tables and index may be longer than small samples
constexpr std::uint64_t kUsualMcu = 16 * 16 - 16;  // pixels; of 4:2:0, with those that are not full

class JpegForm final : public StoredForm {
 public:
  using StoredForm::StoredForm;

  // Of samples of one size only a bound is known, which is far more than frames have.
  std::uint64_t most_bytes_to_device() const noexcept override {
    if (is_free()) return largest().frame_bytes;
    return Codec({CodecSpec::Kind::jpeg}, recorded()).most_frame_bytes(recorded());
  }
  std::uint64_t usual_bytes_to_device() const noexcept override {
    return is_free() ? most_bytes_to_device() : std::min(mean_stored_bytes(), most_bytes_to_device());
  }
  bool fixed_size() const noexcept override { return false; }
  // Fields have room for all frames if their images have.
  bool may_be_late() const noexcept override { return images_may_be_late(); }

  // Files have a tenth of the bytes of their pixels, so their room is for 1.5 times their mean.
  std::uint64_t room_bytes(const LoaderOptions& options) const noexcept override {
    const std::uint64_t most = most_bytes_to_device();
    const std::uint64_t all = most * options.most_rows();
    if (!may_be_late()) return all;
    const std::uint64_t least = most * (options.mix.enabled() ? 2 : 1);
    // Of a selection, the mean of stored bytes is too large.
    const std::uint64_t mean = std::min(mean_stored_bytes() + mean_stored_bytes() / 2,
                                        decoded_room_bytes(options) / options.most_rows() + kLeastMean);
    const std::uint64_t usual = mean * options.most_rows();
    return round_up(std::clamp(usual, least, std::max(all, least)), jpeg::kFrameAlignment);
  }
  std::uint64_t late_group_bytes(const LoaderOptions& options) const noexcept override {
    const std::uint64_t least = most_bytes_to_device() * (options.mix.enabled() ? 2 : 1);
    return std::max(round_up(least, kGroupAlign), std::min(StoredForm::late_group_bytes(options),
                                                           round_up(room_bytes(options) / 2, kGroupAlign)));
  }
  std::uint64_t decoded_room_bytes(const LoaderOptions& options) const noexcept override {
    if (is_free()) return StoredForm::decoded_room_bytes(options);
    return round_up(most_decoded(), TransformWork::kUnpackedAlign) * options.most_rows();
  }

  StoredSample locate(const Dataset& dataset, const Dataset::Location& at) const override {
    const ShardReader& shard = dataset.shard(at.shard);
    StoredSample sample;
    sample.file = images(shard).frame_spec(at.sample).file;
    if (shard.samples_mapped()) {
      const std::span<const std::byte> bytes = images(shard).frame(at.sample);
      sample.size_bytes = bytes.size();
      sample.mapped = bytes.data();
    } else {
      sample.size_bytes = images(shard).frame_bytes(at.sample);
    }
    if (sample.size_bytes > most_bytes_to_device())
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: a JPEG frame of {} bytes; the largest of the data set has {}",
                              name_of(shard, at.sample), sample.size_bytes, most_bytes_to_device()));
    return sample;
  }

  StoredSample locate_file(const Dataset& dataset, const Dataset::Location& at) const override {
    const auto file = dataset.shard(at.shard).unconverted()->file_of(at.sample);
    return {jpeg::frame_bytes(*file), nullptr, *file, true};
  }

  std::uint64_t checksum(const ShardReader& shard, std::uint64_t sample,
                         std::span<const std::byte> bytes) const override {
    // Mapped bytes may change, or end, while they are read.
    thread_local std::vector<std::byte> frame;
    thread_local std::vector<std::byte> decoded;
    const FrameSpec of = images(shard).frame_spec(sample);
    if (of.file.bytes == 0) return xxh3(bytes);  // pixels of an image that is not converted
    frame.resize(bytes.size());
    std::memcpy(frame.data(), bytes.data(), bytes.size());
    decoded.resize(of.sample.size_bytes());
    images(shard).codec().decode(frame, decoded, of);
    return xxh3(decoded);
  }

  bool decoded_by_device() const noexcept override { return true; }
  // A device that reads host memory decodes what a view needs into the cache of a processor. More views are
  // made from one decoding.
  bool decodes_first(std::size_t views, const DeviceInfo& device) const noexcept override {
    return views > 1 || !device.reads_host_memory;
  }
  bool decodes_in_parts() const noexcept override { return true; }
  Workspace workspace(const LoaderOptions& options, const DeviceInfo& device) const noexcept override {
    if (device.reads_host_memory) return {};
    const SampleSpec& spec = recorded();
    const std::uint64_t pixels = decoded_room_bytes(options) / options.most_rows() / spec.channels;
    const std::uint32_t height = is_free() ? largest().height : spec.height;
    const std::uint32_t width = is_free() ? largest().width : spec.width;
    Workspace bytes{usual_jpeg_workspace_bytes(pixels, spec.channels),
                    least_jpeg_workspace_bytes(height, width, spec.channels)};
    if (has_unindexed_files()) {
      const std::uint64_t most_mcus = std::uint64_t{height} * width / jpeg::kBlockValues + height + width;
      // Most batches have more or less than the mean.
      const std::uint64_t usual = index_stage_bytes(pixels / kUsualMcu, mean_stored_bytes(), spec.channels);
      bytes.usual_index_bytes = usual + usual / 4;
      bytes.least_index_bytes = index_stage_bytes(most_mcus, most_bytes_to_device(), jpeg::kMostComponents);
    }
    return bytes;
  }
  void describe(TransformWork& work, const StoredFrames& frames, std::byte* scratch) const override {
    work.frame_bytes = frames.sizes;
    work.files = frames.files;
    work.unpacked = scratch;
  }
};

}  // namespace

std::unique_ptr<const StoredForm> make_jpeg_form(const StoredField& of) {
  return std::make_unique<JpegForm>(of);
}

}  // namespace shard
