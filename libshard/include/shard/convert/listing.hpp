// What lies in the folder or list that is converted: inputs, classes, what is passed over, what cannot be
// used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shard/image/preprocess.hpp"

namespace shard::convert {

// An input that is not stored, and why. The key is escaped (shard/keys.hpp), the reason is UTF-8.
struct Reject {
  std::string key;
  std::string reason;
  bool operator==(const Reject&) const = default;
};

// Why a file or folder is passed over. None of these is a reject: nothing that could be a sample is lost.
enum class SkipReason : std::uint8_t {
  // The name begins with a dot: .git, .ipynb_checkpoints, .DS_Store.
  hidden,
  // Left by a system or a program: __MACOSX, @eaDir, Thumbs.db, desktop.ini, ...
  litter,
  // Neither the name nor the content is that of an image.
  no_image,
  // A link to a folder whose images are in the same class already.
  walked,
};
std::string_view to_string(SkipReason reason) noexcept;  // "hidden name", ...

// A file or folder that is passed over. Of a folder only the folder itself is counted.
struct Skip {
  std::string key;  // escaped
  SkipReason reason;
  bool operator==(const Skip&) const = default;
};

// What was found in a file of annotations besides those that are stored.
struct AnnotationCounts {
  struct Count {
    std::uint64_t number = 0;
    // The first of them, for messages.
    std::string first;
  };
  // Objects that are stored.
  std::uint64_t objects = 0;
  // Inputs without annotations.
  Count images_without;
  // Annotations whose image is not among the inputs.
  Count without_image;
  // Objects that are left out: their category is not in the file; their box has no area;
  // they lie outside of the crop.
  Count unknown_category;
  Count invalid_boxes;
  Count cut_away;
  // Boxes that reach more than a pixel (YOLO: a hundredth) beyond their image: what is beyond it is cut.
  Count beyond_image;
  // Inputs beside the folders of others: then folders are no classes.
  Count beside_folders;
};

// What was found in a folder of further images.
struct FurtherCounts {
  // Of the field.
  std::string name;
  // Inputs without a further image.
  AnnotationCounts::Count without;
  // Files whose image is not among the inputs.
  AnnotationCounts::Count unused;
};

struct Listing {
  // Images that will be decoded.
  std::uint64_t inputs = 0;
  // Escaped names. Empty: labels are numbers, or all 0.
  std::vector<std::string> classes;
  // The labels are numbers that come with the images: .cls members of tar archives, arrays of labels.
  bool numbers = false;
  // Escaped names of folders without images, which are not classes.
  std::vector<std::string> empty_folders;
  // Sorted by key.
  std::vector<Skip> skipped;
  // Those that are known before anything is decoded.
  std::vector<Reject> rejects;
  // Images that are left out because the table of labels does not name them.
  std::uint64_t unlisted = 0;
  // Escaped names of the classes of Options::classes that no image has.
  std::vector<std::string> absent_classes;
  // What a person should know before this is converted, a sentence each: other data beside the images gives
  // their classes other numbers; images would be enlarged. They name options as messages of errors do.
  std::vector<std::string> warnings;
  AnnotationCounts annotations;
  std::vector<FurtherCounts> further;
  // With which the images are converted: those of the options, or what the images decide.
  image::PreprocessOptions preprocess{};
};

}  // namespace shard::convert
