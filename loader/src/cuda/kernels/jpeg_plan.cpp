#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "cuda/kernels/jpeg/image.hpp"
#include "jpeg/frame.hpp"
#include "jpeg/huffman.hpp"
#include "shard/error.hpp"

namespace shard::gpu {
namespace {

constexpr std::size_t kAlign = 256;

std::uint32_t groups_of(std::uint64_t work, std::uint32_t per_group) {
  return static_cast<std::uint32_t>((work + per_group - 1) / per_group);
}

// At most this many tables does an image need: one of each kind per component.
std::uint32_t most_tables(std::uint32_t components) { return 2 * components; }

std::uint64_t lines_of(const jpeg::Layout& layout, const jpeg::McuWindow& window) {
  return std::uint64_t{window.rows.size()} * window.columns.size() * layout.blocks_of_mcu;
}

constexpr std::uint64_t kBytesOfLine = jpeg::kBlockValues * (sizeof(std::int16_t) + 1);
constexpr std::uint64_t kBytesOfTable = jpeg::kLookUpEntries * sizeof(jpeg::CodeEntry);

}  // namespace

JpegPlan::JpegPlan(std::span<const JpegSource> sources) {
  const std::size_t row = sources.size() + 1;
  groups_.assign(3 * row, 0);
  tasks_.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const JpegSource& source = sources[i];
    const jpeg::Layout layout = jpeg::geometry_of(source.file);
    JpegTask& task = tasks_.emplace_back();
    task.file = source.file;
    task.box = jpeg::stored_box(source.file, source.box);
    task.window = jpeg::needed_mcus(layout, task.box);
    const jpeg::Range pieces = jpeg::pieces_of_columns(task.window.columns);
    task.window.columns = jpeg::columns_of_pieces(layout, pieces);
    task.channels = source.channels;
    task.tables = tables_;
    task.first_line = lines_;
    task.frame = source.frame;
    task.index = source.index != nullptr ? source.index : source.frame + jpeg::index_offset(source.file);
    task.pixels = source.pixels;
    const std::uint64_t lines = lines_of(layout, task.window);
    tables_ += most_tables(layout.components);
    lines_ += lines;
    groups_[i + 1] =
        groups_[i] + groups_of(std::uint64_t{task.window.rows.size()} * pieces.size(), kJpegPieces);
    groups_[row + i + 1] = groups_[row + i] + groups_of(lines, kJpegBlocks);
    groups_[2 * row + i + 1] = groups_[2 * row + i] + groups_of(jpeg_warps(task.box), kJpegStrips);
  }
}

JpegPlan::~JpegPlan() = default;

std::size_t JpegPlan::parameter_bytes() const noexcept {
  return round_up(tasks_.size() * sizeof(JpegTask), kAlign) + groups_.size() * sizeof(std::uint32_t);
}

std::size_t JpegPlan::workspace_bytes() const noexcept {
  return lines_ * kBytesOfLine + tables_ * kBytesOfTable +
         tasks_.size() * (sizeof(JpegImage) + sizeof(std::uint32_t)) + kAlign;
}

JpegLaunch JpegPlan::write(std::byte* host, const std::byte* device, std::byte* workspace) const {
  JpegLaunch launch;
  const std::size_t groups = round_up(tasks_.size() * sizeof(JpegTask), kAlign);
  std::memcpy(host, tasks_.data(), tasks_.size() * sizeof(JpegTask));
  std::memcpy(host + groups, groups_.data(), groups_.size() * sizeof(std::uint32_t));
  launch.tasks = reinterpret_cast<const JpegTask*>(device);
  launch.count = static_cast<std::uint32_t>(tasks_.size());
  const auto* first = reinterpret_cast<const std::uint32_t*>(device + groups);
  const std::size_t row = tasks_.size() + 1;
  launch.pieces = {first, groups_[row - 1]};
  launch.blocks = {first + row, groups_[2 * row - 1]};
  launch.pixels = {first + 2 * row, groups_[3 * row - 1]};
  // In this order each part is aligned: lines of 128 and 64 bytes, tables of 6,656.
  std::byte* at = workspace;
  const auto place = [&at](std::size_t bytes) { return std::exchange(at, at + bytes); };
  launch.coefficients =
      reinterpret_cast<std::int16_t*>(place(lines_ * jpeg::kBlockValues * sizeof(std::int16_t)));
  launch.samples = reinterpret_cast<std::uint8_t*>(place(lines_ * jpeg::kBlockValues));
  launch.codes = reinterpret_cast<jpeg::CodeEntry*>(place(tables_ * kBytesOfTable));
  launch.images = reinterpret_cast<JpegImage*>(place(tasks_.size() * sizeof(JpegImage)));
  launch.faults = reinterpret_cast<std::uint32_t*>(place(tasks_.size() * sizeof(std::uint32_t)));
  return launch;
}

std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file) noexcept {
  const jpeg::Layout layout = jpeg::geometry_of(file);
  return std::uint64_t{layout.mcus()} * layout.blocks_of_mcu * kBytesOfLine +
         most_tables(layout.components) * kBytesOfTable + sizeof(JpegImage) + sizeof(std::uint32_t) + kAlign;
}

void launch_jpeg(const JpegLaunch& launch, cudaStream_t stream) {
  if (launch.count == 0) return;
  launch_jpeg_headers(launch, stream);
  launch_jpeg_pieces(launch, stream);
  launch_jpeg_samples(launch, stream);
  launch_jpeg_pixels(launch, stream);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw Error(ErrorCode::io, std::string("decoding JPEGs on the GPU: ") + cudaGetErrorString(error));
}

}  // namespace shard::gpu
