// Which members of archives belong to which image (WebDataset).
//
//   one archive       0001.jpg  0001.cls      one sample; of several members with one name the last counts
//   two archives      a: 0001.jpg 0001.cls    two samples: each has the members of its own archive
//                     b: 0001.jpg 0001.cls
//   apart             a: 0001.jpg             one sample: no other archive has an image or a .cls member of
//                                             this name
//                     b: 0001.cls
//
// What cannot be told is said for each image. Nothing is guessed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/sources/scan.hpp"

namespace shard::convert {

// A member that is no image.
struct SamplePart {
  std::string sample;     // sample_name() of its path
  std::string extension;  // what follows it, without the dot
  std::uint32_t archive = 0;
  bool label = false;  // "cls", "CLS", "x.cls"
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  // Of labels. Nothing: it is no whole number.
  std::optional<std::int64_t> number;
  std::shared_ptr<const std::string> problem;  // not null: it cannot be read, and why
};

// A member that is not used.
struct RefusedMember {
  std::string name;
  std::string reason;
  std::uint32_t archive = 0;
  std::uint64_t offset = 0;
};

// As tar does when it unpacks: of several members of an archive with one name the last one counts, even if it
// is refused. Inputs that come before it move to `refused`, so that nothing is lost silently. Sorts
// list.inputs by (path, archive), and `refused` by name, archive and offset, on at most `threads` threads.
void keep_last(InputList& list, std::vector<RefusedMember>& refused, unsigned threads);

// The rejects of `refused`: the last of a name has that as its key, and those before it NAME@OFFSET.
// Requires separate_archives().
void reject_refused(InputList& list, std::vector<RefusedMember>&& refused);

// Where two archives have images of one name, these are different samples: then the paths of all inputs begin
// with the names of their archives. Sets Archive::prefix and leaves the paths as they are. list.inputs must
// be sorted by (path, archive), without two of one path in an archive, and have the names of their members.
// Errors: invalid_argument (an archive is named twice).
void separate_archives(InputList& list, const std::vector<RefusedMember>& refused);

// Gives each input its parts: list.numbers, list.unclear_numbers and list.side, which name inputs by their
// paths with Archive::prefix. `parts`: of each archive in their order in it. Requires what
// separate_archives() does.
void assign_parts(InputList& list, std::vector<SamplePart>&& parts);

}  // namespace shard::convert
