// The subcommands of shardbench: each adds itself to the parser, and says of the JSON that it writes what it
// prints and what stands of it on a report's page.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/subcommand.hpp"
#include "report/page.hpp"

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

PageSection convert_section(const nlohmann::ordered_json& json);
PageSection decode_section(const nlohmann::ordered_json& json);
PageSection device_section(const nlohmann::ordered_json& json);
PageSection load_section(const nlohmann::ordered_json& json);
PageSection matmul_section(const nlohmann::ordered_json& json);
PageSection memory_section(const nlohmann::ordered_json& json);
PageSection pipeline_section(const nlohmann::ordered_json& json);
PageSection tiers_section(const nlohmann::ordered_json& json);
PageSection transform_section(const nlohmann::ordered_json& json);
PageSection upload_section(const nlohmann::ordered_json& json);
PageSection write_section(const nlohmann::ordered_json& json);

}  // namespace shard::bench
