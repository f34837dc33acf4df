// The limit of loading images that are not converted: libjpeg-turbo alone (pure_decode.hpp), on as many
// threads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shard/error.hpp"

namespace shard::bench {

inline constexpr const char* kDecodeIs =
    "libjpeg-turbo alone, whole images to pixels, files in memory, same threads";

class DecodeLimit {
 public:
  // `images`: as in convert::Options. Keeps up to 256 MiB of its JPEG files, evenly spread. Errors: those of
  // convert::Inputs.
  DecodeLimit(const std::string& images, unsigned threads);
  // Images per second, all threads together, in about so many seconds. 0: there are no JPEG files.
  double measure(double seconds) const;

 private:
  unsigned threads_;
  std::vector<std::vector<std::byte>> files_;
};

}  // namespace shard::bench
