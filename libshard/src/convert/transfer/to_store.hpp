// A conversion into an object store. It works in a folder here,
// and each shard leaves that folder when it is finished:
//
//   WORK/set/shard-00012.safetensors, with its receipt --> a thread uploads it, proven
//     --> the file is hollow: it keeps its size, and no bytes
//   all shards are there --> inputs.csv, rejects.csv --> dataset.json, with If-None-Match --> WORK is removed
//
// So WORK holds four shards at most, and the journal of the conversion, which finds a hollow shard finished.
// A run that was stopped goes on from both: what the journal has is not converted again, and what the store
// has is proven by size and ETag, and not sent again. Without WORK (on another machine), images are converted
// again, and their shards, which have the same bytes, are not sent again.
#pragma once

#include "shard/convert/convert.hpp"

namespace shard::convert {

// `given.out`: s3://BUCKET/PREFIX. Errors: those of run() and of uploads; invalid_argument (the store holds
// another data set or other shards there).
Summary run_to_store(const Options& given, const Hooks& hooks);

}  // namespace shard::convert
