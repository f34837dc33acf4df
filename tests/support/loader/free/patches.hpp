// Samples of any size as patches; part of the loader's contract.
#pragma once

#include "support/loader/free/support.hpp"

namespace shard::testing {

// What is in the patches of a batch is, pixel by pixel, what plain loops make of the whole samples. `draws`:
// BatchIndices::draws. Data sets of 40 samples may come one after the other.
inline void expect_patches(Device& device, Batch& batch, const FreeShape& shape, const TransformOptions& view,
                           std::uint64_t epoch, const std::vector<std::uint64_t>& draws) {
  const std::uint32_t side = view.patch;
  const auto offsets = host_values<std::int32_t>(batch, "patch_offsets");
  const auto coords = host_values<std::int32_t>(batch, "patch_coords");
  const auto owners = host_values<std::int32_t>(batch, "patch_samples");
  const std::vector<std::uint64_t> ids(batch.ids().begin(), batch.ids().end());
  const TensorView images = batch.images();
  const auto patches = static_cast<std::uint64_t>(offsets.back());
  ASSERT_EQ(images.shape, (std::vector<std::uint64_t>{patches, 3 * side * side}));
  ASSERT_EQ(owners.size(), patches);
  std::vector<std::uint8_t> bytes(images.size_bytes());
  auto stream = device.create_stream();
  batch.wait_on(*stream);
  const CopyItem item{reinterpret_cast<std::byte*>(bytes.data()), images.data, bytes.size()};
  stream->copy_to_host({&item, 1});
  stream->synchronize();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const SampleSpec sized = shape.spec.sized(free_size(ids[i] % 40).height, free_size(ids[i] % 40).width);
    const SampleSize grid = patch_grid(sized, view);
    ASSERT_LE(grid.height * grid.width, view.max_tokens);
    ASSERT_EQ(offsets[i + 1] - offsets[i], static_cast<std::int32_t>(grid.height * grid.width));
    const auto whole =
        plain_view(sized, free_sample(shape.spec, ids[i] % 40), draw_crop(sized, view, 7, epoch, draws[i]),
                   grid.height * side, grid.width * side, view.filter, {});
    for (auto patch = static_cast<std::size_t>(offsets[i]); patch < static_cast<std::size_t>(offsets[i + 1]);
         ++patch) {
      ASSERT_EQ(owners[patch], static_cast<std::int32_t>(i));
      const auto row = static_cast<std::uint32_t>(coords[2 * patch]);
      const auto column = static_cast<std::uint32_t>(coords[2 * patch + 1]);
      ASSERT_EQ(patch - static_cast<std::size_t>(offsets[i]), row * grid.width + column);
      for (std::uint32_t y = 0; y < side; ++y)
        for (std::uint32_t x = 0; x < side; ++x)
          for (std::uint32_t c = 0; c < 3; ++c)
            ASSERT_EQ(bytes[((patch * side + y) * side + x) * 3 + c],
                      whole[(std::size_t{c} * grid.height * side + row * side + y) * grid.width * side +
                            column * side + x])
                << "sample " << ids[i] << ", patch " << row << ", " << column;
    }
  }
}

TEST_P(LoaderContract, DeliversSamplesOfAnySizeAsPatches) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}})
    for (const Layout layout : {Layout::nhwc, Layout::nchw})
      for (const std::uint32_t side : {4U, 7U}) {
        TempDir dir;
        FreeShape shape;
        shape.codec = codec;
        shape.spec.layout = layout;
        write_free_dataset(dir.path(), shape);
        const Dataset data = Dataset::open(dir.path());
        TransformOptions view;
        view.patch = side;
        view.max_tokens = 20;
        view.flip = 0.5;
        LoaderOptions options = free_options(view);
        options.memory.batch_bytes = side == 7 ? data.info().largest().sample_bytes : 0;
        Loader loader(data, device_, options);
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
        std::vector<int> times(40, 0);
        loader.start_epoch(1);
        while (std::optional<Batch> batch = loader.next()) {
          const std::vector<std::uint64_t> ids(batch->ids().begin(), batch->ids().end());
          expect_patches(*device_, *batch, shape, view, 1, ids);
          for (const std::uint64_t id : ids) ++times[id];
        }
        EXPECT_EQ(times, std::vector<int>(40, 1));
      }
}

TEST_P(LoaderContract, RefusesPatchesThatAreNotPossible) {
  TempDir dir;
  write_free_dataset(dir.path(), {});
  const Dataset data = Dataset::open(dir.path());
  const auto refuses = [&](const char* why, auto change) {
    LoaderOptions options = free_options({});
    options.transform.patch = 16;
    options.transform.max_tokens = 64;
    change(options);
    EXPECT_SHARD_ERROR(Loader(data, device_, options), ErrorCode::invalid_argument, why);
  };
  refuses("they go together", [](LoaderOptions& o) { o.transform.max_tokens = 0; });
  refuses("1 to 256", [](LoaderOptions& o) { o.transform.patch = 257; });
  refuses("leave layout out", [](LoaderOptions& o) { o.transform.layout = Layout::nchw; });
  refuses("leave crop", [](LoaderOptions& o) { o.transform.padded = 8; });
  refuses("use turns 2", [](LoaderOptions& o) {
    ops::Turns turns;
    turns.p = 1;
    o.transform.operations = {turns};
  });
  refuses("no common pixels to mix", [](LoaderOptions& o) {
    o.mix.mixup = 1;
    o.tail = Tail::drop;
  });
  refuses("correspondence", [](LoaderOptions& o) { o.correspondence = true; });
  refuses("lower batch_size", [](LoaderOptions& o) {
    o.batch_size = 65'536;
    o.transform.max_tokens = 65'536;
  });
}

}  // namespace shard::testing
