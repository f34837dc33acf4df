// The kinds of sources of images: one table, from which scanning and messages are made. A new kind is a file
// with its functions, a row, and a row in docs/sources.md.
#pragma once

#include <span>
#include <string>

#include "convert/sources/scan.hpp"

namespace shard::convert {

struct SourceKind {
  const char* name;  // with its article, for messages
  // Whether it may be on servers; and how it is given then, or that it may not.
  bool on_servers;
  const char* about_servers;
  // Inputs are parts of files (InputList::archives).
  bool has_archives;
  // Archives have members that belong to images (ScanOptions::side).
  bool has_side_members;
  // Whether `images` names a source of this kind, if it names none of the rows before. Throws unsupported for
  // one whose form is not read, such as a compressed archive.
  bool (*matches)(const std::string& images);
  // With unsorted results.
  InputList (*scan)(const ScanOptions& options);
};

std::span<const SourceKind> source_kinds() noexcept;
// The kind that `images` names. Errors: unsupported, invalid_argument (it may not be on a server).
const SourceKind& source_kind(const std::string& images);
// The names of some kinds: "a tar archive, an array or a folder".
std::string names_of_kinds(bool (*some)(const SourceKind& kind));

// The functions of the rows: list.cpp, scan_tar.cpp, scan_arrays.cpp, walk.cpp.
bool names_list(const std::string& images);
InputList scan_list(const ScanOptions& options);
bool names_tars(const std::string& images);
InputList scan_tars(const ScanOptions& options);
bool names_arrays(const std::string& images);  // also a folder of CIFAR's binary files
InputList scan_arrays(const ScanOptions& options);
InputList scan_folder(const ScanOptions& options);  // with is_single(options.layout): its .npy files
// The inputs of a folder become arrays of one image each.
void read_array_files(InputList& list, ArrayLayout layout);

}  // namespace shard::convert
