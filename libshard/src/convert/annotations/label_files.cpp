#include "convert/annotations/label_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "convert/annotations/class_labels.hpp"
#include "convert/annotations/label_file.hpp"
#include "convert/annotations/label_folder.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/error.hpp"
#include "shard/image/wide.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

std::string_view last_part_of(std::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

}  // namespace

class LabelFiles::Impl {
 public:
  explicit Impl(const Options& options)
      : options_(options),
        yolo_(!options.yolo.empty()),
        folder_(checked_folder(yolo_ ? options.yolo : options.voc)),
        files_(folder_, yolo_ ? ".txt" : ".xml") {
    fs::path names = options.box_classes;
    if (const std::string* const file = yolo_ ? files_.find("classes") : nullptr) {
      if (names.empty()) names = folder_ / *file;
      if (names == folder_ / *file) files_.erase("classes");
    }
    if (names.empty()) return;
    names_file_ = names;
    names_ = read_box_classes(names);
  }

  void choose(InputList& list) {
    require_matches(list);
    std::vector<Input> with_file;
    for (Input& input : list.inputs) {
      std::string name = name_of(input);
      const bool there = files_.find(name) != nullptr;
      if (there)
        inputs_of_[std::move(name)].push_back(input.path);
      else
        missing(counts_.images_without, fmt::format("{} has no annotation", quoted_key(input.key())));
      if (there || options_.missing != Missing::skip) with_file.push_back(std::move(input));
    }
    list.inputs = std::move(with_file);
    read_files(list);
    for (const Input& input : list.inputs)
      if (const LabelFile* const file = parsed_of(input)) check_owner(input, *file);
    reject_bad(list);
    note_unused();
  }

  AnnotationTable table(const InputList& list) {
    AnnotationTable table;
    if (!yolo_ && names_.empty()) take_names(list);
    if (!names_.empty()) table.categories = category_list(names_);
    if (!by_fraction_of_result()) table.sizes = sizes_of_images(list);
    ObjectColumns columns(true, options_.yolo_keypoints);
    for (std::size_t i = 0; i < list.inputs.size(); ++i) columns.add(rows_of(list.inputs[i], table.sizes, i));
    table.columns = std::move(columns.tables());
    table.targets = columns.targets();
    table.counts = std::move(counts_);
    return table;
  }

 private:
  static const fs::path& checked_folder(const fs::path& folder) {
    std::error_code error;
    if (fs::is_directory(folder, error)) return folder;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: not a folder: give the folder of the annotations", quoted(folder)));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(folder_), why));
  }
  void missing(AnnotationCounts::Count& count, const std::string& what) {
    if (options_.missing == Missing::fail)
      refuse(fmt::format("{} (`missing` fail; with skip or empty this is counted)", what));
    if (count.number++ == 0) count.first = what;
  }

  static std::string name_of(const Input& input) { return std::string(without_extension(input.path)); }
  // The file of an input that has one, for messages.
  std::string file_of(const Input& input) const {
    return quoted_key(escape_key(files_.all().at(name_of(input))));
  }

  void require_matches(const InputList& list) {
    if (std::any_of(list.inputs.begin(), list.inputs.end(),
                    [&](const Input& input) { return files_.find(name_of(input)) != nullptr; }))
      return;
    refuse(fmt::format(
        "none of its {} {} files has the name of one of the {} inputs: its first is {}, the first "
        "input {}",
        files_.all().size(), files_.extension(), list.inputs.size(),
        files_.all().empty() ? "none" : quoted_key(escape_key(files_.all().begin()->second)),
        quoted_key(list.inputs.front().key())));
  }

  void note_unused() {
    for (const auto& [name, file] : files_.all())
      if (!inputs_of_.contains(name))
        missing(counts_.without_image, fmt::format("{} belongs to no input", quoted_key(escape_key(file))));
  }

  // Parses the files of all inputs.
  void read_files(const InputList& list) {
    std::vector<std::optional<LabelFile>> files(list.inputs.size());
    std::vector<std::string> why(list.inputs.size());
    std::vector<InputReader> readers;
    for (unsigned i = 0; i < options_.threads(); ++i) readers.emplace_back(folder_);
    parallel_for(options_.threads(), list.inputs.size(), [&](unsigned thread, std::uint64_t i) {
      const auto at = files_.all().find(name_of(list.inputs[i]));
      if (at == files_.all().end()) return;
      try {
        files[i] = parse(readers[thread].read(at->second));
      } catch (const Error& error) {
        const bool unreadable = dynamic_cast<const UnreadableInput*>(&error) != nullptr;
        if (!unreadable && error.code() != ErrorCode::corrupt) throw;
        why[i] = fmt::format("annotations {}: {}", file_of(list.inputs[i]), error.what());
      }
    });
    for (std::size_t i = 0; i < list.inputs.size(); ++i) {
      if (files[i])
        parsed_.insert_or_assign(name_of(list.inputs[i]), std::move(*files[i]));
      else if (!why[i].empty())
        bad_.emplace(list.inputs[i].path, std::move(why[i]));
    }
    for (const Input& input : list.inputs) stems_.emplace(without_extension(last_part_of(input.path)));
  }

  // A file that names another input is not that of the image with its own name, or one of the two names is
  // wrong. The file of several inputs (1.jpg and 1.png) is that of the one which it names.
  void check_owner(const Input& input, const LabelFile& file) {
    const auto stem = [](std::string_view path) {
      return std::string(without_extension(last_part_of(path)));
    };
    const std::string_view named = last_part_of(file.filename);
    const std::vector<std::string>& all = inputs_of_.at(name_of(input));
    if (all.size() > 1 &&
        std::none_of(all.begin(), all.end(), [&](const auto& path) { return last_part_of(path) == named; }))
      bad_.emplace(
          input.path,
          fmt::format("annotations {}: they belong to {} and {}, and which of them cannot be told: give "
                      "images that are not the same different names",
                      file_of(input), quoted_key(escape_key(all[0])), quoted_key(escape_key(all[1]))));
    else if (all.size() > 1
                 ? last_part_of(input.path) != named
                 : !named.empty() && stem(named) != stem(input.path) && stems_.contains(stem(named)))
      bad_.emplace(input.path,
                   fmt::format("annotations {}: its filename is {}, which is another of the images",
                               file_of(input), quoted_excerpt(file.filename)));
  }

  LabelFile parse(std::span<const std::byte> bytes) const {
    if (bytes.size() > kMaxLabelFileBytes)
      throw Error(ErrorCode::corrupt,
                  fmt::format("has {} bytes; at most {} are read", bytes.size(), kMaxLabelFileBytes));
    LabelFile file = yolo_ ? parse_yolo(as_text(bytes), options_.yolo_keypoints) : parse_voc(as_text(bytes));
    if (names_.empty()) return file;
    for (std::size_t k = 0; k < file.objects.size(); ++k) {
      LabelledObject& of = file.objects[k];
      if (yolo_) {
        if (of.object.label >= static_cast<std::int64_t>(names_.size()))
          throw Error(ErrorCode::corrupt,
                      fmt::format("class {} of object {}: {} names {} classes, 0 to {}", of.object.label,
                                  k + 1, quoted(names_file_), names_.size(), names_.size() - 1));
        continue;
      }
      const auto at = std::find(names_.begin(), names_.end(), of.name);
      if (at == names_.end())
        throw Error(ErrorCode::corrupt, fmt::format("object {} is a {}, which {} does not name", k + 1,
                                                    quoted_excerpt(of.name), quoted(names_file_)));
      of.object.label = at - names_.begin();
    }
    return file;
  }

  void reject_bad(InputList& list) const {
    reject_inputs(list, [&](std::size_t i) {
      const auto bad = bad_.find(list.inputs[i].path);
      return bad == bad_.end() ? std::string() : bad->second;
    });
  }

  const LabelFile* parsed_of(const Input& input) const {
    const auto at = parsed_.find(name_of(input));
    return at == parsed_.end() ? nullptr : &at->second;
  }

  // VOC without a list: all names of the inputs, sorted.
  void take_names(const InputList& list) {
    std::map<std::string, std::int64_t> labels;
    for (const Input& input : list.inputs)
      if (const LabelFile* const file = parsed_of(input))
        for (const LabelledObject& of : file->objects) labels.emplace(of.name, 0);
    for (auto& [name, label] : labels) {
      label = static_cast<std::int64_t>(names_.size());
      names_.push_back(name);
    }
    for (auto& [name, file] : parsed_)
      for (LabelledObject& of : file.objects)
        if (const auto at = labels.find(of.name); at != labels.end()) of.object.label = at->second;
  }

  // Fractions of an image that is squashed are those of the result.
  bool by_fraction_of_result() const { return yolo_ && options_.preprocess.squash.has_value(); }

  // As the files say, or as the images are. {0, 0}: without objects,
  // or an image that cannot be read and becomes a reject.
  std::vector<image::Size> sizes_of_images(const InputList& list) const {
    std::vector<image::Size> sizes(list.inputs.size());
    std::vector<InputReader> readers;
    for (unsigned i = 0; i < options_.threads(); ++i) readers.emplace_back(list);
    parallel_for(options_.threads(), sizes.size(), [&](unsigned thread, std::uint64_t i) {
      const LabelFile* const file = parsed_of(list.inputs[i]);
      if (file == nullptr || file->objects.empty()) return;
      sizes[i] = file->size;
      if (sizes[i].width != 0 && sizes[i].height != 0) return;
      sizes[i] = {};
      try {
        const image::WideInfo info =
            image::read_wide_info(readers[thread].read(list.inputs[i]), options_.max_pixels);
        sizes[i] = {info.width, info.height};
      } catch (const Error& error) {
        if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::invalid_argument) throw;
      }
    });
    return sizes;
  }

  ObjectRows rows_of(const Input& input, const std::vector<image::Size>& sizes, std::size_t i) {
    ObjectRows rows;
    const LabelFile* const file = parsed_of(input);
    if (file == nullptr) return rows;
    note_invalid(input, *file);
    if (file->objects.empty()) return rows;
    constexpr image::Size kWhole{1, 1};
    const image::Size size = by_fraction_of_result() ? kWhole : sizes[i];
    if (size == image::Size{}) return rows;  // a reject
    const SampleView view = view_of(size);
    for (std::size_t k = 0; k < file->objects.size(); ++k) {
      const LabelledObject& of = file->objects[k];
      note_beyond(input, k, of.object, yolo_ ? image::Size{1, 1} : size);
      if (!rows.add_box(of.object, view)) {
        if (counts_.cut_away.number++ == 0)
          counts_.cut_away.first =
              fmt::format("object {} of {} lies outside of the sample", k + 1, file_of(input));
        continue;
      }
      ++counts_.objects;
      rows.add_keypoints(of.keypoints, options_.yolo_keypoints, view);
    }
    return rows;
  }

  void note_beyond(const Input& input, std::size_t object, const ImageObject& of, image::Size extent) {
    constexpr double kOfFractions = 0.01;
    if (!reaches_beyond(of.box, extent.width, extent.height, yolo_ ? kOfFractions : 1)) return;
    if (counts_.beyond_image.number++ == 0)
      counts_.beyond_image.first =
          fmt::format("object {} of {} reaches from {}, {} to {}, {} in {} x {}", object + 1, file_of(input),
                      of.box[0], of.box[1], of.box[2], of.box[3], extent.width, extent.height);
  }

  SampleView view_of(image::Size size) const {
    constexpr image::Size kWhole{1, 1};
    return {size, yolo_ ? kWhole : size, options_.preprocess};
  }

  void note_invalid(const Input& input, const LabelFile& file) {
    if (file.invalid_boxes.number == 0) return;
    const std::string what = fmt::format("{} {}", file_of(input), file.invalid_boxes.first);
    missing(counts_.invalid_boxes, what);
    counts_.invalid_boxes.number += file.invalid_boxes.number - 1;
  }

  const Options& options_;
  const bool yolo_;
  const fs::path folder_;
  LabelFolder files_;
  fs::path names_file_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::vector<std::string>> inputs_of_;  // their paths, by the file's name
  std::set<std::string> stems_;                                          // of all inputs, without folders
  std::unordered_map<std::string, LabelFile> parsed_;                    // by the file's name
  std::unordered_map<std::string, std::string> bad_;                     // why, by the input's path
  AnnotationCounts counts_;
};

LabelFiles::LabelFiles(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
LabelFiles::~LabelFiles() = default;
void LabelFiles::choose(InputList& list) { impl_->choose(list); }
AnnotationTable LabelFiles::table(const InputList& list) { return impl_->table(list); }

}  // namespace shard::convert
