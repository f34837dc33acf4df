// Errors of reading samples: they name the shard and the sample, and say if the shard's file has changed.
#pragma once

#include <cstdint>
#include <string>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard {

// Path, number and key of a sample, for messages. The key is left out if it cannot be read, because what is
// being reported comes first.
std::string name_of_sample(const ShardReader& shard, std::uint64_t sample);

// Compares the file under the path of a shard with the file that is mapped, so that one that was cut or
// replaced is named before it is read. Errors: corrupt, io.
void check_alive(const ShardReader& shard);

// A failure while the shard was read, with what is wrong with its file if that can be seen; the code is then
// corrupt.
Error explained(const ShardReader& shard, const Error& error);
// Throws that with the shard and the sample that it is about.
[[noreturn]] void rethrow_for(const ShardReader& shard, std::uint64_t sample, const Error& error);

// In a catch block around a wait for a batch's bytes: throws what failed again, with the shard and the sample
// whose bytes could not be read. To another failure it adds which of the open shards has changed, if one has.
[[noreturn]] void rethrow_named(const Dataset& dataset);

}  // namespace shard
