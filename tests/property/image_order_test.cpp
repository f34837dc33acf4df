// What an image decodes to depends on its bytes alone: not on the files that the same decoder had before.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"
#include "support/image/golden_images.hpp"
#include "support/image/image_variants.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

struct Result {
  std::optional<Pixels> pixels;   // of decode()
  std::vector<std::byte> sample;  // of run_file()
  std::string refusal;
  image::WarningSet warnings;
  bool operator==(const Result&) const = default;
};

image::PreprocessOptions sample_options() {
  image::PreprocessOptions options;
  options.resize_short = 24;
  options.crop = image::Size{16, 16};
  options.dtype = DType::u8;
  return options;
}

Result result_of(image::Decoder& decoder, image::Preprocessor& preprocessor, const Bytes& file,
                 image::OnWarning on_warning) {
  image::DecodeOptions options;
  options.max_pixels = 1 << 20;
  options.on_warning = on_warning;
  Result result;
  try {
    result.pixels = copy_of(decoder.decode(file, options));
    result.warnings = decoder.warnings();
  } catch (const Error& error) {
    result.refusal = error.what();
  }
  std::vector<std::byte> sample(sample_options().sample_spec().size_bytes());
  try {
    EXPECT_EQ(preprocessor.run_file(decoder, file, options, sample), result.warnings);
    result.sample = sample;
  } catch (const Error& error) {
    EXPECT_EQ(result.refusal, error.what()) << "the two ways to decode do not agree";
  }
  return result;
}

Result fresh_result_of(const Bytes& file, image::OnWarning on_warning) {
  image::Decoder decoder;
  image::Preprocessor preprocessor(sample_options());
  return result_of(decoder, preprocessor, file, on_warning);
}

// The committed files, good and refused, and variants of them.
std::vector<Bytes> files_of(std::mt19937_64& random, std::size_t variants) {
  std::vector<Bytes> files;
  std::map<image::Format, std::vector<std::size_t>> good;
  for (const char* folder : {"images", "refused"})
    for (const auto& path : golden_files(folder)) {
      files.push_back(read_file(path));
      if (folder == std::string_view("images"))
        good[image::detect_format(files.back())].push_back(files.size() - 1);
    }
  const std::size_t originals = files.size();
  for (std::size_t i = 0; i < variants; ++i) {
    const std::size_t from = random() % originals;
    const std::vector<std::size_t>& kin = good[image::detect_format(files[from])];
    if (kin.empty()) continue;
    files.push_back(vary(files[from], files[kin[random() % kin.size()]], random));
  }
  return files;
}

TEST(ImageOrder, NoFileChangesHowAnotherIsDecoded) {
  const std::uint64_t seed = first_seed();
  for (std::uint64_t round = 0; round < rounds(4, 1); ++round) {
    SCOPED_TRACE("SHARD_TEST_SEED=" + std::to_string(seed + round));
    std::mt19937_64 random(seed + round);
    const auto on_warning = static_cast<image::OnWarning>(round % 3);
    const std::vector<Bytes> files = files_of(random, 600);
    std::vector<Result> alone;
    for (const Bytes& file : files) alone.push_back(fresh_result_of(file, on_warning));
    const auto stored =
        std::count_if(alone.begin(), alone.end(), [](const Result& r) { return r.pixels.has_value(); });
    EXPECT_GT(stored, 200) << "most variants should be of some use";
    EXPECT_GT(static_cast<std::ptrdiff_t>(files.size()) - stored, 50);

    std::vector<std::size_t> order(files.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int pass = 0; pass < 3; ++pass) {
      std::shuffle(order.begin(), order.end(), random);
      image::Decoder decoder;
      image::Preprocessor preprocessor(sample_options());
      for (std::size_t place = 0; place < order.size(); ++place) {
        const Result result = result_of(decoder, preprocessor, files[order[place]], on_warning);
        ASSERT_EQ(result.refusal, alone[order[place]].refusal)
            << "file " << order[place] << " behind file " << (place > 0 ? order[place - 1] : 0);
        ASSERT_TRUE(result == alone[order[place]]) << "other pixels or warnings: file " << order[place]
                                                   << " behind file " << (place > 0 ? order[place - 1] : 0);
      }
    }
  }
}

// The defect that this test is about, by name: tables of the file before.
TEST(ImageOrder, AJpegWithoutTablesNeverTakesThoseOfTheFileBefore) {
  const Bytes complete = read_file(golden_path("jpeg_420_33x20.jpg"));
  const Bytes optimized = read_file(golden_path("jpeg_optimized.jpg"));  // Huffman tables of its own
  const Bytes no_quantisation = without_markers(complete, {0xDB});
  const Bytes no_huffman = without_markers(complete, {0xC4});
  const Pixels expected = expected_pixels(golden_path("jpeg_420_33x20.jpg"));
  image::Decoder decoder;
  image::Preprocessor preprocessor(sample_options());
  std::vector<std::byte> sample(sample_options().sample_spec().size_bytes());
  for (const Bytes* before : {&complete, &optimized, &no_quantisation}) {
    const auto decode_before = [&] {
      try {
        decoder.decode(*before, {});
        preprocessor.run_file(decoder, *before, {}, sample);
      } catch (const Error&) {
      }
    };
    decode_before();
    try {
      decoder.decode(no_quantisation, {});
      ADD_FAILURE() << "decoded without quantisation tables";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      EXPECT_NE(std::string(error.what()).find("Quantization table"), std::string::npos) << error.what();
    }
    EXPECT_THROW(preprocessor.run_file(decoder, no_quantisation, {}, sample), Error);
    decode_before();
    EXPECT_EQ(copy_of(decoder.decode(no_huffman, {})), expected)
        << "the standard tables, as in a frame of MJPEG";
  }
}

}  // namespace
}  // namespace shard::testing
