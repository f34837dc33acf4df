// Numbers as people read and write them, and aligned tables. Pure functions; nothing here prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shard::cli {

std::string human_bytes(std::uint64_t bytes);  // "0 B", "1023 B", "1.00 KiB", "12.3 MiB", "456 GiB"
std::string human_count(std::uint64_t count);  // "1,234,567"
std::string counted(std::uint64_t count, std::string_view singular);  // "1 image", "2,000 images"
std::string human_duration(
    double seconds);  // "0.42 s", "12.3 s", "3 min 05 s", "2 h 07 min", "3 d 04 h"; "unknown" if not finite

// A word of a command line for a POSIX shell that people copy: as it is, in single quotes, or, with bytes
// that a terminal would not show, as $'...' of bash and zsh.
std::string shell_word(std::string_view text);

// Columns of the widest cell, two spaces between them. UTF-8 code points count as one column each.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  explicit Table(std::vector<Align> columns, std::string indent = "");
  // Rows may be shorter than the table; a longer one throws invalid_argument.
  void add_row(std::vector<std::string> cells);
  std::size_t rows() const noexcept { return rows_.size(); }
  std::string to_string() const;  // every row ends in '\n', no trailing spaces

 private:
  std::vector<Align> columns_;
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace shard::cli
