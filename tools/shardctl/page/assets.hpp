// The files beside this one, as text in the program: an installed shardctl needs nothing else.
#pragma once

#include <string_view>

namespace shard::ctl {

extern const std::string_view k_index_html;
extern const std::string_view k_page_css;
extern const std::string_view k_page_js;

}  // namespace shard::ctl
