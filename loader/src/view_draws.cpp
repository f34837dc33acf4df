#include "view_draws.hpp"

#include "shard/loader/geometry.hpp"
#include "views.hpp"

namespace shard {

void ViewDraws::draw(const LoaderSetup& setup, std::uint64_t epoch, std::span<const std::uint64_t> draws) {
  views_.resize(setup.transforms.size());
  for (std::size_t number = 0; number < views_.size(); ++number) {
    View& view = views_[number];
    const TransformWork& work = setup.transforms[number];
    const TransformOptions& options = view_options(setup.options, number);
    const bool drawn = options.flip_probability > 0 || options.crop == CropKind::random ||
                       options.crop == CropKind::random_resized;
    if (drawn || view.crops.size() != draws.size()) {  // else the same for every batch
      const std::uint64_t seed = crop_seed(setup.options.seed, number);
      view.crops.clear();
      for (const std::uint64_t draw : draws)
        view.crops.push_back(draw_crop(work.stored, options, seed, epoch, draw));
    }
    view.instructions.clear();
    view.steps.clear();
    view.begins.assign(options.operations.empty() ? 0 : 1, 0);
    view.step_begins.assign(1, 0);
    for (const std::uint64_t draw : draws) {
      const std::size_t before = view.instructions.size();
      if (!options.operations.empty()) {
        draw_program(work.delivered, options.operations, setup.options.seed, epoch, draw,
                     static_cast<std::uint32_t>(number), view.instructions);
        view.begins.push_back(static_cast<std::uint32_t>(view.instructions.size()));
      }
      if (!setup.targets) continue;
      append_geometric(std::span<const Instruction>(view.instructions).subspan(before), view.steps);
      view.step_begins.push_back(static_cast<std::uint32_t>(view.steps.size()));
    }
  }
}

void ViewDraws::describe(std::size_t view, TransformWork& work) const {
  work.crops = views_[view].crops;
  work.instructions = views_[view].instructions;
  work.begins = views_[view].begins;
}

std::vector<DrawnSteps> ViewDraws::steps() const {
  std::vector<DrawnSteps> steps;
  for (const View& view : views_) steps.push_back({view.crops, view.steps, view.step_begins});
  return steps;
}

}  // namespace shard
