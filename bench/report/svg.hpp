// Charts as SVG. No other file draws.
#pragma once

#include <string>
#include <string_view>

#include "report/page.hpp"

namespace shard::bench {

// Of text and of attributes in double quotes, in HTML and in SVG.
std::string escaped(std::string_view text);
// A figure of a page. Bars start at 0. If the values differ by more than a factor of 100, the scale is
// logarithmic, which the figure states. It has two pictures, of which the page's style shows one: for a
// window, and for a phone. `id` must be unique on the page. Empty: there is nothing to draw.
std::string chart_figure(const PageChart& chart, const std::string& id);
// The same as a separate file, which contains its colours.
std::string chart_file(const PageChart& chart);

}  // namespace shard::bench
