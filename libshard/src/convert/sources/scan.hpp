// Which files are converted, in which order, with which labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/sources/column_table.hpp"
#include "convert/sources/open_archive.hpp"
#include "shard/convert/input_name.hpp"
#include "shard/convert/listing.hpp"
#include "shard/convert/options.hpp"
#include "shard/shard_writer.hpp"

namespace shard::convert {

// Paths are bytes, not text: they are sorted by bytes, in every locale, without Unicode normalisation.
struct Input {
  std::string path;  // relative to the root, '/' between parts; of a tar archive: the name of the member
  std::string key() const;  // escaped (shard/keys.hpp); of a page with #PAGE behind it

  // In an archive: its position in InputList::archives (else beyond them: use archive_of()), and where the
  // bytes of the member are. On a server: the size of the file.
  std::uint32_t archive = ~std::uint32_t{0};
  // Of a file whose pages are inputs (Options::pages), from 0 on.
  static constexpr std::uint32_t kNoPage = ~std::uint32_t{0};
  std::uint32_t page = kNoPage;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;  // with Archive::header
  std::uint64_t stamp = 0;       // of a file on a server: RemoteFiles::State::stamp

  std::uint32_t page_number() const noexcept { return page == kNoPage ? 0 : page; }
};

// What the key of an input names: "a.tif#3" with pages is page 3 of a.tif. `raw`: not escaped.
struct PageName {
  std::string_view path;
  std::uint32_t page = Input::kNoPage;
};
PageName page_name(std::string_view raw);

// A member of an archive that is no image and belongs to one (WebDataset).
struct SideMember {
  std::string input;      // the path of the image
  std::string extension;  // what follows the name of its sample, without the dot
  std::uint32_t archive = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::shared_ptr<const std::string> problem;  // not null: which member it is cannot be told
};

// A file that contains inputs, as it was when it was listed.
struct Archive {
  std::filesystem::path path;
  std::uint64_t size_bytes = 0;
  std::uint64_t stamp = 0;  // OpenArchive::stamp()
  // Of an array: what comes in front of each item, so that items are handed on as files; where the first item
  // begins, the distance of two and how many there are. With the order of the archives these give each input
  // its position.
  std::vector<std::byte> header = {};
  std::uint64_t first_item = 0;
  std::uint64_t item_step = 1;
  std::uint64_t items = 0;
  // It stays open: it is on a server, or was unpacked into a file without a name. Null: it is opened to be
  // read.
  std::shared_ptr<const OpenArchive> open = nullptr;
  // What the paths of its inputs begin with, if that is not in the archive: "train-000/".
  std::string prefix = {};

  bool is_array() const noexcept { return !header.empty(); }
  bool on_server() const noexcept { return open && open->is_remote(); }
};

struct InputList {
  // Null: the input is a file.
  const Archive* archive_of(const Input& input) const noexcept {
    return input.archive < archives.size() ? &archives[input.archive] : nullptr;
  }
  // Whether the bytes of an input come from a server.
  bool on_server(const Input& input) const noexcept {
    const Archive* const archive = archive_of(input);
    return archive != nullptr ? archive->on_server() : server != nullptr;
  }
  bool of_arrays() const noexcept { return !archives.empty() && archives.front().is_array(); }

  // The file of an input is root / path. May be empty.
  std::filesystem::path root;
  // Set: the root is an address, and the files of inputs are there.
  std::shared_ptr<const RemoteFiles> server;
  // Sorted by path and page, unique.
  std::vector<Input> inputs;
  std::vector<Archive> archives;
  // True: the order of the archives is the one that was asked for,
  // so positions in an array of labels mean something.
  bool archives_in_order = false;
  // Labels that come with the inputs, sorted: the path of an input and its number,
  // in its .cls member (WebDataset) or in an array.
  std::vector<std::pair<std::string, std::int64_t>> numbers;
  // Inputs whose number cannot be told, sorted, and why.
  std::vector<std::pair<std::string, std::string>> unclear_numbers;
  // Some input has a number or should have one. Then those without are rejects.
  bool has_numbers = false;
  // Members that were asked for, sorted by input and extension: one at most of each.
  std::vector<SideMember> side;
  // Some archives have images of one name, so paths begin with Archive::prefix.
  bool has_prefixes() const noexcept { return !archives.empty() && !archives.front().prefix.empty(); }
  // The path without it: its first folder is the class.
  std::string_view path_inside(const Input& input) const {
    const Archive* const archive = archive_of(input);
    return std::string_view(input.path).substr(archive != nullptr ? archive->prefix.size() : 0);
  }
  // The classes: top-level folders that contain an input or something that could not be read. Raw names,
  // sorted.
  std::vector<std::string> folders;
  // The other top-level folders, which are not classes. Escaped names, sorted.
  std::vector<std::string> empty_folders;
  // What could not be listed: unreadable folders, loops of symbolic links. Sorted by key.
  std::vector<Reject> rejects;
  // Sorted by key.
  std::vector<Skip> skipped;
  // Paths of inputs that are left out because they lack a file of further images (--missing skip), sorted.
  std::vector<std::string> without_files;
  // The number of inputs that are left out because the table of labels does not name them (--unlisted skip).
  std::uint64_t unlisted = 0;
};

struct ScanOptions {
  // As in Options: a source of one of the kinds of source_kind.hpp.
  std::string images = {};
  // Of a list.
  std::filesystem::path root = {};
  // Of arrays.
  ArrayLayout layout = ArrayLayout::automatic;
  // Of arrays: labels come from elsewhere, so an .npz may have any other arrays.
  bool labelled = false;
  // Of archives: which members that are no images are listed too, by their extensions.
  std::set<std::string> side = {};
  // Threads that list folders and sort. 0: one per CPU.
  unsigned jobs = 0;
};
// The result depends only on the files, not on the order in which a folder is read or on the locale. Errors:
// not_found, io, invalid_argument (nothing found, duplicate paths, a list whose root is not obvious), naming
// the path.
//
// Links to folders: within one top-level folder, each folder (device, inode) is walked once. So loops end,
// and the work is bounded by the number of folders. Folders that are reached without a link come first, then
// links in the order of (links passed, bytes of the path). A link to a folder that contains it is a reject.
InputList scan(const ScanOptions& options);

// The input with this path (not escaped) and page; null if there is none. Binary search.
const Input* find_input(const InputList& list, std::string_view path, std::uint32_t page = Input::kNoPage);
// The input with this key, with or without page; not escaped.
const Input* find_key(const InputList& list, std::string_view raw);

// Expands the braces of a pattern in the order that it gives, as a shell does: "{b,a}{1..2}" -> b1, b2, a1,
// a2. Throws invalid_argument for more than a million names, before they are made.
std::vector<std::string> expanded_pattern(const std::string& pattern);

// Moves inputs to list.rejects, which stay sorted: those for which `reason_of` does not return an empty text.
void reject_inputs(InputList& list, const std::function<std::string(std::size_t)>& reason_of);

struct LabelTable {
  ColumnSpec column{"labels", DType::i64, {}};
  std::vector<std::string> classes;  // escaped; empty when labels are numbers
  std::vector<std::byte> rows;       // inputs x row bytes, little-endian
  std::uint64_t row_bytes = 8;
  // All labels are 0, because nothing says a class.
  bool unlabelled = false;
};

// The label of an input is the position of its top-level folder among the sorted folder names, or 0 if there
// are no folders. Inputs beside the class folders have no class and are moved to list.rejects.
LabelTable labels_from_folders(InputList& list);

// The numbers that come with the inputs; inputs without one are moved to list.rejects.
LabelTable labels_from_numbers(InputList& list);

// An array (.npy, IDX), or a pattern of several, with a whole number for each input: in the order of the
// arrays of images as they were given, not in that of the inputs. Only for inputs from arrays.
// Errors: invalid_argument, corrupt, unsupported, io.
LabelTable labels_from_array(const InputList& list, const std::filesystem::path& path);
bool names_label_array(const std::filesystem::path& path);

// A table with rows path,label (whole numbers, or numbers, or class names) or path,v1,...,vk (float32).
// Throws invalid_argument, naming the line, for a row that names no input, a duplicate or a malformed row.
LabelTable labels_from_csv(InputList& list, const std::filesystem::path& file,
                           Unlisted unlisted = Unlisted::reject);

// The same with further columns: the first line of the table names them. The labels are those of its column
// "label" or "labels", or else of the folders.
struct CsvTable {
  LabelTable labels;
  std::vector<ColumnTable> columns;
};
CsvTable table_from_csv(InputList& list, const std::filesystem::path& file,
                        const std::vector<ColumnSpec>& columns, Unlisted unlisted);

}  // namespace shard::convert
