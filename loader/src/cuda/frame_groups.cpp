#include "cuda/frame_groups.hpp"

#include <fmt/format.h>

#include "shard/error.hpp"
#include "transform/check_work.hpp"
#include "transform/needed_box.hpp"

namespace shard {

namespace {

void check_file(const TransformWork& work, std::size_t row) {
  const jpeg::FrameFile& file = work.files[row];
  const SampleSpec stored = stored_spec(work, row);
  const auto refuse = [row](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, fmt::format("transform: row {}: {}", row, message));
  };
  if (reinterpret_cast<std::uintptr_t>(work.sources[row]) % jpeg::kFrameAlignment != 0)
    refuse("its frame is not 16-byte aligned");
  if (file.upright_width() != stored.width || file.upright_height() != stored.height)
    refuse(fmt::format("its file has {} x {} pixels, and the sample {} x {} (rows x columns)",
                       file.upright_height(), file.upright_width(), stored.height, stored.width));
  if (work.frame_bytes[row] != jpeg::frame_bytes(file))
    refuse(fmt::format("its frame has {} bytes, and that of its file {}", work.frame_bytes[row],
                       jpeg::frame_bytes(file)));
}

}  // namespace

void FrameGroups::start(const TransformWork& work, std::span<const std::byte* const> places) {
  for (std::size_t row = 0; row < work.sources.size(); ++row) {
    if (work.files[row].bytes == 0 && work.only_decodes()) continue;  // no frame
    check_crop(work, row);
    check_file(work, row);
  }
  work_ = &work;
  places_ = places;
  row_ = band_ = 0;
  bands_.clear();
}

bool FrameGroups::next(FrameGroup& group) {
  group.sources.clear();
  group.rows.clear();
  const TransformWork& work = *work_;
  std::uint64_t used = 0;
  for (;;) {
    if (band_ == bands_.size()) {
      if (row_ == work.sources.size()) break;
      const SampleBox box = needed_box(work, row_);
      bands_.clear();
      band_ = 0;
      if (work.files[row_].bytes != 0)
        add_jpeg_bands(work.files[row_], {box.left, box.top, box.width, box.height}, work.workspace_bytes,
                       bands_);
      ++row_;
      continue;
    }
    const std::size_t row = row_ - 1;
    const JpegBand& band = bands_[band_];
    used += band.workspace_bytes;
    if (used > work.workspace_bytes && !group.sources.empty()) break;
    ++band_;
    gpu::JpegSource& source = group.sources.emplace_back();
    source.file = work.files[row];
    source.box = band.box;
    source.frame = work.sources[row];
    source.pixels = const_cast<std::byte*>(places_[row]);
    source.channels = work.stored.channels;
    group.rows.push_back(static_cast<std::uint32_t>(row));
  }
  return !group.sources.empty();
}

}  // namespace shard
