// Charts as SVG: the one place that draws.
#pragma once

#include <string>
#include <string_view>

#include "report/page.hpp"

namespace shard::bench {

// Of text and of attributes in double quotes, in HTML and in SVG.
std::string escaped(std::string_view text);
// A figure of a page. Bars from 0 on; logarithmic, and said so, where the values lie more than a factor of
// 100 apart. `id` is unique on the page. Empty: there is nothing to draw.
std::string chart_figure(const PageChart& chart, const std::string& id);
// The same as a file of its own, with its colours.
std::string chart_file(const PageChart& chart);

}  // namespace shard::bench
