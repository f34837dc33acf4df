// shardctl: look at, check, compare, export and repack what shardify converted.
#include "shardctl/program.hpp"

int main(int argc, char** argv) { return shard::ctl::run_program(argc, argv); }
