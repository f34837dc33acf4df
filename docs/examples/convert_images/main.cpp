// Converts a folder of images (IMAGES/<class>/**) to a data set, in this process.
#include <iostream>

#include "shard/convert/convert.hpp"
#include "shard/error.hpp"

int main(int argc, char** argv) try {
  shard::convert::Options options;
  options.images = argc > 1 ? argv[1] : "photos";
  options.out = argc > 2 ? argv[2] : "out/train";
  options.preprocess.resize_short = 256;
  options.preprocess.crop = shard::image::Size{256, 256};
  options.preprocess.dtype = shard::DType::u8;
  options.preprocess.layout = shard::Layout::nhwc;
  options.preprocess.normalization = {{0.485F, 0.456F, 0.406F},
                                      {0.229F, 0.224F, 0.225F}};  // recorded: u8 is normalised later

  shard::convert::Hooks hooks;
  hooks.planned = [](const shard::convert::Listing& found) {
    std::cout << found.inputs << " images in " << found.classes.size() << " classes\n";
  };
  const shard::convert::Summary summary = shard::convert::run(options, hooks);
  std::cout << summary.samples << " samples in " << summary.shards << " shards, " << summary.rejects
            << " rejects\n";
} catch (const shard::Error& error) {
  std::cerr << error.what() << '\n';  // an interrupted conversion goes on when it is called again
  return 2;
}
