// What lies in the folder or list that is converted: inputs, classes, what is passed over, what cannot be
// used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shard::convert {

// An input that is not stored, and why. The key is escaped (shard/keys.hpp), the reason is UTF-8.
struct Reject {
  std::string key;
  std::string reason;
  bool operator==(const Reject&) const = default;
};

// Why a file or folder is passed over. None of these is a reject: nothing that could be a sample is lost.
enum class SkipReason : std::uint8_t {
  hidden,    // the name begins with a dot: .git, .ipynb_checkpoints, .DS_Store
  litter,    // left by a system or a program: __MACOSX, @eaDir, Thumbs.db, desktop.ini, ...
  no_image,  // neither the name nor the content is that of an image
  walked,    // a link to a folder whose images are in the same class already
};
std::string_view to_string(SkipReason reason) noexcept;  // "hidden name", ...

// A file or folder that is passed over. Of a folder only the folder itself is counted.
struct Skip {
  std::string key;  // escaped
  SkipReason reason;
  bool operator==(const Skip&) const = default;
};

struct Listing {
  std::uint64_t inputs = 0;                // to be decoded
  std::vector<std::string> classes;        // escaped; empty: labels are numbers, or all 0
  std::vector<std::string> empty_folders;  // escaped; without images, so no classes
  std::vector<Skip> skipped;               // by key
  std::vector<Reject> rejects;             // known before anything is decoded
  std::uint64_t unlisted = 0;              // images left out because the table of labels does not name them
};

}  // namespace shard::convert
