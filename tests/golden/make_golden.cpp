// make_golden TESTS: writes the golden files below TESTS/golden and the seeds of the fuzz targets below
// TESTS/fuzz/corpus. To be run once for each new case: existing golden shards are not overwritten, they are
// what older versions wrote.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "format/shard/shard_profile.hpp"
#include "shard/codec.hpp"
#include "support/format/golden_cases.hpp"
#include "support/jpeg/golden_jpegs.hpp"

namespace fs = std::filesystem;
using namespace shard;
using namespace shard::testing;

namespace {

void add_new_files(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from))
    fs::copy_file(entry.path(), to / entry.path().filename(), fs::copy_options::skip_existing);
}

// The head of a shard, and the size of its file as the last 8 bytes.
void write_header_seed(const fs::path& shard, const fs::path& seed) {
  const ShardReader reader = ShardReader::open(shard);
  const auto head = reader.mapping().first(static_cast<std::size_t>(reader.header().container.data_begin));
  std::vector<std::byte> bytes(head.begin(), head.end());
  for (unsigned i = 0; i < 8; ++i)
    bytes.push_back(static_cast<std::byte>(reader.file_size_bytes() >> (8 * i)));
  write_bytes(seed, bytes);
}

void write_seeds(const fs::path& golden, const fs::path& corpus) {
  for (const char* target : {"fuzz_shard_header", "fuzz_shard_open", "fuzz_dataset_json", "fuzz_zstd_sample",
                             "fuzz_packed_sample", "fuzz_jpeg_sample"})
    fs::create_directories(corpus / target);
  std::vector<std::string> names;
  for (const GoldenCase& golden_case : golden_cases()) names.push_back(golden_case.name);
  for (const GoldenJpegs& golden_case : golden_jpegs()) names.push_back(golden_case.name);
  for (const std::string& name : names) {
    const fs::path shard = golden / "shards" / (name + ".safetensors");
    write_header_seed(shard, corpus / "fuzz_shard_header" / name);
    fs::copy_file(shard, corpus / "fuzz_shard_open" / name, fs::copy_options::overwrite_existing);
  }
  for (const auto& [folder, seed] :
       {std::pair("dataset", "golden"), std::pair("dataset-fields", "golden-fields"),
        std::pair("dataset-wide", "golden-wide"), std::pair("dataset-images", "golden-images"),
        std::pair("dataset-free", "golden-free"), std::pair("dataset-jpeg", "golden-jpeg")})
    fs::copy_file(golden / folder / kDatasetFile, corpus / "fuzz_dataset_json" / seed,
                  fs::copy_options::overwrite_existing);
  const SampleSpec small = small_options().spec;
  const auto zstd = [](const SampleSpec& spec, const std::vector<std::byte>& sample, int level = 3) {
    return Codec({CodecSpec::Kind::zstd, level}, spec).encode(sample);
  };
  write_bytes(corpus / "fuzz_zstd_sample" / "sample", zstd(small, sample_bytes(small, 1)));
  write_bytes(corpus / "fuzz_zstd_sample" / "zeros", zstd(small, std::vector<std::byte>(60)));
  write_bytes(corpus / "fuzz_zstd_sample" / "large",
              zstd({DType::u8, Layout::nchw, 3, 100, 1000}, std::vector<std::byte>(300'000, std::byte{7})));
  write_bytes(
      corpus / "fuzz_zstd_sample" / "text",
      zstd({DType::u8, Layout::nchw, 3, 40, 40}, sample_bytes({DType::u8, Layout::nchw, 3, 40, 40}, 2), 19));
}

// Channels, height, width and choices as fuzz_packed_sample reads them, then a frame.
void write_packed_seeds(const fs::path& folder) {
  for (std::uint32_t channels = 1; channels <= 4; ++channels) {
    for (const unsigned choices : {0x00U, 0x52U}) {
      const SampleSpec spec{DType::u8, Layout::nchw, channels, 2 * channels + 1, 16 * channels + 1};
      std::vector<std::byte> sample(static_cast<std::size_t>(spec.size_bytes()));
      for (std::size_t i = 0; i < sample.size(); ++i)
        sample[i] = static_cast<std::byte>(i + (i * i >> (choices == 0 ? 7 : 2)) % 5);
      std::vector<std::byte> seed;
      for (const unsigned byte : {channels - 1, spec.height - 1, spec.width - 1, choices})
        seed.push_back(static_cast<std::byte>(byte));
      const auto frame = Codec({CodecSpec::Kind::packed, 3}, spec).encode(sample);
      seed.insert(seed.end(), frame.begin(), frame.end());
      write_bytes(folder / (std::to_string(channels) + (choices == 0 ? "-as-it-is" : "-repaired")), seed);
    }
  }
}

// A row of jpeg_files and the channels as fuzz_jpeg_sample reads them, then a frame.
void write_jpeg_seeds(const fs::path& tests) {
  for (const char* name : {"jpeg_420_33x20", "jpeg_orientation_6", "jpeg_cmyk_adobe_2", "jpeg_gray",
                           "jpeg_restart_each_block", "jpeg_sampling_mixed", "jpeg_bytes_behind_the_end"}) {
    const std::uint32_t orientation = std::string_view(name) == "jpeg_orientation_6" ? 6 : 1;
    const GoldenImage image = golden_image(tests, {name, orientation}, 3);
    std::vector<std::byte> seed(17);
    store_jpeg_file(seed, 0, image.frame.file);
    seed[16] = static_cast<std::byte>(image.frame.file.components() == 1 ? 1 : 3);
    seed.insert(seed.end(), image.frame.bytes.begin(), image.frame.bytes.end());
    write_bytes(tests / "fuzz" / "corpus" / "fuzz_jpeg_sample" / name, seed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden TESTS\n");
    return 2;
  }
  const fs::path tests = argv[1];
  const fs::path fresh = tests / "golden" / "fresh";
  fs::create_directories(fresh / "shards");
  fs::create_directories(fresh / "dataset");
  fs::create_directories(fresh / "dataset-fields");
  fs::create_directories(fresh / "dataset-wide");
  fs::create_directories(fresh / "dataset-images");
  fs::create_directories(fresh / "dataset-free");
  fs::create_directories(fresh / "dataset-jpeg");
  write_golden_shards(fresh / "shards");
  for (const GoldenJpegs& of : golden_jpegs())
    write_golden_jpegs(fresh / "shards" / (of.name + ".safetensors"), tests, of, 0, kGoldenSamples);
  write_golden_jpeg_dataset(fresh / "dataset-jpeg", tests);
  write_golden_dataset(fresh / "dataset");
  write_golden_dataset(fresh / "dataset-fields", GoldenDataset::fields);
  write_golden_dataset(fresh / "dataset-wide", GoldenDataset::wide);
  write_golden_dataset(fresh / "dataset-images", GoldenDataset::images);
  write_golden_dataset(fresh / "dataset-free", GoldenDataset::free);
  add_new_files(fresh / "shards", tests / "golden" / "shards");
  add_new_files(fresh / "dataset", tests / "golden" / "dataset");
  add_new_files(fresh / "dataset-fields", tests / "golden" / "dataset-fields");
  add_new_files(fresh / "dataset-wide", tests / "golden" / "dataset-wide");
  add_new_files(fresh / "dataset-images", tests / "golden" / "dataset-images");
  add_new_files(fresh / "dataset-free", tests / "golden" / "dataset-free");
  add_new_files(fresh / "dataset-jpeg", tests / "golden" / "dataset-jpeg");
  fs::remove_all(fresh);
  write_seeds(tests / "golden", tests / "fuzz" / "corpus");
  write_packed_seeds(tests / "fuzz" / "corpus" / "fuzz_packed_sample");
  write_jpeg_seeds(tests);
  return 0;
}
