// The host reference of making an index on a device: all lanes of a file, one after the other, with the
// functions of the kernels. A program that only wants an index calls IndexBuilder, which is faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/header.hpp"
#include "jpeg/lanes/lane_chain.hpp"

namespace shard::jpeg {

// Not thread-safe: one per thread. Keeps its memory from file to file.
class LaneIndex {
 public:
  struct Result {
    // Fault::none: equal to IndexBuilder's, which finds no extra bytes in such a file, and it ends with EOI
    // right behind its image data.
    Fault fault = Fault::none;
    std::vector<std::byte> index;
    LanePlan plan;
    std::uint32_t chunks_taken = 0;  // may be more than there are
    std::uint32_t read_alone = 0;    // MCUs, where lanes did not meet
  };

  // `header`: parse_header(file). Never throws for what the image data hold. unsupported: data of 2^29 bytes
  // or more.
  Result build(std::span<const std::byte> file, const Header& header);
  // With parts and a pool of other sizes.
  Result build(std::span<const std::byte> file, const Header& header, const LanePlan& plan);

 private:
  std::vector<CodeTable> codes_;
  std::vector<PackedSkip> skips_;
  std::vector<McuStart> starts_;
  std::vector<std::uint32_t> links_;
  std::vector<Lane> lanes_;
};

}  // namespace shard::jpeg
