// shardify: a folder of images to a data set of shards.
#include "shardify/program.hpp"

int main(int argc, char** argv) { return shard::shardify::run_program(argc, argv); }
