#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "codec/jpeg_workspace.hpp"
#include "cuda/kernels/jpeg/image.hpp"
#include "jpeg/frame.hpp"
#include "jpeg/huffman.hpp"
#include "shard/error.hpp"

namespace shard::gpu {
namespace {

constexpr std::size_t kAlign = 256;
constexpr std::uint64_t kMostFew = 2 * kFewJpegPieces;  // pieces of a small image

std::uint32_t groups_of(std::uint64_t work, std::uint32_t per_group) {
  return static_cast<std::uint32_t>((work + per_group - 1) / per_group);
}

// At most this many tables does an image need: one of each kind per component.
std::uint32_t most_tables(std::uint32_t components) { return 2 * components; }

std::uint64_t lines_of(const jpeg::Layout& layout, const jpeg::McuWindow& window) {
  return std::uint64_t{window.rows.size()} * window.columns.size() * layout.blocks_of_mcu;
}

constexpr std::uint64_t kBytesOfLine = jpeg::kBlockValues * (sizeof(std::int16_t) + 1);
constexpr std::size_t kIndexAlign = 16;
constexpr std::uint64_t kBytesOfChunk = jpeg::kStartsOfChunk * sizeof(jpeg::McuStart) + sizeof(std::uint32_t);
void check_launch() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw Error(ErrorCode::io, std::string("decoding JPEGs on the GPU: ") + cudaGetErrorString(error));
}

constexpr std::uint64_t kBytesOfTable = jpeg::kLookUpEntries * sizeof(jpeg::CodeEntry);
constexpr std::uint64_t kBytesOfSkips = kSkipsOfFile * sizeof(jpeg::PackedSkip);

}  // namespace

JpegPlan::JpegPlan(std::span<const JpegSource> sources, Make make) : make_(make) {
  const std::size_t row = sources.size() + 1;
  groups_.assign(3 * row, 0);
  tasks_.reserve(sources.size());
  std::vector<std::uint64_t> pieces;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const JpegSource& source = sources[i];
    const jpeg::Layout layout = jpeg::geometry_of(source.file);
    JpegTask& task = tasks_.emplace_back();
    task.file = source.file;
    task.box = jpeg::stored_box(source.file, source.box);
    task.window = jpeg::needed_mcus(layout, task.box);
    const jpeg::Range columns = jpeg::pieces_of_columns(task.window.columns);
    task.window.columns = jpeg::columns_of_pieces(layout, columns);
    task.channels = source.channels;
    task.tables = tables_;
    task.first_line = lines_;
    task.frame = source.frame;
    task.index = source.index != nullptr ? source.index : source.frame + jpeg::index_offset(source.file);
    if (source.makes_index) add_lanes(static_cast<std::uint32_t>(i), layout);
    task.pixels = source.pixels;
    tables_ += most_tables(layout.components);
    if (make == Make::indices) continue;
    pieces.push_back(std::uint64_t{task.window.rows.size()} * columns.size());
    const std::uint64_t lines = lines_of(layout, task.window);
    lines_ += lines;
    groups_[row + i + 1] = groups_[row + i] + groups_of(lines, kJpegBlocks);
    groups_[2 * row + i + 1] = groups_[2 * row + i] + groups_of(jpeg_warps(task.box), kJpegStrips);
  }
  // Where images are small, most warps of large blocks would have no piece, but room for tables.
  const auto few = static_cast<std::size_t>(
      std::count_if(pieces.begin(), pieces.end(), [](std::uint64_t count) { return count <= kMostFew; }));
  block_pieces_ = 2 * few > pieces.size() ? kFewJpegPieces : kJpegPieces;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    groups_[i + 1] = groups_[i] + groups_of(pieces[i], block_pieces_);
}

void JpegPlan::add_lanes(std::uint32_t image, const jpeg::Layout& layout) {
  JpegTask& task = tasks_[image];
  if (task.file.bytes >= jpeg::kMostIndexedBytes)
    throw Error(ErrorCode::unsupported,
                fmt::format("a JPEG of {} bytes without an index; less than {} can be "
                            "indexed on a GPU",
                            task.file.bytes, jpeg::kMostIndexedBytes));
  const jpeg::LanePlan plan = jpeg::plan_lanes(layout.mcus(), task.file.bytes);
  lanes_.push_back({plan, image, slots_, chunks_, index_bytes_});
  task.makes_index = static_cast<std::uint32_t>(lanes_.size());
  lane_groups_.push_back(lane_groups_.back() + plan.groups);
  slots_ += plan.slots();
  chunks_ += plan.chunks;
  if (make_ == Make::pixels) index_bytes_ += round_up(jpeg::index_bytes(layout), kIndexAlign);
}

JpegPlan::~JpegPlan() = default;

std::size_t JpegPlan::parameter_bytes() const noexcept {
  return round_up(tasks_.size() * sizeof(JpegTask), kAlign) + lanes_.size() * sizeof(JpegLanes) +
         (groups_.size() + lane_groups_.size()) * sizeof(std::uint32_t);
}

std::size_t JpegPlan::workspace_bytes() const noexcept {
  return lines_ * kBytesOfLine + tables_ * kBytesOfTable +
         tasks_.size() * (sizeof(JpegImage) + sizeof(std::uint32_t)) + slots_ * sizeof(jpeg::Lane) +
         std::size_t{chunks_} * kBytesOfChunk + lanes_.size() * (kBytesOfSkips + sizeof(std::uint32_t)) +
         index_bytes_ + kAlign;
}

JpegLaunch JpegPlan::write(std::byte* host, const std::byte* device, std::byte* workspace) const {
  JpegLaunch launch;
  // In this order each part is aligned: lines of 128 and 64 bytes, tables of 6,656 and 8,192, lanes and
  // chunks of multiples of 16.
  std::byte* at = workspace;
  const auto place = [&at](std::size_t bytes) { return std::exchange(at, at + bytes); };
  launch.coefficients =
      reinterpret_cast<std::int16_t*>(place(lines_ * jpeg::kBlockValues * sizeof(std::int16_t)));
  launch.samples = reinterpret_cast<std::uint8_t*>(place(lines_ * jpeg::kBlockValues));
  launch.codes = reinterpret_cast<jpeg::CodeEntry*>(place(tables_ * kBytesOfTable));
  launch.skips = reinterpret_cast<jpeg::PackedSkip*>(place(lanes_.size() * kBytesOfSkips));
  launch.lane_results = reinterpret_cast<jpeg::Lane*>(place(slots_ * sizeof(jpeg::Lane)));
  launch.starts = reinterpret_cast<jpeg::McuStart*>(
      place(std::size_t{chunks_} * jpeg::kStartsOfChunk * sizeof(jpeg::McuStart)));
  std::byte* const indices = place(index_bytes_);
  launch.images = reinterpret_cast<JpegImage*>(place(tasks_.size() * sizeof(JpegImage)));
  launch.faults = reinterpret_cast<std::uint32_t*>(place(tasks_.size() * sizeof(std::uint32_t)));
  launch.links = reinterpret_cast<std::uint32_t*>(place(chunks_ * sizeof(std::uint32_t)));
  launch.taken = reinterpret_cast<std::uint32_t*>(place(lanes_.size() * sizeof(std::uint32_t)));

  const std::size_t lanes = round_up(tasks_.size() * sizeof(JpegTask), kAlign);
  const std::size_t groups = lanes + lanes_.size() * sizeof(JpegLanes);
  const std::size_t lane_groups = groups + groups_.size() * sizeof(std::uint32_t);
  std::vector<JpegTask> tasks = tasks_;
  if (make_ == Make::pixels)
    for (const JpegLanes& made : lanes_) tasks[made.image].index = indices + made.index;
  std::memcpy(host, tasks.data(), tasks.size() * sizeof(JpegTask));
  std::memcpy(host + lanes, lanes_.data(), lanes_.size() * sizeof(JpegLanes));
  std::memcpy(host + groups, groups_.data(), groups_.size() * sizeof(std::uint32_t));
  std::memcpy(host + lane_groups, lane_groups_.data(), lane_groups_.size() * sizeof(std::uint32_t));
  launch.tasks = reinterpret_cast<const JpegTask*>(device);
  launch.count = static_cast<std::uint32_t>(tasks_.size());
  launch.lane_plans = reinterpret_cast<const JpegLanes*>(device + lanes);
  launch.made_indices = static_cast<std::uint32_t>(lanes_.size());
  launch.lanes = {reinterpret_cast<const std::uint32_t*>(device + lane_groups), lane_groups_.back()};
  const auto* first = reinterpret_cast<const std::uint32_t*>(device + groups);
  const std::size_t row = tasks_.size() + 1;
  launch.pieces = {first, groups_[row - 1]};
  launch.block_pieces = block_pieces_;
  launch.blocks = {first + row, groups_[2 * row - 1]};
  launch.pixels = {first + 2 * row, groups_[3 * row - 1]};
  return launch;
}

std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file, bool makes_index) noexcept {
  const jpeg::Layout layout = jpeg::geometry_of(file);
  const std::uint64_t of_index = makes_index ? starts_workspace_bytes(layout.mcus(), file.bytes) +
                                                   round_up(jpeg::index_bytes(layout), kIndexAlign)
                                             : 0;
  return of_index + std::uint64_t{layout.mcus()} * layout.blocks_of_mcu * kBytesOfLine +
         most_tables(layout.components) * kBytesOfTable + sizeof(JpegImage) + sizeof(std::uint32_t) + kAlign;
}

void launch_jpeg(const JpegLaunch& launch, cudaStream_t stream) {
  if (launch.count == 0) return;
  launch_jpeg_headers(launch, stream);
  launch_jpeg_lanes(launch, stream);
  if (launch.pieces.count == 0) return check_launch();  // of indices alone
  launch_jpeg_pieces(launch, stream);
  launch_jpeg_samples(launch, stream);
  launch_jpeg_pixels(launch, stream);
  check_launch();
}

}  // namespace shard::gpu
