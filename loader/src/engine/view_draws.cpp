#include "engine/view_draws.hpp"

#include <algorithm>
#include <utility>

#include "fields/views.hpp"
#include "shard/loader/geometry.hpp"

namespace shard {

namespace {

// Samples that a thread draws for at once: 5 to 15 us of work, because to wake a thread costs the feeder 1 to
// 2 us. Operations take 0.3 us a view and more, a random-resized crop 0.08, other crops 0.03.
std::size_t piece_of(std::span<const BatchView> views) noexcept {
  std::size_t piece = 256;
  for (const BatchView& view : views) {
    if (!view.options->operations.empty()) return 16;
    if (view.options->crop == CropKind::random_resized) piece = 128;
  }
  return piece;
}

}  // namespace

void ViewDraws::start(const Drawing& drawing, ThreadPool& pool) {
  finish();  // of a batch that failed
  targets_ = drawing.setup.targets;
  const std::size_t samples = drawing.draws.size();
  piece_ = piece_of(drawing.views);
  const std::size_t pieces = (samples + piece_ - 1) / piece_;
  views_.resize(drawing.views.size());
  pieces_.resize(views_.size());
  for (std::size_t view = 0; view < views_.size(); ++view) {
    views_[view].crops.resize(samples);
    views_[view].height = drawing.views[view].delivered.height;
    views_[view].width = drawing.views[view].delivered.width;
    views_[view].padded = drawing.views[view].options->padded != 0;
    pieces_[view].resize(pieces);
  }
  if (pieces == 1)
    draw_piece(drawing, 0);
  else
    submit_rows(pool, pieces, drawn_, [this, drawing](std::size_t piece) { draw_piece(drawing, piece); });
  started_ = true;
}

void ViewDraws::draw_piece(const Drawing& drawing, std::size_t piece) {
  const std::size_t first = piece * piece_;
  const std::size_t last = std::min(first + piece_, drawing.draws.size());
  const std::uint64_t loader_seed = drawing.setup.options.seed;
  for (std::size_t number = 0; number < views_.size(); ++number) {
    const TransformOptions* const options = drawing.views[number].options;
    const SampleSpec& delivered = drawing.views[number].delivered;
    const SampleSpec& all = drawing.setup.transforms[number].stored;
    const std::uint64_t seed = crop_seed(loader_seed, number);
    Piece& drawn = pieces_[number][piece];
    drawn.instructions.clear();
    drawn.ends.clear();
    for (std::size_t i = first; i < last; ++i) {
      const std::uint64_t draw = drawing.draws[i];
      const SampleSpec stored =
          drawing.shapes.empty() ? all : all.sized(drawing.shapes[i].height, drawing.shapes[i].width);
      SampleCrop& crop = views_[number].crops[i];
      crop = draw_crop(stored, *options, seed, drawing.epoch, draw);
      if (options->padded != 0) place_padded(crop, delivered.width);
      if (options->operations.empty()) continue;
      const bool own = options->padded != 0 || options->patch != 0;
      const SampleSpec pixels = own ? delivered.sized(crop.resized_height, crop.resized_width) : delivered;
      draw_program(pixels, options->operations, loader_seed, drawing.epoch, draw,
                   static_cast<std::uint32_t>(number), drawn.instructions);
      drawn.ends.push_back(static_cast<std::uint32_t>(drawn.instructions.size()));
    }
  }
}

void ViewDraws::join(std::span<const Piece> pieces, View& view) {
  view.instructions.clear();
  view.begins.clear();
  for (const Piece& piece : pieces) {
    if (piece.ends.empty()) continue;  // a view without operations
    if (view.begins.empty()) view.begins.push_back(0);
    const auto begin = static_cast<std::uint32_t>(view.instructions.size());
    for (const std::uint32_t end : piece.ends) view.begins.push_back(begin + end);
    view.instructions.insert(view.instructions.end(), piece.instructions.begin(), piece.instructions.end());
  }
}

void ViewDraws::choose_steps(View& view) {
  view.steps.clear();
  view.step_begins.assign(1, 0);
  const std::span<const Instruction> all(view.instructions);
  for (std::size_t i = 0; i < view.crops.size(); ++i) {
    if (!view.begins.empty())
      append_geometric(all.subspan(view.begins[i], view.begins[i + 1] - view.begins[i]), view.steps);
    view.step_begins.push_back(static_cast<std::uint32_t>(view.steps.size()));
  }
}

void ViewDraws::finish() {
  if (!std::exchange(started_, false)) return;
  if (drawn_.valid()) drawn_.get();
  for (std::size_t view = 0; view < views_.size(); ++view) {
    join(pieces_[view], views_[view]);
    if (targets_) choose_steps(views_[view]);
  }
}

void ViewDraws::describe(std::size_t view, std::size_t first, std::size_t rows, TransformWork& work) const {
  const View& of = views_[view];
  work.crops = std::span(of.crops).subspan(first, rows);
  work.instructions = of.instructions;
  work.begins = of.begins;
  if (!of.begins.empty()) work.begins = work.begins.subspan(first, rows + 1);
}

std::vector<DrawnSteps> ViewDraws::steps() const {
  std::vector<DrawnSteps> views;
  for (const View& view : views_)
    views.push_back({view.crops, view.steps, view.step_begins, view.height, view.width, view.padded});
  return views;
}

}  // namespace shard
