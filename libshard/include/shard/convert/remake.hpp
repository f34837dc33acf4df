// Remake: the samples of a data set once more, from the images that it was made from, to compare them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/decode.hpp"

namespace shard::convert {

struct RemakeOptions {
  // The folder, archives or arrays from which the data set was made.
  std::string images;
  // Of arrays whose shape does not say it.
  ArrayLayout layout = ArrayLayout::automatic;
  // Fields that are made too. Only names and folders count: all else is as recorded.
  std::vector<FurtherImages> pairs = {};
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
};

// Thread safe.
class Remake {
 public:
  // Lists archives, and the folders of `pairs`. `keys`: those of all samples, as stored; only `pairs` needs
  // them. Errors: not_found (`images` is no such source), io, unsupported (shardify did not make the data
  // set), invalid_argument (no such field; no file fits).
  Remake(const DatasetInfo& info, const std::vector<std::string>& keys, const RemakeOptions& options);
  ~Remake();

  // The names of the fields of RemakeOptions::pairs.
  const std::vector<std::string>& fields() const noexcept;

  class Worker;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Not thread safe: each thread has its own. The Remake must outlive it.
class Remake::Worker {
 public:
  explicit Worker(const Remake& remake);
  Worker(Worker&&) noexcept;
  ~Worker();

  // Makes the sample `index`, whose key is `key` (as stored), into `sample`, which gets its size, as
  // DatasetInfo::spec says.
  // Returns why a conversion would reject its image now. Errors: resource (too many open files), io (a
  // server), invalid_argument (an archive was changed meanwhile).
  std::optional<std::string> make(std::uint64_t index, const std::string& key,
                                  std::vector<std::byte>& sample);
  // What that sample is.
  const SampleSpec& made() const noexcept;
  // Its samples of fields(), in their order. Valid until the next call.
  std::span<const SampleValues> fields() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::convert
