// shardbench: measures, and makes sample data to measure on. One subcommand a file.
#include "program.hpp"

int main(int argc, char** argv) { return shard::bench::run_program(argc, argv); }
