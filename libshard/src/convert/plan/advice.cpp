#include "convert/plan/advice.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/quote.hpp"

namespace shard::convert {
namespace {

std::string replaced_in(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

std::string advice_for_store(std::string message, const std::filesystem::path& folder,
                             const std::filesystem::path& work, const std::string& address) {
  const std::string instead =
      fmt::format("choose another prefix, or remove what is at {} and the folder {}, and convert all of it",
                  quoted(address), quoted(work));
  message = replaced_in(std::move(message), folder.native(), address);
  for (const char* const advice :
       {kAdviseForOptions, kAdviseForInputs, kAdviseForLostShard, kAdviseForPlan, kAdviseForParts})
    message = replaced_in(std::move(message), advice, instead);
  message = replaced_in(std::move(message), kAdviseToAppend, "");
  return replaced_in(std::move(message), kAdviseForChange, "and if it reports changed inputs, " + instead);
}

}  // namespace shard::convert
