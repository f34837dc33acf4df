#include "shard/image/preprocess.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "image/codecs/jpeg.hpp"
#include "image/codecs/png.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/memory_errors.hpp"
#include "image/pixels/pixel_buffer.hpp"
#include "image/pixels/wide_pixels.hpp"
#include "image/preprocess/normalize.hpp"
#include "image/resample/resample.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kPiecePixels = 1 << 14;  // of a very long row, expanded at a time

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

template <class Work>
class AtEnd {
 public:
  explicit AtEnd(Work work) : work_(std::move(work)) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() { work_(); }

 private:
  Work work_;
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
        wide(options.wide() ? std::make_unique<WideWriter>(options) : nullptr),
        writer(wide ? DType::u8 : spec.dtype, spec.layout, options.normalization,
               Size{spec.width, spec.height}),
        made(spec) {}

  // The next sample goes to `out`.
  void use(std::span<std::byte> out) {
    grow = nullptr;
    sample = out;
    if (spec.is_free())
      throw Error(ErrorCode::invalid_argument, "samples of any size: give a vector that may grow");
    if (out.size() != spec.size_bytes()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("out has {} bytes, a sample {}: give a span of the sample's size", out.size(),
                              spec.size_bytes()));
    }
  }

  void use(std::vector<std::byte>& out) {
    grow = &out;
    if (!spec.is_free()) out.resize(static_cast<std::size_t>(spec.size_bytes()));
    sample = out;
  }

  // What becomes of a whole image of this size.
  struct Target {
    Size source;
    Size resized;
    Box box;
  };
  Target target_of(Size source) {
    Target target{source, resized_size(source, options), {}};
    target.box = crop_box(target.resized, options);
    made = spec.is_free() ? spec.sized(target.box.height, target.box.width) : spec;
    return target;
  }

  // Sets up the resampler.
  const Box& start(const Target& target, RowSink& sink) {
    resampler.start(target.source, target.resized, target.box, options.filter, sink);
    return resampler.source_box();
  }

  // Of the next sample: what it takes beside the decoder's memory.
  std::uint64_t own_bytes() const noexcept { return spec.is_free() ? made.size_bytes() : 0; }

  // Takes the memory of the sample, if it was not given.
  void take_sample() {
    if (!spec.is_free()) return;
    made.check();
    grow->resize(static_cast<std::size_t>(made.size_bytes()));
    sample = *grow;
    writer.set_size({made.width, made.height});
  }

  void resize(const RgbView& source, const Target& target, RowSink& sink) {
    const Box& box = start(target, sink);
    resampler.push(source.data + box.top * source.stride_bytes + std::size_t{box.left} * 3,
                   source.stride_bytes, box.height);
  }

  // The image that `reader` has opened: each few rows are resized while they are in cache.
  void resize(JpegReader& reader, const Target& target, RowSink& sink) {
    reader.start(start(target, sink));
    for (RgbView rows = reader.read_rows(kMaxBatchRows); rows.height > 0;
         rows = reader.read_rows(kMaxBatchRows)) {
      resampler.push(rows.data, rows.stride_bytes, rows.height);
    }
    reader.finish();
  }

  // The same without a resize: rows are decoded to where they are stored.
  void copy(JpegReader& reader, const Target& target) {
    take_sample();
    reader.start(target.box);
    const std::size_t stride = std::size_t{made.width} * 3;
    auto* const out = reinterpret_cast<std::uint8_t*>(sample.data());
    for (std::uint32_t y = 0; y < made.height;)
      y += reader.read_rows(out + y * stride, stride, kMaxBatchRows);
    reader.finish();
  }

  // A PNG that is not interlaced, row by row: never the whole image in memory.
  void resize(PngReader& reader, const Target& target, RowSink& sink) {
    const Box box = start(target, sink);
    for (std::uint32_t y = 0; y < box.top; ++y) reader.read_row();
    if (resampler.takes_pieces()) {
      std::uint8_t* piece = png_rows.reserve(std::size_t{kPiecePixels} * 3);
      for (std::uint32_t y = 0; y < box.height; ++y) {
        reader.read_row();
        for (std::uint32_t x = 0; x < box.width; x += kPiecePixels) {
          const std::uint32_t count = std::min(kPiecePixels, box.width - x);
          reader.expand(box.left + x, count, piece);
          resampler.push_piece(piece, count);
        }
      }
    } else {
      const std::size_t stride = std::size_t{box.width} * 3;
      std::uint8_t* rows = png_rows.reserve(stride * kMaxBatchRows);
      for (std::uint32_t y = 0; y < box.height;) {
        const std::uint32_t count = std::min(kMaxBatchRows, box.height - y);
        for (std::uint32_t i = 0; i < count; ++i) {
          reader.read_row();
          reader.expand(box.left, box.width, rows + i * stride);
        }
        resampler.push(rows, stride, count);
        y += count;
      }
    }
    reader.finish();
  }

  WarningSet run_file(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& decode);

  // Rows of RGB, as they are decoded.
  bool stores_rgb() const noexcept { return made.dtype == DType::u8 && made.layout == Layout::nhwc; }

  // Calls `work` with the sink that makes the sample.
  template <class Work>
  void into_sample(const Work& work) {
    take_sample();
    if (stores_rgb()) {
      ImageSink sink(reinterpret_cast<std::uint8_t*>(sample.data()), std::size_t{made.width} * 3);
      work(sink);
    } else {
      row.resize(std::size_t{made.width} * 3);
      SampleSink sink(writer, row.data(), sample.data());
      work(sink);
    }
  }

  void run(const RgbView& source);
  void run(const WideView& source) {
    if (!wide)
      throw Error(ErrorCode::invalid_argument, "an image with its own channels needs the option `channels`");
    target_of({source.width, source.height});
    take_sample();
    wide->write(source, made, sample);
  }

  PreprocessOptions options;
  SampleSpec spec;
  std::unique_ptr<WideWriter> wide;        // else the others
  std::vector<std::byte>* grow = nullptr;  // free: where `sample` is
  std::span<std::byte> sample;
  RowWriter writer;
  SampleSpec made;  // not free
  Resampler resampler;
  JpegReader jpeg;
  PixelBuffer png_rows;
  std::vector<std::uint8_t> row;
  std::vector<std::uint8_t> image;  // of resize_crop
};

Preprocessor::Preprocessor(const PreprocessOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Preprocessor::Preprocessor(Preprocessor&&) noexcept = default;
Preprocessor& Preprocessor::operator=(Preprocessor&&) noexcept = default;
Preprocessor::~Preprocessor() = default;

const PreprocessOptions& Preprocessor::options() const noexcept { return impl_->options; }
const SampleSpec& Preprocessor::made() const noexcept { return impl_->made; }

RgbView Preprocessor::resize_crop(const RgbView& source) {
  const Impl::Target target = impl_->target_of({source.width, source.height});
  const std::size_t row_bytes = std::size_t{target.box.width} * 3;
  impl_->image.resize(row_bytes * target.box.height);
  ImageSink sink(impl_->image.data(), row_bytes);
  with_memory_errors([&] { impl_->resize(source, target, sink); });
  return {impl_->image.data(), target.box.width, target.box.height, row_bytes};
}

void Preprocessor::run(const WideView& source, std::span<std::byte> out) {
  impl_->use(out);
  with_memory_errors([&] { impl_->run(source); });
}

void Preprocessor::run(const WideView& source, std::vector<std::byte>& out) {
  impl_->use(out);
  with_memory_errors([&] { impl_->run(source); });
}

void Preprocessor::run(const RgbView& source, std::span<std::byte> out) {
  impl_->use(out);
  with_memory_errors([&] { impl_->run(source); });
}

void Preprocessor::run(const RgbView& source, std::vector<std::byte>& out) {
  impl_->use(out);
  with_memory_errors([&] { impl_->run(source); });
}

void Preprocessor::Impl::run(const RgbView& source) {
  if (wide) {
    const std::size_t row_bytes = std::size_t{source.width} * 3;
    std::vector<std::byte> rows(row_bytes * source.height);
    for (std::uint32_t y = 0; y < source.height; ++y)
      std::memcpy(rows.data() + y * row_bytes, source.data + y * source.stride_bytes, row_bytes);
    return run(WideView{rows.data(), DType::u8, 3, source.width, source.height});
  }
  const Target target = target_of({source.width, source.height});
  into_sample([&](RowSink& sink) { resize(source, target, sink); });
}

WarningSet Preprocessor::Impl::run_file(Decoder& decoder, std::span<const std::byte> file,
                                        const DecodeOptions& decode) {
  if (wide) {
    const AtEnd free_memory([&] {
      if (decode.memory != nullptr) decoder.release();
    });
    const WideImage decoded = decode_wide(decoder, file, decode);
    run(decoded.view());
    return decoded.warnings;
  }
  // Coefficients of a turned image are not those of the stored one turned: it is decoded whole and set
  // upright first.
  const Format format =
      decode.page == 0 ? detect_format(file) : Format::unknown;  // pages: decode() knows them
  if (format == Format::jpeg) {
    const JpegHeader& header = jpeg.open(file, decode);
    if (header.orientation == 1) {
      const Target target = target_of({header.width, header.height});
      const MemoryBudget::Share share = take_memory(decode, jpeg.memory_bytes() + own_bytes());
      const AtEnd free_memory([&] { jpeg.close(); });  // before the share is given back
      if (target.source == target.resized && stores_rgb())
        copy(jpeg, target);
      else
        into_sample([&](RowSink& sink) { resize(jpeg, target, sink); });
      return jpeg.warnings();
    }
  } else if (format == Format::png) {
    PngReader reader(file, decode);
    if (reader.info().orientation == 1 && reader.comes_by_rows()) {
      const Target target = target_of({reader.info().width, reader.info().height});
      const MemoryBudget::Share share = take_memory(decode, reader.memory_bytes() + own_bytes());
      into_sample([&](RowSink& sink) { resize(reader, target, sink); });
      return reader.warnings();
    }
  }
  const AtEnd free_memory([&] {
    if (decode.memory != nullptr) decoder.release();
  });
  run(decoder.decode(file, decode));
  return decoder.warnings();
}

WarningSet Preprocessor::run_file(Decoder& decoder, std::span<const std::byte> file,
                                  const DecodeOptions& decode, std::span<std::byte> out) {
  impl_->use(out);
  return with_memory_errors([&] { return impl_->run_file(decoder, file, decode); });
}

WarningSet Preprocessor::run_file(Decoder& decoder, std::span<const std::byte> file,
                                  const DecodeOptions& decode, std::vector<std::byte>& out) {
  impl_->use(out);
  return with_memory_errors([&] { return impl_->run_file(decoder, file, decode); });
}

}  // namespace shard::image
