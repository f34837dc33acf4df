// What a subcommand of shardbench prints, and what stands of it on a report's page, made from the JSON that
// it writes. The JSON may be of another version (report/section.hpp).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/page.hpp"

namespace shard::bench {

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
