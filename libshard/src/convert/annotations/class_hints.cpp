// What lies beside a folder of images and gives their classes other numbers.
#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "convert/annotations/class_labels.hpp"
#include "shard/convert/input_name.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxClassFolders = 1'000'000;

// Names that say something else than the classes that were found: the first class whose number
// differs. Nothing if none does, or if the two have no name in common, so that the names are not
// those of these classes.
std::optional<std::string> difference_to(const std::vector<std::string>& names,
                                         const std::vector<std::string>& found) {
  std::unordered_map<std::string_view, std::uint64_t> numbers;
  for (const std::string& name : names) numbers.emplace(name, numbers.size());
  std::optional<std::string> first;
  bool related = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto at = numbers.find(found[i]);
    related = related || at != numbers.end();
    if (first || (at != numbers.end() && at->second == i)) continue;
    first = at == numbers.end()
                ? fmt::format("{} is label {} here and not there", quoted(found[i]), i)
                : fmt::format("{} is label {} here and {} there", quoted(found[i]), i, at->second);
  }
  return related ? first : std::nullopt;
}

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

// Calls `visit` for each name in a folder that is not skipped, until it returns false.
template <class Visit>
void each_name(const fs::path& folder, const Visit& visit) {
  const OpenFolder open(::opendir(folder.c_str()));
  if (!open) return;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !skip_by_name(name) && !visit(name)) return;
  }
}

// The folders in a folder that have anything in them, sorted: its classes,
// unless there are no images in some.
std::vector<std::string> class_folders(const fs::path& folder) {
  std::vector<std::string> found;
  each_name(folder, [&](std::string_view name) {
    bool used = false;
    std::error_code error;
    if (fs::is_directory(folder / name, error))
      each_name(folder / name, [&](std::string_view) {
        used = true;
        return false;
      });
    if (used) found.emplace_back(name);
    return found.size() <= kMaxClassFolders;
  });
  std::sort(found.begin(), found.end());
  return found;
}

// "train" of "Train", "train_set", "train2017" and "train-images".
std::string part_word(std::string_view folder) {
  std::string name = ascii_lower(folder);
  const auto drop_end = [&](std::string_view of) {
    while (!name.empty() && of.find(name.back()) != std::string_view::npos) name.pop_back();
  };
  drop_end("0123456789");
  for (const char* const word : {"set", "data", "images", "imgs", "split"})
    if (name.ends_with(word)) {
      name.resize(name.size() - std::string_view(word).size());
      break;
    }
  drop_end("_-. ");
  return name;
}

bool names_training(std::string_view folder) {
  const std::string name = part_word(folder);
  return name == "train" || name == "training";
}

bool names_other_part(std::string_view folder) {
  static const std::set<std::string> kParts{"val", "valid", "validation", "test", "testing", "dev", "eval"};
  return kParts.count(part_word(folder)) != 0;
}

// IMAGES/../train of IMAGES = .../val.
std::optional<fs::path> training_folder(const fs::path& images) {
  if (!names_other_part(images.filename().native())) return std::nullopt;
  std::error_code error;
  for (const char* name : {"train", "training", "Train", "TRAIN"}) {
    const fs::path beside = images.parent_path() / name;
    if (fs::is_directory(beside, error)) return beside;
  }
  return std::nullopt;
}

// "a", "b" and 7 more
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    const bool last = i + 1 == names.size();
    text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", quoted(names[i]));
  }
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

// The folders in each top-level folder that have inputs, sorted.
std::map<std::string, std::set<std::string>> folders_of_folders(const InputList& list) {
  std::map<std::string, std::set<std::string>> found;
  for (const Input& input : list.inputs) {
    const std::string_view path = list.path_inside(input);
    const std::size_t top = path.find('/');
    const std::size_t below = top == std::string_view::npos ? top : path.find('/', top + 1);
    if (below != std::string_view::npos)
      found[std::string(path.substr(0, top))].emplace(path.substr(top + 1, below - top - 1));
  }
  return found;
}

// Where the folders of the first level do not look like classes, and those below one of them do: train, val
// and the like, whatever else lies beside them; or one folder alone.
std::optional<std::string> parts_warning(const Options& options, const InputList& list) {
  const std::vector<std::string>& folders = list.folders;
  if (!options.labels.empty() || list.has_numbers || folders.empty()) return std::nullopt;
  const auto below = folders_of_folders(list);
  const auto train = std::find_if(folders.begin(), folders.end(), names_training);
  const auto other = std::find_if(folders.begin(), folders.end(), names_other_part);
  const auto is_part = [](const std::string& name) { return names_training(name) || names_other_part(name); };
  const bool whole = other != folders.end() &&
                     (train != folders.end() || std::all_of(folders.begin(), folders.end(), is_part));
  const std::string& part = train != folders.end() ? *train : whole ? *other : folders.front();
  const auto classes = below.find(part);
  if (classes == below.end() || !(whole || (folders.size() == 1 && classes->second.size() > 1)))
    return std::nullopt;
  std::error_code error;
  return fmt::format("the class{} {}: to convert {} give {}; its classes are {}",
                     folders.size() == 1 ? " of all images is" : "es are", names_text(folders),
                     whole ? "one part" : "what is in it",
                     fs::is_directory(options.images, error)
                         ? quoted(fs::path(options.images) / part)
                         : fmt::format("the images of {} alone", quoted(part)),
                     names_text({classes->second.begin(), classes->second.end()}));
}

}  // namespace

std::vector<std::string> class_warnings(const Options& options, const InputList& list,
                                        const LabelTable& labels) {
  const bool boxes = !options.coco.empty() || !options.yolo.empty() ||
                     !options.voc.empty();  // classes.txt may be about these
  std::vector<std::string> found, warnings;
  if (!options.classes.empty() || labels.classes.empty()) return {};
  if (const auto parts = parts_warning(options, list)) warnings.push_back(*parts);
  std::error_code error;
  if (is_remote(options.images) || !fs::is_directory(options.images, error)) return warnings;
  fs::path images = fs::weakly_canonical(options.images, error);
  if (error) return warnings;
  for (const std::string& name : labels.classes) found.push_back(unescape_key(name));
  const auto warn = [&](const fs::path& what, const std::vector<std::string>& names) {
    const auto differs = difference_to(names, found);
    if (differs)
      warnings.push_back(fmt::format(
          "{} has {} classes and these images have {}, and {}: give `classes` {} if labels must be the same "
          "in both",
          quoted(what), names.size(), found.size(), *differs,
          fs::is_directory(what, error) ? "its names, or the data set made of it," : quoted(what)));
  };
  for (const fs::path& folder : {images, images.parent_path()}) {
    const fs::path file = folder / "classes.txt";
    if (boxes || !fs::is_regular_file(file, error)) continue;
    try {
      warn(file, names_in_file(file));
    } catch (const Error&) {
      continue;  // some other file
    }
    break;
  }
  if (const auto train = training_folder(images); train && options.labels.empty())
    warn(*train, class_folders(*train));
  return warnings;
}

}  // namespace shard::convert
