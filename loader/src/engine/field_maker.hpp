// FieldMaker: queues what makes the further image fields of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/frame_decoder.hpp"
#include "fields/drawn_steps.hpp"
#include "fields/fields.hpp"
#include "setup/loader_setup.hpp"
#include "slot/slot.hpp"

namespace shard {

// Queues the decoding of frames of codec packed: samples, one after the other, at `target`.
// Sets `decoded` to where each one is.
void queue_decoding(Stream& stream, const StoredForm& form, std::span<const std::byte* const> sources,
                    const StoredFrames& frames, std::byte* target, std::uint32_t* broken,
                    std::vector<const std::byte*>& decoded);

// Used by the feeder's thread, with one stream.
class FieldMaker {
 public:
  // Allocates FieldMemory. Errors: resource.
  explicit FieldMaker(const LoaderSetup& setup);

  // Rows of one field of a batch: its stored samples, and what is known of each.
  struct Samples {
    std::span<const std::byte* const> sources;
    StoredFrames frames;
    Samples part(std::size_t first, std::size_t rows) const {
      return {sources.subspan(first, rows), frames.part(first, rows)};
    }
  };
  // Queues rows of field `number` of a batch, from row `first` on, for all views. `shapes`: of samples of any
  // size, the rows and columns of each of these rows.
  void queue(Stream& stream, const Slot& slot, std::size_t number, const Samples& samples,
             std::span<const DrawnSteps> views, std::size_t first, std::span<const SampleSize> shapes,
             FrameDecoder& decoder);
  // Sets the shapes of all fields in this batch.
  void set_shapes(Slot& slot, std::span<const DrawnSteps> views) const;

 private:
  // Rows from `first` on, whose samples are not frames (any more).
  struct Rows {
    std::span<const std::byte* const> sources;
    std::size_t first = 0;
    std::span<const SampleSize> shapes;
  };
  void queue_rows(Stream& stream, const Slot& slot, std::size_t number, const Rows& rows,
                  std::span<const DrawnSteps> views);
  void queue_view(Stream& stream, const FieldView& view, const Rows& rows, const DrawnSteps& drawn,
                  std::span<const MixPair> pairs, std::byte* target);
  std::size_t decode_some(Stream& stream, const StoredForm& form, const Samples& samples,
                          std::span<const SampleSize> shapes, std::size_t step, std::uint32_t* broken);
  std::size_t decode_files(Stream& stream, const StoredForm& form, const Samples& samples,
                           std::span<const SampleSize> shapes, std::size_t step, std::uint32_t* broken,
                           FrameDecoder& decoder);

  const LoaderSetup& setup_;
  FieldMemory memory_;
  std::unique_ptr<Block> block_;  // device: null if no field needs it
  std::byte* decoded_memory_ = nullptr;
  std::byte* pixels_ = nullptr;
  std::byte* between_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::vector<const std::byte*> decoded_;  // scratch, like the others
  std::vector<const std::byte*> rows_;
  std::vector<SampleCrop> whole_;
  std::vector<SampleSize> sizes_;
  std::vector<SampleBox> boxes_;
};

}  // namespace shard
