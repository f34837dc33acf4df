#include "engine/field_maker.hpp"

#include <algorithm>

#include "transform/check_work.hpp"

namespace shard {

namespace {

// Rows of `bytes` each, one after the other.
void set_rows(const std::byte* begin, std::uint64_t bytes, std::size_t rows,
              std::vector<const std::byte*>& addresses) {
  addresses.clear();
  for (std::size_t i = 0; i < rows; ++i) addresses.push_back(begin + i * bytes);
}

}  // namespace

void queue_decoding(Stream& stream, const StoredForm& form, std::span<const std::byte* const> sources,
                    const StoredFrames& frames, std::byte* target, std::uint32_t* broken,
                    std::vector<const std::byte*>& decoded) {
  TransformWork decoding;
  decoding.stored = decoding.delivered = form.transform_input();
  decoding.sources = sources;
  const std::vector<SampleCrop> whole(sources.size(),
                                      SampleCrop{0, 0, decoding.stored.width, decoding.stored.height, false});
  decoding.crops = whole;
  decoding.target = target;
  decoding.target_is_read_soon = true;
  form.describe(decoding, frames, nullptr);
  decoding.broken = broken;
  stream.transform(decoding);
  set_rows(target, decoding.stored.size_bytes(), sources.size(), decoded);
}

FieldMaker::FieldMaker(const LoaderSetup& setup)
    : setup_(setup), memory_(field_memory(setup.dataset.info(), setup.options)) {
  if (memory_.size_bytes() == 0) return;
  block_ = setup.device->allocate_device(memory_.size_bytes());
  decoded_memory_ = block_->data();
  pixels_ = decoded_memory_ + memory_.decoded_bytes;
  between_ = pixels_ + memory_.pixels_bytes;
  scratch_ = between_ + memory_.between_bytes;
}

void FieldMaker::set_shapes(Slot& slot, std::span<const DrawnSteps> views) const {
  for (std::size_t number = 0; number < setup_.fields.size(); ++number)
    for (std::size_t view = 0; view < views.size(); ++view) {
      const DeliveredField& field = setup_.fields[number];
      const bool stored = field.options.sampling == FieldSampling::stored;
      const FieldView& of = field.views[view];
      SlotColumn& column = slot.fields[number * views.size() + view];
      column.shape.assign(1, slot.indices.samples.size());
      const std::vector<std::uint64_t> shape = stored ? of.shape(of.delivered.height, of.delivered.width)
                                                      : of.shape(views[view].height, views[view].width);
      column.shape.insert(column.shape.end(), shape.begin(), shape.end());
    }
}

void FieldMaker::queue(Stream& stream, const Slot& slot, std::size_t number, const Samples& samples,
                       std::span<const DrawnSteps> views, std::size_t first,
                       std::span<const SampleSize> shapes, FrameDecoder& decoder) {
  const StoredForm& form = *setup_.forms[number + 1];
  if (!form.decoded_by_device())
    return queue_rows(stream, slot, number, {samples.sources, first, shapes}, views);
  std::uint32_t* const broken = slot.verdict->entries(number + 1) + first;
  if (!form.is_free() && !form.decodes_in_parts()) {
    queue_decoding(stream, form, samples.sources, samples.frames, decoded_memory_, broken, decoded_);
    return queue_rows(stream, slot, number, {decoded_, first, shapes}, views);
  }
  const std::size_t step = slot.pairs.empty() ? 1 : 2;
  const std::size_t rows = samples.sources.size();
  const SampleSpec& spec = form.recorded();
  if (form.is_free())
    sizes_.assign(shapes.begin(), shapes.end());
  else
    sizes_.assign(rows, SampleSize{spec.height, spec.width});
  for (std::size_t done = 0; done < rows;) {
    const Samples left = samples.part(done, rows - done);
    const std::span<const SampleSize> sizes = std::span<const SampleSize>(sizes_).subspan(done);
    const std::size_t count = form.decodes_in_parts()
                                  ? decode_files(stream, form, left, sizes, step, broken + done, decoder)
                                  : decode_some(stream, form, left, sizes, step, broken + done);
    const std::span<const SampleSize> own = form.is_free() ? sizes.first(count) : shapes;
    queue_rows(stream, slot, number, {decoded_, first + done, own}, views);
    done += count;
  }
}

// The same as decode_some() for codec jpeg.
std::size_t FieldMaker::decode_files(Stream& stream, const StoredForm& form, const Samples& samples,
                                     std::span<const SampleSize> shapes, std::size_t step,
                                     std::uint32_t* broken, FrameDecoder& decoder) {
  const SampleSpec spec = form.transform_input();
  const std::size_t count = FrameDecoder::fit(spec, shapes, step, memory_.decoded_bytes);
  boxes_.clear();
  for (const SampleSize& shape : shapes.first(count)) boxes_.push_back({0, 0, shape.width, shape.height});
  const Samples some = samples.part(0, count);
  const Event ready = stream.record();
  decoder.queue(stream, {&ready, 1}, spec, {some.sources, some.frames, shapes.first(count), boxes_, broken},
                decoded_memory_, decoded_);
  return count;
}

// Queues the decoding of as many frames, `step` at a time, as there is room for, and returns their number.
// Sets decoded_.
std::size_t FieldMaker::decode_some(Stream& stream, const StoredForm& form, const Samples& samples,
                                    std::span<const SampleSize> shapes, std::size_t step,
                                    std::uint32_t* broken) {
  TransformWork decoding;
  decoding.stored = form.transform_input();
  decoding.stored.layout = Layout::nhwc;
  decoding.delivered = decoding.stored;
  decoding.exact = true;
  const auto room_of = [&](const SampleSize& shape) {
    return unpacked_room(decoding.stored.sized(shape.height, shape.width));
  };
  decoded_.clear();
  whole_.clear();
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < samples.sources.size(); ++i) {
    std::uint64_t needed = 0;
    for (std::size_t j = i; j < std::min(i + step, shapes.size()); ++j) needed += room_of(shapes[j]);
    if (i % step == 0 && i > 0 && used + needed > memory_.decoded_bytes) break;
    decoded_.push_back(decoded_memory_ + used);
    used += room_of(shapes[i]);
    SampleCrop crop{0, 0, shapes[i].width, shapes[i].height, false};
    crop.resized_height = shapes[i].height;
    crop.resized_width = shapes[i].width;
    whole_.push_back(crop);
  }
  const std::size_t count = decoded_.size();
  decoding.sources = samples.sources.first(count);
  decoding.sizes = shapes.first(count);
  decoding.crops = whole_;
  decoding.target = decoded_memory_;
  decoding.target_is_read_soon = true;
  form.describe(decoding, samples.frames.part(0, count), nullptr);
  decoding.broken = broken;
  stream.transform(decoding);
  return count;
}

void FieldMaker::queue_rows(Stream& stream, const Slot& slot, std::size_t number, const Rows& rows,
                            std::span<const DrawnSteps> views) {
  const DeliveredField& field = setup_.fields[number];
  const std::size_t count = rows.sources.size();
  std::span<const MixPair> pairs = slot.pairs;
  if (!pairs.empty()) pairs = pairs.subspan(rows.first / 2, count / 2);
  for (std::size_t view = 0; view < views.size(); ++view) {
    const FieldView& of = field.views[view];
    DrawnSteps drawn = views[view];
    drawn.begins = drawn.begins.subspan(rows.first, count + 1);
    if (field.options.sampling == FieldSampling::stored) {
      const SampleSpec& stored = of.from_stored.stored;
      whole_.assign(count, SampleCrop{0, 0, stored.width, stored.height, false});
      drawn.crops = whole_;
      drawn.height = of.delivered.height;
      drawn.width = of.delivered.width;
    } else {
      drawn.crops = drawn.crops.subspan(rows.first, count);
    }
    const std::uint64_t row_bytes =
        std::uint64_t{of.delivered.channels} * drawn.height * drawn.width * size_bytes(of.delivered.dtype);
    const SlotColumn& column = slot.fields[number * views.size() + view];
    queue_view(stream, of, rows, drawn, pairs,
               const_cast<std::byte*>(column.device) + rows.first * row_bytes);
  }
}

void FieldMaker::queue_view(Stream& stream, const FieldView& view, const Rows& rows, const DrawnSteps& drawn,
                            std::span<const MixPair> pairs, std::byte* target) {
  const std::size_t count = rows.sources.size();
  const auto resize_view = [&](SampleSpec& spec) {
    spec.height = drawn.height;
    spec.width = drawn.width;
  };
  TargetWork follow = view.follow;
  follow.height = drawn.height;
  follow.width = drawn.width;
  const std::uint64_t pixels_bytes = follow.row_bytes();
  follow.sources = rows.sources;
  if (!view.follows || follow.bilinear) {
    TransformWork work = view.from_stored;
    resize_view(work.delivered);
    work.sources = rows.sources;
    work.sizes = rows.shapes;
    work.crops = drawn.crops;
    work.target = view.follows ? pixels_ : target;
    stream.transform(work);
    if (!view.follows) return;
    set_rows(pixels_, pixels_bytes, count, rows_);
    resize_view(follow.stored);
    follow.sources = rows_;
  } else {
    follow.crops = drawn.crops;
    follow.sizes = rows.shapes;
    follow.pairs = pairs;
  }
  follow.steps = drawn.steps;
  follow.begins = drawn.begins;
  follow.target = view.converts ? between_ : target;
  follow.scratch = scratch_;
  stream.follow(follow);
  if (!view.converts) return;
  TransformWork convert = view.from_pixels;
  resize_view(convert.stored);
  resize_view(convert.delivered);
  set_rows(between_, pixels_bytes, count, rows_);
  convert.sources = rows_;
  whole_.assign(count, SampleCrop{0, 0, convert.stored.width, convert.stored.height, false});
  convert.crops = whole_;
  convert.target = target;
  stream.transform(convert);
}

}  // namespace shard
