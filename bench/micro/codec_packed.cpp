// bench_codec IMAGES [SIDE [SECONDS]]: lossless codecs on samples of SIDE x SIDE bytes (default 224, from the
// short side 256): bits a value, and samples encoded and decoded a second on one core. Codecs take turns, so
// that a machine which is slower for a while is so for all; the figures are medians. Each must give back
// every sample before it is timed.
#ifdef SHARD_WITH_QOI
#define QOI_IMPLEMENTATION
#define QOI_NO_STDIO
#include <qoi.h>
#endif
#include <spng.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/system/stopwatch.hpp"
#include "harness/stats.hpp"
#include "shard/codec.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace {

using namespace shard;
using Bytes = std::vector<std::byte>;

struct Candidate {
  std::string name;
  std::function<Bytes(const Bytes&)> encode;
  std::function<void(const Bytes&, Bytes&)> decode;
  std::vector<Bytes> frames{};
  std::vector<double> encode_rates{}, decode_rates{};
};

void require(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(what);
}

Candidate shard_codec(const std::string& name, const SampleSpec& spec) {
  const Codec codec(codec_spec_from_string(name), spec);
  return {name, [=](const Bytes& sample) { return codec.encode(sample); },
          [=](const Bytes& frame, Bytes& sample) { codec.decode(frame, sample); }};
}

std::uint8_t median_edge(int left, int up, int corner) {
  return static_cast<std::uint8_t>(left + up - std::clamp(corner, std::min(left, up), std::max(left, up)));
}

// Green subtracted, median edge over the whole picture; the residuals as planes.
Bytes residuals_of(const Bytes& sample, const SampleSpec& spec, bool back) {
  const std::size_t width = spec.width;
  const std::size_t plane = std::size_t{spec.height} * width;
  std::vector<std::uint8_t> values(3 * plane);
  const auto value = [&](std::size_t i) { return std::to_integer<std::uint8_t>(sample[i]); };
  Bytes out(sample.size());
  if (!back) {
    for (std::size_t i = 0; i < plane; ++i) {
      const int green = value(3 * i + 1);
      values[i] = static_cast<std::uint8_t>(value(3 * i) - green + 128);
      values[plane + i] = static_cast<std::uint8_t>(green);
      values[2 * plane + i] = static_cast<std::uint8_t>(value(3 * i + 2) - green + 128);
    }
  }
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::uint8_t* const x = values.data() + channel * plane;
    for (std::size_t i = 0; i < plane; ++i) {
      const bool first = i % width == 0;
      const int up = i >= width ? x[i - width] : (first ? 0 : x[i - 1]);
      const int left = first ? up : x[i - 1];
      const int corner = i >= width && !first ? x[i - width - 1] : up;
      const std::uint8_t guess = median_edge(left, up, corner);
      if (back)
        x[i] = static_cast<std::uint8_t>(guess + value(channel * plane + i));
      else
        out[channel * plane + i] = static_cast<std::byte>(x[i] - guess);
    }
  }
  if (back) {
    for (std::size_t i = 0; i < plane; ++i) {
      const int green = values[plane + i];
      out[3 * i] = static_cast<std::byte>(values[i] + green + 128);
      out[3 * i + 1] = static_cast<std::byte>(green);
      out[3 * i + 2] = static_cast<std::byte>(values[2 * plane + i] + green + 128);
    }
  }
  return out;
}

Candidate zstd_of_residuals(const std::string& name, const SampleSpec& spec) {
  const Codec codec(codec_spec_from_string(name), spec);
  return {name + " of residuals",
          [=](const Bytes& sample) { return codec.encode(residuals_of(sample, spec, false)); },
          [=](const Bytes& frame, Bytes& sample) {
            codec.decode(frame, sample);
            sample = residuals_of(sample, spec, true);
          }};
}

struct FreePng {
  void operator()(spng_ctx* context) const noexcept { spng_ctx_free(context); }
};

Candidate png(const SampleSpec& spec, int level) {
  const auto encode = [=](const Bytes& sample) {
    const std::unique_ptr<spng_ctx, FreePng> context(spng_ctx_new(SPNG_CTX_ENCODER));
    spng_ihdr header{spec.width, spec.height, 8, SPNG_COLOR_TYPE_TRUECOLOR, 0, 0, 0};
    spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, level);
    spng_set_ihdr(context.get(), &header);
    require(spng_encode_image(context.get(), sample.data(), sample.size(), SPNG_FMT_PNG,
                              SPNG_ENCODE_FINALIZE) == 0,
            "spng_encode_image");
    std::size_t size = 0;
    int error = 0;
    const std::unique_ptr<void, decltype(&std::free)> png(spng_get_png_buffer(context.get(), &size, &error),
                                                          &std::free);
    const auto* const begin = static_cast<const std::byte*>(png.get());
    return Bytes(begin, begin + size);
  };
  const auto decode = [](const Bytes& frame, Bytes& sample) {
    const std::unique_ptr<spng_ctx, FreePng> context(spng_ctx_new(0));
    spng_set_crc_action(context.get(), SPNG_CRC_USE, SPNG_CRC_USE);
    spng_set_png_buffer(context.get(), frame.data(), frame.size());
    require(spng_decode_image(context.get(), sample.data(), sample.size(), SPNG_FMT_RGB8, 0) == 0,
            "spng_decode_image");
  };
  return {"PNG level " + std::to_string(level), encode, decode};
}

Candidate webp(const SampleSpec& spec, int level) {
  const auto encode = [=](const Bytes& sample) {
    WebPConfig config;
    WebPPicture picture;
    WebPMemoryWriter memory;
    require(WebPConfigInit(&config) != 0 && WebPConfigLosslessPreset(&config, level) != 0 &&
                WebPPictureInit(&picture) != 0,
            "WebPConfigInit");
    WebPMemoryWriterInit(&memory);
    picture.use_argb = 1;
    picture.width = static_cast<int>(spec.width);
    picture.height = static_cast<int>(spec.height);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &memory;
    const auto* const rgb = reinterpret_cast<const std::uint8_t*>(sample.data());
    const bool fine =
        WebPPictureImportRGB(&picture, rgb, 3 * picture.width) != 0 && WebPEncode(&config, &picture) != 0;
    const auto* const begin = reinterpret_cast<const std::byte*>(memory.mem);
    Bytes frame(begin, begin + (fine ? memory.size : 0));
    WebPPictureFree(&picture);
    WebPMemoryWriterClear(&memory);
    require(fine, "WebPEncode");
    return frame;
  };
  const auto decode = [=](const Bytes& frame, Bytes& sample) {
    auto* const out = reinterpret_cast<std::uint8_t*>(sample.data());
    require(WebPDecodeRGBInto(reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size(), out,
                              sample.size(), 3 * static_cast<int>(spec.width)) == out,
            "WebPDecodeRGBInto");
  };
  return {"WebP lossless level " + std::to_string(level), encode, decode};
}

#ifdef SHARD_WITH_QOI
Candidate qoi(const SampleSpec& spec) {
  const auto encode = [=](const Bytes& sample) {
    const qoi_desc desc{spec.width, spec.height, 3, QOI_SRGB};
    int size = 0;
    const std::unique_ptr<void, decltype(&std::free)> memory(qoi_encode(sample.data(), &desc, &size),
                                                             &std::free);
    require(memory != nullptr, "qoi_encode");
    const auto* const begin = static_cast<const std::byte*>(memory.get());
    return Bytes(begin, begin + size);
  };
  const auto decode = [](const Bytes& frame, Bytes& sample) {
    qoi_desc desc;
    const std::unique_ptr<void, decltype(&std::free)> memory(
        qoi_decode(frame.data(), static_cast<int>(frame.size()), &desc, 3), &std::free);
    require(memory != nullptr, "qoi_decode");
    std::memcpy(sample.data(), memory.get(), sample.size());
  };
  return {"QOI", encode, decode};
}
#endif

// At least `seconds` of work; work(i) handles sample i.
template <class Work>
double rate(std::size_t samples, double seconds, const Work& work) {
  const Stopwatch watch;
  std::size_t done = 0;
  while (watch.seconds() < seconds) work(done++ % samples);
  return static_cast<double>(done) / watch.seconds();
}

int run(const std::filesystem::path& folder, std::uint32_t side, double seconds) {
  image::PreprocessOptions options;
  options.resize_short = std::max<std::uint32_t>(256, side);
  options.crop = image::Size{side, side};
  options.dtype = DType::u8;
  options.layout = Layout::nhwc;
  image::Preprocessor preprocessor(options);
  image::Decoder decoder;
  const SampleSpec spec = options.sample_spec();
  std::vector<Bytes> samples;
  std::uint64_t file_bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    try {
      const auto file = read_file(entry.path(), std::uint64_t{1} << 28);
      Bytes sample(spec.size_bytes());
      preprocessor.run_file(decoder, file, {}, sample);
      samples.push_back(std::move(sample));
      file_bytes += file.size();
    } catch (const Error&) {
      continue;  // no image
    }
  }
  require(!samples.empty(), "no images");
  std::printf("%zu samples of %ux%ux3, image files %.1f MB, samples %.1f MB\n", samples.size(), side, side,
              static_cast<double>(file_bytes) * 1e-6,
              static_cast<double>(samples.size() * spec.size_bytes()) * 1e-6);

  std::vector<Candidate> candidates;
  for (const char* name : {"none", "packed", "zstd:1", "zstd:3"})
    candidates.push_back(shard_codec(name, spec));
  for (const char* name : {"zstd:1", "zstd:3"}) candidates.push_back(zstd_of_residuals(name, spec));
#ifdef SHARD_WITH_QOI
  candidates.push_back(qoi(spec));
#endif
  for (int level : {1, 6}) candidates.push_back(png(spec, level));
  for (int level : {0, 6}) candidates.push_back(webp(spec, level));
  Bytes back(spec.size_bytes());
  for (Candidate& candidate : candidates) {
    for (const Bytes& sample : samples) {
      candidate.frames.push_back(candidate.encode(sample));
      candidate.decode(candidate.frames.back(), back);
      require(back == sample, candidate.name.c_str());
    }
  }
  constexpr int kTurns = 5;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Candidate& candidate : candidates) {
      candidate.encode_rates.push_back(
          rate(samples.size(), seconds / kTurns, [&](std::size_t i) { candidate.encode(samples[i]); }));
      candidate.decode_rates.push_back(rate(samples.size(), seconds / kTurns, [&](std::size_t i) {
        candidate.decode(candidate.frames[i], back);
      }));
    }
  }
  std::printf("%-24s %10s %12s %14s %14s\n", "codec", "MB", "bits/value", "encoded/s", "decoded/s");
  for (const Candidate& candidate : candidates) {
    std::uint64_t bytes = 0;
    for (const Bytes& frame : candidate.frames) bytes += frame.size();
    std::printf(
        "%-24s %10.1f %12.3f %14.0f %14.0f\n", candidate.name.c_str(), static_cast<double>(bytes) * 1e-6,
        8.0 * static_cast<double>(bytes) / static_cast<double>(samples.size() * spec.elements()),
        bench::summarize(candidate.encode_rates).median, bench::summarize(candidate.decode_rates).median);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: bench_codec IMAGES [SIDE [SECONDS]]\n");
    return 2;
  }
  const auto side = static_cast<std::uint32_t>(argc > 2 ? std::stoul(argv[2]) : 224);
  return run(argv[1], side, argc > 3 ? std::stod(argv[3]) : 1.0);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_codec: %s\n", error.what());
  return 2;
}
