// What `shardbench synth` does, without its arguments.
#pragma once

#include "data/synth.hpp"

namespace shard::bench {

// Makes the pictures, shows progress, and says on standard output what was made unless `quiet`.
// Returns the exit code. Errors: those of synthesize().
int run_synth(const SynthOptions& options, bool quiet);

}  // namespace shard::bench
