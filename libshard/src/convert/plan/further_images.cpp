#include "convert/plan/further_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/sources/source_kind.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"
#include "shard/image/wide.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kMostFilesLookedAt = 1000;  // if the first ones cannot be read
constexpr std::uint32_t kNoFile = ~std::uint32_t{0};

[[noreturn]] void refuse_field(const FurtherImages& from, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} of {}: {}", from.name, quoted(from.folder), why));
}

// The image files of its folder, sorted. Those that cannot be looked at are among them,
// so that their images become rejects.
InputList list_files(const FurtherImages& from) {
  std::error_code error;
  if (!std::filesystem::is_directory(from.folder, error))
    refuse_field(from, "not a folder: give the folder of its files");
  InputList files = scan_folder({.images = from.folder.string()});
  for (const Reject& reject : files.rejects) {
    const std::string path = unescape_key(reject.key);
    if (has_image_name(path))
      files.inputs.push_back({path});
    else if (reject.reason.starts_with("unreadable"))  // a folder: no image in it would have a file
      refuse_field(from, fmt::format("{}: {}", quoted_key(reject.key), reject.reason));
  }
  if (files.inputs.empty())
    refuse_field(from, "no images in it: give a folder of image files, not of arrays or archives");
  std::sort(files.inputs.begin(), files.inputs.end(),
            [](const Input& a, const Input& b) { return a.path < b.path; });
  return files;
}

// The file of each input, and if that is also the file of another input, the other one. Positions in the
// lists.
struct FilesOfInputs {
  std::vector<std::uint32_t> files;
  std::vector<std::uint32_t> rivals;
};

// A file with the whole path of an input is its own. A file that several inputs have by its name without
// extension (1.jpg and 1.png) may be that of each, so all of them are rivals.
void find_rivals(const InputList& files, const InputList& list, FilesOfInputs& found) {
  std::vector<std::uint32_t> owners(files.inputs.size(), kNoFile);
  const auto is_own = [&](std::uint32_t input) {
    return files.inputs[found.files[input]].path == list.inputs[input].path;
  };
  found.rivals.assign(list.inputs.size(), kNoFile);
  for (std::uint32_t i = 0; i < list.inputs.size(); ++i) {
    if (found.files[i] == kNoFile) continue;
    std::uint32_t& owner = owners[found.files[i]];
    if (owner == kNoFile) {
      owner = i;
    } else if (is_own(i)) {
      found.rivals[std::exchange(owner, i)] = i;
    } else {
      found.rivals[i] = owner;
      if (!is_own(owner)) found.rivals[owner] = i;
    }
  }
}

FilesOfInputs match_files(const FurtherImages& from, const InputList& files, const InputList& list) {
  constexpr std::uint32_t kSeveral = kNoFile - 1;
  std::unordered_map<std::string_view, std::uint32_t> by_path;
  std::unordered_map<std::string_view, std::uint32_t> by_stem;
  for (std::uint32_t i = 0; i < files.inputs.size(); ++i) {
    const std::string& path = files.inputs[i].path;
    by_path.emplace(path, i);
    if (const auto [at, added] = by_stem.emplace(without_extension(path), i); !added) at->second = kSeveral;
  }
  FilesOfInputs found;
  found.files.reserve(list.inputs.size());
  for (const Input& input : list.inputs) {
    auto at = from.suffix.empty() ? by_path.find(input.path) : by_path.end();
    if (at == by_path.end()) {
      const std::string name = std::string(without_extension(input.path)) + from.suffix;
      at = by_stem.find(name);
      if (at == by_stem.end()) {
        found.files.push_back(kNoFile);
        continue;
      }
    }
    if (at->second == kSeveral)
      refuse_field(from,
                   fmt::format("several files there have the name of {} with other extensions: keep one",
                               quoted_key(input.key())));
    found.files.push_back(at->second);
  }
  find_rivals(files, list, found);
  return found;
}

// Why an input cannot have its file; empty if it can.
std::string rivalry(const FurtherImages& from, const InputList& files, const InputList& list,
                    const FilesOfInputs& found, std::size_t input) {
  if (found.files[input] == kNoFile || found.rivals[input] == kNoFile) return {};
  const Input& file = files.inputs[found.files[input]];
  const Input& rival = list.inputs[found.rivals[input]];
  if (file.path == rival.path)
    return fmt::format(
        "{0} {1}: it belongs to the image {1}, and none there is for {2} alone: give images "
        "that are not the same different names",
        from.name, quoted_key(file.key()), quoted_key(list.inputs[input].key()));
  return fmt::format(
      "{} {}: it belongs to {} and {}, and which of them cannot be told: give images that are "
      "not the same different names",
      from.name, quoted_key(file.key()), quoted_key(std::min(list.inputs[input].key(), rival.key())),
      quoted_key(std::max(list.inputs[input].key(), rival.key())));
}

// Inputs that have rivals become rejects; `found` is then of those that are left.
void reject_rivals(const FurtherImages& from, const InputList& files, InputList& list, FilesOfInputs& found) {
  std::vector<std::string> reasons;
  std::vector<std::uint32_t> left;
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    reasons.push_back(rivalry(from, files, list, found, i));
    if (reasons.back().empty()) left.push_back(found.files[i]);
  }
  if (left.size() == list.inputs.size()) return;
  reject_inputs(list, [&](std::size_t i) { return std::move(reasons[i]); });
  found = {std::move(left), {}};
}

image::WideInfo info_of(const FurtherImages& from, std::span<const std::byte> file,
                        std::uint64_t max_pixels) {
  return from.role == FieldRole::mask ? image::read_mask_info(file, max_pixels)
                                      : image::read_wide_info(file, max_pixels);
}

// Of the first file that can be read.
image::WideInfo first_info(const FurtherField& field, std::uint64_t max_pixels) {
  InputReader reader(field.from.folder);
  std::string why = "no file";
  std::size_t looked_at = 0;
  for (const std::string& path : field.paths) {
    if (path.empty()) continue;
    if (looked_at++ == kMostFilesLookedAt) break;
    try {
      return info_of(field.from, reader.read(path), max_pixels);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      if (looked_at == 1) why = fmt::format("{}: {}", quoted_key(escape_key(path)), error.what());
    }
  }
  refuse_field(
      field.from,
      fmt::format("none of the first files can be used, so dtype and channels are not known ({})", why));
}

DType mask_dtype(const FurtherImages& from, DType of_file) {
  if (from.dtype) {
    if (*from.dtype != DType::u8 && *from.dtype != DType::u16)
      refuse_field(from, fmt::format("masks are u8 or u16, not {}", to_string(*from.dtype)));
    return *from.dtype;
  }
  if (from.classes == 0) return of_file;
  return std::max(from.classes - 1, from.ignore.value_or(0)) < 256 ? DType::u8 : DType::u16;
}

// Whether a file has more than 8 bits. One that cannot be read becomes a reject later.
bool is_wide(InputReader& reader, const FurtherField& field, const std::string& path,
             std::uint64_t max_pixels) {
  constexpr std::size_t kFrontBytes = 65'536;
  Input input;
  input.path = path;
  for (const std::size_t most : {kFrontBytes, std::numeric_limits<std::size_t>::max()}) {
    try {
      return info_of(field.from, reader.read_front(input, most), max_pixels).dtype != DType::u8;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::resource) throw;
    }
  }
  return false;
}

bool any_is_wide(const FurtherField& field, const Options& options) {
  std::atomic<bool> found{false};
  std::vector<std::unique_ptr<InputReader>> readers(options.threads());
  parallel_for(options.threads(), field.paths.size(), [&](unsigned thread, std::uint64_t i) {
    if (field.paths[i].empty() || found.load(std::memory_order_relaxed)) return;
    std::unique_ptr<InputReader>& reader = readers[thread];
    if (!reader) reader = std::make_unique<InputReader>(field.from.folder);
    if (is_wide(*reader, field, field.paths[i], options.max_pixels)) found = true;
  });
  return found;
}

// Without one of its own: the images' if it can hold the field without loss. Codec packed holds floats that
// were bytes, so the headers of all files are read to know whether they are.
CodecSpec codec_of(const FurtherField& field, const SampleSpec& spec, DType of_file, const Options& options) {
  const FurtherImages& from = field.from;
  const CodecSpec& of_images = options.codec;
  if (from.codec) return *from.codec;
  const bool packed = from.role == FieldRole::mask || of_images.kind == CodecSpec::Kind::jpeg;
  const CodecSpec wanted = packed ? CodecSpec{CodecSpec::Kind::packed} : of_images;
  const auto bytes_only = [&] {
    return of_file == DType::u8 && (!is_floating(spec.dtype) || !any_is_wide(field, options));
  };
  const bool holds = wanted.can_hold(spec) && (wanted.kind != CodecSpec::Kind::packed || bytes_only());
  return holds ? wanted : CodecSpec{CodecSpec::Kind::zstd};
}

void choose_spec(const image::PreprocessOptions& preprocess, const Options& options, FurtherField& field) {
  const FurtherImages& from = field.from;
  const bool mask = from.role == FieldRole::mask;
  const image::WideInfo first = first_info(field, options.max_pixels);
  field.preprocess = preprocess;
  field.preprocess.filter = mask ? image::Filter::nearest : from.filter;
  field.preprocess.dtype = mask ? mask_dtype(from, first.dtype) : from.dtype.value_or(first.dtype);
  // RGB of 8 bits has the pixels that the images of the data set would have.
  const bool rgb = first.dtype == DType::u8 && first.channels == 3 && field.preprocess.dtype != DType::u16;
  field.preprocess.channels = rgb ? 0 : first.channels;
  field.preprocess.normalization = {};
  try {
    field.preprocess.check();
  } catch (const Error& error) {
    refuse_field(from, error.what());
  }
  if (mask && from.any_size && field.preprocess.free_size)
    refuse_field(from, "masks of another size than their images cannot be stored with samples of any size");
  const SampleSpec spec = field.preprocess.sample_spec();
  field.spec = {from.name, from.role, spec, field.preprocess.normalization,
                codec_of(field, spec, first.dtype, options)};
}

void take_inputs_with_files(const std::vector<std::uint32_t>& found, InputList& list) {
  std::vector<Input> taken;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != kNoFile)
      taken.push_back(std::move(list.inputs[i]));
    else
      list.without_files.push_back(std::move(list.inputs[i].path));
  list.inputs = std::move(taken);
  std::sort(list.without_files.begin(), list.without_files.end());
}

}  // namespace

FurtherFolders::FurtherFolders(const Options& options) : options_(options) {
  if (options.pairs.empty()) return;
  if (options.pages)
    throw Error(ErrorCode::invalid_argument,
                "`pages` together with `mask` or `pairs`: their files belong to files, not to pages");
  for (const FurtherImages& from : options.pairs) {
    InputList files = list_files(from);
    folders_.push_back({&from, std::move(files)});
    counts_.push_back({from.name, {}, {}});
  }
}

void FurtherFolders::choose(InputList& list) {
  for (std::size_t f = 0; f < folders_.size() && !list.inputs.empty(); ++f) {
    const auto& [from, files] = folders_[f];
    FilesOfInputs matched = match_files(*from, files, list);
    const std::vector<std::uint32_t>& found = matched.files;
    if (std::all_of(found.begin(), found.end(), [](std::uint32_t file) { return file == kNoFile; }))
      refuse_field(
          *from, fmt::format("none of its {} files has the name of one of the {} inputs: its first is {}, "
                             "the first input {}",
                             files.inputs.size(), list.inputs.size(), quoted_key(files.inputs.front().key()),
                             quoted_key(list.inputs.front().key())));
    FurtherCounts& counts = counts_[f];
    std::vector<bool> used(files.inputs.size());
    for (const std::uint32_t file : found)
      if (file != kNoFile) used[file] = true;
    reject_rivals(*from, files, list, matched);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != kNoFile) continue;
      const std::string what = fmt::format("{} has no {}", quoted_key(list.inputs[i].key()), from->name);
      if (options_.missing == Missing::fail)
        refuse_field(
            *from, fmt::format("{} (`missing` fail; skip leaves such images out, empty stores zeros)", what));
      if (counts.without.number++ == 0) counts.without.first = what;
    }
    for (std::size_t i = 0; i < used.size(); ++i)
      if (!used[i] && counts.unused.number++ == 0)
        counts.unused.first = fmt::format("{} belongs to none", quoted_key(files.inputs[i].key()));
    if (options_.missing == Missing::skip) take_inputs_with_files(found, list);
  }
}

std::vector<FurtherField> FurtherFolders::fields(const InputList& list,
                                                 const image::PreprocessOptions& preprocess) const {
  std::vector<FurtherField> fields;
  for (const auto& [from, files] : folders_) {
    FurtherField& field = fields.emplace_back();
    field.from = *from;
    for (const std::uint32_t file : match_files(*from, files, list).files)
      field.paths.push_back(file == kNoFile ? std::string() : files.inputs[file].path);
    choose_spec(preprocess, options_, field);
  }
  return fields;
}

std::string record_of_further(const std::vector<FurtherField>& fields) {
  std::string text;
  for (const FurtherField& field : fields) {
    const FurtherImages& from = field.from;
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", from.name, to_string(field.preprocess.filter));
    if (from.any_size) text += " size any";
    if (from.classes != 0) text += fmt::format(" classes {}", from.classes);
    if (from.ignore) text += fmt::format(" ignore {}", *from.ignore);
  }
  return text;
}

namespace {

// The ways of record_of_further().
std::vector<FurtherImages> further_from_record(const std::string& record) {
  std::vector<FurtherImages> all;
  const auto fail = [&] {
    throw Error(
        ErrorCode::unsupported,
        fmt::format(
            "the recorded further_images {} are not known to this version: use the version that made the "
            "data set",
            quoted_excerpt(record)));
  };
  for (std::size_t at = 0; at < record.size();) {
    const std::size_t end = std::min(record.find("; ", at), record.size());
    std::istringstream words(record.substr(at, end - at));
    FurtherImages& from = all.emplace_back();
    std::string filter;
    words >> from.name >> filter;
    const auto known = image::filter_from_string(filter);
    if (!known) fail();
    from.filter = *known;
    for (std::string word; words >> word;) {
      std::uint32_t value = 0;
      std::string any;
      if (word == "size" && words >> any && any == "any")
        from.any_size = true;
      else if (word == "classes" && words >> value)
        from.classes = value;
      else if (word == "ignore" && words >> value)
        from.ignore = value;
      else
        fail();
    }
    at = std::min(end + 2, record.size());
  }
  return all;
}

// As recorded, with the folder that is given.
FurtherImages recorded_field(const DatasetInfo& info, const std::vector<FurtherImages>& recorded,
                             const FurtherImages& given) {
  const auto field = find_field(info.fields, given.name);
  if (!field) refuse_field(given, "the data set has no such field");
  const auto at = std::find_if(recorded.begin(), recorded.end(),
                               [&](const FurtherImages& from) { return from.name == given.name; });
  if (at == recorded.end())
    throw Error(ErrorCode::unsupported,
                fmt::format("field {} was not made from files by shardify", quoted(given.name)));
  FurtherImages from = *at;
  from.folder = given.folder;
  from.suffix = given.suffix;
  from.role = info.fields[*field].role;
  from.dtype = info.fields[*field].spec.dtype;
  from.codec = info.fields[*field].codec;
  return from;
}

}  // namespace

std::vector<FurtherField> recorded_fields(const DatasetInfo& info, const std::vector<FurtherImages>& folders,
                                          const InputList& inputs, std::uint64_t max_pixels) {
  const auto record = info.provenance.find("further_images");
  const auto recorded = further_from_record(record == info.provenance.end() ? std::string() : record->second);
  Options options;
  options.codec = info.codec;
  options.max_pixels = max_pixels;
  std::vector<FurtherField> fields;
  for (const FurtherImages& given : folders) {
    FurtherField& field = fields.emplace_back();
    field.from = recorded_field(info, recorded, given);
    const InputList files = list_files(field.from);
    const FilesOfInputs found = match_files(field.from, files, inputs);
    for (std::size_t i = 0; i < inputs.inputs.size(); ++i)
      if (const std::string why = rivalry(field.from, files, inputs, found, i); !why.empty())
        refuse_field(field.from, why);
    for (const std::uint32_t file : found.files) {
      field.paths.push_back(file == kNoFile ? std::string() : files.inputs[file].path);
      std::error_code error;
      field.sizes.push_back(
          file == kNoFile ? 0 : std::filesystem::file_size(field.from.folder / field.paths.back(), error));
    }
    choose_spec(preprocess_options_from(info), options, field);
    const FieldSpec& stored = info.fields[*find_field(info.fields, given.name)];
    if (field.spec.spec != stored.spec)
      refuse_field(field.from, fmt::format("its files make {}, but the data set has {}",
                                           to_string(field.spec), to_string(stored)));
  }
  return fields;
}

}  // namespace shard::convert
