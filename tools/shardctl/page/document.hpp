// The HTML file of a page.
#pragma once

#include <string>

#include "shardctl/dataset/json_text.hpp"

namespace shard::ctl {

// The template with style, script and data in it. Nothing of the data can be taken for markup: the title is
// escaped, and the JSON has no '<'.
std::string html_document(const std::string& title, const Json& data);

}  // namespace shard::ctl
