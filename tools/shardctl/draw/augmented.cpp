#include "shardctl/draw/augmented.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/text/quote.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/geometry.hpp"
#include "shard/loader/targets.hpp"
#include "shardctl/draw/operation_names.hpp"

namespace shard::ctl {
namespace {

[[noreturn]] void unknown_policy(const std::string& policy) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--augment {}: expected one of {}; or an operation: {}", quoted(policy),
                          kPolicyNames, operation_names()));
}

// "2,9"
bool parse_two(std::string_view text, std::uint32_t& first, std::uint32_t& second) {
  const char* const end = text.data() + text.size();
  const auto [comma, error] = std::from_chars(text.data(), end, first);
  if (error != std::errc{} || comma == end || *comma != ',') return false;
  const auto [last, error_too] = std::from_chars(comma + 1, end, second);
  return error_too == std::errc{} && last == end;
}

}  // namespace

std::vector<Operation> parse_policy(const std::string& policy) {
  const std::size_t colon = policy.find(':');
  const std::string name = policy.substr(0, colon);
  const std::string rest = colon == std::string::npos ? std::string() : policy.substr(colon + 1);
  if (name == "rand-augment") {
    ops::RandAugment made;
    if (!rest.empty() && !parse_two(rest, made.count, made.magnitude)) unknown_policy(policy);
    return {made};
  }
  if (name == "auto-augment") {
    ops::AutoAugment made;
    if (rest == "cifar10")
      made.policy = ops::AutoAugmentPolicy::cifar10;
    else if (rest == "svhn")
      made.policy = ops::AutoAugmentPolicy::svhn;
    else if (!rest.empty() && rest != "imagenet")
      unknown_policy(policy);
    return {made};
  }
  if (colon != std::string::npos) unknown_policy(policy);
  const auto jitter = [](double strength, double hue, double probability) {
    const Range around{1 - strength, 1 + strength};
    return ops::ColorJitter{
        around, around, around, hue > 0 ? std::optional(Range{-hue, hue}) : std::nullopt, true, probability};
  };
  if (name == "trivial-augment") return {ops::TrivialAugment{}};
  if (name == "aug-mix") return {ops::AugMix{}};
  if (name == "3-augment") return {ops::ThreeAugment{}, jitter(0.3, 0, 1)};
  if (name == "simclr")
    return {jitter(0.8, 0.2, 0.8), ops::Grayscale{0.2}, ops::GaussianBlur{23, {0.1, 2.0}, 0.5}};
  if (name == "crop") return {};
  unknown_policy(policy);
}

Augmented::Augmented(const DatasetInfo& info, const std::string& policy, std::uint64_t seed) : seed_(seed) {
  const std::optional<Operation> alone = visible_operation(policy);
  options_.operations = alone ? std::vector<Operation>{*alone} : parse_policy(policy);
  if (info.spec.is_tensor() || (info.spec.channels != 1 && info.spec.channels != 3))
    throw Error(ErrorCode::unsupported,
                fmt::format("--augment: samples of {} with {} channels; it shows images of 1 or 3 channels",
                            to_string(info.spec.layout), info.spec.channels));
  if (info.spec.is_free())
    throw Error(ErrorCode::unsupported,
                "--augment: the samples are of any size; it shows what a loader delivers, and a loader needs "
                "samples of one size: convert the images with a size (for example --resize 256 --crop 256)");
  if (!alone) {
    options_.crop = CropKind::random_resized;
    options_.crop_height = info.spec.height;
    options_.crop_width = info.spec.width;
    options_.flip = 0.5;
  }
  options_.dtype = DType::u8;
  options_.layout = Layout::nhwc;
  plan_ = plan_transform(info, options_);
}

std::vector<std::uint8_t> Augmented::picture(const Source& source, std::uint64_t sample,
                                             std::uint64_t epoch) const {
  TransformWork work = plan_;
  const Source::Sample at = source.locate(sample);
  const bool framed = decodes_frames(source.info());
  std::vector<std::byte> stored(static_cast<std::size_t>(work.stored.size_bytes()));
  if (framed)
    at.reader.images().read_frame(at.index, stored);
  else
    at.reader.images().read(at.index, stored);
  const std::byte* const bytes = stored.data();
  const std::uint64_t frame_bytes = stored.size();
  const jpeg::FrameFile file = at.reader.images().frame_spec(at.index).file;
  std::uint32_t broken = 0;
  const SampleCrop crop = draw_crop(work.stored, options_, seed_, epoch, sample);
  std::vector<Instruction> program;
  draw_program(work.delivered, options_.operations, seed_, epoch, sample, 0, program);
  const std::uint32_t begins[] = {0, static_cast<std::uint32_t>(program.size())};
  std::vector<std::uint8_t> delivered(static_cast<std::size_t>(work.delivered.size_bytes()));
  work.sources = {&bytes, 1};
  work.crops = {&crop, 1};
  work.target = reinterpret_cast<std::byte*>(delivered.data());
  if (framed) {
    work.frame_bytes = {&frame_bytes, 1};
    if (source.info().codec.kind == CodecSpec::Kind::jpeg) work.files = {&file, 1};
    work.broken = &broken;
  }
  if (!program.empty()) {
    work.instructions = program;
    work.begins = begins;
  }
  const auto device = make_host_device(1);
  const auto stream = device->create_stream();
  stream->transform(work);
  stream->synchronize();
  if (broken != 0)
    throw Error(ErrorCode::corrupt, fmt::format("sample {}: its stored frame is damaged", sample));
  if (work.delivered.channels == 3) return delivered;
  std::vector<std::uint8_t> rgb;
  for (const std::uint8_t gray : delivered) rgb.insert(rgb.end(), 3, gray);
  return rgb;
}

namespace {

// A mask in the view.
SampleTargets::Mask moved_mask(const SampleTargets::Mask& mask, const Geometry& geometry) {
  const std::byte* const source = mask.values.data();
  const std::uint32_t begins[] = {0, static_cast<std::uint32_t>(geometry.steps.size())};
  TargetWork work;
  work.stored = mask.spec;
  work.height = geometry.height;
  work.width = geometry.width;
  work.layout = mask.spec.layout;
  work.sources = {&source, 1};
  work.crops = {&geometry.crop, 1};
  work.steps = geometry.steps;
  work.begins = begins;
  SampleTargets::Mask moved{mask.spec, std::vector<std::byte>(static_cast<std::size_t>(work.row_bytes()))};
  moved.spec.height = geometry.height;
  moved.spec.width = geometry.width;
  work.target = moved.values.data();
  const auto device = make_host_device(1);
  const auto stream = device->create_stream();
  stream->follow(work);
  stream->synchronize();
  return moved;
}

void append_points(std::span<const GeometryStep> steps, std::span<const float> points,
                   std::vector<float>& moved) {
  for (std::size_t i = 0; i + 3 <= points.size(); i += 3) {
    const PointXY point{static_cast<double>(points[i]), static_cast<double>(points[i + 1])};
    const auto at = points[i + 2] == 0 ? std::nullopt : move_point(steps, point);
    moved.push_back(at ? static_cast<float>(at->x) : 0);
    moved.push_back(at ? static_cast<float>(at->y) : 0);
    moved.push_back(at ? points[i + 2] : 0);
  }
}

}  // namespace

SampleTargets Augmented::targets(const Overlay& overlay, const Source& source, std::uint64_t index,
                                 std::uint64_t epoch) const {
  const Geometry geometry = draw_geometry(plan_, options_, seed_, epoch, index, 0);
  std::vector<GeometryStep> steps;
  steps_of(geometry, steps);
  const SampleTargets stored = overlay.read(source, index);
  SampleTargets moved;
  for (const SampleTargets::Mask& mask : stored.masks)
    if (mask.spec.height == plan_.stored.height && mask.spec.width == plan_.stored.width)
      moved.masks.push_back(moved_mask(mask, geometry));
  const std::size_t objects = stored.boxes.size() / 4;
  const std::size_t numbers = 3 * overlay.points();  // of the keypoints of an object
  const bool along = objects != 0 && stored.keypoints.size() == objects * numbers;
  for (std::size_t i = 0; i < objects; ++i) {
    const std::span<const float> of = std::span(stored.boxes).subspan(4 * i, 4);
    const auto at = move_box(steps, {static_cast<double>(of[0]), static_cast<double>(of[1]),
                                     static_cast<double>(of[2]), static_cast<double>(of[3])});
    if (!at || at->box.right - at->box.left < 1 || at->box.bottom - at->box.top < 1) continue;
    for (const double side : {at->box.left, at->box.top, at->box.right, at->box.bottom})
      moved.boxes.push_back(static_cast<float>(side));
    if (i < stored.labels.size()) moved.labels.push_back(stored.labels[i]);
    if (along)
      append_points(steps, std::span(stored.keypoints).subspan(numbers * i, numbers), moved.keypoints);
  }
  if (!along) append_points(steps, stored.keypoints, moved.keypoints);
  return moved;
}

}  // namespace shard::ctl
