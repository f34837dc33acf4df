// Answers of services that give keys. They are hostile text until every part was checked.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

#include "base/text/json.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "base/text/xml.hpp"
#include "remote/s3/credentials/aws_key_sources.hpp"

namespace shard {
namespace {

// The strings of a document's outermost object.
class OuterStrings : public JsonHandler {
 public:
  std::map<std::string, std::string> values;

  void null() override {}
  void boolean(bool) override {}
  void unsigned_integer(std::uint64_t) override {}
  void other_number(std::string_view) override {}
  void string(std::string&& value) override {
    if (depth_ == 1) values[key_] = std::move(value);
  }
  void begin_object() override { ++depth_; }
  void key(std::string&& name) override {
    if (depth_ == 1) key_ = std::move(name);
  }
  void end_object() override { --depth_; }
  void begin_array() override { ++depth_; }
  void end_array() override { --depth_; }

 private:
  int depth_ = 0;
  std::string key_;
};

[[noreturn]] void refuse_answer(const std::string& who, const std::string& what) {
  throw Error(ErrorCode::corrupt, fmt::format("{}: {}", who, what));
}

SigningKeys checked_keys(SigningKeys keys, std::string_view expiration, const std::string& who) {
  if (keys.id.empty() || keys.secret.empty()) refuse_answer(who, "its answer has no keys");
  if (!is_header_word(keys.id) || !is_header_word(keys.secret) || !is_header_word(keys.session))
    refuse_answer(who, "its answer has keys with bytes that no key has");
  if (!expiration.empty()) keys.expires = time_of_text(expiration, who);
  return keys;
}

int digits_of(std::string_view text, std::size_t begin, std::size_t count) {
  int value = 0;
  if (begin + count > text.size()) return -1;
  const char* const end = text.data() + begin + count;
  for (const char* c = text.data() + begin; c != end; ++c) {
    if (*c < '0' || *c > '9') return -1;
    value = value * 10 + (*c - '0');
  }
  return value;
}

}  // namespace

WallTime time_of_text(std::string_view text, const std::string& who) {
  namespace chr = std::chrono;
  const std::string_view shape = "....-..-..T..:..:..";
  bool fits = text.size() > shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == '.' || shape[i] == text[i];
  std::string_view zone = fits ? text.substr(shape.size()) : std::string_view();
  if (zone.starts_with('.'))
    zone.remove_prefix(std::min(zone.find_first_not_of("0123456789", 1), zone.size()));
  const int hour = digits_of(text, 11, 2);
  const int minute = digits_of(text, 14, 2);
  const int second = digits_of(text, 17, 2);
  const chr::year_month_day day(chr::year(digits_of(text, 0, 4)),
                                chr::month(static_cast<unsigned>(digits_of(text, 5, 2))),
                                chr::day(static_cast<unsigned>(digits_of(text, 8, 2))));
  fits = fits && (zone == "Z" || zone == "+00:00" || zone == "+0000") && day.ok() &&
         day.year() >= chr::year(1970) && day.year() <= chr::year(2200) && hour >= 0 && hour < 24 &&
         minute >= 0 && minute < 60 && second >= 0 && second <= 60;
  if (!fits) refuse_answer(who, fmt::format("the end of its keys is not a time: {}", quoted_excerpt(text)));
  return chr::sys_days(day) + chr::hours(hour) + chr::minutes(minute) + chr::seconds(second);
}

SigningKeys keys_of_json(std::string_view text, const std::string& who) {
  OuterStrings found;
  try {
    parse_json(text, found, "its answer");
  } catch (const Error&) {  // its message might show a part of a key
    refuse_answer(who, "its answer is not JSON");
  }
  const auto value = [&](const char* name) { return found.values[name]; };
  if (const std::string code = value("Code"); !code.empty() && code != "Success")
    refuse_answer(who, fmt::format("it answers {}", is_word(code, "") ? quoted_excerpt(code) : "an error"));
  return checked_keys({value("AccessKeyId"), value("SecretAccessKey"), value("Token")}, value("Expiration"),
                      who);
}

SigningKeys keys_of_xml(std::string_view text, const std::string& who) {
  std::map<std::string, std::string> found;
  try {
    read_xml(text, {[&](std::string_view path, std::string_view value) {
               constexpr std::string_view kKeys = "/Credentials/";
               const std::size_t at = path.find(kKeys);
               if (at != std::string_view::npos)
                 found.emplace(path.substr(at + kKeys.size()), trimmed(value));
             }});
  } catch (const Error&) {
    refuse_answer(who, "its answer has no keys: it is no XML");
  }
  return checked_keys({found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]},
                      found["Expiration"], who);
}

}  // namespace shard
