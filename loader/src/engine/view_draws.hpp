// What was drawn for each view of a batch: crops and programs, and the steps of them that targets follow.
#pragma once

#include <cstdint>
#include <future>
#include <span>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "fields/drawn_steps.hpp"
#include "setup/loader_setup.hpp"

namespace shard {

// Of the batch in a slot. Its memory is used again for the next one.
class ViewDraws {
 public:
  ViewDraws() = default;
  ViewDraws(const ViewDraws&) = delete;
  ViewDraws& operator=(const ViewDraws&) = delete;

  // What a batch is drawn for. All that it names must not change before finish().
  struct Drawing {
    const LoaderSetup& setup;
    std::uint64_t epoch = 0;
    std::span<const std::uint64_t> draws;  // BatchIndices::draws
    std::span<const SampleSize> shapes;    // of samples of any size; else empty
    std::span<const BatchView> views;      // of this batch
  };
  // Starts on the threads of the pool, while the feeder goes on: operations cost 0.3 us a view, of the 2 us
  // in which a quick GPU makes a sample. Draws at once what costs less than to wake a thread. This object
  // must outlive the pool.
  void start(const Drawing& drawing, ThreadPool& pool);
  // Waits for what was started.
  void finish();

  // After finish(): sets crops and programs of a transform of rows [first, first + rows).
  void describe(std::size_t view, std::size_t first, std::size_t rows, TransformWork& work) const;
  // After finish(): of every view.
  std::vector<DrawnSteps> steps() const;

 private:
  // As in TransformWork and TargetWork.
  struct View {
    std::vector<SampleCrop> crops;
    std::vector<Instruction> instructions;
    std::vector<std::uint32_t> begins;
    std::vector<Instruction> steps;
    std::vector<std::uint32_t> step_begins;
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    bool padded = false;
  };
  // Programs of some samples of a batch in one view, and where each of them ends.
  struct Piece {
    std::vector<Instruction> instructions;
    std::vector<std::uint32_t> ends;
  };
  void draw_piece(const Drawing& drawing, std::size_t piece);
  static void join(std::span<const Piece> pieces, View& view);
  static void choose_steps(View& view);

  std::vector<View> views_;
  std::vector<std::vector<Piece>> pieces_;  // by view
  std::size_t piece_ = 1;                   // samples
  bool started_ = false;
  std::future<void> drawn_;  // valid: threads draw
  bool targets_ = false;
};

}  // namespace shard
