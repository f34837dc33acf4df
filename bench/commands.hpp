// The subcommands of shardbench: each adds itself to the parser. sections.hpp says what they print.
#pragma once

#include "harness/subcommand.hpp"

namespace shard::bench {

void add_convert(const Subcommands& subcommands);
void add_decode(const Subcommands& subcommands);
void add_device(const Subcommands& subcommands);
void add_load(const Subcommands& subcommands);
void add_matmul(const Subcommands& subcommands);
void add_memory(const Subcommands& subcommands);
void add_pipeline(const Subcommands& subcommands);
void add_report(const Subcommands& subcommands);
void add_tiers(const Subcommands& subcommands);
void add_transform(const Subcommands& subcommands);
void add_upload(const Subcommands& subcommands);
void add_write(const Subcommands& subcommands);

}  // namespace shard::bench
