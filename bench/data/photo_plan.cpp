#include <array>

#include "data/photo.hpp"
#include "data/random.hpp"

namespace shard::bench {
namespace {

struct SizeShare {
  std::uint32_t share;  // of 1000
  std::uint32_t width;
  std::uint32_t height;
};

// Landscape 500x375 above all, since that is what the sites served whose photos went into ImageNet.
constexpr std::array kSizes{
    SizeShare{296, 500, 375}, SizeShare{90, 500, 333},  SizeShare{50, 500, 332},  SizeShare{40, 500, 334},
    SizeShare{34, 500, 281},  SizeShare{30, 500, 400},  SizeShare{100, 375, 500}, SizeShare{60, 333, 500},
    SizeShare{30, 400, 500},  SizeShare{75, 500, 500},  SizeShare{30, 640, 480},  SizeShare{22, 800, 600},
    SizeShare{8, 600, 800},   SizeShare{14, 1024, 768}, SizeShare{10, 1280, 960}, SizeShare{6, 1600, 1200},
};

struct QualityShare {
  std::uint32_t share;  // of 100
  int quality;
};
constexpr std::array kQualities{QualityShare{8, 75},  QualityShare{6, 80},  QualityShare{10, 85},
                                QualityShare{24, 90}, QualityShare{12, 92}, QualityShare{14, 94},
                                QualityShare{20, 95}, QualityShare{6, 96}};

}  // namespace

PhotoPlan plan_photo(std::uint64_t seed, std::uint64_t index, std::uint32_t classes) {
  Random random(seed, index, 0);
  PhotoPlan plan;
  plan.seed = seed;
  plan.index = index;
  plan.classes = classes;
  plan.label = static_cast<std::uint32_t>(index % classes);

  std::uint32_t ticket = random.below(1000);
  for (const SizeShare& size : kSizes) {
    if (ticket < size.share) {
      plan.width = size.width;
      plan.height = size.height;
      break;
    }
    ticket -= size.share;
  }
  if (plan.width == 0) {  // the rest: any small size
    plan.width = 140 + random.below(380);
    plan.height = 140 + random.below(380);
  }

  ticket = random.below(100);
  for (const QualityShare& quality : kQualities) {
    if (ticket < quality.share) {
      plan.quality = quality.quality;
      break;
    }
    ticket -= quality.share;
  }

  ticket = random.below(100);
  plan.sampling = ticket < 68   ? Sampling::s420
                  : ticket < 86 ? Sampling::s444
                  : ticket < 98 ? Sampling::s422
                                : Sampling::gray;
  plan.progressive = random.below(100) < 2;
  return plan;
}

}  // namespace shard::bench
