// Files made of other image files: with segments or chunks taken out, doubled, swapped between files, damaged
// or cut. What they decode to is of no interest here; that it never depends on the files before is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace shard::testing {

using FileBytes = std::vector<std::byte>;

inline std::uint32_t byte_at(const FileBytes& file, std::size_t at) {
  return std::to_integer<std::uint32_t>(file[at]);
}

// A JPEG's segments up to its first scan, SOI apart, and the rest; one of a PNG is a chunk, of a WebP
// likewise.
struct Segments {
  FileBytes head;                // signature
  std::vector<FileBytes> parts;  // whole segments, lengths and checksums included
  FileBytes rest;
  FileBytes join() const {
    FileBytes file = head;
    for (const FileBytes& part : parts) file.insert(file.end(), part.begin(), part.end());
    file.insert(file.end(), rest.begin(), rest.end());
    return file;
  }
};

inline FileBytes slice(const FileBytes& file, std::size_t begin, std::size_t end) {
  return {file.begin() + static_cast<std::ptrdiff_t>(begin), file.begin() + static_cast<std::ptrdiff_t>(end)};
}

inline Segments split_jpeg(const FileBytes& file) {
  Segments out{slice(file, 0, 2), {}, {}};
  std::size_t at = 2;
  while (at + 4 <= file.size() && byte_at(file, at) == 0xFF && byte_at(file, at + 1) != 0xDA) {
    const std::size_t size = 2 + (byte_at(file, at + 2) << 8 | byte_at(file, at + 3));
    if (size > file.size() - at) break;
    out.parts.push_back(slice(file, at, at + size));
    at += size;
  }
  out.rest = slice(file, at, file.size());
  return out;
}

inline Segments split_png(const FileBytes& file) {
  Segments out{slice(file, 0, 8), {}, {}};
  std::size_t at = 8;
  while (at + 12 <= file.size()) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | byte_at(file, at + i);
    if (size > file.size() - at - 12) break;
    out.parts.push_back(slice(file, at, at + size + 12));
    at += size + 12;
  }
  out.rest = slice(file, at, file.size());
  return out;
}

inline Segments split_webp(const FileBytes& file) {
  Segments out{slice(file, 0, 12), {}, {}};
  std::size_t at = 12;
  while (at + 8 <= file.size()) {
    std::size_t size = 0;
    for (std::size_t i = 4; i-- > 0;) size = size << 8 | byte_at(file, at + 4 + i);
    size += size % 2;
    if (size > file.size() - at - 8) break;
    out.parts.push_back(slice(file, at, at + size + 8));
    at += size + 8;
  }
  out.rest = slice(file, at, file.size());
  return out;
}

inline Segments split(const FileBytes& file) {
  if (file.size() < 12) return {file, {}, {}};
  if (byte_at(file, 0) == 0xFF) return split_jpeg(file);
  return byte_at(file, 0) == 0x89 ? split_png(file) : split_webp(file);
}

inline FileBytes segment(unsigned marker, std::string_view payload) {
  FileBytes out{std::byte{0xFF}, static_cast<std::byte>(marker),
                static_cast<std::byte>((payload.size() + 2) >> 8),
                static_cast<std::byte>(payload.size() + 2)};
  for (const char c : payload) out.push_back(static_cast<std::byte>(c));
  return out;
}

// Without the segments of these markers: 0xDB quantisation tables, 0xC4 Huffman tables, ...
inline FileBytes without_markers(const FileBytes& jpeg, std::initializer_list<unsigned> markers) {
  Segments parts = split_jpeg(jpeg);
  std::erase_if(parts.parts, [&](const FileBytes& part) {
    for (const unsigned marker : markers)
      if (byte_at(part, 1) == marker) return true;
    return false;
  });
  return parts.join();
}

// One of many changes, chosen by `random`. `other` is a file of the same format.
inline FileBytes vary(const FileBytes& file, const FileBytes& other, std::mt19937_64& random) {
  using namespace std::string_view_literals;
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  Segments parts = split(file);
  const Segments others = split(other);
  const bool jpeg = file.size() > 2 && byte_at(file, 0) == 0xFF;
  switch (below(jpeg ? 14 : 7)) {
    case 0: {
      FileBytes cut = file;
      cut.resize(1 + below(file.size()));
      return cut;
    }
    case 1: {
      FileBytes damaged = file;
      for (std::size_t flips = 1 + below(4); flips > 0; --flips)
        damaged[below(damaged.size())] ^= static_cast<std::byte>(1 + below(255));
      return damaged;
    }
    case 2:
      if (!parts.parts.empty())
        parts.parts.erase(parts.parts.begin() + static_cast<std::ptrdiff_t>(below(parts.parts.size())));
      return parts.join();
    case 3:
      if (!parts.parts.empty()) {
        const std::size_t at = below(parts.parts.size());
        parts.parts.insert(parts.parts.begin() + static_cast<std::ptrdiff_t>(at),
                           parts.parts[below(parts.parts.size())]);
      }
      return parts.join();
    case 4:  // the header of another file
      parts.parts = others.parts;
      return parts.join();
    case 5:
      if (!parts.parts.empty() && !others.parts.empty())
        parts.parts[below(parts.parts.size())] = others.parts[below(others.parts.size())];
      return parts.join();
    case 6:
      if (parts.parts.size() > 1)
        std::swap(parts.parts[below(parts.parts.size())], parts.parts[below(parts.parts.size())]);
      return parts.join();
    case 7:
      return without_markers(file, {0xDB});
    case 8:
      return without_markers(file, {0xC4});
    case 9:
      return without_markers(file, {0xDB, 0xC4});
    case 10:  // another restart interval
      parts.parts.push_back(segment(0xDD, below(2) == 0 ? "\0\0"sv : "\0\3"sv));
      return parts.join();
    case 11:  // another colour transform
      parts.parts.insert(parts.parts.begin(), segment(0xEE, below(2) == 0 ? "Adobe\0\x64\0\0\0\0\0"sv
                                                                          : "Adobe\0\x64\0\0\0\0\2"sv));
      return parts.join();
    case 12:
      parts.parts.insert(parts.parts.begin(),
                         segment(0xE1, "Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"sv));
      parts.parts.insert(parts.parts.begin(), segment(0xE2, "ICC_PROFILE\0\1\1 damaged profile"sv));
      return parts.join();
    default:  // bytes that belong to nothing
      parts.parts.insert(parts.parts.begin() + static_cast<std::ptrdiff_t>(below(parts.parts.size() + 1)),
                         FileBytes(1 + below(9), std::byte{0x20}));
      return parts.join();
  }
}

}  // namespace shard::testing
