// A page of tables and charts as one HTML file: nothing in it is fetched from elsewhere, it needs no script
// and follows the reader's light or dark theme. Everything that is given as text is escaped.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shard::bench {

struct PageRow {
  std::vector<std::string> cells;
  std::string problem;    // why it was left out: stands in place of the cells that are missing
  bool emulated = false;  // marked in its first cell
};

struct PageTable {
  std::string caption;
  std::vector<std::string> head;
  std::size_t names = 1;  // columns that are words; the others hold numbers
  std::vector<PageRow> rows;
};

struct PageBar {
  std::string label;
  double value = 0;
  double limit = 0;    // 0: none; else a mark
  unsigned group = 0;  // bars of a group have one colour
  bool emulated = false;
};

struct PageChart {
  std::string title, unit;
  std::vector<std::string> groups;  // their names; one needs none
  std::vector<PageBar> bars;        // top to bottom
};

struct PageSection {
  std::string id, title;  // id: the subcommand
  std::string says;       // one sentence
  std::string command, when;
  std::vector<PageTable> tables;
  std::vector<PageChart> charts;
  std::vector<std::string> notes;     // limits, what was left out
  std::vector<std::string> problems;  // what the reader has to know before any figure
};

struct Page {
  std::string title, when;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::string> problems;
  std::vector<PageSection> sections;
};

inline constexpr const char* kPageGenerator = "<meta name=\"generator\" content=\"shardbench report";

// Of text and of attributes in double quotes.
std::string html_text(std::string_view text);
// Bars from 0 on; logarithmic, and said so, where the values lie more than a factor of 100 apart.
// `id` is unique on the page. Empty: there is nothing to draw.
std::string chart_svg(const PageChart& chart, const std::string& id);
std::string to_html(const Page& page);

}  // namespace shard::bench
