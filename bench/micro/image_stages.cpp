// bench_image FOLDER [ROUNDS]: milliseconds of CPU time per image of each stage, on one thread, files in
// memory. For developers; `shardbench convert` measures what users see.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "shard/image/decode.hpp"
#include "shard/image/preprocess.hpp"

namespace {

using namespace shard;
using namespace shard::image;
using Bytes = std::vector<std::byte>;

struct Stage {
  std::string name;
  std::function<void()> pass;  // over all images
  std::vector<double> ms;      // of each round, per image
};

std::vector<Bytes> read_files(const std::filesystem::path& folder) {
  std::vector<Bytes> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    if (detect_format({bytes, text.size()}) != Format::unknown)
      files.emplace_back(bytes, bytes + text.size());
  }
  return files;
}

struct Setting {
  std::string name;
  PreprocessOptions options;
};

std::vector<Setting> settings() {
  Setting eval{"eval: f16 nchw 224", {}};
  eval.options.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  Setting eval_f32 = eval;
  eval_f32.name = "eval, f32";
  eval_f32.options.dtype = DType::f32;
  Setting train{"train: u8 nhwc 256", {}};
  train.options.crop = Size{256, 256};
  train.options.dtype = DType::u8;
  train.options.layout = Layout::nhwc;
  Setting train_nchw = train;
  train_nchw.name = "train, nchw";
  train_nchw.options.layout = Layout::nchw;
  Setting lanczos = eval;
  lanczos.name = "eval, lanczos";
  lanczos.options.filter = Filter::lanczos;
  return {eval, eval_f32, train, train_nchw, lanczos};
}

void run_bench(const std::vector<Bytes>& files, int rounds) {
  const DecodeOptions decode;
  Decoder decoder;
  std::vector<Bytes> pixels;
  std::vector<RgbView> images;
  for (const Bytes& file : files) {
    RgbView view = decoder.decode(file, decode);
    const auto* rows = reinterpret_cast<const std::byte*>(view.data);
    pixels.emplace_back(rows, rows + view.stride_bytes * view.height);
    view.data = reinterpret_cast<const std::uint8_t*>(pixels.back().data());
    images.push_back(view);
  }
  std::vector<Stage> stages;
  stages.push_back({"decode",
                    [&] {
                      for (const Bytes& file : files) decoder.decode(file, decode);
                    },
                    {}});
  std::vector<Preprocessor> preprocessors;
  std::vector<Bytes> outs;
  const auto all = settings();
  for (const Setting& setting : all) {
    preprocessors.emplace_back(setting.options);
    outs.emplace_back(setting.options.sample_spec().size_bytes());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    Preprocessor& preprocessor = preprocessors[i];
    Bytes& out = outs[i];
    const std::string& name = all[i].name;
    stages.push_back({name + ": resize_crop",
                      [&] {
                        for (const RgbView& image : images) preprocessor.resize_crop(image);
                      },
                      {}});
    stages.push_back({name + ": run",
                      [&] {
                        for (const RgbView& image : images) preprocessor.run(image, out);
                      },
                      {}});
    stages.push_back({name + ": run_file",
                      [&] {
                        for (const Bytes& file : files) preprocessor.run_file(decoder, file, decode, out);
                      },
                      {}});
  }
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    for (Stage& stage : stages) {
      const std::clock_t begin = std::clock();
      stage.pass();
      const auto took = static_cast<double>(std::clock() - begin) * 1000.0 / CLOCKS_PER_SEC;
      if (round >= 0) stage.ms.push_back(took / static_cast<double>(files.size()));
    }
  }
  std::printf("%zu images, %d rounds, ms of CPU per image\n%-40s %8s %8s\n", files.size(), rounds, "",
              "median", "least");
  for (Stage& stage : stages) {
    std::sort(stage.ms.begin(), stage.ms.end());
    std::printf("%-40s %8.4f %8.4f\n", stage.name.c_str(), stage.ms[stage.ms.size() / 2], stage.ms.front());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) {
      std::fprintf(stderr, "usage: bench_image FOLDER [ROUNDS]\n");
      return 2;
    }
    const auto files = read_files(argv[1]);
    if (files.empty()) {
      std::fprintf(stderr, "bench_image: no images in %s\n", argv[1]);
      return 2;
    }
    run_bench(files, argc > 2 ? std::max(1, std::atoi(argv[2])) : 5);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_image: %s\n", error.what());
    return 2;
  }
}
