// Finds equal samples, or samples that look alike, in data sets.
#pragma once

#include <cstdint>

#include "cli/progress.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/duplicates/groups.hpp"
#include "shardctl/duplicates/set_list.hpp"

namespace shard::ctl {

struct Found {
  Members members;
  // find_near() only: samples of almost one colour, for which only equal ones are found.
  std::uint64_t plain = 0;
};

// Samples with equal bytes: those with equal digests; with `verify`, their bytes are read and compared too.
// Damaged samples are left out and noted. Memory: group_by_digest(), and two samples per thread.
// Errors: those of require_same_bytes_for_same_pixels().
Found find_equal(const SetList& sets, bool verify, unsigned threads, cli::Progress& progress, Damage& damage);

// Samples whose perceptual hashes differ in at most `distance` bits. All samples are read. The data sets may
// differ in everything. Memory: group_by_hash(), and a sample in three forms per thread.
Found find_near(const SetList& sets, unsigned distance, unsigned threads, cli::Progress& progress,
                Damage& damage);

}  // namespace shard::ctl
