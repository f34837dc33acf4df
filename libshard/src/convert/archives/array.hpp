// Headers of files that hold arrays: .npy (numpy), IDX (MNIST), members of .npz, records of CIFAR; and how an
// item of an array of images is handed on. All functions look only at the bytes that they are given; nothing
// is allocated by what these say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shard/convert/options.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// An array in a file, in C order.
struct ArrayHeader {
  // As numpy writes it: "|u1", "<i8", ">i4", ...
  std::string dtype;
  std::vector<std::uint64_t> shape;
  // Of the first element, from where the header begins.
  std::uint64_t data_offset = 0;
};

// No header is longer: more of the file need not be given.
inline constexpr std::size_t kMaxArrayHeaderBytes = std::size_t{64} << 10U;

// `begin`: the first bytes of the file. Errors: corrupt; unsupported (Fortran order, objects, structures,
// other versions).
ArrayHeader parse_npy_header(std::span<const std::byte> begin);
// Unsigned bytes only. Errors: corrupt, unsupported.
ArrayHeader parse_idx_header(std::span<const std::byte> begin);
bool is_idx_of_images(std::span<const std::byte> begin) noexcept;

// The number of elements. Errors: corrupt, if they are not all in the `file_bytes` behind data_offset,
// or too many to count.
std::uint64_t count_elements(const ArrayHeader& header, std::uint64_t element_bytes,
                             std::uint64_t file_bytes);

// A whole number of one of numpy's dtypes; integer_bytes() is 0 for others.
std::uint64_t integer_bytes(const std::string& dtype) noexcept;
// Of whole numbers, and of floating ones that images may have; 0 for others.
std::uint64_t element_bytes(const std::string& dtype) noexcept;
// Errors: corrupt, if it is more than int64 holds.
std::int64_t load_integer(const std::string& dtype, const std::byte* element);

// One image of an array.
struct ArrayImages {
  std::uint64_t count = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  unsigned channels = 1;
  bool planes = false;  // [channel, row, column]
  unsigned element_bytes = 1;
  // TIFF's: 1 unsigned, 2 signed, 3 floating-point.
  unsigned sample_format = 1;
  bool big_endian = false;
  std::uint64_t item_bytes() const noexcept {
    return std::uint64_t{width} * height * channels * element_bytes;
  }
};

// What the axes are: of four, the channels are the second or the last, whichever is 1, 3 or 4, or else not a
// side of a square, or else the smaller one. is_single(layout): the array is one image. dtypes: integers of 8
// and 16 bits, floats. Errors: unsupported (other dtypes, other shapes; what to do), invalid_argument (either
// layout is possible: `array_layout` says which), corrupt (an axis of 0).
ArrayImages images_of(const ArrayHeader& header, ArrayLayout layout);

// An uncompressed TIFF file up to its samples, which are those of an item as the array has them.
// So an item is a file like others.
std::vector<std::byte> tiff_header(const ArrayImages& images);

// A member of a ZIP archive: stored as it is, or compressed with Deflate.
struct ZipMember {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  // The same, unless it is compressed.
  std::uint64_t stored_bytes = 0;
  bool deflated = false;
  std::uint32_t checksum = 0;  // CRC-32 of its bytes
};
// Fills `out` from `offset` on; returns how many bytes there were.
using FileBytes = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> out)>;
// The members of an .npz file. Errors: corrupt; unsupported (encrypted members, other compression:
// what to do).
std::vector<ZipMember> list_npz(const FileBytes& bytes, std::uint64_t file_bytes);

}  // namespace shard::convert
