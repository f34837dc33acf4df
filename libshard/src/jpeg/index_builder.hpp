// Makes the index of a JPEG on the host: reads all codes once, without values but DC differences. Takes 0.25
// to 0.34 of the time of a decode by libjpeg-turbo (240 photographs of about 100 kB, one core; the more where
// the tables of each file are new).
//
// It is also the proof that a file is what the kernels decode: every code is a code, each interval and the
// scan end where they must, and nothing follows but comments and EOI. A file that it accepts without extra
// bytes is decoded by libjpeg-turbo without a warning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/clean_scan.hpp"
#include "jpeg/entropy.hpp"
#include "jpeg/header.hpp"
#include "jpeg/skip_table.hpp"

namespace shard::jpeg {

// Not thread-safe: one per thread. Keeps its memory from file to file.
class IndexBuilder {
 public:
  struct Result {
    std::vector<std::byte> index;
    // Bytes between the last MCU and the next marker, which decoders skip: an encoder's, or the sign of
    // damage (image/codecs/jpeg_scan.hpp finds out).
    std::size_t extra_bytes = 0;
  };

  // `header`: parse_header(file). corrupt: the data are damaged, with byte and MCU. unsupported: they are for
  // libjpeg-turbo.
  Result build(std::span<const std::byte> file, const Header& header);

 private:
  struct Block {
    const std::uint16_t* dc = nullptr;
    const SkipTable* ac = nullptr;
    std::uint32_t component = 0;
  };
  void prepare(const Header& header);
  std::uint64_t read_mcu(std::uint64_t position,
                         std::array<std::uint16_t, kMostComponents>& predictors) const;
  std::uint32_t read_entries(const Header& header);

  CleanScan scan_;
  std::array<LookUp, kMostTables> dc_;
  std::array<SkipTable, kMostTables> ac_;
  std::vector<Block> blocks_;  // of an MCU
  std::vector<EntryPoint> entries_;
  std::size_t extra_bytes_ = 0;
};

}  // namespace shard::jpeg
