namespace shard::image {}
