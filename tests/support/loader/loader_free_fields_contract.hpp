// What every device must keep with further image fields of samples of any size, and with images that are not
// u8 of up to four channels; part of the loader's contract (loader_contract.hpp).
#pragma once

#include <functional>

#include "support/loader/loader_free_contract.hpp"
#include "support/transform/plain_values.hpp"

namespace shard::testing {

// Masks of both dtypes, depth of both, and a second camera.
inline std::vector<FieldSpec> free_fields(CodecSpec::Kind codec) {
  const CodecSpec bytes{codec};
  const CodecSpec others{codec == CodecSpec::Kind::packed ? CodecSpec::Kind::none : codec};
  const Normalization none = plain_normalization(3);
  return {{"mask", FieldRole::mask, {DType::u8, Layout::nhwc, 1, 0, 0}, none, bytes},
          {"classes", FieldRole::mask, {DType::u16, Layout::nchw, 1, 0, 0}, none, others},
          {"depth", FieldRole::image, {DType::u16, Layout::nhwc, 1, 0, 0}, none, others},
          {"disparity", FieldRole::image, {DType::f32, Layout::nchw, 2, 0, 0}, none, others},
          {"camera", FieldRole::image, {DType::u8, Layout::nchw, 3, 0, 0}, none, bytes}};
}
inline constexpr std::array<const char*, 5> kFreeFields{"mask", "classes", "depth", "disparity", "camera"};

inline void deliver_free_fields(LoaderOptions& options) {
  options.fields["mask"].fill = 255;
  options.fields["classes"].fill = 60'000;
  for (const char* const name : {"depth", "disparity", "camera"})
    options.fields[name].sampling = FieldSampling::bilinear;
  options.fields["depth"].fill = 7;
  options.fields["disparity"].fill = -2;
  options.fields["camera"].fill = 9;
}

// A tensor of a batch in host memory.
inline std::vector<std::byte> tensor_bytes(Device& device, const Batch& batch, const TensorView& tensor) {
  std::vector<std::byte> bytes(tensor.size_bytes());
  const auto stream = device.create_stream();
  batch.wait_on(*stream);
  const CopyItem item{bytes.data(), tensor.data, bytes.size()};
  if (!bytes.empty()) stream->copy_to_host({&item, 1});
  stream->synchronize();
  return bytes;
}

// Row `row` of a tensor of samples of `spec` is what is expected, [channel][row][column], but for
// `tolerance`.
inline void expect_values(const SampleSpec& spec, const std::vector<std::byte>& tensor, std::size_t row,
                          const std::vector<double>& expected, double tolerance) {
  const auto begin = tensor.begin() + static_cast<std::ptrdiff_t>(row * spec.size_bytes());
  const std::vector<double> found =
      planes_of(spec, {begin, begin + static_cast<std::ptrdiff_t>(spec.size_bytes())});
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double bound = spec.dtype == DType::u16 && tolerance > 0 ? std::max(tolerance, 0.52) : tolerance;
    ASSERT_NEAR(found[i], expected[i], bound) << "element " << i;
  }
}

// The fields of all batches of an epoch are what plain loops make of the crops that the images have.
// `view_of`: the view of a sample.
inline void expect_free_fields(Device& device, Loader& loader, const FreeShape& shape,
                               const LoaderOptions& options, std::uint64_t epoch) {
  std::vector<int> times(40, 0);
  loader.start_epoch(epoch);
  while (std::optional<Batch> batch = loader.next()) {
    const SampleSpec spec = batch->spec();
    for (const FieldSpec& field : shape.fields) {
      const TensorView tensor = batch->field(field.name);
      const FieldOptions& asked = options.fields.at(field.name);
      SampleSpec delivered = field.spec.sized(spec.height, spec.width);
      std::vector<std::uint64_t> expected_shape{batch->size()};
      if (field.role == FieldRole::mask)
        expected_shape.insert(expected_shape.end(), {spec.height, spec.width});
      else
        for (const std::uint32_t extent : delivered.shape()) expected_shape.push_back(extent);
      ASSERT_EQ(tensor.shape, expected_shape) << field.name;
      const std::vector<std::byte> bytes = tensor_bytes(device, *batch, tensor);
      for (std::size_t i = 0; i < batch->size(); ++i) {
        const std::uint64_t id = batch->ids()[i];
        SCOPED_TRACE(field.name + " of sample " + std::to_string(id));
        TransformOptions view = options.transform;
        if (!options.buckets.empty()) {
          view.resize = ResizeKind::cover;
          view.resize_height = spec.height;
          view.resize_width = spec.width;
        }
        const SampleSize size = free_size(id);
        const SampleSpec sized = field.spec.sized(size.height, size.width);
        SampleCrop crop = draw_crop(sized, view, 7, epoch, id);
        if (view.padded != 0) place_padded(crop, spec.width);
        const bool nearest = asked.sampling == FieldSampling::nearest;
        const auto expected =
            plain_values(sized, free_field(field, id), crop, spec.height, spec.width,
                         nearest ? std::nullopt : std::optional(ResizeFilter::bilinear), asked.fill);
        // Bytes are rounded after the columns and after the rows.
        const double tolerance = nearest ? 0 : field.spec.dtype == DType::u8 ? 1.1 : 1e-5;
        expect_values(delivered, bytes, i, expected, tolerance);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    for (const std::uint64_t id : batch->ids()) ++times[id];
  }
  EXPECT_EQ(times, std::vector<int>(40, 1));
}

inline std::vector<CodecSpec> codecs_of_fields() {
  return {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd}, CodecSpec{CodecSpec::Kind::packed}};
}

// Of all combinations every twenty-ninth, so that each view meets several codecs and transports.
TEST_P(LoaderContract, MovesFieldsOfAnySizeWithTheirImages) {
  std::size_t combination = 0;
  for (const CodecSpec& codec : codecs_of_fields()) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    shape.fields = free_fields(codec.kind);
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    for (const auto& [name, view] : views_of_any_size())
      for (const TransportKind kind : all_transports(dir.path())) {
        if (combination++ % 29 != 0) continue;
        if (kind == TransportKind::mapped && codec.kind == CodecSpec::Kind::zstd) continue;
        SCOPED_TRACE(name + ", " + to_string(codec) + ", " + std::string(to_string(kind)));
        LoaderOptions options = free_options(view);
        options.transport = kind;
        deliver_free_fields(options);
        Loader loader(data, device_, options);
        expect_free_fields(*device_, loader, shape, options, 0);
        if (HasFatalFailure()) return;
      }
  }
}

// Buckets and padded batches, whose sizes differ.
TEST_P(LoaderContract, MovesFieldsOfAnySizeInBatchesOfAnySize) {
  for (const CodecSpec& codec : codecs_of_fields()) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    shape.fields = free_fields(codec.kind);
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(to_string(codec) + (padded ? ", padded" : ", buckets"));
      LoaderOptions options = padded ? free_options({}) : bucket_options();
      options.transform.flip = 0.5;
      options.transform.padded = padded ? 8 : 0;
      deliver_free_fields(options);
      Loader loader(data, device_, options);
      expect_free_fields(*device_, loader, shape, options, 1);
      if (HasFatalFailure()) return;
      EXPECT_EQ(loader.stats().device_bytes, plan_memory(data, *device_, options).device_bytes);
    }
  }
}

// All that a batch has of its fields.
inline std::vector<std::byte> all_fields(Device& device, Loader& loader, std::uint64_t epoch) {
  std::vector<std::byte> all;
  for (Batch& batch : loader.epoch(epoch))
    for (std::size_t view = 0; view < batch.views(); ++view)
      for (const char* const name : kFreeFields) {
        const auto bytes = tensor_bytes(device, batch, batch.field(name, view));
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
  return all;
}

// Operations, cutmix and several views, in room for one or two samples and in room for all; planned memory is
// what is allocated. Each codec by staging and by another transport.
TEST_P(LoaderContract, MakesTheSameFieldsOfAnySizeWhateverTheRoom) {
  for (const CodecSpec& codec : codecs_of_fields()) {
    TempDir dir;
    FreeShape shape;
    shape.codec = codec;
    shape.shards = {13, 11};
    shape.fields = free_fields(codec.kind);
    write_free_dataset(dir.path(), shape);
    const Dataset data = Dataset::open(dir.path());
    LoaderOptions options = free_options(views_of_any_size()[0].second);
    options.tail = Tail::drop;
    options.verify = Verify::always;
    ops::Affine turn;
    turn.degrees = {-30, 30};
    options.transform.operations = {ops::Invert{0.5}, turn};
    deliver_free_fields(options);
    options.fields["disparity"].dtype = DType::f16;
    for (const bool mixed : {false, true}) {
      if (mixed && codec.kind != CodecSpec::Kind::packed) continue;
      options.further_views.clear();
      options.mix = {};
      if (mixed) {
        options.mix.cutmix = 1;
        for (const char* const name : {"depth", "disparity", "camera"})
          options.fields[name].sampling = FieldSampling::nearest;
      } else {
        options.further_views = {views_of_any_size()[6].second, views_of_any_size()[3].second};
      }
      std::vector<std::byte> first;
      const TransportKind other = codec.kind == CodecSpec::Kind::zstd   ? all_transports(dir.path()).back()
                                  : codec.kind == CodecSpec::Kind::none ? link_transports(dir.path()).back()
                                                                        : TransportKind::mapped;
      for (const TransportKind kind : {TransportKind::staged, other})
        for (const std::uint64_t room : {std::uint64_t{0}, 2 * data.info().largest().sample_bytes}) {
          if (room == 0 && kind != TransportKind::staged) continue;
          SCOPED_TRACE(to_string(codec) + (mixed ? ", mixed, " : ", views, ") + std::string(to_string(kind)));
          options.memory.batch_bytes = room;
          options.transport = kind;
          Loader loader(data, device_, options);
          const std::vector<std::byte> seen = all_fields(*device_, loader, 1);
          if (first.empty()) first = seen;
          ASSERT_FALSE(seen.empty());
          EXPECT_TRUE(seen == first);
          if (kind == TransportKind::resident) continue;
          const LoaderMemory plan = plan_memory(data, *device_, options);
          EXPECT_EQ(loader.stats().device_bytes, plan.device_bytes);
          EXPECT_GE(loader.stats().pinned_bytes, plan.pinned_bytes);
        }
    }
  }
}

// Images whose values are not bytes of up to four channels.
TEST_P(LoaderContract, ViewsSamplesOfAnySizeOfOtherDTypesAndManyChannels) {
  const std::vector<SampleSpec> specs{
      {DType::u16, Layout::nhwc, 1, 0, 0}, {DType::u16, Layout::nchw, 3, 0, 0},
      {DType::f16, Layout::nhwc, 3, 0, 0}, {DType::f32, Layout::nchw, 2, 0, 0},
      {DType::u8, Layout::nhwc, 5, 0, 0},  {DType::u8, Layout::nchw, 6, 0, 0},
      {DType::f32, Layout::nhwc, 7, 0, 0}};
  std::size_t combination = 0;
  for (const SampleSpec& spec : specs)
    for (const CodecSpec& codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd}}) {
      TempDir dir;
      FreeShape shape;
      shape.spec = spec;
      shape.codec = codec;
      write_free_dataset(dir.path(), shape);
      const Dataset data = Dataset::open(dir.path());
      for (const auto& [name, asked] : views_of_any_size())
        for (const TransportKind kind : all_transports(dir.path())) {
          if (combination++ % 61 != 0) continue;
          if (kind == TransportKind::mapped && codec.kind == CodecSpec::Kind::zstd) continue;
          SCOPED_TRACE(name + ", " + std::string(to_string(spec.dtype)) + ", " + to_string(codec) + ", " +
                       std::string(to_string(kind)));
          TransformOptions view = asked;
          view.fill.clear();
          LoaderOptions options = free_options(view);
          options.transport = kind;
          Loader loader(data, device_, options);
          loader.start_epoch(2);
          while (std::optional<Batch> batch = loader.next()) {
            const Seen seen = look(*device_, *batch);
            for (std::size_t i = 0; i < seen.ids.size(); ++i) {
              const SampleSize size = free_size(seen.ids[i]);
              const SampleSpec sized = spec.sized(size.height, size.width);
              const auto expected = plain_values(sized, free_sample(spec, seen.ids[i]),
                                                 draw_crop(sized, view, 7, 2, seen.ids[i]),
                                                 batch->spec().height, batch->spec().width, view.filter, 0);
              std::vector<double> cut = expected;
              const double most = spec.dtype == DType::u8 ? 255 : spec.dtype == DType::u16 ? 65535 : 1e9;
              if (most < 1e9)
                for (double& value : cut) value = std::clamp(value, 0.0, most);
              const double tolerance = spec.dtype == DType::f32   ? 1e-5
                                       : spec.dtype == DType::f16 ? 1e-3
                                                                  : 0.52;
              expect_values(batch->spec(), seen.images, i, cut, tolerance);
              if (HasFatalFailure()) return;
            }
          }
        }
    }
}

TEST_P(LoaderContract, RefusesFieldsOfAnySizeThatCannotFollow) {
  TempDir dir;
  FreeShape shape;
  shape.fields = free_fields(CodecSpec::Kind::none);
  write_free_dataset(dir.path(), shape);
  const Dataset data = Dataset::open(dir.path());
  const auto refuses = [&](ErrorCode code, const char* why,
                           const std::function<void(LoaderOptions&)>& change) {
    LoaderOptions options = free_options(views_of_any_size()[0].second);
    options.fields["mask"] = {};
    change(options);
    EXPECT_SHARD_ERROR(Loader(data, device_, options), code, why);
  };
  refuses(ErrorCode::unsupported, "use nearest or bilinear",
          [](LoaderOptions& o) { o.fields["mask"].sampling = FieldSampling::stored; });
  refuses(ErrorCode::unsupported, "in patches", [](LoaderOptions& o) {
    o.transform = {};
    o.transform.patch = 16;
    o.transform.max_tokens = 16;
  });
  refuses(ErrorCode::invalid_argument, "fill is 256", [](LoaderOptions& o) { o.fields["mask"].fill = 256; });
}

}  // namespace shard::testing
