// Samples as JPEG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

#include "cli/progress.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/augmented.hpp"
#include "shardctl/draw/overlay.hpp"

namespace shard::ctl {

struct WrittenPictures {
  std::set<std::uint64_t> indices;  // damaged samples are not among them
  std::uint64_t size_bytes = 0;
};
// Writes INDEX.jpg for each of the samples, of picture_size(), with its targets unless `overlay` is null.
// Damaged ones are noted and left out. Errors: io, and those of Source::read().
WrittenPictures write_pictures(const Source& source, const std::set<std::uint64_t>& indices,
                               const std::filesystem::path& folder, unsigned threads, cli::Progress& progress,
                               Damage& damage, const Overlay* overlay);

// What the loader's transform makes of some samples: writes INDEX-aEPOCH.jpg for each of them and
// `epochs` epochs, with their targets unless `overlay` is null. Errors: those of Augmented; io.
// Returns the bytes written.
std::uint64_t write_augmented(const Source& source, const Augmented& augmented,
                              const std::vector<std::uint64_t>& indices, std::uint32_t epochs,
                              const std::filesystem::path& folder, const Overlay* overlay);

}  // namespace shard::ctl
