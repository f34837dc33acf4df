// How large the samples of a free field are (docs/sizes.md), and what samples are, as text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"

namespace shard::ctl {

// "u8 nhwc [224, 224, 3]", or "u8 nhwc, 3 channels, any size".
std::string spec_text(const SampleSpec& spec);
// "mask u8 nhwc [224, 224, 1] packed", or "mask u8 nhwc, 1 channel, any size, codec packed".
std::string field_text(const FieldSpec& field);
// As --squash takes it: "300x7", with the columns first.
std::string size_text(const SampleSpec& spec);
// Samples of both may have the same dtype, layout and shape.
bool may_be_equal(const SampleSpec& a, const SampleSpec& b);

// Width to height of samples, in classes: from less than 1:2, which is tall, to more than 2:1.
inline constexpr std::array<std::string_view, 5> kAspects{"below 1:2", "1:2 to 4:5", "4:5 to 5:4",
                                                          "5:4 to 2:1", "above 2:1"};
inline constexpr std::size_t kFrequentSizes = 10;

struct SizeStatistics {
  // The median is the lower one of the two in the middle.
  struct Range {
    std::uint32_t least = 0;
    std::uint32_t median = 0;
    std::uint32_t most = 0;
  };
  struct Size {
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    std::uint64_t samples = 0;
  };
  Range height;
  Range width;
  std::uint64_t samples = 0;
  // Of all samples, before the codec, and of the largest.
  std::uint64_t bytes = 0;
  std::uint64_t largest_bytes = 0;
  // How many sizes there are, and the most frequent ones, at most kFrequentSizes: most samples first, of
  // equals the smaller height and width.
  std::uint64_t different = 0;
  std::vector<Size> frequent;
  // Samples of each class of kAspects.
  std::array<std::uint64_t, kAspects.size()> aspects{};
  double mean_bytes() const { return static_cast<double>(bytes) / static_cast<double>(samples); }
};
// Of the samples of a field, which must be free: of info().fields[*field], or of the main images. Reads the
// heads of the shards only. Memory: 12 bytes per sample. Errors: those of Source::shard().
SizeStatistics size_statistics(const Source& source, std::optional<std::size_t> field = {});

// Name and value for a table: height, width and bytes.
std::vector<std::pair<std::string, std::string>> size_rows(const SizeStatistics& sizes);
Json size_json(const SizeStatistics& sizes);

}  // namespace shard::ctl
