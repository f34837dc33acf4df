// Loader::set_views() and states with views, on every device: further tests of LoaderContract.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/loader/loader_contract.hpp"

namespace shard::testing {

using Views = std::vector<TransformOptions>;

inline TransformOptions sized_view(std::uint32_t side, double flip) {
  TransformOptions view;
  view.crop = CropKind::random_resized;
  view.crop_height = view.crop_width = side;
  view.flip = flip;
  return view;
}

// The views of three epochs: larger ones; then two views of another dtype and layout, with operations.
inline std::vector<Views> growing_views() {
  std::vector<Views> epochs{
      {sized_view(5, 0.5)}, {sized_view(9, 0.5)}, {sized_view(11, 0), sized_view(7, 1)}};
  epochs[2][1].dtype = DType::f32;
  epochs[2][1].layout = Layout::nchw;
  epochs[2][1].operations = {
      ops::ColorJitter{Range{0.5, 1.5}, std::nullopt, Range{0.5, 1.5}, Range{-0.1, 0.1}}, ops::RandAugment{},
      ops::Erasing{}};
  return epochs;
}

inline LoaderOptions with_views(LoaderOptions options, const Views& views) {
  options.transform = views.front();
  options.further_views.assign(views.begin() + 1, views.end());
  return options;
}

inline void set_views(Loader& loader, const Views& views) {
  loader.set_views(views.front(), Views(views.begin() + 1, views.end()));
}

// The batches of each epoch, by a loader of its own that was made with the views of the epoch.
inline std::vector<std::vector<Seen>> epochs_of_own_loaders(const std::shared_ptr<Device>& device,
                                                            const Dataset& data,
                                                            const LoaderOptions& options) {
  std::vector<std::vector<Seen>> all;
  for (const Views& views : growing_views()) {
    Loader loader(data, device, with_views(options, views));
    all.push_back(run_epoch(*device, loader, all.size()));
  }
  return all;
}

// The rest of an epoch.
inline std::vector<Seen> take_rest(Device& device, Loader& loader) {
  std::vector<Seen> rest;
  while (auto batch = loader.next()) rest.push_back(look(device, *batch));
  return rest;
}

TEST_P(LoaderContract, ReplacesViewsAtTheStartOfTheNextEpochAndNotBefore) {
  auto data = dataset();
  for (TransportKind kind : all_transports(dir_.path())) {
    LoaderOptions o = options();
    o.transport = kind;
    o.prefetch = 6;  // batches of the next epoch are prepared before the last ones of this epoch are taken
    const auto expected = epochs_of_own_loaders(device_, data, o);
    Loader loader(data, device_, with_views(o, growing_views()[2]));
    set_views(loader, growing_views()[0]);  // before the first epoch
    EXPECT_EQ(loader.delivered().height, 5U);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      loader.start_epoch(epoch);
      std::vector<Seen> seen;
      for (std::size_t b = 0; b < 4; ++b) {
        auto batch = loader.next();
        seen.push_back(look(*device_, *batch));
      }
      if (epoch == 0) set_views(loader, growing_views()[2]);
      if (epoch < 2) set_views(loader, growing_views()[epoch + 1]);  // the last call counts
      const std::vector<Seen> rest = take_rest(*device_, loader);
      seen.insert(seen.end(), rest.begin(), rest.end());
      EXPECT_EQ(seen, expected[epoch]) << "epoch " << epoch << " by " << to_string(kind);
    }
    EXPECT_EQ(loader.delivered(1).dtype, DType::f32);
    const LoaderStats stats = loader.stats();
    EXPECT_EQ(stats.batches, 3 * expected[0].size()) << "counters go on over replaced views";
    EXPECT_GE(stats.bytes, stats.samples * (kind == TransportKind::resident ? 1 : 360));
  }
}

// A state at every batch of three epochs, in loaders that were made with the views of the first one,
// and in two ranks.
TEST_P(LoaderContract, ResumesWithTheViewsOfTheState) {
  auto data = dataset();
  const auto expected = epochs_of_own_loaders(device_, data, options());
  LoaderOptions half = options();
  half.batch_size = 4;
  half.world_size = 2;
  std::vector<std::vector<std::vector<Seen>>> by_rank;
  for (; half.rank < 2; ++half.rank) by_rank.push_back(epochs_of_own_loaders(device_, data, half));
  Loader loader(data, device_, with_views(options(), growing_views()[0]));
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    for (std::size_t b = 0; b <= expected[epoch].size(); ++b) {
      if (b == 2 && epoch < 2) set_views(loader, growing_views()[epoch + 1]);
      const LoaderState state = LoaderState::parse(loader.state().serialize());
      EXPECT_EQ(state, loader.state());
      EXPECT_EQ(state.next_views.empty(), epoch == 2 || b < 2);
      Loader resumed(data, device_, with_views(options(), growing_views()[0]));
      resumed.resume(state);
      EXPECT_EQ(resumed.state(), state);
      const std::vector<Seen> rest(expected[epoch].begin() + static_cast<std::ptrdiff_t>(b),
                                   expected[epoch].end());
      ASSERT_EQ(run_epoch(*device_, resumed, epoch), rest) << "epoch " << epoch << ", batch " << b;
      if (b > 2 && epoch < 2) {
        ASSERT_EQ(run_epoch(*device_, resumed, epoch + 1), expected[epoch + 1]);
      }
      if (b % 5 == 3) {
        for (half.rank = 0; half.rank < 2; ++half.rank) {
          const std::vector<Seen>& whole = by_rank[half.rank][epoch];
          Loader other(data, device_, with_views(half, growing_views()[1]));
          other.resume(state);
          ASSERT_EQ(run_epoch(*device_, other, epoch),
                    std::vector<Seen>(whole.begin() + static_cast<std::ptrdiff_t>(b), whole.end()));
        }
      }
      if (b < expected[epoch].size()) loader.next();
    }
  }
}

TEST_P(LoaderContract, KeepsItsOwnViewsWhereAStateHasNone) {
  auto data = dataset();
  const auto expected = epochs_of_own_loaders(device_, data, options());
  Loader first(data, device_, with_views(options(), growing_views()[0]));
  first.start_epoch(1);
  for (int i = 0; i < 3; ++i) first.next();
  LoaderState state = first.state();
  state.views.clear();
  Loader second(data, device_, with_views(options(), growing_views()[1]));
  second.resume(LoaderState::parse(state.serialize()));
  EXPECT_EQ(run_epoch(*device_, second, 1), std::vector<Seen>(expected[1].begin() + 3, expected[1].end()));
}

TEST_P(LoaderContract, RefusesViewsThatAreNotPossibleAndGoesOnAsBefore) {
  auto data = dataset();
  const auto expected = epochs_of_own_loaders(device_, data, options());
  Loader loader(data, device_, with_views(options(), growing_views()[0]));
  loader.start_epoch(0);
  loader.next();
  Views wrong = growing_views()[2];
  wrong[1].crop = CropKind::center;
  wrong[1].crop_height = 13;
  EXPECT_SHARD_ERROR(set_views(loader, wrong), ErrorCode::invalid_argument, "view 1: ");
  EXPECT_SHARD_ERROR(set_views(loader, wrong), ErrorCode::invalid_argument, "13");
  wrong[1] = sized_view(7, 2);
  EXPECT_SHARD_ERROR(set_views(loader, wrong), ErrorCode::invalid_argument, "view 1: ");
  EXPECT_SHARD_ERROR(set_views(loader, Views(65, sized_view(7, 0))), ErrorCode::invalid_argument,
                     "at most 64");
  LoaderState state = loader.state();
  state.views = "1 1 0 5";
  EXPECT_SHARD_ERROR(loader.resume(state), ErrorCode::invalid_argument, "the views of a loader state");
  EXPECT_EQ(take_rest(*device_, loader), std::vector<Seen>(expected[0].begin() + 1, expected[0].end()));
  EXPECT_EQ(loader.delivered().height, 5U);
}

// The memory of a batch that is held belongs to the views that were.
TEST_P(LoaderContract, BatchesThatAreHeldOutliveTheirViews) {
  auto data = dataset();
  const auto expected = epochs_of_own_loaders(device_, data, options());
  Loader loader(data, device_, with_views(options(), growing_views()[0]));
  std::vector<Batch> held;
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    if (epoch > 0) set_views(loader, growing_views()[epoch]);
    loader.start_epoch(epoch);
    held.push_back(*loader.next());
    held.push_back(*loader.next());
  }
  for (std::size_t i = 0; i < held.size(); ++i)
    EXPECT_EQ(look(*device_, held[i]), expected[i / 2][i % 2]) << i;
}

TEST_P(LoaderContract, ReplacesViewsAfterACancel) {
  auto data = dataset();
  const auto expected = epochs_of_own_loaders(device_, data, options());
  Loader loader(data, device_, with_views(options(), growing_views()[0]));
  loader.start_epoch(0);
  loader.next();
  loader.cancel();
  set_views(loader, growing_views()[1]);
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::cancelled, "cancelled");
  EXPECT_EQ(run_epoch(*device_, loader, 1), expected[1]);
}

}  // namespace shard::testing
