// LoaderState as text, and the views in it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fields/view_text.hpp"
#include "shard/loader/order.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

TEST(LoaderState, ReadsWhatItWrote) {
  const LoaderState state{UINT64_MAX, 3, 12'345, 1'281'167, 1024, 8, UINT64_MAX, UINT64_MAX, UINT64_MAX};
  const std::string text = state.serialize();
  EXPECT_LT(text.size(), 180U);
  EXPECT_EQ(LoaderState::parse(text), state);
  EXPECT_EQ(LoaderState::parse(LoaderState{}.serialize()), LoaderState{});
}

// A text of views with one of each kind of member, as it is written by version 1.
constexpr const char* kViewsText =
    "1 1 3 224 200 0.08 1 0.75 1.3333333333333333 0.5 + 5 + 0 + 3 0.5 0.25 0.125 3 1 2 4 2 "
    "color_jitter + 0.6 1.4 - - + -0.1 0.1 1 0.8 affine -10 10 0 0.1 1 1 0 0 0 0 1 - 1";

TEST(LoaderState, HasTheViewsAsText) {
  LoaderState state{1, 2, 3, 4, 5, 6, 7, 8, 9};
  state.views = kViewsText;
  EXPECT_EQ(state.serialize(), fmt::format("shard-loader 4 1 2 3 4 5 6 7 8 9 views {}", kViewsText));
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  state.next_views = kViewsText;
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  state.views.clear();
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
}

TEST(LoaderState, SaysWhichImagesItIsOf) {
  LoaderState state{1, 2, 3, 4, 5, 6, 7, 8, 9};
  state.inputs = 0xFEDCU;
  EXPECT_EQ(state.serialize(), "shard-loader 4 1 2 3 4 5 6 7 8 9 inputs 000000000000fedc");
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  state.views = kViewsText;
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  EXPECT_EQ(LoaderState::parse("shard-loader 4 1 2 3 4 5 6 7 8 9").inputs, 0U);
  for (const char* inputs : {"", "fedc", "000000000000fedg", "000000000000fedc ", "000000000000fedc 1"})
    EXPECT_SHARD_ERROR(LoaderState::parse(fmt::format("shard-loader 4 1 2 3 4 5 6 7 8 9 inputs {}", inputs)),
                       ErrorCode::invalid_argument, "is not a loader state");
}

TEST(LoaderState, ReadsViewsOfVersionOneForEver) {
  const std::vector<TransformOptions> views = views_from_text(kViewsText);
  ASSERT_EQ(views.size(), 1U);
  EXPECT_EQ(views[0].crop, CropKind::random_resized);
  EXPECT_EQ(views[0].crop_width, 200U);
  EXPECT_EQ(views[0].dtype, DType::f16);
  EXPECT_EQ(views[0].layout, Layout::nchw);
  EXPECT_EQ(views[0].normalization, (Normalization{{0.5F, 0.25F, 0.125F}, {1, 2, 4}}));
  ASSERT_EQ(views[0].operations.size(), 2U);
  EXPECT_EQ(std::get<ops::ColorJitter>(views[0].operations[0]).hue, (Range{-0.1, 0.1}));
  EXPECT_EQ(std::get<ops::Affine>(views[0].operations[1]).interpolation, Interpolation::bilinear);
  EXPECT_EQ(views_to_text(views), kViewsText);
}

TEST(LoaderState, HasResizesInVersionTwo) {
  TransformOptions view;
  view.resize = ResizeKind::letterbox;
  view.resize_height = 640;
  view.resize_width = 480;
  view.padded = 7;
  view.patch = 16;
  view.max_tokens = 512;
  view.filter = ResizeFilter::box;
  view.fill = {114, 0, 255};
  const std::string text = views_to_text({view, TransformOptions{}});
  EXPECT_EQ(text.rfind("2 2 4 640 480 7 16 512 2 3 114 0 255 0 0 0 ", 0), 0U) << text;
  const std::vector<TransformOptions> views = views_from_text(text);
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[0].resize, ResizeKind::letterbox);
  EXPECT_EQ(views[0].resize_width, 480U);
  EXPECT_EQ(views[0].padded, 7U);
  EXPECT_EQ(views[0].patch, 16U);
  EXPECT_EQ(views[0].max_tokens, 512U);
  EXPECT_EQ(views[0].filter, ResizeFilter::box);
  EXPECT_EQ(views[0].fill, (std::vector<std::uint8_t>{114, 0, 255}));
  EXPECT_EQ(views_to_text(views), text);
  EXPECT_SHARD_ERROR(views_from_text("2 1 6 640 480 0 0 0 2 0 0 0 0"), ErrorCode::invalid_argument, "0 to 5");
  EXPECT_SHARD_ERROR(views_from_text("2 1 4 640 480 0 0 0 2 1 256 0 0 0"), ErrorCode::invalid_argument,
                     "256");
}

TEST(LoaderState, ReadsTheViewsOfEveryOperationThatItWrote) {
  TransformOptions view;
  view.scale = {0.1, 1.0 / 3};
  view.operations = {
      ops::ColorJitter{},
      ops::Grayscale{0.1},
      ops::GaussianBlur{9, {0.1, 0.3}, 0.2},
      ops::Solarize{100.5, 0.3},
      ops::Posterize{3, 0.4},
      ops::Equalize{0.5},
      ops::AutoContrast{0.6},
      ops::Sharpness{{0.1, 0.7}, 0.7},
      ops::Invert{0.8},
      ops::Permute{{{2, 0, 1, 3}}, 0.9},
      ops::Affine{{-5, 5}, {0.1, 0.2}, {0.9, 1.1}, {-1, 1}, {-2, 2}, Interpolation::bilinear, {}, 0.15},
      ops::Rotation{{-30, 60}, Interpolation::bilinear, {{1, 2, 3, 4}}, 0.25},
      ops::Perspective{0.3, Interpolation::nearest, {}, 0.35},
      ops::Erasing{{0.1, 0.2}, {0.5, 2}, {}, 0.45},
      ops::VerticalFlip{0.55},
      ops::Turns{3, 0.65},
      ops::PaddedCrop{7, true, {9, 8, 7, 6}, 0.75},
      ops::RandAugment{3, 7, 21, Interpolation::bilinear, {{5, 5, 5, 5}}, 0.85},
      ops::TrivialAugment{11, Interpolation::bilinear, {}, 0.95},
      ops::AutoAugment{ops::AutoAugmentPolicy::svhn, Interpolation::bilinear, {}, 0.05},
      ops::AugMix{4, 2, 1, 0.7, false, Interpolation::nearest, {}, 0.12},
      ops::ThreeAugment{0.13}};
  for (const Operation& one : all_operations()) view.operations.push_back(shown(one));
  const std::string text = views_to_text({view, TransformOptions{}});
  EXPECT_EQ(views_to_text(views_from_text(text)), text);
  // Each operation has its own words, of which none may be left out by writer and reader alike.
  for (const char* piece :
       {"color_jitter - - - - 1 1 ", "gaussian_blur 9 0.1 0.3 0.2 ", "permute + 2 0 1 3 0.9 ",
        "rotation -30 60 1 + 1 2 3 4 0.25 ", "erasing 0.1 0.2 0.5 2 - 0.45 ", "turns + 3 0.65 ",
        "padded_crop 7 1 9 8 7 6 0.75 ", "rand_augment 3 7 21 1 + 5 5 5 5 0.85 ",
        "trivial_augment 11 1 - 0.95 ", "auto_augment 2 1 - 0.05 ", "aug_mix 4 2 1 0.7 0 0 - 0.12 ",
        "three_augment 0.13 "})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "is not in " << text;
}

TEST(LoaderState, RefusesViewsThatAreNone) {
  const std::string good = kViewsText;
  const std::string state = "shard-loader 4 1 2 3 4 5 6 7 8 9 views ";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return state + text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {state, state + "1", state + "1 0", state + "1 4294967295", state + "1 99999999999999999999",
        state + good + " 7", state + good + " next ", state + good + " next 1 0",
        changed("color_jitter", "color_jit"), changed("+ 5", "+ 13"), changed("+ 5", "= 5"),
        changed("1 1 3 224", "1 1 4 224"), changed("1 1 3", "1  1 3"), changed("0.08", "0.08x"),
        changed("3 0.5 0.25", "9999999 0.5 0.25")})
    EXPECT_SHARD_ERROR(LoaderState::parse(bad), ErrorCode::invalid_argument, "the views of a loader state");
  EXPECT_SHARD_ERROR(LoaderState::parse(changed("1 1 3 224", "3 1 3 224")), ErrorCode::invalid_argument,
                     "version 1");
  for (std::size_t end = 0; end + 1 < good.size();
       ++end)  // but for the end, where "1" of "1" cannot be missing
    EXPECT_SHARD_ERROR(views_from_text(std::string_view(good).substr(0, end)), ErrorCode::invalid_argument,
                       "");
}

TEST(LoaderState, RefusesOtherTexts) {
  const std::string good = LoaderState{1, 2, 3, 4, 5, 6, 7, 8, 9}.serialize();
  EXPECT_EQ(good, "shard-loader 4 1 2 3 4 5 6 7 8 9");
  // Of earlier versions: without views; a whole data set.
  EXPECT_EQ(LoaderState::parse("shard-loader 3 1 2 3 4 5 6 7 8 9"), LoaderState::parse(good));
  EXPECT_EQ(LoaderState::parse("shard-loader 2 1 2 3 4 5 6 7 8"), (LoaderState{1, 2, 3, 4, 5, 6, 7, 8, 0}));
  for (const std::string& bad :
       {std::string(), std::string("shard-loader"), std::string("shard-loader 2"),
        std::string("shard-loader 3 1 2 3 4 5 6 7 8"), std::string("shard-loader 2 1 2 3 4 5 6 7 8 9"),
        std::string("shard-loader 5 1 2 3 4 5 6 7 8 9"), good + " ", good + "x", good + " 9",
        good.substr(0, good.size() - 2), std::string("shard-loader 2 1 2 3 4 5 0 7 8"),
        std::string("shard-loader 2 1 2 3 4 5 4294967296 7 8"),
        std::string("shard-loader 2 -1 2 3 4 5 6 7 8"),
        std::string("shard-loader 2 1 2 3 4 5 99999999999999999999999 7 8"),
        std::string("shard-loader 2 1  2 3 4 5 6 7 8"), std::string("shard-loader 21 2 3 4 5 6 7 8")})
    EXPECT_SHARD_ERROR(LoaderState::parse(bad), ErrorCode::invalid_argument, "is not a loader state");
  EXPECT_SHARD_ERROR(LoaderState::parse("shard-loader 1 1 2 3 4 5 6"), ErrorCode::invalid_argument,
                     "earlier version");
}

}  // namespace
}  // namespace shard
