#include "data/synth_folder.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSignature = "shardbench synth 1 ";  // 1: counts changes of what is drawn

[[noreturn]] void refuse(const SynthOptions& options, const fs::path& found, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is not empty: {} {}; give an empty or new folder, or remove it first",
                          quoted(options.folder), quoted(found), why));
}

// "img_000123.jpg" -> 123
std::optional<std::uint64_t> index_of(std::string_view name) {
  constexpr std::string_view kPrefix = "img_";
  constexpr std::string_view kSuffix = ".jpg";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  std::uint64_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return index;
}

std::string first_bytes(const fs::path& path) {
  std::array<char, 256> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(file.gcount())};
}

void check_photo(const SynthOptions& options, const fs::directory_entry& entry) {
  const fs::path& path = entry.path();
  if (!entry.is_regular_file() || entry.is_symlink()) refuse(options, path, "is not a file of this command");
  const auto index = index_of(path.filename().string());
  if (!index) refuse(options, path, "is not a file of this command");
  const std::string head = first_bytes(path);
  if (head.find(kSignature) == std::string::npos)
    refuse(options, path, "was not made by this version of the command");
  if (*index >= options.count) refuse(options, path, fmt::format("lies beyond --count {}", options.count));
  const PhotoPlan plan = plan_photo(options.seed, *index, options.classes);
  if (head.find(photo_comment(plan)) == std::string::npos || options.folder / photo_path(plan) != path) {
    refuse(options, path,
           fmt::format("was made with another --seed or --classes than {} and {}", options.seed,
                       options.classes));
  }
}

void check_class_folder(const SynthOptions& options, const fs::directory_entry& entry,
                        std::vector<fs::path>& temporaries) {
  const std::string name = entry.path().filename().string();
  if (!entry.is_directory() || entry.is_symlink() || !name.starts_with("class_")) {
    refuse(options, entry.path(), "is not a class folder of this command");
  }
  for (const fs::directory_entry& file : fs::directory_iterator(entry.path())) {
    const fs::path& path = file.path();
    if (path.extension() == kTemporarySuffix && index_of(path.stem().string())) {
      temporaries.push_back(path);
    } else {
      check_photo(options, file);
    }
  }
}

}  // namespace

fs::path photo_path(const PhotoPlan& plan) {
  return fs::path(fmt::format("class_{:02}", plan.label)) / fmt::format("img_{:06}.jpg", plan.index);
}

std::string photo_comment(const PhotoPlan& plan) {
  return fmt::format("{}seed {} classes {} index {};", kSignature, plan.seed, plan.classes, plan.index);
}

void prepare_folder(const SynthOptions& options) {
  try {
    std::vector<fs::path> temporaries;
    if (fs::exists(options.folder)) {
      if (!fs::is_directory(options.folder)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} is not a folder: give an empty or new folder", quoted(options.folder)));
      }
      for (const fs::directory_entry& entry : fs::directory_iterator(options.folder)) {
        check_class_folder(options, entry, temporaries);
      }
    }
    for (const fs::path& path : temporaries) fs::remove(path);
    for (std::uint32_t label = 0; label < options.classes; ++label) {
      if (label >= options.count) break;
      fs::create_directories(options.folder / fmt::format("class_{:02}", label));
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::io, error.what());
  }
}

}  // namespace shard::bench
