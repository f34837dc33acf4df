// Labels by a given list of classes (Options::classes), and what hints that a list was needed.
#pragma once

#include <string>
#include <vector>

#include "convert/sources/scan.hpp"

namespace shard::convert {

// Throws invalid_argument for an empty name, and for one that occurs twice.
void check_class_names(const std::vector<std::string>& classes);

// One name a line, of a text file. Errors: not_found, io, invalid_argument (lines of YAML or JSON, too).
std::vector<std::string> names_in_file(const std::filesystem::path& path);

// The names of the classes of objects (Options::box_classes): of such a file, or the categories of another
// data set. Errors: those of names_in_file() and Dataset::open(); invalid_argument (a data set without
// categories).
std::vector<std::string> read_box_classes(const std::filesystem::path& from);

// The labels become positions in `classes` (not escaped). Labels that are numbers stay; they must be such
// positions. Throws invalid_argument naming the first image whose class or number is not in the list; also
// if there is nothing that says a class, and if the names are numbers, so that a label could be meant as
// name and as position.
void use_class_names(const std::vector<std::string>& classes, const InputList& list, LabelTable& labels);

// Classes that no image has.
std::vector<std::string> absent_classes(const LabelTable& labels);

// Classes (escaped) of images that are appended to a data set which does not have them; empty if it has all.
// A sentence for people.
std::string new_classes_warning(const std::vector<std::string>& there, const std::vector<std::string>& added,
                                const std::string& out);

// What lies beside the images and gives their classes other numbers: classes.txt, and the folder `train` of a
// folder `val`; and classes that are the parts of a data set: `train` and `val`, with the classes below them.
// Sentences for people; empty if there is nothing to say.
std::vector<std::string> class_warnings(const Options& options, const InputList& list,
                                        const LabelTable& labels);

}  // namespace shard::convert
