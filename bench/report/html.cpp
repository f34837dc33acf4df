#include "report/page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "report/style.hpp"
#include "report/svg.hpp"
#include "shard/version.hpp"

namespace shard::bench {
namespace {

// A table that is wider than the window scrolls by itself, also by keyboard.
std::string table_html(const PageTable& table) {
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n"
      "<table>\n<caption>{0}</caption>\n<thead><tr>",
      escaped(table.caption));
  const auto kind = [&](std::size_t column) { return column < table.names ? "" : " class=\"n\""; };
  for (std::size_t i = 0; i < table.head.size(); ++i)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", kind(i), escaped(table.head[i]));
  html += "</tr></thead>\n<tbody>\n";
  for (const PageRow& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string text =
          escaped(row.cells[i]) + (i == 0 && row.emulated ? " <span class=\"emulated\">emulated</span>" : "");
      html += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", kind(i), text)
                     : fmt::format("<td{}>{}</td>", kind(i), text);
    }
    const std::size_t rest = table.head.size() - std::min(table.head.size(), row.cells.size());
    if (!row.problem.empty() && rest > 0)
      html += fmt::format("<td class=\"out\" colspan=\"{}\">left out: {}</td>", rest, escaped(row.problem));
    else if (rest > 0)
      html += fmt::format("<td colspan=\"{}\"></td>", rest);
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

std::string list_html(const std::vector<std::string>& items, const char* kind) {
  if (items.empty()) return {};
  std::string html = fmt::format("<ul class=\"{}\">\n", kind);
  for (const std::string& item : items) html += fmt::format("<li>{}</li>\n", escaped(item));
  return html + "</ul>\n";
}

std::string section_html(const PageSection& section) {
  std::string html = fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}"
      "</h2>\n",
      escaped(section.id), escaped(section.title));
  if (!section.says.empty()) html += fmt::format("<p class=\"says\">{}</p>\n", escaped(section.says));
  html += list_html(section.problems, "problems");
  for (std::size_t i = 0; i < section.charts.size(); ++i)
    html += chart_figure(section.charts[i], fmt::format("{}-chart{}", escaped(section.id), i));
  for (const PageTable& table : section.tables)
    if (!table.rows.empty()) html += table_html(table);
  html += list_html(section.notes, "notes");
  if (!section.command.empty())
    html += fmt::format("<p class=\"command\"><code>{}</code>{}</p>\n", escaped(section.command),
                        section.when.empty() ? "" : " <span>" + escaped(section.when) + "</span>");
  return html + "</section>\n";
}

}  // namespace

std::string to_html(const Page& page) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n{} {}\">\n<title>{}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n"
      "<p>{}</p>\n",
      kPageGenerator, SHARD_VERSION_STRING, escaped(page.title), kPageStyle, escaped(page.title),
      escaped(page.when));
  html += "<dl>\n";
  for (const auto& [name, value] : page.facts)
    if (!value.empty())
      html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
  html += "</dl>\n" + list_html(page.problems, "problems") + "<nav aria-label=\"Sections\">\n<ul>\n";
  for (const PageSection& section : page.sections)
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", escaped(section.id), escaped(section.title));
  html += "</ul>\n</nav>\n</header>\n<main>\n";
  for (const PageSection& section : page.sections) html += section_html(section);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace shard::bench
