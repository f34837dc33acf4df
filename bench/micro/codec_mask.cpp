// bench_mask [SIDE [SECONDS]]: lossless codecs on masks of SIDE x SIDE bytes (default 256): bits per value,
// and masks encoded and decoded a second on one core. The masks are made here, 64 of each kind:
//
//   shapes   3 to 8 ellipses over background, as in a data set of shapes
//   objects  1 to 3 irregular objects with a border of 255 around them, as in Pascal VOC
//   scene    every pixel labelled: 40 to 80 regions of 19 classes with irregular borders, as in Cityscapes or
//            ADE20K
//   noise    21 classes, each pixel by itself
//
// Codecs take turns, so that a machine which is slower for a while is so for all; the figures are medians.
// Each must give back every mask before it is timed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numbers>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "harness/stats.hpp"
#include "shard/codec.hpp"

namespace {

using namespace shard;
using Bytes = std::vector<std::byte>;
using Random = std::mt19937;

constexpr std::size_t kMasks = 64;

double uniform(Random& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
}

// A closed curve around a centre: its radius varies with the angle by a few waves.
struct Blob {
  double x, y, wide, high;
  std::array<double, 4> waves{}, phases{};

  Blob(Random& random, double side, double size, double rough)
      : x(uniform(random, 0, side)),
        y(uniform(random, 0, side)),
        wide(size * uniform(random, 0.5, 1.5)),
        high(size * uniform(random, 0.5, 1.5)) {
    for (std::size_t k = 0; k < waves.size(); ++k) {
      waves[k] = rough * uniform(random, 0, 1) / static_cast<double>(k + 1);
      phases[k] = uniform(random, 0, 2 * std::numbers::pi);
    }
  }
  // Below 1 inside, and about 1 on the border.
  double at(double column, double row) const {
    const double dx = (column - x) / wide;
    const double dy = (row - y) / high;
    const double angle = std::atan2(dy, dx);
    double radius = 1;
    for (std::size_t k = 0; k < waves.size(); ++k)
      radius += waves[k] * std::sin(static_cast<double>(2 * k + 3) * angle + phases[k]);
    return std::hypot(dx, dy) / std::max(radius, 0.1);
  }
};

template <class ValueAt>
Bytes drawn(std::uint32_t side, const ValueAt& value_at) {
  Bytes mask(std::size_t{side} * side);
  for (std::uint32_t row = 0; row < side; ++row)
    for (std::uint32_t column = 0; column < side; ++column)
      mask[std::size_t{row} * side + column] = static_cast<std::byte>(value_at(column, row));
  return mask;
}

Bytes blobs(Random& random, std::uint32_t side, int count, double size, double rough, double border) {
  std::vector<Blob> all;
  std::vector<int> classes;
  for (int i = 0; i < count; ++i) {
    all.emplace_back(random, side, size * side, rough);
    classes.push_back(1 + static_cast<int>(random() % 20));
  }
  return drawn(side, [&](double column, double row) {
    int value = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double at = all[i].at(column, row);
      if (at < 1) value = at > 1 - border / (size * side) ? 255 : classes[i];
    }
    return value;
  });
}

// The nearest of some points, in coordinates that are bent by waves.
Bytes scene(Random& random, std::uint32_t side) {
  struct Region {
    double x, y;
    int label;
  };
  std::vector<Region> regions(40 + random() % 41);
  for (Region& region : regions)
    region = {uniform(random, 0, side), uniform(random, 0, side), static_cast<int>(random() % 19)};
  std::array<double, 12> waves{};
  for (double& wave : waves) wave = uniform(random, 0, 2 * std::numbers::pi);
  const auto bend = [&](double at, std::size_t first) {
    double sum = 0;
    for (std::size_t k = 0; k < 6; ++k)
      sum += 6.0 / static_cast<double>(k + 1) * std::sin(at * 0.05 * std::pow(1.8, k) + waves[first + k]);
    return sum;
  };
  return drawn(side, [&](double column, double row) {
    const double x = column + bend(row, 0);
    const double y = row + bend(column, 6);
    const auto nearest =
        std::min_element(regions.begin(), regions.end(), [&](const Region& a, const Region& b) {
          return std::hypot(a.x - x, a.y - y) < std::hypot(b.x - x, b.y - y);
        });
    return nearest->label;
  });
}

struct Kind {
  const char* name;
  std::function<Bytes(Random&, std::uint32_t)> make;
};

std::vector<Kind> kinds() {
  return {{"shapes",
           [](Random& r, std::uint32_t side) {
             return blobs(r, side, 3 + static_cast<int>(r() % 6), 0.12, 0, 0);
           }},
          {"objects",
           [](Random& r, std::uint32_t side) {
             return blobs(r, side, 1 + static_cast<int>(r() % 3), 0.25, 0.2, 3);
           }},
          {"scene", scene},
          {"noise", [](Random& r, std::uint32_t side) {
             return drawn(side, [&](double, double) { return static_cast<int>(r() % 21); });
           }}};
}

struct Candidate {
  std::string name;
  std::function<Bytes(const Bytes&)> encode;
  std::function<void(const Bytes&, Bytes&)> decode;
  std::vector<Bytes> frames{};
  std::vector<double> encode_rates{}, decode_rates{};
};

Candidate stored(const std::string& name, const SampleSpec& spec) {
  const Codec codec(codec_spec_from_string(name), spec);
  return {name, [=](const Bytes& mask) { return codec.encode(mask); },
          [=](const Bytes& frame, Bytes& mask) { codec.decode(frame, mask); }};
}

// Runs across rows: a value, then its length in 7 bits a byte.
Candidate run_lengths() {
  const auto encode = [](const Bytes& mask) {
    Bytes frame;
    for (std::size_t at = 0; at < mask.size();) {
      std::size_t end = at + 1;
      while (end < mask.size() && mask[end] == mask[at]) ++end;
      frame.push_back(mask[at]);
      for (std::size_t length = end - at;; length >>= 7U) {
        frame.push_back(static_cast<std::byte>(length > 127 ? 128 | (length & 127) : length));
        if (length <= 127) break;
      }
      at = end;
    }
    return frame;
  };
  const auto decode = [](const Bytes& frame, Bytes& mask) {
    std::size_t out = 0;
    for (std::size_t at = 0; at < frame.size();) {
      const std::byte value = frame[at++];
      std::size_t length = 0;
      for (unsigned shift = 0; at < frame.size(); shift += 7) {
        const auto byte = std::to_integer<std::size_t>(frame[at++]);
        length |= (byte & 127) << shift;
        if (byte < 128) break;
      }
      length = std::min(length, mask.size() - out);
      std::memset(&mask[out], std::to_integer<int>(value), length);
      out += length;
    }
  };
  return {"run lengths", encode, decode};
}

template <class Work>
double rate(double seconds, const Work& work) {
  const Stopwatch watch;
  std::size_t done = 0;
  while (watch.seconds() < seconds) work(done++ % kMasks);
  return static_cast<double>(done) / watch.seconds();
}

void measure(const Kind& kind, std::uint32_t side, double seconds) {
  Random random(7);
  std::vector<Bytes> masks;
  for (std::size_t i = 0; i < kMasks; ++i) masks.push_back(kind.make(random, side));
  SampleSpec spec;
  spec.dtype = DType::u8;
  spec.channels = 1;
  spec.width = spec.height = side;
  std::vector<Candidate> candidates;
  for (const char* name : {"none", "packed", "zstd:1", "zstd:3"}) candidates.push_back(stored(name, spec));
  candidates.push_back(run_lengths());
  Bytes back(masks.front().size());
  for (Candidate& candidate : candidates) {
    for (const Bytes& mask : masks) {
      candidate.frames.push_back(candidate.encode(mask));
      candidate.decode(candidate.frames.back(), back);
      if (back != mask) throw std::runtime_error(candidate.name);
    }
  }
  constexpr int kTurns = 5;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Candidate& candidate : candidates) {
      candidate.encode_rates.push_back(
          rate(seconds / kTurns, [&](std::size_t i) { candidate.encode(masks[i]); }));
      candidate.decode_rates.push_back(
          rate(seconds / kTurns, [&](std::size_t i) { candidate.decode(candidate.frames[i], back); }));
    }
  }
  for (const Candidate& candidate : candidates) {
    double bytes = 0;
    for (const Bytes& frame : candidate.frames) bytes += static_cast<double>(frame.size());
    std::printf("%-8s %-12s %10.0f %12.3f %14.0f %14.0f\n", kind.name, candidate.name.c_str(), bytes / kMasks,
                8 * bytes / static_cast<double>(kMasks * back.size()),
                bench::summarize(candidate.encode_rates).median,
                bench::summarize(candidate.decode_rates).median);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const auto side = static_cast<std::uint32_t>(argc > 1 ? std::stoul(argv[1]) : 256);
  const double seconds = argc > 2 ? std::stod(argv[2]) : 1.0;
  std::printf("%-8s %-12s %10s %12s %14s %14s\n", "masks", "codec", "bytes", "bits/value", "encoded/s",
              "decoded/s");
  for (const Kind& kind : kinds()) measure(kind, side, seconds);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_mask: %s\n", error.what());
  return 2;
}
