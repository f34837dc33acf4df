// A chart as an SVG file.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/chart_file.hpp"
#include "report/svg.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard::bench {
namespace {

TEST(ChartFile, IsSvgThatEscapesItsLabels) {
  PageChart chart{"a < b & c", "samples/s"};
  chart.bars = {{"x \"y\" <z>", 1000, 0, chart.group("one"), false},
                {"w", 1, 0, chart.group("two"), false},
                {"none", 0, 0, chart.group("two"), false}};
  EXPECT_EQ(chart.groups, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(chart.bars[2].group, 1U);
  const std::string svg = chart_file(chart);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << svg;
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_NE(svg.find("x &quot;y&quot; &lt;z&gt;"), std::string::npos) << svg;
  EXPECT_NE(svg.find("logarithmic"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("var(--"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  chart.bars.clear();
  EXPECT_TRUE(chart_file(chart).ends_with("</svg>\n"));
  EXPECT_SHARD_ERROR(check_chart_file("chart.pdf"), ErrorCode::invalid_argument, "ending in .svg");
}

TEST(ChartFigure, HasAPictureForWindowsAndOneForPhones) {
  PageChart chart{"title", "samples/s"};
  chart.bars = {{"a label as long as a phone is wide, and no longer", 1000, 900, chart.group("one"), false}};
  const std::string figure = chart_figure(chart, "load-chart0");
  for (const char* part :
       {"<svg class=\"wide\" role=\"img\" aria-labelledby=\"load-chart0-t load-chart0-d\" viewBox=\"0 0 960 ",
        "<svg class=\"narrow\" role=\"img\" aria-labelledby=\"load-chart0-n-t load-chart0-n-d\" viewBox=\"0 "
        "0 360 ",
        "id=\"load-chart0-t\"", "id=\"load-chart0-n-t\"", "id=\"load-chart0-d\"", "id=\"load-chart0-n-d\""})
    EXPECT_NE(figure.find(part), std::string::npos) << part << '\n' << figure;
}

}  // namespace
}  // namespace shard::bench
