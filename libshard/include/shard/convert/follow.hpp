// Converts a folder of images that still grows.
//
//   scan -> new files that have settled -> a shard's worth -> the first ones: a data set
//     ^                                                      later ones: appended as further shards
//     `------------- wait ------------------ until FILE exists: the rest too
//
// OUT is a whole data set from its first shard on, and grows by whole shards: whoever opens it at any moment
// sees all images of the shards that are finished, in an order that does not change any more.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "shard/convert/convert.hpp"
#include "shard/convert/options.hpp"
#include "shard/error.hpp"

namespace shard::convert {

struct FollowOptions {
  // When this file exists, what is there is converted, and follow() returns. Empty: only Hooks::cancel ends
  // it.
  std::filesystem::path until;
  // A file that was not written to for this long is complete. When `until` exists, all files are.
  std::chrono::milliseconds settled = std::chrono::seconds(2);
  // Between two scans of the folder, or ten times as long as a scan takes.
  std::chrono::milliseconds look = std::chrono::seconds(1);
  // Called after each growth, on the thread that calls follow(), with the whole data set.
  std::function<void(const Summary& whole)> grown = nullptr;
  // Called likewise, before follow() returns, with what could not be listed (an unreadable folder, a link
  // that leads in a circle) and so is not in OUT: one sentence.
  std::function<void(const std::string& text)> warn = nullptr;
};

// `options.images` is a folder, and labels are its folders; a class that comes later gets the next number.
// Shards have the bytes of a conversion, followed by appends, of the same lists of images. After a kill the
// same call continues: images that are in OUT are not read again. Returns the summary of the whole data set.
// Errors: those of run(); invalid_argument (options that need all images at once; an unfinished conversion in
// OUT); cancelled.
Summary follow(const Options& options, const FollowOptions& how, const Hooks& hooks = {});

}  // namespace shard::convert
