#include "cli/flags.hpp"

#include <algorithm>

namespace shard::cli {
namespace {

std::string flag_of(std::string_view name) {
  if (name == "images") return "IMAGES";
  if (name == "out") return "OUT";
  // Given several times, each time one.
  if (name == "columns") return "--column";
  if (name == "pairs") return "--pair";
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
}

}  // namespace

std::string with_flags(std::string_view message) {
  std::string text;
  bool in_quotes = false;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message[i] == '"') in_quotes = !in_quotes;
    const std::size_t end =
        message[i] == '`' && !in_quotes ? message.find('`', i + 1) : std::string_view::npos;
    if (end != std::string_view::npos && is_name(message.substr(i + 1, end - i - 1))) {
      text += flag_of(message.substr(i + 1, end - i - 1));
      i = end;
    } else {
      text += message[i];
    }
  }
  return text;
}

}  // namespace shard::cli
