#include "engine/field_maker.hpp"

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
                    std::span<const std::uint64_t> sizes, std::byte* target, std::uint32_t* broken,
                    std::vector<const std::byte*>& decoded) {
  TransformWork decoding;
  decoding.stored = decoding.delivered = form.transform_input();
  decoding.sources = sources;
  const std::vector<SampleCrop> whole(sources.size(),
                                      SampleCrop{0, 0, decoding.stored.width, decoding.stored.height, false});
  decoding.crops = whole;
  decoding.target = target;
  decoding.target_is_read_soon = true;
  form.describe(decoding, sizes, nullptr);
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

void FieldMaker::queue(Stream& stream, Slot& slot, std::size_t number, const Samples& samples,
                       std::span<const DrawnSteps> views) {
  const DeliveredField& field = setup_.fields[number];
  const StoredForm& form = *setup_.forms[number + 1];
  std::span<const std::byte* const> sources = samples.sources;
  if (form.decoded_by_device()) {
    queue_decoding(stream, form, sources, samples.sizes, decoded_memory_, slot.verdict->entries(number + 1),
                   decoded_);
    sources = decoded_;
  }
  for (std::size_t view = 0; view < views.size(); ++view) {
    SlotColumn& column = slot.fields[number * views.size() + view];
    column.shape[0] = sources.size();
    DrawnSteps drawn = views[view];
    if (field.options.sampling == FieldSampling::stored) {
      const SampleSpec& stored = field.views[view].from_stored.stored;
      whole_.assign(sources.size(), SampleCrop{0, 0, stored.width, stored.height, false});
      drawn.crops = whole_;
    }
    queue_view(stream, field.views[view], sources, drawn, slot.pairs, const_cast<std::byte*>(column.device));
  }
}

void FieldMaker::queue_view(Stream& stream, const FieldView& view, std::span<const std::byte* const> sources,
                            const DrawnSteps& drawn, std::span<const MixPair> pairs, std::byte* target) {
  const std::uint64_t pixels_bytes = view.follow.row_bytes();
  if (!view.follows || view.follow.bilinear) {
    TransformWork work = view.from_stored;
    work.sources = sources;
    work.crops = drawn.crops;
    work.target = view.follows ? pixels_ : target;
    stream.transform(work);
    if (!view.follows) return;
    set_rows(pixels_, pixels_bytes, sources.size(), rows_);
    sources = rows_;
  }
  TargetWork follow = view.follow;
  follow.sources = sources;
  if (!follow.bilinear) {
    follow.crops = drawn.crops;
    follow.pairs = pairs;
  }
  follow.steps = drawn.steps;
  follow.begins = drawn.begins;
  follow.target = view.converts ? between_ : target;
  follow.scratch = scratch_;
  stream.follow(follow);
  if (!view.converts) return;
  TransformWork convert = view.from_pixels;
  set_rows(between_, pixels_bytes, sources.size(), rows_);
  convert.sources = rows_;
  whole_.assign(sources.size(), SampleCrop{0, 0, convert.stored.width, convert.stored.height, false});
  convert.crops = whole_;
  convert.target = target;
  stream.transform(convert);
}

}  // namespace shard
