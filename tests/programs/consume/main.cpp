// Writes a shard of two generated pictures with the installed package, reads it back, and compares; then
// converts two PNG files.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/convert/estimate.hpp"
#include "shard/convert/work_plan.hpp"
#include "shard/convert/writer.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"
#include "shard/shard_reader.hpp"
#include "shard/shard_writer.hpp"

namespace {

constexpr std::uint32_t kWidth = 40;
constexpr std::uint32_t kHeight = 30;

std::vector<std::byte> make_sample(shard::image::Preprocessor& preprocessor, std::size_t seed) {
  std::vector<std::uint8_t> pixels(std::size_t{kWidth} * kHeight * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>((i * 7 + seed * 31) % 256);
  std::vector<std::byte> sample(preprocessor.options().sample_spec().size_bytes());
  preprocessor.run({pixels.data(), kWidth, kHeight, std::size_t{kWidth} * 3}, sample);
  return sample;
}

int fail(const std::string& what) {
  std::cerr << "consume: " << what << '\n';
  return 1;
}

// Two pictures as files -> a data set.
void convert_two(const std::filesystem::path& work) {
  const std::filesystem::path images = work / "images" / "a";
  std::filesystem::create_directories(images);
  for (const char* name : {"1.png", "2.png"}) {
    const std::vector<std::uint8_t> pixels(std::size_t{kWidth} * kHeight * 3,
                                           static_cast<std::uint8_t>(name[0]));
    const auto png = shard::image::encode_png({pixels.data(), kWidth, kHeight, std::size_t{kWidth} * 3});
    std::ofstream(images / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  }
  shard::convert::Options options;
  options.images = images.parent_path().string();
  options.out = work / "out";
  options.preprocess.resize_short = 16;
  options.preprocess.crop = shard::image::Size{8, 8};
  if (shard::convert::estimate(options).inputs != 2)
    throw shard::Error(shard::ErrorCode::corrupt, "wrong estimate");
  const shard::convert::Summary summary = shard::convert::run(options);
  if (!summary.complete || shard::Dataset::open(options.out).size() != 2)
    throw shard::Error(shard::ErrorCode::corrupt, "the conversion is not complete");

  options.out = work / "by shard";
  const shard::convert::WorkPlan plan(options);
  for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) plan.convert_shard(shard);
  if (plan.finish().samples != 2)
    throw shard::Error(shard::ErrorCode::corrupt, "the shards of a plan are not complete");

  shard::convert::WriterOptions rows;
  static_cast<shard::convert::Options&>(rows) = options;
  rows.out = work / "rows";
  rows.fields = {{"labels", shard::DType::i64, {}}};
  shard::convert::Writer writer(rows);
  for (const char* name : {"1", "2"}) {
    shard::convert::WriterRow row(name, std::vector<std::byte>(std::size_t{kWidth} * kHeight * 3));
    row.pixels = shard::convert::Pixels{kWidth, kHeight};
    row.set_label(7);
    writer.add(std::move(row));
  }
  if (writer.close().samples != 2) throw shard::Error(shard::ErrorCode::corrupt, "the rows are not complete");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return fail("usage: consume SHARD (a file that does not exist yet)");
  const std::filesystem::path path = argv[1];

  shard::image::PreprocessOptions pixels;
  pixels.resize_short = 16;
  pixels.crop = shard::image::Size{8, 8};
  pixels.dtype = shard::DType::f16;
  shard::image::Preprocessor preprocessor(pixels);
  const std::array samples{make_sample(preprocessor, 1), make_sample(preprocessor, 2)};
  if (samples[0] == samples[1]) return fail("two different pictures gave the same sample");

  shard::ShardWriterOptions options;
  options.spec = pixels.sample_spec();
  options.normalization = pixels.normalization;
  options.fingerprint = "0123456789abcdef";
  auto writer = shard::ShardWriter::create(path, samples.size(), options);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto label = static_cast<std::int64_t>(10 + i);
    std::array<std::byte, sizeof label> row{};
    std::memcpy(row.data(), &label, sizeof label);
    writer.put(i, "picture-" + std::to_string(i), row, samples[i]);
  }
  const shard::ShardSummary summary = writer.publish();

  const auto reader = shard::ShardReader::open(path);
  if (reader.size() != samples.size() || summary.samples != samples.size())
    return fail("wrong number of samples");
  if (reader.file_size_bytes() != summary.size_bytes) return fail("wrong file size");
  std::vector<std::byte> back(options.spec.size_bytes());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    reader.images().read(i, back);
    if (back != samples[i]) return fail("sample " + std::to_string(i) + " came back with other bytes");
    if (reader.label(i) != static_cast<std::int64_t>(10 + i)) return fail("wrong label");
    if (reader.key(i) != "picture-" + std::to_string(i)) return fail("wrong key");
  }
  const std::filesystem::path work = path.string() + ".conversion";
  convert_two(work);
  std::filesystem::remove_all(work);
  std::cout << "consume: " << reader.size() << " samples of " << back.size() << " bytes\n";
  return 0;
} catch (const shard::Error& error) {
  return fail(error.what());
}
