// Lists arrays of images: .npy and .npz (numpy), IDX (MNIST), binary files of CIFAR-10 and CIFAR-100. Items
// are read where they lie, except for those of compressed arrays, which are unpacked first (unpack.hpp).
//
//   x.npy, x.npz             x.npy/000000, x.npy/000001, ...   labels: the array of .npz that is named so
//   x.npy, one image         x.npy                             labels: its folder, of a folder of them
//   train-images-idx3-ubyte                                    labels: train-labels-idx1-ubyte, beside it
//   data_batch_1.bin                                           labels: in the records; of CIFAR-100 the fine
//                                                              ones
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "base/text/quote.hpp"
#include "convert/archives/array.hpp"
#include "convert/sources/open_archive.hpp"
#include "convert/sources/source_kind.hpp"
#include "convert/sources/unpack.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kCifarPixels = 3 * 32 * 32;
constexpr std::string_view kImageMembers[] = {"images", "image", "x", "X", "data", "arr_0"};
constexpr std::string_view kLabelMembers[] = {"labels", "label", "y", "Y", "targets", "arr_1"};

bool has_ending(std::string_view name, std::string_view ending) {
  return name.size() > ending.size() && name.ends_with(ending);
}

std::vector<std::byte> header_bytes(const OpenArchive& file, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> begin(static_cast<std::size_t>(std::min<std::uint64_t>(size, kMaxArrayHeaderBytes)));
  begin.resize(file.read(offset, begin));
  return begin;
}

bool is_idx_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const OpenArchive file(path);
  return is_idx_of_images(header_bytes(file, 0, 4));
}

// data_batch_1.bin, test_batch.bin (CIFAR-10), train.bin, test.bin (CIFAR-100):
// how many bytes of labels a record has.
std::optional<std::uint64_t> cifar_labels(const fs::path& path) {
  const std::string name = path.filename().string();
  if ((name.starts_with("data_batch_") && has_ending(name, ".bin")) || name == "test_batch.bin") return 1;
  if (name == "train.bin" || name == "test.bin") return 2;
  return std::nullopt;
}

std::vector<fs::path> cifar_files(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return files;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (cifar_labels(at->path()) && at->is_regular_file(error)) files.push_back(at->path());
  std::sort(files.begin(), files.end());
  // "train.bin" alone may be anything.
  const bool plain =
      std::any_of(files.begin(), files.end(), [](const fs::path& file) { return *cifar_labels(file) == 2; });
  if (plain && !fs::exists(fs::path(folder) / "fine_label_names.txt", error)) files.clear();
  return files;
}

// The name without ".gz".
std::string unpacked_name(const fs::path& path) {
  std::string name = path.filename().string();
  if (has_ending(name, ".gz")) name.resize(name.size() - 3);
  return name;
}

// An array somewhere in a file.
struct Found {
  ArrayHeader header;
  std::uint64_t offset = 0;  // of its header
  std::uint64_t size_bytes = 0;
  std::shared_ptr<const OpenArchive> unpacked;  // where this is; null: in the file itself
};

std::vector<std::byte> unpacked_header(Unpacker& unpacker) {
  std::vector<std::byte> begin(kMaxArrayHeaderBytes);
  begin.resize(unpacker.read(begin));
  return begin;
}

ArrayHeader parse_header(const std::string& name, std::span<const std::byte> begin) {
  return has_ending(name, ".npy") ? parse_npy_header(begin) : parse_idx_header(begin);
}

// The array of a file with a header of its own: .npy or IDX, perhaps with .gz behind its name.
Found find_array(const OpenArchive& file, const fs::path& path) {
  const std::string name = unpacked_name(path);
  if (name == path.filename().string())
    return {parse_header(name, header_bytes(file, 0, file.size())), 0, file.size(), nullptr};
  Unpacker unpacker(file, 0, file.size(), Packed::gzip);
  const std::vector<std::byte> begin = unpacked_header(unpacker);
  Found found{parse_header(name, begin), 0, 0, nullptr};
  const std::uint64_t bytes = element_bytes(found.header.dtype);
  if (bytes == 0) return found;  // of use to nobody: who asked for it says so
  const std::uint64_t count = count_elements(found.header, bytes, Unpacker::most_bytes(file.size()));
  found.size_bytes = found.header.data_offset + count * bytes;
  found.unpacked = unpack_file(unpacker, begin, found.size_bytes);
  return found;
}

class ArrayLister {
 public:
  // `labelled`: labels come from elsewhere, so an array of them may have any name.
  ArrayLister(InputList& list, ArrayLayout layout, bool labelled)
      : list_(list), layout_(layout), labelled_(labelled) {}

  void add(const fs::path& path, const std::string& prefix) {
    open(path, prefix);
    try {
      add_opened();
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", quoted(path), error.what()));
    }
  }

  // The same of one file of many: an array that is no image is a reject.
  void add_or_reject(const fs::path& path, const std::string& prefix) {
    open(path, prefix);
    try {
      add_opened();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::resource || error.code() == ErrorCode::io) throw;
      list_.archives.pop_back();
      list_.rejects.push_back({escape_key(prefix), escape_key(error.what())});
    }
  }

 private:
  void open(const fs::path& path, const std::string& prefix) {
    path_ = path;
    prefix_ = prefix;
    file_.emplace(path);
    list_.archives.push_back({path, file_->size(), file_->stamp()});
  }

  void add_opened() {
    const std::string name = unpacked_name(path_);
    if (is_single(layout_) && !has_ending(name, ".npy"))
      throw Error(ErrorCode::unsupported, fmt::format("`array_layout` {} is for .npy files of one image each",
                                                      words_of(layout_)[static_cast<std::size_t>(layout_)]));
    if (has_ending(name, ".npz"))
      add_npz();
    else if (has_ending(name, ".npy"))
      add_array(find_array(*file_, path_));
    else if (const auto labels = cifar_labels(path_))
      add_cifar(*labels);
    else
      add_idx();
  }

  Found find_member(const ZipMember& member) const {
    if (!member.deflated)
      return {parse_npy_header(header_bytes(*file_, member.offset, member.size_bytes)), member.offset,
              member.size_bytes, nullptr};
    if (member.size_bytes > Unpacker::most_bytes(member.stored_bytes))
      throw Error(ErrorCode::corrupt,
                  fmt::format("has the member {}, which cannot have {} bytes: it is damaged",
                              quoted_excerpt(member.name), member.size_bytes));
    Unpacker unpacker(*file_, member.offset, member.stored_bytes, Packed::deflate);
    const std::vector<std::byte> begin = unpacked_header(unpacker);
    Found found{parse_npy_header(begin), 0, member.size_bytes, nullptr};
    found.unpacked = unpack_file(unpacker, begin, member.size_bytes, member.checksum);
    return found;
  }

  // The inputs: items of `step` bytes, the first of which begins at `first`.
  void add_items(const ArrayImages& images, std::uint64_t first, std::uint64_t step) {
    Archive& archive = list_.archives.back();
    archive.header = tiff_header(images);
    archive.first_item = first;
    archive.item_step = step;
    archive.items = images.count;
    const auto number = static_cast<std::uint32_t>(list_.archives.size() - 1);
    const std::uint64_t size = archive.header.size() + images.item_bytes();
    for (std::uint64_t i = 0; i < images.count; ++i)
      list_.inputs.push_back({name_of(i, images.count), number, Input::kNoPage, first + i * step, size});
  }
  std::string name_of(std::uint64_t item, std::uint64_t count) const {
    if (is_single(layout_)) return prefix_;
    const std::size_t digits = std::max<std::size_t>(6, std::to_string(count - 1).size());
    return fmt::format("{}/{:0{}}", prefix_, item, digits);
  }
  std::uint64_t add_array(const Found& found) {
    const ArrayImages images = images_of(found.header, layout_);
    require_exact(found, images.element_bytes);
    list_.archives.back().open = found.unpacked;
    add_items(images, found.offset + found.header.data_offset, images.item_bytes());
    return images.count;
  }

  // Errors: corrupt, if the file ends before its array does or goes on behind it.
  // Returns the number of elements.
  static std::uint64_t require_exact(const Found& found, std::uint64_t element_bytes) {
    const std::uint64_t count = count_elements(found.header, element_bytes, found.size_bytes);
    const std::uint64_t end = found.header.data_offset + count * element_bytes;
    if (end != found.size_bytes)
      throw Error(ErrorCode::corrupt,
                  fmt::format("has {} bytes behind its array, which nothing names: another array? Save each "
                              "array in a file of its own",
                              found.size_bytes - end));
    return count;
  }

  void add_labels(const OpenArchive& file, const Found& found, std::uint64_t count,
                  const std::string& where) {
    const std::vector<std::int64_t> values = labels_of(file, found, where);
    if (values.size() != count)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} has {} labels for {} images", where, values.size(), count));
    for (std::uint64_t i = 0; i < count; ++i) list_.numbers.emplace_back(name_of(i, count), values[i]);
  }

 public:
  // Of an array of whole numbers with one axis (or a second one of length 1).
  static std::vector<std::int64_t> labels_of(const OpenArchive& in, const Found& found,
                                             const std::string& where) {
    const OpenArchive& file = found.unpacked ? *found.unpacked : in;
    const std::uint64_t bytes = integer_bytes(found.header.dtype);
    const auto& shape = found.header.shape;
    if (bytes == 0 || shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape[1] != 1))
      throw Error(
          ErrorCode::unsupported,
          fmt::format(
              "{}: labels are whole numbers in an array of one axis; the dtype is {} and there are {} axes",
              where, quoted(found.header.dtype), shape.size()));
    const std::uint64_t count = require_exact(found, bytes);
    std::vector<std::int64_t> values;
    values.reserve(static_cast<std::size_t>(count));
    std::vector<std::byte> part(static_cast<std::size_t>(std::min<std::uint64_t>(count, 65536) * bytes));
    for (std::uint64_t i = 0; i < count;) {
      const std::uint64_t some = std::min<std::uint64_t>(65536, count - i);
      const std::span<std::byte> out = std::span(part).first(static_cast<std::size_t>(some * bytes));
      if (file.read(found.offset + found.header.data_offset + i * bytes, out) != out.size())
        throw Error(ErrorCode::corrupt, fmt::format("{} is cut off", where));
      for (std::uint64_t k = 0; k < some; ++k)
        values.push_back(load_integer(found.header.dtype, out.data() + k * bytes));
      i += some;
    }
    return values;
  }

 private:
  using NamedMember = std::pair<std::string, ZipMember>;

  // The array with one of these names, or null. Throws invalid_argument for several.
  static const NamedMember* named(const std::vector<NamedMember>& arrays,
                                  std::span<const std::string_view> names, std::string_view what) {
    const NamedMember* found = nullptr;
    for (const std::string_view name : names)
      for (const NamedMember& array : arrays) {
        if (array.first != name) continue;
        if (found != nullptr)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("has the arrays {} and {}: which of them has the {} cannot be told; save "
                                  "the array of images alone, as .npy, and the labels as another",
                                  quoted_excerpt(found->first), quoted_excerpt(array.first), what));
        found = &array;
      }
    return found;
  }

  void add_npz() {
    std::vector<NamedMember> arrays;
    for (const ZipMember& member :
         list_npz([this](std::uint64_t at, std::span<std::byte> out) { return file_->read(at, out); },
                  file_->size()))
      if (has_ending(member.name, ".npy"))
        arrays.emplace_back(member.name.substr(0, member.name.size() - 4), member);
    const NamedMember* const images =
        arrays.size() == 1 ? &arrays.front() : named(arrays, kImageMembers, "images");
    if (images == nullptr) {
      std::string names;
      for (const auto& array : arrays) names += (names.empty() ? "" : ", ") + quoted_excerpt(array.first);
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("has the arrays {}: the images must be named images, image, x, X, data or arr_0 "
                      "(and labels labels, label, y, Y, targets or arr_1); "
                      "or save the array of images alone, as .npy",
                      names.empty() ? "[]" : names));
    }
    const std::uint64_t count = add_array(find_member(images->second));
    if (arrays.size() == 1) return;
    if (const NamedMember* const labels = named(arrays, kLabelMembers, "labels"))
      add_labels(*file_, find_member(labels->second), count, "the array " + quoted_excerpt(labels->first));
    else if (!labelled_)
      refuse_other_labels(arrays, images->first, count);
  }

  ArrayHeader header_of(const ZipMember& member) const {
    if (!member.deflated) return parse_npy_header(header_bytes(*file_, member.offset, member.size_bytes));
    Unpacker unpacker(*file_, member.offset, member.stored_bytes, Packed::deflate);
    return parse_npy_header(unpacked_header(unpacker));
  }

  // An array with an entry for each image may be their labels.
  void refuse_other_labels(const std::vector<NamedMember>& arrays, const std::string& images,
                           std::uint64_t count) const {
    for (const NamedMember& array : arrays) {
      if (array.first == images) continue;
      const ArrayHeader header = header_of(array.second);
      if (header.shape.empty() || header.shape.front() != count) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has the array {} with an entry for each of the {} images, but no array named "
                              "labels, label, y, Y, targets or arr_1: give it such a name if it has the "
                              "labels, or say with `labels` which file has them, or remove it",
                              quoted_excerpt(array.first), count));
    }
  }

  void add_idx() {
    const std::uint64_t count = add_array(find_array(*file_, path_));
    const std::string name = unpacked_name(path_);
    for (const std::string_view dot : {"-", "."}) {
      for (const std::string_view axes : {"3", "4"}) {
        const std::string images = fmt::format("images{}idx{}", dot, axes);
        const std::size_t at = name.rfind(images);
        if (at == std::string::npos) continue;
        const std::string labels =
            name.substr(0, at) + fmt::format("labels{}idx1", dot) + name.substr(at + images.size());
        for (const char* packed : {"", ".gz"}) {
          const fs::path beside = path_.parent_path() / (labels + packed);
          std::error_code error;
          if (!fs::exists(beside, error)) continue;
          const OpenArchive file(beside);
          add_labels(file, find_array(file, beside), count, quoted(beside));
          return;
        }
        return;
      }
    }
  }

  void add_cifar(std::uint64_t label_bytes) {
    const std::uint64_t record = label_bytes + kCifarPixels;
    if (file_->size() == 0 || file_->size() % record != 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("has {} bytes, which are no whole records of CIFAR-{} ({} bytes)",
                              file_->size(), label_bytes == 1 ? 10 : 100, record));
    ArrayImages images;
    images.count = file_->size() / record;
    images.width = images.height = 32;
    images.channels = 3;
    images.planes = true;
    add_items(images, label_bytes, record);
    for (std::uint64_t i = 0; i < images.count; ++i) {
      std::array<std::byte, 2> label{};
      const std::span<std::byte> out = std::span(label).first(static_cast<std::size_t>(label_bytes));
      if (file_->read(i * record, out) != out.size()) throw Error(ErrorCode::corrupt, "is cut off");
      const unsigned classes = label_bytes == 1 ? 10 : 100;
      if (std::to_integer<unsigned>(out.back()) >= classes ||
          (label_bytes == 2 && std::to_integer<unsigned>(out.front()) >= 20))
        throw Error(
            ErrorCode::corrupt,
            fmt::format("record {} has the label {}, but CIFAR-{} has 0 to {}: it is another file, or "
                        "damaged",
                        i, std::to_integer<unsigned>(out.back()), classes, classes - 1));
      list_.numbers.emplace_back(name_of(i, images.count), std::to_integer<std::int64_t>(out.back()));
    }
  }

  InputList& list_;
  ArrayLayout layout_;
  bool labelled_;
  fs::path path_;
  std::string prefix_;
  std::optional<OpenArchive> file_;
};

}  // namespace

bool names_arrays(const std::string& images) {
  std::error_code error;
  if (fs::is_directory(images, error)) return !cifar_files(images).empty();
  const std::string_view name = images;
  for (const std::string_view compressed :
       {".npz.gz", ".bin.gz", ".npy.zst", ".npy.xz", ".npy.bz2", "-ubyte.xz", "-ubyte.zst"})
    if (has_ending(name, compressed))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} is compressed in a way that is not read: unpack it first", quoted(images)));
  for (const std::string_view ending : {".npy", ".npz", "-ubyte", ".npy.gz", "-ubyte.gz"})
    if (has_ending(name, ending)) return true;
  if (has_ending(name, ".bin") && cifar_labels(expanded_pattern(images).front())) return true;
  return is_idx_file(images);
}

void read_array_files(InputList& list, ArrayLayout layout) {
  InputList arrays;
  ArrayLister lister(arrays, layout, true);
  for (const Input& input : list.inputs) lister.add_or_reject(list.root / input.path, input.path);
  list.inputs = std::move(arrays.inputs);
  list.archives = std::move(arrays.archives);
  list.rejects.insert(list.rejects.end(), arrays.rejects.begin(), arrays.rejects.end());
}

InputList scan_arrays(const ScanOptions& options) {
  InputList list;
  std::vector<fs::path> files = cifar_files(options.images);
  list.archives_in_order = files.size() < 2;
  if (files.empty()) {
    list.archives_in_order = true;
    for (const std::string& name : expanded_pattern(options.images)) files.emplace_back(name);
  }
  ArrayLister lister(list, options.layout, options.labelled);
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(unpacked_name(file));
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    for (std::size_t i = 0; i < files.size(); ++i)
      names[i] = files[i].lexically_normal().relative_path().string();
  for (std::size_t i = 0; i < files.size(); ++i) lister.add(files[i], names[i]);
  std::sort(list.numbers.begin(), list.numbers.end());
  list.has_numbers = !list.numbers.empty();
  return list;
}

namespace {

std::vector<std::int64_t> read_labels(const fs::path& path) {
  try {
    const OpenArchive file(path);
    return ArrayLister::labels_of(file, find_array(file, path), "`labels`");
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quoted(path), error.what()));
  }
}

// The labels of all items in the order of their arrays. A file for each array must fit it.
std::vector<std::int64_t> read_label_arrays(const InputList& list, const fs::path& pattern) {
  const std::vector<std::string> files = expanded_pattern(pattern.string());
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::vector<std::int64_t> values = read_labels(files[i]);
    if (files.size() > 1 && files.size() == list.archives.size() && values.size() != list.archives[i].items)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} has {} labels for the {} images of {}", quoted(files[i]), values.size(),
                              list.archives[i].items, quoted(list.archives[i].path)));
    all.insert(all.end(), values.begin(), values.end());
  }
  std::uint64_t count = 0;
  for (const Archive& archive : list.archives) count += archive.items;
  if (all.size() != count)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} labels for {} images", quoted(pattern), all.size(), count));
  return all;
}

}  // namespace

LabelTable labels_from_array(const InputList& list, const fs::path& path) {
  if (!list.of_arrays())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`labels` {}: an array has a label for each position, which only images in an "
                            "array have; give a CSV table",
                            quoted(path)));
  if (!list.archives_in_order)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`labels` {}: an array has a label for each position, but the files of a folder "
                            "have no order: name them with a pattern, like data_batch_{{1..5}}.bin",
                            quoted(path)));
  const std::vector<std::int64_t> values = read_label_arrays(list, path);
  // Inputs are sorted by their keys, and some may be left out;
  // labels are in the order of the arrays as they were given.
  std::vector<std::uint64_t> begin{0};
  for (const Archive& archive : list.archives) begin.push_back(begin.back() + archive.items);
  LabelTable table;
  for (const Input& input : list.inputs) {
    const Archive& archive = list.archives[input.archive];
    const std::int64_t value =
        values[begin[input.archive] + (input.offset - archive.first_item) / archive.item_step];
    for (int i = 0; i < 8; ++i)
      table.rows.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  return table;
}

bool names_label_array(const fs::path& path) {
  const std::string name = unpacked_name(path);
  return has_ending(name, ".npy") || has_ending(name, "-ubyte");
}

}  // namespace shard::convert
