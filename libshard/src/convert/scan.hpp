// Which files are to be converted, in which order, with which labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "convert/input_name.hpp"
#include "shard/convert/listing.hpp"
#include "shard/convert/options.hpp"
#include "shard/shard_writer.hpp"

namespace shard::convert {

// Paths are bytes, not text: no locale, no Unicode normalisation. Sorted by their bytes.
struct Input {
  std::string path;         // relative to the root, '/' between parts
  std::string key() const;  // escaped (shard/keys.hpp)
};

struct InputList {
  // An input's file is root / path; may be empty.
  std::filesystem::path root;
  // Sorted, unique.
  std::vector<Input> inputs;
  // The classes: top-level folders below the root that hold an input or something that could not be read.
  // Sorted raw names.
  std::vector<std::string> folders;
  // Top-level folders that hold nothing of the kind, sorted, escaped: no classes.
  std::vector<std::string> empty_folders;
  // What could not even be listed: unreadable folders, symbolic-link loops. Sorted by key.
  std::vector<Reject> rejects;
  // Sorted by key.
  std::vector<Skip> skipped;
  // Inputs that a table of labels leaves out by choice (--unlisted skip).
  std::uint64_t unlisted = 0;
};

// `images` as in Options: a folder (followed recursively, symbolic links too), "@FILE" or "-". A pure
// function of what is there: neither the order in which a folder is read nor the locale enters it. Errors:
// not_found, io, invalid_argument (nothing found, duplicate paths, a list whose root is not obvious), naming
// the path.
//
// Links to folders: within one top-level folder each folder (device, inode) is walked once, so circles end
// and the work is bounded by the number of folders. What lies there without a link comes first, then links in
// the order of (links passed, bytes of the path). A link back to a folder that it lies in is a reject.
InputList scan(const std::string& images, const std::filesystem::path& list_root);

// The two kinds of it, unsorted: of walk.cpp and list.cpp.
InputList scan_folder(const std::string& images);
InputList scan_list(std::istream& in, const std::string& name, const std::filesystem::path& root);

struct LabelTable {
  ColumnSpec column{"labels", DType::i64, {}};
  std::vector<std::string> classes;  // escaped; empty when labels are numbers
  std::vector<std::byte> rows;       // inputs x row bytes, little-endian
  std::uint64_t row_bytes = 8;
};

// Class id = position of an input's top-level folder in the sorted folder names; no folders: label 0.
// Inputs beside class folders have no class: they are moved to list.rejects.
LabelTable labels_from_folders(InputList& list);

// path,label (whole numbers, or numbers, or class names) or path,v1,...,vk (float32). A row that names no
// input, a duplicate or a malformed row is invalid_argument with its line.
LabelTable labels_from_csv(InputList& list, const std::filesystem::path& file,
                           Unlisted unlisted = Unlisted::reject);

}  // namespace shard::convert
