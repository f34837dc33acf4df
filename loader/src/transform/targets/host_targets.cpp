#include "transform/targets/host_targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "shard/error.hpp"
#include "shard/loader/geometry.hpp"
#include "transform/elements.hpp"
#include "transform/float_transform.hpp"
#include "transform/targets/target_math.hpp"

namespace shard::targets {

namespace {

[[noreturn]] void refuse_targets(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "targets: " + message);
}

void check_box(const TargetWork& work, std::size_t row) {
  const SampleCrop& crop = work.crops[row];
  const SampleSpec stored = stored_spec(work, row);
  if (crop.width < 1 || crop.height < 1 || crop.left > stored.width ||
      crop.width > stored.width - crop.left || crop.top > stored.height ||
      crop.height > stored.height - crop.top)
    refuse_targets(fmt::format("row {}: the box at ({}, {}) of {} x {} is not inside of a sample of {} x {}",
                               row, crop.top, crop.left, crop.height, crop.width, stored.height,
                               stored.width));
  constexpr std::int32_t kMost = 1 << 30;
  if ((crop.resized_height == 0) != (crop.resized_width == 0) || crop.resized_height > kMost ||
      crop.resized_width > kMost || crop.row > kMost || crop.row < -kMost || crop.column > kMost ||
      crop.column < -kMost)
    refuse_targets(fmt::format("row {}: {} x {} at row {}, column {} of the view is not possible", row,
                               crop.resized_height, crop.resized_width, crop.row, crop.column));
}

// Of one row of the batch, or of a pair of them.
template <class Type>
class Follower {
  using Stored = typename Type::Stored;

 public:
  explicit Follower(const TargetWork& work)
      : work_(work),
        width_(static_cast<std::int32_t>(work.width)),
        height_(static_cast<std::int32_t>(work.height)),
        channels_(work.stored.channels),
        view_(strides_of(work.layout == Layout::nchw, channels_, work.height, work.width)),
        fill_(Type::store(work.fill)) {}

  void nearest(std::size_t row) {
    const MixPair pair = work_.pairs.empty() ? MixPair{} : work_.pairs[row / 2];
    gather(row, row, {0, 0, 0, work_.width, work_.height});
    if (!augment::is_mixup(pair)) gather(row, row ^ 1U, pair);
  }

  void bilinear(std::size_t row) {
    const auto steps = steps_of_row(row);
    const auto* now = reinterpret_cast<const Stored*>(work_.sources[row]);
    Stored* const target = row_at(work_.target, row);
    if (steps.empty()) std::copy_n(now, elements(), target);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      Stored* const out = (steps.size() - k) % 2 == 1 ? target : row_at(work_.scratch, row);
      interpolate(steps[k], now, out);
      now = out;
    }
  }

 private:
  std::uint64_t elements() const noexcept { return work_.row_bytes() / sizeof(Stored); }
  Stored* row_at(std::byte* batch, std::size_t row) const noexcept {
    return reinterpret_cast<Stored*>(batch + row * work_.row_bytes());
  }
  std::span<const Instruction> steps_of_row(std::size_t row) const noexcept {
    return work_.steps.subspan(work_.begins[row], work_.begins[row + 1] - work_.begins[row]);
  }

  // Row `row` of the target inside of a box, from the source of row `from`.
  void gather(std::size_t row, std::size_t from, const MixPair& box) {
    const CropMap crop = crop_map(work_, from);
    const SampleSpec stored = stored_spec(work_, from);
    in_ = strides_of(stored.layout == Layout::nchw, channels_, stored.height, stored.width);
    const auto steps = steps_of_row(from);
    const auto* const source = reinterpret_cast<const Stored*>(work_.sources[from]);
    Stored* const target = row_at(work_.target, row);
    find_columns(crop);
    const bool whole = box.left == 0 && box.right == work_.width && box.top == 0;
    for (std::uint32_t y = box.top; y < box.bottom; ++y) {
      Stored* const out = target + y * view_.row;
      const auto row_number = static_cast<std::int32_t>(y);
      if (!steps.empty())
        follow_row(source, crop, steps, row_number, box, out);
      else if (whole && y > 0 && channels_ == 1 &&
               row_origin(crop, row_number) == row_origin(crop, row_number - 1))
        std::copy_n(out - view_.row, view_.row, out);
      else if (const std::int32_t from_row = row_origin(crop, row_number); from_row == kOutside)
        fill_columns(box.left, box.right, out);
      else
        gather_row(source + static_cast<std::uint64_t>(from_row) * in_.row, crop, box, out);
    }
  }

  // Sets columns_, and which of them the sample has.
  void find_columns(const CropMap& crop) {
    columns_.resize(work_.width);
    std::uint32_t inside = 0;
    for (std::int32_t x = 0; x < width_; ++x) {
      const std::int32_t from = column_origin(crop, x, width_);
      columns_[static_cast<std::size_t>(x)] = from;
      if (from != kOutside && inside++ == 0) first_column_ = static_cast<std::uint32_t>(x);
    }
    if (inside == 0) first_column_ = work_.width;
    end_column_ = first_column_ + inside;
  }

  void fill_columns(std::uint32_t begin, std::uint32_t end, Stored* out) const {
    for (std::uint32_t c = 0; c < channels_; ++c)
      for (std::uint32_t x = begin; x < end; ++x) out[x * view_.column + c * view_.channel] = fill_;
  }

  void gather_row(const Stored* source, const CropMap& crop, const MixPair& box, Stored* out) const {
    const std::uint32_t begin = std::clamp(first_column_, box.left, box.right);
    const std::uint32_t end = std::clamp(end_column_, begin, box.right);
    fill_columns(box.left, begin, out);
    fill_columns(end, box.right, out);
    if (begin == end) return;
    for (std::uint32_t c = 0; c < channels_; ++c) {
      const Stored* const from = source + c * in_.channel;
      Stored* const to = out + c * view_.channel;
      const std::int32_t* const columns = columns_.data();
      const bool same = crop.across == 1 && !crop.flip && in_.column == 1 && view_.column == 1;
      if (same)
        std::copy(from + columns[begin], from + columns[begin] + (end - begin), to + begin);
      else if (in_.column == 1 && view_.column == 1)
        for (std::uint32_t x = begin; x < end; ++x) to[x] = from[columns[x]];
      else
        for (std::uint32_t x = begin; x < end; ++x)
          to[x * view_.column] = from[static_cast<std::uint64_t>(columns[x]) * in_.column];
    }
  }

  void follow_row(const Stored* source, const CropMap& crop, std::span<const Instruction> steps,
                  std::int32_t y, const MixPair& box, Stored* out) const {
    for (std::uint32_t x = box.left; x < box.right; ++x) {
      Origin at{static_cast<std::int32_t>(x), y, true};
      for (std::size_t k = steps.size(); k-- > 0 && at.inside;)
        at = step_origin(steps[k], at.x, at.y, width_, height_);
      const std::int32_t row = at.inside ? row_origin(crop, at.y) : kOutside;
      const std::int32_t column = at.inside ? columns_[static_cast<std::size_t>(at.x)] : kOutside;
      if (row == kOutside || column == kOutside) {
        fill_columns(x, x + 1, out);
        continue;
      }
      const Stored* const from = source + static_cast<std::uint64_t>(row) * in_.row +
                                 static_cast<std::uint64_t>(column) * in_.column;
      for (std::uint32_t c = 0; c < channels_; ++c)
        out[x * view_.column + c * view_.channel] = from[c * in_.channel];
    }
  }

  void interpolate(const Instruction& step, const Stored* in, Stored* out) const {
    const auto load = [&](std::uint64_t element) { return Type::load(in[element]); };
    for (std::int32_t y = 0; y < height_; ++y)
      for (std::int32_t x = 0; x < width_; ++x) {
        const std::uint64_t at =
            static_cast<std::uint64_t>(y) * view_.row + static_cast<std::uint64_t>(x) * view_.column;
        if (is_interpolated(step.opcode)) {
          const Place place = place_of(step, x, y, width_, height_);
          for (std::uint32_t c = 0; c < channels_; ++c) {
            const auto of_channel = [&](std::uint64_t element) { return load(element + c * view_.channel); };
            out[at + c * view_.channel] =
                Type::store(bilinear_at(of_channel, place, width_, height_, view_, work_.fill));
          }
          continue;
        }
        const Origin from = exact_origin(step, x, y, width_, height_);
        const std::uint64_t source = static_cast<std::uint64_t>(from.y) * view_.row +
                                     static_cast<std::uint64_t>(from.x) * view_.column;
        for (std::uint32_t c = 0; c < channels_; ++c)
          out[at + c * view_.channel] = from.inside ? in[source + c * view_.channel] : fill_;
      }
  }

  const TargetWork& work_;
  const std::int32_t width_;
  const std::int32_t height_;
  const std::uint32_t channels_;
  Strides in_;  // of the source that is read
  const Strides view_;
  const Stored fill_;
  std::vector<std::int32_t> columns_;  // of the view: those of the stored sample, or kOutside
  std::uint32_t first_column_ = 0;     // columns [first, end) are not outside
  std::uint32_t end_column_ = 0;
};

template <class Type>
void follow(const TargetWork& work, std::size_t first, std::size_t last) {
  Follower<Type> follower(work);
  for (std::size_t row = first; row < last; ++row)
    if (work.bilinear)
      follower.bilinear(row);
    else
      follower.nearest(row);
}

}  // namespace

SampleSpec stored_spec(const TargetWork& work, std::size_t row) noexcept {
  return work.sizes.empty() ? work.stored : work.stored.sized(work.sizes[row].height, work.sizes[row].width);
}

CropMap crop_map(const TargetWork& work, std::size_t row) noexcept {
  const SampleCrop& crop = work.crops[row];
  const std::uint32_t width = crop.resized_width != 0 ? crop.resized_width : work.width;
  const std::uint32_t height = crop.resized_height != 0 ? crop.resized_height : work.height;
  CropMap map;
  map.left = static_cast<std::int32_t>(crop.left);
  map.top = static_cast<std::int32_t>(crop.top);
  map.box_width = static_cast<std::int32_t>(crop.width);
  map.box_height = static_cast<std::int32_t>(crop.height);
  map.resized_width = static_cast<std::int32_t>(width);
  map.resized_height = static_cast<std::int32_t>(height);
  map.column = crop.column;
  map.row = crop.row;
  map.across = static_cast<float>(crop.width) / static_cast<float>(width);
  map.down = static_cast<float>(crop.height) / static_cast<float>(height);
  map.flip = crop.flip;
  return map;
}

std::uint32_t fill_bits(const TargetWork& work) noexcept {
  return with_type(work.stored.dtype, [&](auto type) -> std::uint32_t {
    const auto fill = type.store(work.fill);
    if constexpr (sizeof fill == 4)
      return std::bit_cast<std::uint32_t>(fill);
    else
      return fill;
  });
}

void check_targets(const TargetWork& work) {
  const std::size_t rows = work.sources.size();
  const DType dtype = work.stored.dtype;
  if (work.stored.is_tensor() || (dtype != DType::u8 && dtype != DType::u16 && dtype != DType::f16 &&
                                  dtype != DType::bf16 && dtype != DType::f32))
    refuse_targets(fmt::format("samples of {} with layout {} have no pixels to follow", to_string(dtype),
                               to_string(work.stored.layout)));
  if (work.height < 1 || work.width < 1 || work.height > 65535 || work.width > 65535)
    refuse_targets(fmt::format("a view of {} x {}", work.height, work.width));
  if (work.begins.size() != rows + 1)
    refuse_targets(fmt::format("{} sources and {} begins of steps", rows, work.begins.size()));
  for (std::size_t row = 0; row < rows; ++row)
    if (work.begins[row] > work.begins[row + 1] || work.begins[row + 1] > work.steps.size())
      refuse_targets(fmt::format("row {}: its steps are {} to {} of {}", row, work.begins[row],
                                 work.begins[row + 1], work.steps.size()));
  for (const Instruction& step : work.steps) {
    if (!is_geometric(step.opcode))
      refuse_targets(fmt::format("step {} moves no pixels", to_string(step.opcode)));
    if (step.opcode == Opcode::quarter_turns && step.whole[0] != 2 && work.height != work.width)
      refuse_targets(fmt::format("a quarter turn of {} x {}", work.height, work.width));
  }
  if (work.bilinear) {
    if (!work.crops.empty() || !work.pairs.empty() || work.stored.height != work.height ||
        work.stored.width != work.width || work.stored.layout != work.layout)
      refuse_targets("bilinear steps need sources of the view's size and layout, without crops and pairs");
    return;
  }
  if (work.crops.size() != rows)
    refuse_targets(fmt::format("{} sources and {} crops", rows, work.crops.size()));
  if (work.sizes.size() != (work.stored.is_free() ? rows : 0))
    refuse_targets(fmt::format("{} sources and {} sizes", rows, work.sizes.size()));
  for (std::size_t row = 0; row < rows; ++row) check_box(work, row);
  if (!work.pairs.empty() && 2 * work.pairs.size() != rows)
    refuse_targets(fmt::format("{} pairs of {} rows", work.pairs.size(), rows));
  for (const MixPair& pair : work.pairs)
    if (pair.right > work.width || pair.bottom > work.height)
      refuse_targets(fmt::format("a box of cutmix that ends at ({}, {}) of {} x {}", pair.bottom, pair.right,
                                 work.height, work.width));
}

std::shared_ptr<const TargetWork> owned_copy(const TargetWork& work) {
  struct Owned : TargetWork {
    explicit Owned(const TargetWork& of)
        : TargetWork(of),
          all_sources(of.sources.begin(), of.sources.end()),
          all_crops(of.crops.begin(), of.crops.end()),
          all_sizes(of.sizes.begin(), of.sizes.end()),
          all_steps(of.steps.begin(), of.steps.end()),
          all_begins(of.begins.begin(), of.begins.end()),
          all_pairs(of.pairs.begin(), of.pairs.end()) {
      sources = all_sources;
      crops = all_crops;
      sizes = all_sizes;
      steps = all_steps;
      begins = all_begins;
      pairs = all_pairs;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    std::vector<const std::byte*> all_sources;
    std::vector<SampleCrop> all_crops;
    std::vector<SampleSize> all_sizes;
    std::vector<Instruction> all_steps;
    std::vector<std::uint32_t> all_begins;
    std::vector<MixPair> all_pairs;
  };
  return std::make_shared<const Owned>(work);
}

void follow_rows(const TargetWork& work, std::size_t first, std::size_t last) {
  const DefaultFloatEnvironment environment;
  with_type(work.stored.dtype, [&](auto type) { follow<decltype(type)>(work, first, last); });
}

}  // namespace shard::targets
