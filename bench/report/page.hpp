// A section of a report: sentences, tables and charts. The same section is printed on a terminal (to_text)
// and is part of a page (to_html), and its first chart is drawn into a file (chart_file.hpp).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shard::bench {

struct PageRow {
  std::vector<std::string> cells;
  std::string problem;    // why it was left out; shown instead of the missing cells
  bool emulated = false;  // marked in its first cell
};

struct PageTable {
  std::string caption;
  std::vector<std::string> head;
  std::size_t names = 1;  // columns that are words; the others hold numbers
  std::vector<PageRow> rows{};
  void add(std::vector<std::string> cells, bool emulated = false) {
    rows.push_back({std::move(cells), {}, emulated});
  }
  void leave_out(std::vector<std::string> cells, std::string problem, bool emulated = false) {
    rows.push_back({std::move(cells), std::move(problem), emulated});
  }
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
  std::vector<std::string> groups{};  // their names; one needs none
  std::vector<PageBar> bars{};        // top to bottom
  // The number of the group with this name. Makes the group if there is none yet.
  unsigned group(const std::string& name);
};

struct PageSection {
  std::string id, title;  // id: the subcommand
  std::string says;       // one sentence
  std::string command, when;
  std::vector<PageTable> tables;
  std::vector<PageChart> charts;
  std::vector<std::string> notes;     // limits, what was left out
  std::vector<std::string> problems;  // what the reader must know before any figure
  std::vector<std::string> unsteady;  // rows whose samples differ too much to compare: named in a note
};

struct Page {
  std::string title, when;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::string> problems;
  std::vector<PageSection> sections;
};

inline constexpr const char* kPageGenerator = "<meta name=\"generator\" content=\"shardbench report";

// The page as one HTML file. It loads nothing from elsewhere, needs no script and follows the reader's light
// or dark theme. All text is escaped.
std::string to_html(const Page& page);
// The section as plain text: its problems, its sentence, its tables, its notes.
std::string to_text(const PageSection& section);

}  // namespace shard::bench
