// Options that a data set has recorded, and its fingerprint.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "convert/plan/plan.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/convert/writer.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

TEST(ConvertOptions, ComeBackFromTheRecordedPipeline) {
  Options options;
  options.preprocess.squash = image::Size{300, 200};
  options.preprocess.crop = image::Size{100, 90};
  options.preprocess.filter = image::Filter::lanczos;
  options.preprocess.dtype = DType::u8;
  options.preprocess.layout = Layout::nhwc;
  options.fast_decode = true;
  DatasetInfo info;
  info.spec = options.preprocess.sample_spec();
  info.normalization = options.preprocess.normalization;
  info.provenance = provenance_of(options);
  const image::PreprocessOptions back = preprocess_options_from(info);
  EXPECT_EQ(back.squash, options.preprocess.squash);
  EXPECT_EQ(back.crop, options.preprocess.crop);
  EXPECT_EQ(back.filter, options.preprocess.filter);
  EXPECT_EQ(back.sample_spec(), info.spec);
  EXPECT_EQ(decode_options_from(info).fast_min_short_side, 300U);
  EXPECT_EQ(decode_options_from(info).on_warning, image::OnWarning::harmless);
  info.provenance["on_warning"] = "accept";
  EXPECT_EQ(decode_options_from(info).on_warning, image::OnWarning::accept);
  info.provenance["on_warning"] = "guess";
  EXPECT_SHARD_ERROR(decode_options_from(info), ErrorCode::unsupported, "on_warning \"guess\"");
  info.provenance["filter"] = "hamming";
  EXPECT_SHARD_ERROR(preprocess_options_from(info), ErrorCode::unsupported, "filter \"hamming\"");
}

TEST(Preset, IsTrainForStructsAndTextsAlike) {
  const std::vector<ColumnSpec> labels{{"labels", DType::i64, {}}};
  const auto of_text = [](std::initializer_list<std::pair<const std::string_view, std::string>> text) {
    Options options;
    convert::apply(TextOptions(text), options);
    return options;
  };
  const Options train = of_text({{"preset", "train"}});
  EXPECT_EQ(train.preprocess.sample_spec(), (SampleSpec{DType::u8, Layout::nhwc, 3, 256, 256}));
  for (const Options& options : {Options{}, static_cast<const Options&>(WriterOptions{}), of_text({})}) {
    EXPECT_EQ(spec_of(options, labels).fingerprint, spec_of(train, labels).fingerprint);
    EXPECT_EQ(provenance_of(options), provenance_of(train));
    EXPECT_EQ(options.preprocess.normalization, kImagenet);
  }
  EXPECT_EQ(of_text({{"preset", "eval"}}).preprocess.sample_spec(),
            (SampleSpec{DType::f16, Layout::nchw, 3, 224, 224}));
  // Whatever else is said.
  EXPECT_EQ(of_text({{"size", "original"}}).preprocess.dtype, DType::u8);
  EXPECT_EQ(of_text({{"crop", "64"}}).preprocess.layout, Layout::nhwc);
  // A size alone makes no mistake: the preset's crop is at most as large.
  EXPECT_EQ(of_text({{"resize", "224"}}).preprocess.crop, (image::Size{224, 224}));
  EXPECT_EQ(of_text({{"resize", "300"}}).preprocess.crop, (image::Size{256, 256}));
  EXPECT_EQ(of_text({{"preset", "eval"}, {"resize", "240"}}).preprocess.crop, (image::Size{224, 224}));
}

TEST(ConvertFingerprint, ChangesWithEveryOptionThatShapesTheBytes) {
  const std::vector<ColumnSpec> labels{{"labels", DType::i64, {}}};
  std::set<std::string> seen;
  auto add = [&](const std::function<void(Options&)>& change) {
    Options options;
    change(options);
    seen.insert(spec_of(options, labels).fingerprint);
  };
  add([](Options&) {});
  add([](Options& o) { o.preprocess.filter = image::Filter::box; });
  add([](Options& o) { o.preprocess.resize_short = 300; });
  add([](Options& o) { o.preprocess.crop = image::Size{200, 200}; });
  add([](Options& o) { o.preprocess.dtype = DType::bf16; });
  add([](Options& o) { o.preprocess.layout = Layout::nchw; });
  add([](Options& o) { o.preprocess.normalization.mean[1] = 0.25F; });
  add([](Options& o) { o.preprocess.normalization.std[2] = 0.25F; });
  add([](Options& o) { o.codec = {CodecSpec::Kind::zstd, 3}; });
  add([](Options& o) { o.codec = {CodecSpec::Kind::zstd, 4}; });
  add([](Options& o) { o.samples_per_shard = 10; });
  add([](Options& o) { o.fast_decode = true; });
  add([](Options& o) { o.on_warning = image::OnWarning::accept; });
  add([](Options& o) { o.on_warning = image::OnWarning::reject; });
  EXPECT_EQ(seen.size(), 14U);
  Options spelled_out;
  spelled_out.on_warning = image::OnWarning::harmless;
  EXPECT_EQ(spec_of(spelled_out, labels).fingerprint, spec_of(Options{}, labels).fingerprint);
  for (const ColumnSpec& column :
       {ColumnSpec{"x", DType::f32, {}}, ColumnSpec{"x", DType::f32, {4}},
        ColumnSpec{"x", DType::f32, {}, ColumnKind::ragged}, ColumnSpec{"y", DType::f32, {}}})
    seen.insert(spec_of(Options{}, {labels.front(), column}).fingerprint);
  EXPECT_EQ(seen.size(), 18U);
}

}  // namespace
}  // namespace shard::convert
