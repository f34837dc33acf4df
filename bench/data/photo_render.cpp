// The dead-leaves picture (Lee, Mumford, Huang 2001: Occlusion models for natural images): surfaces laid over
// each other from back to front, each with its own colour, shading and texture. Built with -ffp-contract=off:
// the same floats everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/fractal.hpp"
#include "data/photo.hpp"
#include "data/random.hpp"

namespace shard::bench {
namespace {

enum class Shape : std::uint8_t { ellipse, box, polygon, bar, ring };
constexpr std::uint32_t kShapes = 5;
constexpr std::uint32_t kTextures = 3;
constexpr float kFieldReach = 8.0F;  // fields hardly exceed it

struct Direction {
  float x = 1.0F;
  float y = 0.0F;
};

// The unit vector at `turn` of a full turn, along a diamond: close enough to even, and sqrt is the same on
// every machine.
Direction direction(float turn) {
  const float t = 4.0F * (turn - std::floor(turn));
  float x = t < 2.0F ? 1.0F - t : t - 3.0F;
  float y = t < 1.0F ? t : t < 3.0F ? 2.0F - t : t - 4.0F;
  const float length = std::sqrt(x * x + y * y);
  return {x / length, y / length};
}

struct Color {
  float y = 128.0F;
  float cb = 0.0F;  // around 0
  float cr = 0.0F;
};

struct Surface {
  Shape shape = Shape::ellipse;
  float cx = 0, cy = 0;  // centre
  float a = 1, b = 1;    // half axes, pixels
  Direction axis;
  std::array<Direction, 6> normals;  // polygon: edges n.p <= reach
  std::array<float, 6> reaches{};
  Color color;
  float slope_x = 0, slope_y = 0;  // shading: luma a pixel
  std::uint32_t texture = 0;
  bool mirrored = false;  // texture upside down
  float texture_gain = 0;
  float chroma_gain = 0;
  float softness = 1;  // width of the edge, pixels
  float wobble = 0;    // the edge follows the texture: pixels a unit of it
  float shadow = 0;    // 0: none, to 1: black
  float shadow_x = 0, shadow_y = 0, shadow_softness = 1;
};

struct Canvas {
  std::uint32_t width;
  std::uint32_t height;
  Field y, cb, cr;
};

// Distance to the edge in pixels, positive inside, of columns [x0, x1) of row `y`, into d[0, x1 - x0).
void edge_distances(const Surface& s, float dx, float dy, std::uint32_t x0, std::uint32_t x1, std::uint32_t y,
                    float* d) {
  const float py = static_cast<float>(y) - s.cy - dy;
  const float origin = -s.cx - dx;
  const auto count = x1 - x0;
  const float narrow = std::min(s.a, s.b);
  switch (s.shape) {
    case Shape::ellipse:
    case Shape::ring: {
      const bool ring = s.shape == Shape::ring;
      const float inner = ring ? 0.55F : -4.0F;
      for (std::uint32_t i = 0; i < count; ++i) {
        const float px = static_cast<float>(static_cast<std::int32_t>(x0 + i)) + origin;
        const float u = (px * s.axis.x + py * s.axis.y) / s.a;
        const float v = (py * s.axis.x - px * s.axis.y) / s.b;
        const float r = std::sqrt(u * u + v * v);
        d[i] = narrow * std::min(1.0F - r, r - inner);
      }
      break;
    }
    case Shape::box:
    case Shape::bar:
      for (std::uint32_t i = 0; i < count; ++i) {
        const float px = static_cast<float>(static_cast<std::int32_t>(x0 + i)) + origin;
        d[i] = std::min(s.a - std::fabs(px * s.axis.x + py * s.axis.y),
                        s.b - std::fabs(py * s.axis.x - px * s.axis.y));
      }
      break;
    case Shape::polygon:
      std::fill_n(d, count, 1e9F);
      for (std::size_t k = 0; k < s.normals.size(); ++k) {
        const Direction n = s.normals[k];
        for (std::uint32_t i = 0; i < count; ++i) {
          const float px = static_cast<float>(static_cast<std::int32_t>(x0 + i)) + origin;
          d[i] = std::min(d[i], s.reaches[k] - (px * n.x + py * n.y));
        }
      }
      break;
  }
}

struct Bounds {
  std::uint32_t x0, x1, y0, y1;
};
Bounds bounds(const Surface& s, float dx, float dy, float margin, const Canvas& canvas) {
  const bool tight = s.shape == Shape::ellipse || s.shape == Shape::ring;
  float rx = std::fabs(s.a * s.axis.x) + std::fabs(s.b * s.axis.y);
  float ry = std::fabs(s.a * s.axis.y) + std::fabs(s.b * s.axis.x);
  if (tight) {
    rx = std::sqrt(s.a * s.axis.x * s.a * s.axis.x + s.b * s.axis.y * s.b * s.axis.y);
    ry = std::sqrt(s.a * s.axis.y * s.a * s.axis.y + s.b * s.axis.x * s.b * s.axis.x);
  }
  if (s.shape == Shape::polygon) rx = ry = 1.6F * s.a;
  const auto clip = [](float v, std::uint32_t size) {
    return static_cast<std::uint32_t>(std::clamp(v, 0.0F, static_cast<float>(size)));
  };
  return {clip(s.cx + dx - rx - margin, canvas.width), clip(s.cx + dx + rx + margin + 1, canvas.width),
          clip(s.cy + dy - ry - margin, canvas.height), clip(s.cy + dy + ry + margin + 1, canvas.height)};
}

void cast_shadow(const Surface& s, Canvas& canvas, std::vector<float>& d) {
  const Bounds box = bounds(s, s.shadow_x, s.shadow_y, s.shadow_softness, canvas);
  const float scale = 1.0F / s.shadow_softness;
  for (std::uint32_t y = box.y0; y < box.y1; ++y) {
    edge_distances(s, s.shadow_x, s.shadow_y, box.x0, box.x1, y, d.data());
    float* luma = canvas.y.row(y) + box.x0;
    float* cb = canvas.cb.row(y) + box.x0;
    float* cr = canvas.cr.row(y) + box.x0;
    for (std::uint32_t i = 0; i < box.x1 - box.x0; ++i) {
      const float cover = std::min(1.0F, std::max(0.0F, d[i] * scale + 0.5F));
      const float light = 1.0F - s.shadow * cover * cover * (3.0F - 2.0F * cover);
      luma[i] *= light;
      cb[i] *= light;
      cr[i] *= light;
    }
  }
}

void lay(const Surface& s, Canvas& canvas, const std::array<Field, kTextures>& textures, const Field& chroma,
         std::vector<float>& d) {
  if (s.shadow > 0) cast_shadow(s, canvas, d);
  const Bounds box = bounds(s, 0, 0, s.softness + kFieldReach * s.wobble, canvas);
  const float scale = 1.0F / s.softness;
  for (std::uint32_t y = box.y0; y < box.y1; ++y) {
    edge_distances(s, 0, 0, box.x0, box.x1, y, d.data());
    const std::uint32_t from = s.mirrored ? canvas.height - 1 - y : y;
    const float* texture = textures[s.texture].row(from) + box.x0;
    const float* bend = textures.back().row(from) + box.x0;
    const float* tint = chroma.row(from) + box.x0;
    const float* tint2 = chroma.row(canvas.height - 1 - from) + box.x0;
    float* luma = canvas.y.row(y) + box.x0;
    float* cb = canvas.cb.row(y) + box.x0;
    float* cr = canvas.cr.row(y) + box.x0;
    const float base = s.color.y + s.slope_y * (static_cast<float>(y) - s.cy) +
                       s.slope_x * (static_cast<float>(box.x0) - s.cx);
    for (std::uint32_t i = 0; i < box.x1 - box.x0; ++i) {
      const float cover = std::min(1.0F, std::max(0.0F, (d[i] + s.wobble * bend[i]) * scale + 0.5F));
      const float value =
          base + s.slope_x * static_cast<float>(static_cast<std::int32_t>(i)) + s.texture_gain * texture[i];
      luma[i] += cover * (value - luma[i]);
      cb[i] += cover * (s.color.cb + s.chroma_gain * tint[i] - cb[i]);
      cr[i] += cover * (s.color.cr + s.chroma_gain * tint2[i] - cr[i]);
    }
  }
}

// What all surfaces of one picture share.
struct Mood {
  float hue;         // turn, of the class
  Shape shape;       // of the class
  float detail;      // scales the textures
  float saturation;  // of chroma, levels
  Direction light;
  float blur;  // depth of field
};

Color color_of(const Mood& mood, Random& random) {
  const bool own = random.chance(0.65F);
  const float hue = own ? mood.hue + 0.025F * random.bell() : random.uniform();
  const float strength = mood.saturation * (own ? random.uniform(0.7F, 1.6F) : random.uniform(0.0F, 0.7F));
  const Direction d = direction(hue);
  return {random.uniform(35.0F, 215.0F), strength * d.x, strength * d.y};
}

// A few surfaces are rough, many smooth: the product of two uniforms.
float roughness(const Mood& mood, Random& random) {
  return mood.detail * (1.0F + 17.0F * random.uniform() * random.uniform());
}

Surface random_surface(const Mood& mood, std::uint32_t width, std::uint32_t height, Random& random) {
  Surface s;
  s.shape = random.chance(0.75F) ? mood.shape : static_cast<Shape>(random.below(kShapes));
  const auto side = static_cast<float>(std::min(width, height));
  const float u = random.uniform();
  const float size = side * (0.02F + 0.40F * u * u * u);  // sizes fall steeply, as those of things in a scene
  s.cx = random.uniform(-0.1F, 1.1F) * static_cast<float>(width);
  s.cy = random.uniform(-0.1F, 1.1F) * static_cast<float>(height);
  s.a = size;
  s.b = size * random.uniform(0.45F, 1.0F);
  s.axis = direction(random.uniform());
  if (s.shape == Shape::bar) {
    s.a = 2.2F * size;
    s.b = std::max(1.5F, 0.22F * size);
  }
  if (s.shape == Shape::polygon) {
    const float start = random.uniform();
    const bool triangle = random.chance(0.7F);
    for (std::size_t k = 0; k < s.normals.size(); ++k) {
      const float corner = static_cast<float>(triangle ? k % 3 * 2 : k) / 6.0F;
      s.normals[k] = direction(start + corner);
      s.reaches[k] = size * (triangle ? 0.62F : random.uniform(0.6F, 1.0F));
    }
  }
  s.color = color_of(mood, random);
  const float shade = random.uniform(0.0F, 60.0F) / std::max(size, 4.0F);
  s.slope_x = shade * mood.light.x * 0.5F;
  s.slope_y = shade * mood.light.y * 0.5F;
  s.texture = random.below(kTextures);
  s.mirrored = random.chance(0.5F);
  s.texture_gain = roughness(mood, random);
  s.chroma_gain = 0.2F * s.texture_gain;
  if (random.chance(0.6F)) s.wobble = size * random.uniform(0.01F, 0.06F);
  s.softness = 0.9F + mood.blur * random.uniform() * random.uniform();
  if (random.chance(0.45F)) {
    s.shadow = random.uniform(0.2F, 0.6F);
    const float reach = random.uniform(0.05F, 0.3F) * size + 1.0F;
    s.shadow_x = reach * mood.light.x;
    s.shadow_y = reach * mood.light.y;
    s.shadow_softness = 2.0F + 0.5F * size * random.uniform();
  }
  return s;
}

std::uint8_t level(float value) { return static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F)); }

std::vector<std::uint8_t> develop(const Canvas& canvas, float noise, Random random) {
  std::vector<std::uint8_t> out(std::size_t{canvas.width} * canvas.height * 3);
  const Field grain = fractal_noise(canvas.width, canvas.height, 1.3F, 1, Random(random.bits(), 0, 0));
  std::size_t at = 0;
  for (std::uint32_t y = 0; y < canvas.height; ++y) {
    const float* luma = canvas.y.row(y);
    const float* cb = canvas.cb.row(y);
    const float* cr = canvas.cr.row(y);
    const float* chroma_grain = grain.row(y);
    for (std::uint32_t x = 0; x < canvas.width; ++x) {
      // Shot noise after the camera's tone curve: strongest in the shadows.
      const float strength = noise * (1.25F - luma[x] * (0.6F / 255.0F));
      out[at] = level(luma[x] + strength * random.bell());
      out[at + 1] = level(cb[x] + 128.0F + noise * 0.3F * chroma_grain[x]);
      out[at + 2] = level(cr[x] + 128.0F - noise * 0.25F * chroma_grain[x]);
      at += 3;
    }
  }
  return out;
}

}  // namespace

std::vector<std::uint8_t> render_photo(const PhotoPlan& plan) {
  Random random(plan.seed, plan.index, 1);
  const std::uint32_t width = plan.width;
  const std::uint32_t height = plan.height;

  Mood mood{};
  mood.hue = static_cast<float>(plan.label) / static_cast<float>(plan.classes);
  mood.shape = static_cast<Shape>(plan.label % kShapes);
  mood.detail = 0.6F + 3.2F * random.uniform() * random.uniform();
  mood.saturation = random.uniform(12.0F, 38.0F);
  mood.light = direction(random.uniform());
  mood.blur = random.uniform(0.5F, 8.0F);
  const float noise = 1.8F + 11.0F * random.uniform() * random.uniform();
  const float gain = random.uniform(1.0F, 1.4F);

  const std::array<Field, kTextures> textures{
      fractal_noise(width, height, gain, 0, Random(plan.seed, plan.index, 2)),
      fractal_noise(width, height, gain * 0.9F, 0, Random(plan.seed, plan.index, 3)),
      fractal_noise(width, height, gain * 0.8F, 1, Random(plan.seed, plan.index, 4))};
  const Field chroma = fractal_noise(width, height, 0.9F, 1, Random(plan.seed, plan.index, 5));

  const std::vector<float> zeros(std::size_t{width} * height, 0.0F);
  Canvas canvas{width, height, {width, height, zeros}, {width, height, zeros}, {width, height, zeros}};
  std::vector<float> distances(width);

  Surface ground = random_surface(mood, width, height, random);
  ground.shape = Shape::box;
  ground.cx = 0.5F * static_cast<float>(width);
  ground.cy = 0.5F * static_cast<float>(height);
  ground.a = ground.b = 4.0F * static_cast<float>(width + height);
  ground.slope_x = 0.2F * mood.light.x;
  ground.slope_y = 0.2F * mood.light.y;
  ground.shadow = 0;
  lay(ground, canvas, textures, chroma, distances);
  const std::uint32_t surfaces = 30 + random.below(130);
  for (std::uint32_t k = 0; k < surfaces; ++k) {
    lay(random_surface(mood, width, height, random), canvas, textures, chroma, distances);
  }
  return develop(canvas, noise, Random(plan.seed, plan.index, 6));
}

}  // namespace shard::bench
