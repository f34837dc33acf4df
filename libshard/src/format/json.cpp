#include "format/json.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shard/error.hpp"

namespace shard {
namespace {

// Translates nlohmann's events. Returning true goes on; every refusal is an exception.
class Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Events(JsonHandler& handler, std::string_view what) : handler_(handler), what_(what) {}

  bool null() override { return handler_.null(), true; }
  bool boolean(bool value) override { return handler_.boolean(value), true; }
  bool number_integer(number_integer_t) override { return handler_.other_number({}), true; }
  bool number_unsigned(number_unsigned_t value) override { return handler_.unsigned_integer(value), true; }
  bool number_float(number_float_t, const string_t& text) override {
    return handler_.other_number(text), true;
  }
  bool string(string_t& value) override { return handler_.string(std::move(value)), true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return handler_.begin_object(), true; }
  bool key(string_t& name) override { return handler_.key(std::move(name)), true; }
  bool end_object() override { return handler_.end_object(), true; }
  bool start_array(std::size_t) override { return handler_.begin_array(), true; }
  bool end_array() override { return handler_.end_array(), true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // error.what() quotes the token, which may be megabytes of the file.
    throw Error(ErrorCode::corrupt,
                fmt::format("{} is not valid JSON (at byte {}): {:.200}", what_, position, error.what()));
  }

 private:
  JsonHandler& handler_;
  std::string_view what_;
};

}  // namespace

void parse_json(std::string_view text, JsonHandler& handler, std::string_view what) {
  // The library takes a NUL for the end of the text, and skips a byte order mark.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error(ErrorCode::corrupt, fmt::format("{} is not valid JSON: a NUL at byte {}", what, nul));
  }
  if (text.starts_with("\xef\xbb\xbf")) {
    throw Error(ErrorCode::corrupt, fmt::format("{} begins with a byte order mark", what));
  }
  Events events(handler, what);
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &events);
}

std::string json_quote(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} bytes of text for JSON are not valid UTF-8", text.size()));
  }
}

}  // namespace shard
