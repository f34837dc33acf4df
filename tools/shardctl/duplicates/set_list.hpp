// Several data sets under one numbering of their samples: those of the first, then of the second, and so on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardctl/dataset/source.hpp"
#include "shardctl/duplicates/groups.hpp"

namespace shard::ctl {

// Const members may be called from several threads at once.
class SetList {
 public:
  // Opens all and checks the heads of their shards. Errors: invalid_argument if a data set is named twice;
  // those of Source::open() and Source::shard().
  SetList(const std::vector<std::string>& paths, unsigned threads);

  std::size_t sets() const noexcept { return sources_.size(); }
  const Source& source(std::size_t set) const { return sources_[set]; }
  const std::string& path(std::size_t set) const { return paths_[set]; }
  std::uint64_t size() const noexcept { return begins_.back(); }

  struct Place {
    std::size_t set = 0;
    std::uint64_t index = 0;  // inside the data set
  };
  Place place(std::uint64_t sample) const;
  // Of samples of any size also over rows and columns: 2x3 and 3x2 pixels of one colour have the same bytes.
  std::uint64_t digest(std::uint64_t sample) const;
  std::string key(std::uint64_t sample) const;
  // Class or label, as `ls` prints it.
  std::string label(std::uint64_t sample) const;
  // `out` becomes the bytes of a sample, which are compared with its digest. If samples are of any size, its
  // rows and columns follow, so that different samples never become equal. Errors: those of Source::read().
  void read(std::uint64_t sample, std::vector<std::byte>& out) const;

  // Throws invalid_argument, naming two data sets and what differs, if equal pixels may have different bytes
  // in them: they must agree in dtype, layout and shape, and those of floats in normalisation. Data sets of
  // any size agree with all others of their channels.
  void require_same_bytes_for_same_pixels() const;

  // Whether the samples of a group are of more than one data set.
  bool is_across(std::span<const Member> group) const;
  // Whether not all have the same label.
  bool labels_differ(std::span<const Member> group) const;

 private:
  std::vector<std::string> paths_;
  std::vector<Source> sources_;
  std::vector<std::uint64_t> begins_;  // of each data set, and the end
  bool free_ = false;                  // one of them is of any size
};

}  // namespace shard::ctl
