// Operations on padded samples and on those that become patches; part of the loader's contract.
#pragma once

#include "support/loader/free/support.hpp"

namespace shard::testing {

// Operations of every kind: of tables, colours, neighbours, places, and AugMix, which has copies and sums.
inline std::vector<std::vector<Operation>> operations_of_any_size() {
  ops::ColorJitter jitter;
  jitter.p = 1;
  jitter.contrast = Range{0.4, 1.6};
  jitter.hue = Range{-0.3, 0.3};
  ops::Affine turn;
  turn.p = 1;
  turn.degrees = {-40, 40};
  turn.interpolation = Interpolation::bilinear;
  turn.fill = {200, 100, 50};
  ops::GaussianBlur blur;  // wider than many samples
  blur.p = 1;
  blur.kernel_size = 23;
  ops::PaddedCrop shift;
  shift.p = 1;
  shift.padding = 9;
  shift.reflect = true;
  ops::Perspective perspective;
  perspective.p = 0.7;
  ops::Erasing erasing;
  erasing.p = 0.7;
  ops::VerticalFlip flip;
  flip.p = 0.5;
  ops::Sharpness sharpness;
  sharpness.p = 1;
  sharpness.factor = {1.5, 3};
  return {{jitter, turn, ops::Equalize{1}},
          {blur, shift, ops::AutoContrast{1}, flip},
          {perspective, sharpness, erasing},
          {ops::AugMix{}},
          {ops::RandAugment{}, ops::ThreeAugment{}}};
}

// [row][column][channel] of a sample of any size, after its program.
inline std::vector<std::uint8_t> operated(const FreeShape& shape, const TransformOptions& view,
                                          std::uint64_t epoch, std::uint64_t id, SampleSize& size) {
  const SampleSpec sized = shape.spec.sized(free_size(id).height, free_size(id).width);
  const SampleCrop crop = draw_crop(sized, view, 7, epoch, id);
  size = {crop.resized_height, crop.resized_width};
  const auto planes =
      plain_view(sized, free_sample(shape.spec, id), crop, size.height, size.width, view.filter, {});
  const std::size_t count = std::size_t{size.height} * size.width;
  std::vector<std::uint8_t> pixels(3 * count);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = planes[i % 3 * count + i / 3];
  const SampleSpec own{DType::u8, Layout::nhwc, 3, size.height, size.width};
  std::vector<Instruction> program;
  draw_program(own, view.operations, 7, epoch, id, 0, program);
  run_program(own, program, pixels.data());
  return pixels;
}

// Operations see the pixels of their sample, whatever else is in the batch and around them.
TEST_P(LoaderContract, AppliesOperationsToPaddedSamplesAtTheirOwnSize) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}}) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    for (const auto& operations : operations_of_any_size())
      for (const bool resized : {false, true}) {
        TransformOptions view;
        view.padded = 4;
        view.flip = 0.5;
        view.layout = resized ? Layout::nhwc : Layout::nchw;
        view.fill = {9, 8, 7};
        view.operations = operations;
        if (resized) {
          view.resize = ResizeKind::longest;
          view.resize_height = view.resize_width = 37;
        }
        LoaderOptions options = free_options(view);
        if (resized) options.memory.batch_bytes = data.info().largest().sample_bytes;
        Loader loader(data, device_, options);
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
        std::vector<int> times(40, 0);
        loader.start_epoch(2);
        while (std::optional<Batch> batch = loader.next()) {
          const Seen seen = look(*device_, *batch);
          const SampleSpec spec = batch->spec();
          for (std::size_t i = 0; i < seen.ids.size(); ++i) {
            SampleSize size;
            const auto pixels = operated(shape, view, 2, seen.ids[i], size);
            const std::byte* const got = seen.images.data() + i * spec.size_bytes();
            const std::size_t plane = std::size_t{spec.height} * spec.width;
            for (std::uint32_t y = 0; y < spec.height; ++y)
              for (std::uint32_t x = 0; x < spec.width; ++x)
                for (std::uint32_t c = 0; c < 3; ++c) {
                  const std::size_t pixel = std::size_t{y} * spec.width + x;
                  const std::uint8_t expected = y < size.height && x < size.width
                                                    ? pixels[(std::size_t{y} * size.width + x) * 3 + c]
                                                    : view.fill[c];
                  ASSERT_EQ(std::to_integer<int>(got[resized ? 3 * pixel + c : c * plane + pixel]), expected)
                      << name_of(operations[0]) << ": sample " << seen.ids[i] << " of " << size.height
                      << " x " << size.width << ", row " << y << ", column " << x;
                }
            ++times[seen.ids[i]];
          }
        }
        EXPECT_EQ(times, std::vector<int>(40, 1));
      }
  }
}

// The same before a sample is cut into patches.
TEST_P(LoaderContract, AppliesOperationsToSamplesThatBecomePatches) {
  for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::packed}})
    for (const std::uint32_t side : {4U, 7U}) {
      TempDir dir;
      FreeShape shape;
      shape.codec = codec;
      write_free_dataset(dir.path(), shape);
      const Dataset data = Dataset::open(dir.path());
      for (const auto& operations : operations_of_any_size()) {
        TransformOptions view;
        view.patch = side;
        view.max_tokens = 20;
        view.flip = 0.5;
        view.operations = operations;
        LoaderOptions options = free_options(view);
        options.memory.batch_bytes = side == 7 ? data.info().largest().sample_bytes : 0;
        Loader loader(data, device_, options);
        EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
        loader.start_epoch(1);
        while (std::optional<Batch> batch = loader.next()) {
          const auto offsets = host_values<std::int32_t>(*batch, "patch_offsets");
          const TensorView images = batch->images();
          std::vector<std::uint8_t> bytes(images.size_bytes());
          auto stream = device_->create_stream();
          batch->wait_on(*stream);
          const CopyItem item{reinterpret_cast<std::byte*>(bytes.data()), images.data, bytes.size()};
          stream->copy_to_host({&item, 1});
          stream->synchronize();
          for (std::size_t i = 0; i < batch->size(); ++i) {
            SampleSize size;
            const auto pixels = operated(shape, view, 1, batch->ids()[i], size);
            const std::uint32_t across = size.width / side;
            for (std::uint32_t y = 0; y < size.height; ++y)
              for (std::uint32_t x = 0; x < size.width; ++x)
                for (std::uint32_t c = 0; c < 3; ++c) {
                  const std::size_t patch =
                      static_cast<std::size_t>(offsets[i]) + y / side * across + x / side;
                  ASSERT_EQ(bytes[((patch * side + y % side) * side + x % side) * 3 + c],
                            pixels[(std::size_t{y} * size.width + x) * 3 + c])
                      << name_of(operations[0]) << ": sample " << batch->ids()[i] << ", row " << y
                      << ", column " << x;
                }
          }
        }
      }
    }
}

}  // namespace shard::testing
