// Each sample of any size becomes a view of one size; part of the loader's contract.
#pragma once

#include "support/loader/free/support.hpp"

namespace shard::testing {

// Of all combinations every thirteenth, so that each view meets several codecs, layouts and transports.
TEST_P(LoaderContract, ViewsSamplesOfAnySizeByTheirOwnSize) {
  std::size_t combination = 0;
  for (const CodecSpec& codec :
       {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd}, CodecSpec{CodecSpec::Kind::packed}})
    for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
      TempDir dir;
      FreeShape shape;
      shape.codec = codec;
      shape.spec.layout = layout;
      write_free_dataset(dir.path(), shape);
      const Dataset data = Dataset::open(dir.path());
      for (const auto& [name, view] : views_of_any_size())
        for (const TransportKind kind : all_transports(dir.path())) {
          if (combination++ % 13 != 0) continue;
          SCOPED_TRACE(name + ", " + to_string(codec) + ", " + std::string(to_string(kind)));
          LoaderOptions options = free_options(view);
          options.transport = kind;
          if (kind == TransportKind::mapped && codec.kind == CodecSpec::Kind::zstd) continue;
          Loader loader(data, device_, options);
          expect_views_of_free(*device_, loader, shape, view, 0);
          if (HasFatalFailure()) return;
        }
    }
}

TEST_P(LoaderContract, RefusesViewsThatDoNotMakeOneSize) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  const auto refuses = [&](const TransformOptions& view, const char* why) {
    EXPECT_SHARD_ERROR(Loader(data, device_, free_options(view)), ErrorCode::invalid_argument, why);
  };
  TransformOptions view;
  refuses(view, "any size");
  view.flip = 0.5;
  refuses(view, "any size");
  view.resize = ResizeKind::shortest;
  view.resize_height = view.resize_width = 8;
  refuses(view, "add a crop");
  view.crop = CropKind::random_resized;
  view.crop_height = view.crop_width = 8;
  refuses(view, "leave one out");
  view.crop = CropKind::center;
  view.resize_width = 9;
  refuses(view, "given twice");
  view.resize = ResizeKind::letterbox;
  refuses(view, "leave crop out");
  view = {};
  view.resize = ResizeKind::letterbox;
  view.resize_height = view.resize_width = 8;
  view.fill = {1, 2};
  refuses(view, "fill has 2 values");
  view.fill = {};
  view.resize_height = 0;
  refuses(view, "must be 1 to 8192");
  view = {};
  view.padded = 8;
  ops::Turns turns;
  turns.p = 1;
  view.operations = {turns};
  refuses(view, "use turns 2");
  view.operations = {};
  view.resize = ResizeKind::squash;
  view.resize_height = view.resize_width = 8;
  refuses(view, "leave crop out, and resize but for longest");
}

}  // namespace shard::testing
