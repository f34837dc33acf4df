// Converts a picture and loads it again with what a wheel has; asks for a GPU, which may be missing.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"
#include "shard/loader/loader.hpp"
#ifdef WITH_CUDA
#include "shard/loader/cuda_device.hpp"
#endif

int main() try {
  const std::filesystem::path work = std::filesystem::temp_directory_path() / "shard-outside";
  std::filesystem::remove_all(work);
  std::filesystem::create_directories(work / "images" / "a");
  const std::vector<std::uint8_t> pixels(std::size_t{32} * 32 * 3, 77);
  for (const char* name : {"1.png", "2.png"}) {
    const auto png = shard::image::encode_png({pixels.data(), 32, 32, std::size_t{32} * 3});
    std::ofstream(work / "images" / "a" / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  }
  shard::convert::Options options;
  options.images = (work / "images").string();
  options.out = work / "out";
  options.preprocess.resize_short = 16;
  options.preprocess.crop = shard::image::Size{16, 16};
  shard::convert::run(options);

  shard::LoaderOptions loading;
  loading.batch_size = 2;
  shard::Loader loader(shard::Dataset::open(work / "out"), shard::make_host_device(1), loading);
  std::size_t rows = 0;
  for (shard::Batch& batch : loader.epoch(0)) {
    batch.wait();
    rows += batch.size();
  }
  std::filesystem::remove_all(work);
#ifdef WITH_CUDA
  std::cout << shard::cuda_device_count() << " CUDA devices\n";
#endif
  std::cout << "outside: " << rows << " samples\n";
  return rows == 2 ? 0 : 1;
} catch (const shard::Error& error) {
  std::cerr << "outside: " << error.what() << '\n';
  return 1;
}
