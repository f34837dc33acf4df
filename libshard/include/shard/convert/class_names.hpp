// The names of the labels 0, 1, ..., as Options::classes takes them: of a text file, or of another data set.
//
//   options.classes = shard::convert::read_class_names("out/train");
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "shard/error.hpp"

namespace shard::convert {

// A text file with one name a line (UTF-8; blanks at the end of a line do not count), or a data set: its
// folder, its dataset.json, an address. The names are not escaped. Errors: invalid_argument (an empty line, a
// name that occurs twice, no names, a data set whose labels are numbers), and those of Dataset::open().
std::vector<std::string> read_class_names(const std::filesystem::path& from);

}  // namespace shard::convert
