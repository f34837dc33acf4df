// Which files are to be converted, in which order, with which labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "shard/shard_writer.hpp"

namespace shard::convert {

// Paths are bytes, not text: no locale, no Unicode normalisation. Sorted by their bytes.
struct Input {
  std::string path;         // relative to the root, '/' between parts
  std::string key() const;  // escaped (shard/keys.hpp)
};

struct Reject {
  std::string key;
  std::string reason;  // UTF-8
  bool operator==(const Reject&) const = default;
};

struct InputList {
  std::filesystem::path root;        // an input's file is root / path; may be empty
  std::vector<Input> inputs;         // sorted, unique
  std::vector<std::string> folders;  // top-level folders below the root, sorted: the classes (raw names)
  std::vector<Reject> rejects;       // what could not even be listed: unreadable folders, symbolic-link loops
};

// `images` as in Options: a folder (followed recursively, symbolic links too, each loop ends), "@FILE" or
// "-". Errors: not_found, io, invalid_argument (nothing found, duplicate paths), naming the path.
InputList scan(const std::string& images, const std::filesystem::path& list_root);

struct LabelTable {
  ColumnSpec column{"labels", DType::i64, {}};
  std::vector<std::string> classes;  // escaped; empty when labels are numbers
  std::vector<std::byte> rows;       // inputs x row bytes, little-endian
  std::uint64_t row_bytes = 8;
};

// Class id = position of an input's top-level folder in the sorted folder names; no folders: label 0.
// Inputs beside class folders have no class: they are moved to list.rejects.
LabelTable labels_from_folders(InputList& list);
// path,label (whole numbers, or numbers, or class names) or path,v1,...,vk (float32). Inputs that the table
// does not name are moved to list.rejects; a row that names no input, a duplicate or a malformed row is
// invalid_argument with its line.
LabelTable labels_from_csv(InputList& list, const std::filesystem::path& file);

}  // namespace shard::convert
