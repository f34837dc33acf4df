#include "transform/host_transform.hpp"

#include <fmt/format.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "transform/augment/host_augment.hpp"
#include "transform/check_work.hpp"
#include "transform/exact/exact_resize.hpp"
#include "transform/float_transform.hpp"
#include "transform/needed_box.hpp"
#include "transform/resize_plan.hpp"
#include "transform/transform_kernels.hpp"
#include "transform/value_map.hpp"
#include "transform/wide_transform.hpp"

namespace shard {

namespace {

constexpr std::size_t kRowsAhead = 4;  // how far ahead rows are prefetched if they are only copied
constexpr std::size_t kBatchRows = 8;  // resized by columns at once, to stay in the L1 cache

std::size_t size_index(std::size_t element_bytes) noexcept {
  return element_bytes == 4 ? 2 : element_bytes - 1;
}

// Memory in cache lines that keeps its size.
class Scratch {
 public:
  template <class T>
  T* at_least(std::size_t count) {
    lines_.resize(std::max(lines_.size(), (count * sizeof(T) + 63) / 64));
    return reinterpret_cast<T*>(lines_.data());
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
};

// The fastest function that gives the bits of the table, and its constants.
class ValueWriter {
 public:
  void prepare(const TransformWork& work, const TransformKernels& kernels) {
    const Normalization normalization = work.normalize ? work.normalization : Normalization{};
    if (map_.dtype == work.delivered.dtype && channels_ == work.delivered.channels &&
        normalization_ == normalization && by_line_ == kernels.values_by_line)
      return;
    channels_ = 0;  // not valid until all is done
    map_ = make_value_map(work);
    for (std::uint32_t c = 0; c < work.delivered.channels; ++c) lanes_[c].set(map_, c, 1);
    lanes_[4].set(map_, 0, work.delivered.channels);
    if (map_.fused && is_exact(kernels.values_by_line, work.delivered.channels))
      write_ = kernels.values_by_line;
    else
      write_ = is_exact(kernels.values_by_steps, work.delivered.channels) ? kernels.values_by_steps
                                                                          : values_by_table;
    normalization_ = normalization;
    by_line_ = kernels.values_by_line;
    channels_ = work.delivered.channels;
  }

  void plane(std::size_t channel, const std::byte* in, std::size_t n, std::byte* out) const {
    write_(lanes_[channel], reinterpret_cast<const std::uint8_t*>(in), n, out);
  }
  void pixels(const std::byte* in, std::size_t n, std::byte* out) const {
    write_(lanes_[4], reinterpret_cast<const std::uint8_t*>(in), n, out);
  }

 private:
  bool is_exact(TransformKernels::Values values, std::uint32_t channels) const {
    std::array<std::uint8_t, 256> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
    alignas(64) std::array<std::byte, 1024> expected{};
    alignas(64) std::array<std::byte, 1024> got{};
    for (std::uint32_t c = 0; c < channels; ++c) {
      values_by_table(lanes_[c], bytes.data(), bytes.size(), expected.data());
      values(lanes_[c], bytes.data(), bytes.size(), got.data());
      if (expected != got) return false;
    }
    return true;
  }

  ValueMap map_;
  Normalization normalization_;
  std::uint32_t channels_ = 0;
  TransformKernels::Values by_line_ = nullptr;
  TransformKernels::Values write_ = nullptr;
  std::array<ValueLanes, 5> lanes_;  // of each channel, and of interleaved channels
};

// Everything one thread needs; reused from call to call.
class RowTransformer {
 public:
  void begin(const TransformWork& work) {
    work_ = &work;
    kernels_ = transform_kernels();
    channels_ = work.stored.channels;
    planar_in_ = channels_ > 1 && work.stored.layout == Layout::nchw;
    planar_out_ = channels_ > 1 && work.delivered.layout == Layout::nchw;
    planes_in_ = planar_in_ ? channels_ : 1;
    pixel_channels_ = planar_in_ ? 1 : channels_;
    element_bytes_ = size_bytes(work.stored.dtype);
    converts_ = work.stored.dtype != work.delivered.dtype;
    if (converts_) values_.prepare(work, kernels_);
    const std::size_t row = std::size_t{work.delivered.width} * channels_ * element_bytes_;
    row_pitch_ = (row + 63) / 64 * 64;  // room for a row in any layout, planes one after the other
    std::byte* const rows = rows_.at_least<std::byte>(2 * row_pitch_);
    row_buffer_ = rows;
    layout_buffer_ = rows + row_pitch_;
    framed_ = !work.frame_bytes.empty();
    const CodecSpec::Kind kind = work.files.empty() ? CodecSpec::Kind::packed : CodecSpec::Kind::jpeg;
    if (framed_ && !(codec_ && codec_stored_ == work.stored && codec_kind_ == kind)) {
      codec_.emplace(CodecSpec(kind), work.stored);
      codec_stored_ = work.stored;
      codec_kind_ = kind;
    }
  }

  // `next`: the sample that follows, whose rows are prefetched; or `index` again.
  void sample(std::size_t index, std::size_t next) {
    source_ = work_->sources[index];
    next_source_ = work_->sources[next];
    next_crop_ = work_->crops[next];
    target_ = work_->target + index * work_->delivered.size_bytes();
    if (work_->only_decodes()) return decode_whole(index);
    if (work_->exact) return resize_exactly(index);
    if (framed_ && !unpack(index)) return;
    if (resizes(*work_, work_->crops[index]))
      resize(work_->crops[index]);
    else
      copy(work_->crops[index]);
  }

 private:
  std::size_t plane_row_bytes() const noexcept {
    return std::size_t{work_->delivered.width} * pixel_channels_ * element_bytes_;
  }
  std::size_t stored_offset(std::size_t plane, std::size_t row, std::size_t column) const noexcept {
    const std::size_t pixel = (plane * work_->stored.height + row) * work_->stored.width + column;
    return pixel * pixel_channels_ * element_bytes_;
  }
  const std::byte* stored_row(std::size_t plane, std::size_t row, std::size_t column) const noexcept {
    return source_ + stored_offset(plane, row, column);
  }
  // Row `row` of the box or, past its end, of the next sample's box.
  const std::byte* rows_soon(const SampleCrop& crop, std::size_t plane, std::size_t row) const noexcept {
    if (row < crop.height) return stored_row(plane, crop.top + row, crop.left);
    const std::size_t next_row = std::min<std::size_t>(row - crop.height, next_crop_.height - 1);
    return next_source_ + stored_offset(plane, next_crop_.top + next_row, next_crop_.left);
  }
  static void prefetch(const std::byte* begin, std::size_t size_bytes) {
    for (std::size_t at = 0; at < size_bytes; at += 64) hwy::Prefetch(begin + at);
  }
  std::byte* delivered_row(std::size_t plane, std::size_t row) const noexcept {
    const std::size_t pixel = (plane * work_->delivered.height + row) * work_->delivered.width;
    return target_ + pixel * (planar_out_ ? 1 : channels_) * size_bytes(work_->delivered.dtype);
  }
  bool rows_are_final() const noexcept { return !converts_ && planar_in_ == planar_out_; }
  // Where row y of a plane is written before its layout or type changes; the batch itself when neither does.
  std::byte* row_place(std::size_t plane, std::size_t y) const noexcept {
    return rows_are_final() ? delivered_row(plane, y) : row_buffer_ + plane * plane_row_bytes();
  }

  // Decodes a frame into memory that stays in the cache. False: the frame is not valid, or nothing is left to
  // do.
  bool unpack(std::size_t index) {
    const SampleCrop& crop = work_->crops[index];
    const bool final = work_->stored == work_->delivered && !crop.flip && !resizes(*work_, crop);
    std::byte* const sample = final ? target_ : unpacked_.at_least<std::byte>(work_->stored.size_bytes());
    if (!decode(index, work_->stored, sample)) return false;
    source_ = sample;
    next_source_ = sample;  // the next one is a frame, whose rows cannot be prefetched
    next_crop_ = crop;
    return !final;
  }

  void decode_whole(std::size_t index) {
    std::uint64_t offset = 0;
    for (std::size_t row = 0; row < index; ++row) offset += decoded_room(*work_, row);
    if (decoded_room(*work_, index) == 0) return;  // no frame
    decode(index, stored_spec(*work_, index), work_->target + offset);
  }

  // A sample of any size, or a view that is placed.
  void resize_exactly(std::size_t index) {
    const SampleSpec stored = stored_spec(*work_, index);
    const std::byte* source = source_;
    if (framed_) {
      std::byte* const sample = unpacked_.at_least<std::byte>(stored.size_bytes());
      if (!decode(index, stored, sample)) return;
      source = sample;
    }
    const SampleCrop& crop = work_->crops[index];
    const std::size_t row_bytes = std::size_t{stored.width} * pixel_channels_;
    const std::uint8_t* planes[4] = {};
    for (std::size_t plane = 0; plane < planes_in_; ++plane)
      planes[plane] = reinterpret_cast<const std::uint8_t*>(source) +
                      (plane * stored.height + crop.top) * row_bytes +
                      std::size_t{crop.left} * pixel_channels_;
    ExactResize::Box box{
        {planes, planes_in_},   row_bytes,     pixel_channels_, crop, work_->delivered.height,
        work_->delivered.width, work_->filter, work_->fill};
    box.crop.resized_height = resized_height(*work_, crop);
    box.crop.resized_width = resized_width(*work_, crop);
    if (work_->patch != 0) {
      box.height = box.crop.resized_height;
      box.width = box.crop.resized_width;
      return resize_to_patches(box, work_->tokens[index]);
    }
    exact_.start(box);
    for (std::uint32_t y = 0; y < work_->delivered.height; ++y) {
      std::byte* places[4] = {};
      for (std::size_t plane = 0; plane < planes_in_; ++plane) places[plane] = row_place(plane, y);
      exact_.row(y, {places, planes_in_});
      const std::byte* const rows[4] = {places[0], places[1], places[2], places[3]};
      finish_row(y, rows);
    }
  }

  // Each row of the resized sample is a part of each patch of a row of patches.
  void resize_to_patches(const ExactResize::Box& box, std::uint64_t first) {
    const std::uint32_t side = work_->patch;
    const std::size_t run = std::size_t{side} * channels_;
    const std::size_t run_bytes = run * size_bytes(work_->delivered.dtype);
    const std::size_t pitch = std::size_t{box.width} * pixel_channels_;
    std::byte* const row = patch_row_.at_least<std::byte>(2 * std::size_t{box.width} * channels_);
    std::byte* const joined = row + std::size_t{box.width} * channels_;
    exact_.start(box);
    for (std::uint32_t y = 0; y < box.height; ++y) {
      std::byte* places[4] = {};
      for (std::size_t plane = 0; plane < planes_in_; ++plane) places[plane] = row + plane * pitch;
      exact_.row(y, {places, planes_in_});
      const std::byte* const planes[4] = {places[0], places[1], places[2], places[3]};
      if (planar_in_) kernels_.join[0](planes, box.width, channels_, joined);
      const std::byte* const pixels = planar_in_ ? joined : row;
      const std::uint64_t patch = first + std::uint64_t{y / side} * (box.width / side);
      std::byte* out = work_->target + (patch * side + y % side) * run_bytes;
      for (std::size_t at = 0; at < std::size_t{box.width} * channels_; at += run, out += side * run_bytes) {
        if (converts_)
          values_.pixels(pixels + at, run, out);
        else
          std::memcpy(out, pixels + at, run);
      }
    }
  }

  // What the crop needs. False: the frame is not valid.
  bool decode(std::size_t index, const SampleSpec& stored, std::byte* sample) {
    const std::span<std::byte> out(sample, stored.size_bytes());
    std::span<const std::byte> frame(work_->sources[index], work_->frame_bytes[index]);
    try {
      if (work_->files.empty()) {
        codec_->decode(frame, out, stored);
      } else {
        // A mapped file may change, or end, while it is read.
        frame_.resize(frame.size());
        std::memcpy(frame_.data(), frame.data(), frame.size());
        codec_->decode_part(frame_, out, FrameSpec(stored, work_->files[index]), needed_box(*work_, index));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt) throw;
      work_->broken[index] = 1;
      return false;
    }
    return true;
  }

  void copy(const SampleCrop& crop) {
    const std::byte* rows[4] = {};
    for (std::size_t y = 0; y < crop.height; ++y) {
      for (std::size_t plane = 0; plane < planes_in_; ++plane) {
        rows[plane] = stored_row(plane, crop.top + y, crop.left);
        prefetch(rows_soon(crop, plane, y + kRowsAhead), plane_row_bytes());
        if (!crop.flip) continue;
        std::byte* const place = row_place(plane, y);
        kernels_.reverse[size_index(element_bytes_)](rows[plane], crop.width, pixel_channels_, place);
        rows[plane] = place;
      }
      finish_row(y, rows);
    }
  }

  // Rows in the stored layout and type -> the batch.
  void finish_row(std::size_t y, const std::byte* const* rows) {
    const std::size_t width = work_->delivered.width;
    if (rows_are_final()) {
      for (std::size_t plane = 0; plane < planes_in_; ++plane)
        if (std::byte* const out = delivered_row(plane, y); out != rows[plane])
          std::memcpy(out, rows[plane], plane_row_bytes());
      return;
    }
    const std::byte* in[4] = {rows[0], rows[1], rows[2], rows[3]};
    if (planar_in_ && !planar_out_) {
      std::byte* const out = converts_ ? layout_buffer_ : delivered_row(0, y);
      kernels_.join[size_index(element_bytes_)](in, width, channels_, out);
      in[0] = out;
    } else if (!planar_in_ && planar_out_) {
      std::byte* out[4] = {};
      for (std::size_t c = 0; c < channels_; ++c)
        out[c] = converts_ ? layout_buffer_ + c * width * element_bytes_ : delivered_row(c, y);
      kernels_.split[size_index(element_bytes_)](in[0], width, channels_, out);
      std::copy(out, out + 4, in);
    }
    if (!converts_) return;
    if (planar_out_)
      for (std::size_t c = 0; c < channels_; ++c) values_.plane(c, in[c], width, delivered_row(c, y));
    else
      values_.pixels(in[0], width * channels_, delivered_row(0, y));
  }

  // Columns of some stored rows, then rows of those, in a ring:  row r of a plane lies in slot r % slots.
  void resize(const SampleCrop& crop) {
    const SampleSpec& delivered = work_->delivered;
    horizontal_.build(crop.width, delivered.width, pixel_channels_, crop.flip);
    vertical_.build(crop.height, delivered.height);
    const std::size_t slots = vertical_.max_taps + kBatchRows;
    const std::size_t slot_values = horizontal_.row_values();
    std::int16_t* const ring = ring_.at_least<std::int16_t>(planes_in_ * slots * slot_values);
    const auto slot = [&](std::size_t plane, std::size_t row) {
      return ring + (plane * slots + row % slots) * slot_values;
    };

    const std::size_t n = std::size_t{delivered.width} * pixel_channels_;
    const std::int16_t* tap_rows[kMaxTaps];
    std::size_t ready = 0;  // rows of the box
    for (std::size_t y = 0; y < delivered.height; ++y) {
      const Taps taps = vertical_.taps[y];
      while (ready < taps.first + taps.count) {
        const std::size_t count = std::min<std::size_t>(kBatchRows, crop.height - ready);
        for (std::size_t plane = 0; plane < planes_in_; ++plane) {
          std::int16_t* outs[kBatchRows];
          for (std::size_t r = 0; r < count; ++r) outs[r] = slot(plane, ready + r);
          resize_columns(crop, plane, ready, count, outs);
        }
        ready += count;
      }
      const std::byte* rows[4] = {};
      for (std::size_t plane = 0; plane < planes_in_; ++plane) {
        for (std::size_t k = 0; k < taps.count; ++k) tap_rows[k] = slot(plane, taps.first + k);
        std::byte* const place = row_place(plane, y);
        kernels_.vertical(tap_rows, &vertical_.weights[y * vertical_.max_taps], taps.count, n,
                          reinterpret_cast<std::uint8_t*>(place),
                          rows_are_final() && !work_->target_is_read_soon);
        rows[plane] = place;
      }
      finish_row(y, rows);
    }
  }

  void resize_columns(const SampleCrop& crop, std::size_t plane, std::size_t first, std::size_t count,
                      std::int16_t* const* outs) {
    const std::byte* const end = source_ + work_->stored.size_bytes();
    const std::uint8_t* rows[kBatchRows];
    const std::uint8_t* soon[kBatchRows];
    for (std::size_t r = 0; r < count; ++r) {
      const std::byte* const next = rows_soon(crop, plane, first + kBatchRows + r);
      soon[r] = reinterpret_cast<const std::uint8_t*>(next);
      const std::byte* row = stored_row(plane, crop.top + first + r, crop.left);
      const auto readable = static_cast<std::size_t>(end - row);
      if (readable < horizontal_.reach) {  // vectors would read past the sample: a copy with room behind it
        const std::size_t pitch = (horizontal_.reach + 63) / 64 * 64;
        std::byte* const copied = bounce_.at_least<std::byte>(kBatchRows * pitch) + r * pitch;
        std::memcpy(copied, row, readable);
        std::memset(copied + readable, 0, horizontal_.reach - readable);
        row = copied;
      }
      rows[r] = reinterpret_cast<const std::uint8_t*>(row);
    }
    kernels_.horizontal(horizontal_, rows, soon, count, outs);
  }

  const TransformWork* work_ = nullptr;
  TransformKernels kernels_{};
  std::uint32_t channels_ = 0;
  std::size_t planes_in_ = 0;
  std::uint32_t pixel_channels_ = 0;  // interleaved in a stored row
  bool planar_in_ = false;
  bool planar_out_ = false;
  bool converts_ = false;
  std::size_t element_bytes_ = 0;  // stored
  std::size_t row_pitch_ = 0;
  std::byte* row_buffer_ = nullptr;
  std::byte* layout_buffer_ = nullptr;
  const std::byte* source_ = nullptr;
  const std::byte* next_source_ = nullptr;
  SampleCrop next_crop_;
  std::byte* target_ = nullptr;

  ValueWriter values_;
  ExactResize exact_;
  Scratch patch_row_;
  HorizontalPlan horizontal_;
  VerticalPlan vertical_;
  Scratch rows_;
  Scratch ring_;
  Scratch bounce_;

  bool framed_ = false;
  std::optional<Codec> codec_;
  SampleSpec codec_stored_;
  CodecSpec::Kind codec_kind_ = CodecSpec::Kind::packed;
  std::vector<std::byte> frame_;  // of codec jpeg
  Scratch unpacked_;
};

// For samples stored as floats. If nothing is computed from the values of a sample, its bits are copied.
void transform_floats(RowTransformer& transformer, const TransformWork& work, std::size_t first,
                      std::size_t last) {
  static thread_local FloatTransformer floats;
  const bool all = converts_floats(work);
  if (!all) transformer.begin(work);
  const DefaultFloatEnvironment environment;
  floats.begin(work);
  for (std::size_t row = first; row < last; ++row) {
    if (all || resizes(work, work.crops[row]))
      floats.sample(row);
    else
      transformer.sample(row, std::min(row + 1, last - 1));
  }
}

}  // namespace

void transform_rows(const TransformWork& work, std::size_t first, std::size_t last) {
  check_work(work);
  if (first > last || last > work.sources.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("transform: rows {} to {} of a batch of {}", first, last, work.sources.size()));
  for (std::size_t row = first; row < last; ++row) check_crop(work, row);
  if (!work.begins.empty()) {
    augment::check_programs(work);
    return augment::augment_rows(work, first, last);
  }
  static thread_local RowTransformer transformer;
  if (is_wide(work.stored) || (work.exact && work.stored.dtype != DType::u8)) {
    static thread_local WideTransformer wide;
    const DefaultFloatEnvironment environment;
    wide.begin(work);
    for (std::size_t row = first; row < last; ++row) wide.sample(row);
  } else if (work.stored.dtype != DType::u8) {
    transform_floats(transformer, work, first, last);
  } else {
    transformer.begin(work);
    for (std::size_t row = first; row < last; ++row) transformer.sample(row, std::min(row + 1, last - 1));
  }
  flush_stores();
}

}  // namespace shard
