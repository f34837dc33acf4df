// Errors of reading samples. They name the shard and the sample, and tell whether the shard's file has
// changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard {

// Path, number and key of a sample, and the name of a further field (a position in DatasetInfo::fields), for
// messages. The key is left out if it cannot be read: that must not hide the error that is being reported.
std::string name_of_sample(const ShardReader& shard, std::uint64_t sample,
                           std::optional<std::size_t> field = {});

// Compares the file at the path of a shard with the mapped file, so that a file that was cut or replaced is
// reported before it is read. Errors: corrupt, io.
void check_alive(const ShardReader& shard);

// `error` happened while the shard was read. If something is wrong with its file, the result says so, with
// code corrupt.
Error explained(const ShardReader& shard, const Error& error);
// Throws explained(), with the shard and the sample; or with `name` instead of them.
[[noreturn]] void rethrow_for(const ShardReader& shard, std::uint64_t sample, const Error& error);
[[noreturn]] void rethrow_for(const ShardReader& shard, const std::string& name, const Error& error);

// For a catch block around a wait for a batch's bytes. Throws the caught error again. If bytes could not be
// read, it adds their shard and sample; to other errors it adds which of the open shards has changed, if one
// has.
[[noreturn]] void rethrow_named(const Dataset& dataset);

}  // namespace shard
