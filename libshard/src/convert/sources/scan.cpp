#include "convert/sources/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/system/parallel_sort.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "convert/sources/source_kind.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

void sort_unique(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

template <class T>
void sort_by_key(std::vector<T>& items) {
  std::sort(items.begin(), items.end(), [](const T& a, const T& b) { return a.key < b.key; });
}

// What to give instead of a folder of archives or of arrays. Empty: there are none.
std::string advice_of(const InputList& list) {
  std::vector<std::string> keys;
  for (const Skip& skip : list.skipped) keys.push_back(skip.key);
  for (const Reject& reject : list.rejects) keys.push_back(reject.key);
  for (const std::string& key : keys) {
    const auto ends = [&](std::string_view ending) { return key.ends_with(ending); };
    if (ends(".tar"))
      return fmt::format(
          "; {} is an archive: give it, or many as a pattern in quotes: 'FOLDER/{{000..146}}.tar'",
          quoted_key(key));
    if (ends(".npy"))
      return fmt::format(
          "; {} is an array: give this file, or a pattern of files; where each .npy file is one "
          "image, say so with `array_layout`",
          quoted_key(key));
    if (ends(".npz") || ends("-ubyte") || ends("-ubyte.gz"))
      return fmt::format("; {} is an array: give the file that has the images", quoted_key(key));
  }
  return {};
}

[[noreturn]] void refuse_nothing(const std::string& images, const InputList& list) {
  std::string text = fmt::format("no images found in {}: nothing to convert", quoted(images));
  if (!list.skipped.empty())
    text += fmt::format(" ({} skipped, first {}: {})", list.skipped.size(),
                        quoted_key(list.skipped.front().key), to_string(list.skipped.front().reason));
  else if (!list.rejects.empty())
    text += fmt::format(" ({}: {})", quoted_key(list.rejects.front().key), list.rejects.front().reason);
  const std::string advice = advice_of(list);
  throw Error(
      ErrorCode::invalid_argument,
      text + (advice.empty() ? "; expected files such as .jpg, .png or .webp in it or in folders below"
                             : advice));
}

}  // namespace

std::string Input::key() const {
  return page == kNoPage ? escape_key(path) : escape_key(fmt::format("{}#{}", path, page));
}

PageName page_name(std::string_view raw) {
  const std::size_t hash = raw.rfind('#');
  if (hash == std::string_view::npos) return {raw};
  const std::string_view digits = raw.substr(hash + 1);
  const std::uint32_t page = number_of<std::uint32_t>(digits).value_or(Input::kNoPage);
  if (page == Input::kNoPage || (digits.size() > 1 && digits[0] == '0')) return {raw};
  return {raw.substr(0, hash), page};
}

const Input* find_input(const InputList& list, std::string_view path, std::uint32_t page) {
  const auto at = std::lower_bound(list.inputs.begin(), list.inputs.end(), std::pair(path, page),
                                   [](const Input& input, const auto& of) {
                                     return std::pair(std::string_view(input.path), input.page) < of;
                                   });
  return at != list.inputs.end() && at->path == path && at->page == page ? &*at : nullptr;
}

const Input* find_key(const InputList& list, std::string_view raw) {
  if (const Input* const found = find_input(list, raw)) return found;
  const PageName name = page_name(raw);
  return name.page == Input::kNoPage ? nullptr : find_input(list, name.path, name.page);
}

void reject_inputs(InputList& list, const std::function<std::string(std::size_t)>& reason_of) {
  std::vector<Input> kept;
  kept.reserve(list.inputs.size());
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    std::string reason = reason_of(i);
    if (reason.empty())
      kept.push_back(std::move(list.inputs[i]));
    else
      list.rejects.push_back({list.inputs[i].key(), std::move(reason)});
  }
  list.inputs = std::move(kept);
  sort_by_key(list.rejects);
}

InputList scan(const ScanOptions& options) {
  InputList list = source_kind(options.images).scan(options);
  sort_by_key(list.rejects);
  sort_by_key(list.skipped);
  if (list.inputs.empty()) refuse_nothing(options.images, list);
  parallel_sort(thread_count(options.jobs), list.inputs,
                [](const Input& a, const Input& b) { return a.path < b.path; });
  sort_unique(list.folders);
  sort_unique(list.empty_folders);
  auto twice = std::adjacent_find(list.inputs.begin(), list.inputs.end(),
                                  [](const Input& a, const Input& b) { return a.path == b.path; });
  if (twice != list.inputs.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is listed twice: list each image once", quoted_key(twice->key())));
  return list;
}

}  // namespace shard::convert
