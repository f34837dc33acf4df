#include "shard/image/preprocess.hpp"

#include <fmt/core.h>

#include "image/jpeg.hpp"
#include "image/normalize.hpp"
#include "image/resample.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

// Rows into one buffer of bytes, height x width x 3.
class ImageSink final : public RowSink {
 public:
  ImageSink(std::uint8_t* rows, std::size_t row_bytes) : rows_(rows), row_bytes_(row_bytes) {}
  std::uint8_t* begin_row(std::uint32_t y) override { return rows_ + y * row_bytes_; }
  void end_row(std::uint32_t) override {}

 private:
  std::uint8_t* rows_;
  std::size_t row_bytes_;
};

// Rows into a sample, by way of one row that stays in cache.
class SampleSink final : public RowSink {
 public:
  SampleSink(const RowWriter& writer, std::uint8_t* row, std::byte* sample)
      : writer_(writer), row_(row), sample_(sample) {}
  std::uint8_t* begin_row(std::uint32_t) override { return row_; }
  void end_row(std::uint32_t y) override { writer_.write(row_, y, sample_); }

 private:
  const RowWriter& writer_;
  std::uint8_t* row_;
  std::byte* sample_;
};

const PreprocessOptions& checked(const PreprocessOptions& options) {
  options.check();
  return options;
}

}  // namespace

struct Preprocessor::Impl {
  explicit Impl(const PreprocessOptions& given)
      : options(checked(given)),
        spec(options.sample_spec()),
        writer(spec.dtype, spec.layout, options.normalization, Size{spec.width, spec.height}),
        row(std::size_t{spec.width} * 3) {}

  void check_out(std::span<std::byte> out) const {
    if (out.size() != spec.size_bytes()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("out has {} bytes, a sample {}: give a span of the sample's size", out.size(),
                              spec.size_bytes()));
    }
  }

  // Sets up the resampler for a whole image of this size.
  const Box& start(Size source, RowSink& sink) {
    const Size resized = resized_size(source, options);
    resampler.start(source, resized, crop_box(resized, options), options.filter, sink);
    return resampler.source_box();
  }

  void resize(const RgbView& source, RowSink& sink) {
    const Box& box = start({source.width, source.height}, sink);
    resampler.push(source.data + box.top * source.stride_bytes + std::size_t{box.left} * 3,
                   source.stride_bytes, box.height);
  }

  // The image that `reader` has opened: each few rows are resized while they are in cache.
  void resize(JpegReader& reader, Size source, RowSink& sink) {
    reader.start(start(source, sink));
    for (RgbView rows = reader.read_rows(kMaxBatchRows); rows.height > 0;
         rows = reader.read_rows(kMaxBatchRows)) {
      resampler.push(rows.data, rows.stride_bytes, rows.height);
    }
    reader.finish();
  }

  // Calls `work` with the sink that makes a sample at `out`.
  template <class Work>
  void into_sample(std::span<std::byte> out, const Work& work) {
    if (spec.dtype == DType::u8 && spec.layout == Layout::nhwc) {
      ImageSink sink(reinterpret_cast<std::uint8_t*>(out.data()), std::size_t{spec.width} * 3);
      work(sink);
    } else {
      SampleSink sink(writer, row.data(), out.data());
      work(sink);
    }
  }

  PreprocessOptions options;
  SampleSpec spec;
  RowWriter writer;
  Resampler resampler;
  JpegReader jpeg;
  std::vector<std::uint8_t> row;
  std::vector<std::uint8_t> image;  // of resize_crop
};

Preprocessor::Preprocessor(const PreprocessOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Preprocessor::Preprocessor(Preprocessor&&) noexcept = default;
Preprocessor& Preprocessor::operator=(Preprocessor&&) noexcept = default;
Preprocessor::~Preprocessor() = default;

const PreprocessOptions& Preprocessor::options() const noexcept { return impl_->options; }

RgbView Preprocessor::resize_crop(const RgbView& source) {
  const std::size_t row_bytes = std::size_t{impl_->spec.width} * 3;
  impl_->image.resize(row_bytes * impl_->spec.height);
  ImageSink sink(impl_->image.data(), row_bytes);
  impl_->resize(source, sink);
  return {impl_->image.data(), impl_->spec.width, impl_->spec.height, row_bytes};
}

void Preprocessor::run(const RgbView& source, std::span<std::byte> out) {
  impl_->check_out(out);
  impl_->into_sample(out, [&](RowSink& sink) { impl_->resize(source, sink); });
}

void Preprocessor::run_file(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& decode,
                            std::span<std::byte> out) {
  impl_->check_out(out);
  if (detect_format(file) == Format::jpeg) {
    const JpegHeader& header = impl_->jpeg.open(file, decode);
    // Coefficients of a turned image are not those of the stored one turned: it is decoded whole and set
    // upright first.
    if (header.orientation == 1) {
      const Size size{header.width, header.height};
      impl_->into_sample(out, [&](RowSink& sink) { impl_->resize(impl_->jpeg, size, sink); });
      return;
    }
  }
  run(decoder.decode(file, decode), out);
}

}  // namespace shard::image
