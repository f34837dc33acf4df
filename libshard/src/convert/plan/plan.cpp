#include "convert/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/annotations/class_labels.hpp"
#include "convert/annotations/coco.hpp"
#include "convert/annotations/label_files.hpp"
#include "convert/annotations/member_columns.hpp"
#include "convert/plan/advice.hpp"
#include "convert/plan/choose.hpp"
#include "convert/plan/file_sizes.hpp"
#include "convert/sources/open_archive.hpp"
#include "convert/sources/source_kind.hpp"
#include "format/codec/codec_check.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

void refuse_out_inside_images(const Options& options) {
  if (options.images == "-" || options.images.starts_with("@")) return;
  std::error_code error;
  const fs::path images = fs::weakly_canonical(options.images, error);
  if (error) return;  // scan() reports what is wrong
  const fs::path out = fs::weakly_canonical(options.out, error);
  if (error) return;
  for (fs::path folder = out;; folder = folder.parent_path()) {
    if (folder == images)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "`out` {} is inside `images` {}, so its files would become inputs: choose a folder outside",
              quoted(options.out), quoted(options.images)));
    if (folder == folder.parent_path()) return;  // the root
  }
}

// --strict: skipped files become rejects.
void reject_skipped(InputList& list) {
  for (Skip& skip : list.skipped)
    list.rejects.push_back({std::move(skip.key), "skipped: " + std::string(to_string(skip.reason))});
  list.skipped.clear();
}

constexpr FileSizes::State kUnknownState{Plan::kUnknownSize, 0};

// On several threads, because a network file system takes long for each question of a thread. `look_at` gets
// files below `root`, and a number.
template <class LookAt>
void look_at_files(std::size_t count, unsigned threads, const fs::path& root, const LookAt& look_at) {
  constexpr std::size_t kStep = 256;
  parallel_for(threads, (count + kStep - 1) / kStep, [&](unsigned, std::uint64_t step) {
    FileSizes files(root);
    for (std::size_t i = step * kStep; i < std::min<std::size_t>((step + 1) * kStep, count); ++i)
      look_at(files, i);
  });
}

// And their stamps.
std::vector<std::uint64_t> sizes_of(InputList& list, unsigned threads) {
  std::vector<std::uint64_t> sizes(list.inputs.size());
  look_at_files(sizes.size(), threads, list.root, [&](FileSizes& files, std::size_t i) {
    Input& input = list.inputs[i];
    sizes[i] = input.size_bytes;
    if (list.archive_of(input) != nullptr || list.server) return;
    const FileSizes::State state = files.state_of(input.path).value_or(kUnknownState);
    sizes[i] = state.size_bytes;
    input.stamp = state.stamp;
  });
  return sizes;
}

void find_sizes_of(FurtherField& field, unsigned threads) {
  field.sizes.resize(field.paths.size());
  field.stamps.resize(field.paths.size());
  look_at_files(field.paths.size(), threads, field.from.folder, [&](FileSizes& files, std::size_t i) {
    if (field.paths[i].empty()) return;
    const FileSizes::State state = files.state_of(field.paths[i]).value_or(kUnknownState);
    field.sizes[i] = state.size_bytes;
    field.stamps[i] = state.stamp;
  });
}

// A digest of text that is made in pieces, because all of it would be the peak of memory.
class TextDigest {
 public:
  void add(std::string_view text) {
    if (text_.size() + text.size() > kPieceBytes) flush();
    text_ += text;
  }
  void add(std::uint64_t number, char end) {
    std::array<char, 21> digits{};
    char* const last = std::to_chars(digits.data(), digits.data() + digits.size() - 1, number).ptr;
    *last = end;
    add({digits.data(), static_cast<std::size_t>(last - digits.data()) + 1});
  }
  std::uint64_t digest() {
    flush();
    return stream_.digest();
  }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 10U;
  void flush() {
    stream_.update(text_);
    text_.clear();
  }
  Xxh3Stream stream_;
  std::string text_;
};

// Folders are no classes where images lie beside them and annotations say what is in an image.
void forget_folders_beside(InputList& list, AnnotationCounts& counts) {
  if (list.folders.empty()) return;
  for (const Input& input : list.inputs)
    if (input.path.find('/') == std::string::npos && counts.beside_folders.number++ == 0)
      counts.beside_folders.first = quoted_key(input.key());
  if (counts.beside_folders.number != 0) list.folders.clear();
}

// `on_error` fail: what is known to be a reject before anything is decoded ends the run too.
void stop_at_rejects(const Options& options, const InputList& list) {
  if (options.on_error != OnError::fail || list.rejects.empty()) return;
  throw Error(ErrorCode::corrupt,
              fmt::format("{}: {} (`on_error` fail)", quoted_key(list.rejects.front().key),
                          list.rejects.front().reason));
}

// The head of a shard holds keys and columns. Where the default number of samples would be too many for one,
// it is halved until all shards fit.
std::uint64_t fitting_per_shard(const Options& options, const Plan& plan, const DatasetSpec& spec) {
  const std::uint64_t row = head_bytes_per_sample(spec);
  // At most four bytes of a key for one of a path, and the number of a page.
  std::uint64_t at_most = plan.list.inputs.size() * (row + 16);
  for (const Input& input : plan.list.inputs) at_most += 4 * input.path.size();
  for (const ColumnTable& column : plan.columns)
    if (column.spec().kind != ColumnKind::fixed) at_most += column.size_bytes();
  if (at_most <= kMaxHeadRowBytes) return plan.per_shard;
  const auto bytes_of = [&](std::uint64_t input) {
    std::uint64_t bytes = row + plan.list.inputs[input].key().size();
    for (const ColumnTable& column : plan.columns)
      if (column.spec().kind != ColumnKind::fixed) bytes += column.rows(input).size();
    return bytes;
  };
  const auto fullest = [&](std::uint64_t per_shard) {
    std::uint64_t most = 0;
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < plan.list.inputs.size(); ++i) {
      if (i % per_shard == 0) bytes = 0;
      most = std::max(most, bytes += bytes_of(i));
    }
    return most;
  };
  std::uint64_t per_shard = plan.per_shard;
  std::uint64_t most = fullest(per_shard);
  if (most > kMaxHeadRowBytes && options.samples_per_shard != 0)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("`samples_per_shard` is {}, but keys and columns of as many inputs take {} bytes: a "
                    "shard holds {} at most",
                    per_shard, most, kMaxHeadRowBytes));
  while (most > kMaxHeadRowBytes && per_shard > 1) {
    per_shard = std::max<std::uint64_t>(1, std::min<std::uint64_t>(per_shard, plan.list.inputs.size()) / 2);
    most = fullest(per_shard);
  }
  return per_shard;
}

// The extensions of members of a WebDataset that have these columns.
std::set<std::string> members_of(const std::vector<ColumnSpec>& columns) {
  std::set<std::string> names{"json"};
  for (const ColumnSpec& column : columns) names.insert(column.name);
  return names;
}

void add_annotations(AnnotationTable&& table, Plan& plan) {
  for (ColumnTable& column : table.columns) plan.columns.push_back(std::move(column));
  plan.targets.merge(std::move(table.targets));
  plan.stated_sizes = std::move(table.sizes);
  if (!table.categories.empty()) plan.provenance["categories"] = std::move(table.categories);
  plan.annotations = std::move(table.counts);
  check_columns(plan.column_specs());
}

}  // namespace

void Plan::require_same(std::uint64_t input, std::uint64_t found, std::uint64_t stamp) const {
  const std::uint64_t planned = list.inputs[input].stamp;
  if (sizes[input] == found && (stamp == 0 || stamp == planned)) return;
  if (sizes[input] == found)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} {}: inputs must not change while they are converted; run the same command again, {}",
                    quoted_key(list.inputs[input].key()), kOtherStamp, kAdviseForChange));
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} has {} bytes, but {} when this run started: inputs must not change while they are "
                  "converted; run the same command again, {}",
                  quoted_key(list.inputs[input].key()), found,
                  sizes[input] != kUnknownSize ? fmt::format("had {}", sizes[input])
                                               : std::string("could not be read"),
                  kAdviseForChange));
}

std::optional<std::uint64_t> Plan::size_of(std::uint64_t input) const {
  std::uint64_t size = sizes[input];
  if (size == kUnknownSize) return std::nullopt;
  for (const FurtherField& field : further) {
    if (field.sizes[input] == kUnknownSize) return std::nullopt;
    size += field.sizes[input];
  }
  return size;
}

std::uint64_t Plan::shard_inputs(std::uint64_t shard) const noexcept {
  const std::uint64_t first = shard * per_shard;
  return std::min<std::uint64_t>(per_shard, list.inputs.size() - first);
}

namespace {

// Whether columns come from the members of a WebDataset.
bool takes_member_columns(const Options& options) {
  return !options.columns.empty() && options.labels.empty();
}

bool has_annotations(const Options& options) {
  return !options.coco.empty() || !options.yolo.empty() || !options.voc.empty();
}

void scan_inputs(const Options& options, Plan& plan) {
  const bool from_members = takes_member_columns(options);
  if (from_members && !source_kind(options.images).has_side_members)
    throw Error(ErrorCode::invalid_argument,
                "`columns` without `labels`: give the table that has these columns, or convert a WebDataset, "
                "whose archives have them");
  plan.list = scan({options.images, options.root, options.array_layout,
                    !options.labels.empty() || has_annotations(options),
                    from_members ? members_of(options.columns) : std::set<std::string>{}, options.jobs});
  if (options.pages && (!options.labels.empty() || has_annotations(options) || from_members))
    throw Error(
        ErrorCode::invalid_argument,
        "`pages` together with `labels`, `coco`, `yolo`, `voc` or `columns`: these name files, not pages");
  if (plan.list.server && options.on_error == OnError::fail && !plan.list.rejects.empty())
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: {} (`on_error` fail)", quoted_key(plan.list.rejects.front().key),
                            plan.list.rejects.front().reason));
  if (options.pages && plan.list.on_server(plan.list.inputs.front()))
    throw Error(ErrorCode::invalid_argument,
                "`pages`: files on servers are not read to count their pages; copy them here first");
  expand_pages(options, plan.list);
}

// Of archives: members with other names than those that labels have, which may be the labels. Empty: none.
std::string unread_labels_warning(const Options& options, const Plan& plan) {
  const InputList& list = plan.list;
  if (list.archives.empty() || list.of_arrays() || list.has_numbers || !plan.labels.classes.empty() ||
      !options.labels.empty() || !options.columns.empty() || has_annotations(options))
    return {};
  constexpr std::size_t kMost = 1000;  // of the members that are looked at
  const std::string* first = nullptr;
  for (std::size_t i = 0; first == nullptr && i < std::min(list.skipped.size(), kMost); ++i) {
    const Skip& skip = list.skipped[i];
    const std::string name = unescape_key(skip.key);
    const std::size_t dot = name.rfind('.');
    if (skip.reason != SkipReason::no_image || dot == std::string::npos) continue;
    const std::string sample = name.substr(0, dot + 1);
    const auto at =
        std::lower_bound(list.inputs.begin(), list.inputs.end(), sample,
                         [](const Input& input, const std::string& begin) { return input.path < begin; });
    if (at == list.inputs.end() || !at->path.starts_with(sample)) continue;
    first = &skip.key;
  }
  if (first == nullptr) return {};
  return fmt::format(
      "every label is 0, because no member NAME.cls is in {} and no image in a folder, but members that are "
      "no images have the names of images, first {}: if these are the labels, name them .cls, or give "
      "`labels`",
      quoted(fs::path(options.images)), quoted_key(*first));
}

void find_labels(const Options& options, Plan& plan, AnnotationCounts& beside) {
  if (!options.columns.empty() && !takes_member_columns(options)) {
    CsvTable table = table_from_csv(plan.list, options.labels, options.columns, options.unlisted);
    plan.labels = std::move(table.labels);
    plan.columns = std::move(table.columns);
  } else {
    if (has_annotations(options) && options.labels.empty() && plan.list.numbers.empty())
      forget_folders_beside(plan.list, beside);
    plan.labels = names_label_array(options.labels) ? labels_from_array(plan.list, options.labels)
                  : !options.labels.empty() ? labels_from_csv(plan.list, options.labels, options.unlisted)
                  : plan.list.has_numbers   ? labels_from_numbers(plan.list)
                                            : labels_from_folders(plan.list);
  }
  if (!options.classes.empty()) use_class_names(options.classes, plan.list, plan.labels);
  plan.warnings = class_warnings(options, plan.list, plan.labels);
  if (std::string text = unread_labels_warning(options, plan); !text.empty())
    plan.warnings.push_back(std::move(text));
  if (takes_member_columns(options))
    plan.columns = columns_from_members(plan.list, plan.labels, options.columns, options.unlisted);
}

// What is stored of each image, and how many fit into a shard.
void choose_samples(const Options& options, FurtherFolders& further, Plan& plan) {
  Options chosen = options;
  chosen.preprocess = plan.preprocess = choose_preprocess(options, plan.list);
  plan.per_shard = chosen.per_shard();
  plan.further = further.fields(plan.list, plan.preprocess);
  if (!plan.further.empty()) plan.provenance["further_images"] = record_of_further(plan.further);
  plan.further_counts = further.counts();
  const DatasetSpec spec = spec_of(chosen, plan);
  check_codec(spec.codec, spec.spec);
  check_fields(spec);
  check_header_bytes(ShardWriterOptions(spec));
  plan.per_shard = fitting_per_shard(options, plan, spec);
}

// Of names, rejects, labels and columns.
std::uint64_t digest_of_names(const Plan& plan) {
  constexpr std::string_view kEnd("\0", 1);
  TextDigest text;
  for (const Input& input : plan.list.inputs) {
    text.add(input.path);
    if (input.page != Input::kNoPage) text.add(fmt::format("#{}", input.page));
    text.add(kEnd);
  }
  for (const Reject& reject : plan.list.rejects) {
    for (const std::string* const part : {&reject.key, &reject.reason}) {
      text.add(*part);
      text.add(kEnd);
    }
  }
  for (const std::string& name : plan.labels.classes) {
    text.add(name);
    text.add(kEnd);
  }
  for (const Archive& archive : plan.list.archives)
    if (archive.is_array()) text.add(to_hex(xxh3(archive.header)));
  for (const ColumnTable& column : plan.columns) text.add(to_hex(column.digest()));
  return text.digest() ^ (xxh3(plan.labels.rows) * 0x9E3779B97F4A7C15U);
}

// Looks up the sizes of all files. Their digest also has what servers say of them.
std::uint64_t find_sizes(const Options& options, Plan& plan) {
  plan.sizes = sizes_of(plan.list, options.threads());
  TextDigest sizes;
  for (const std::uint64_t size : plan.sizes) sizes.add(size, '\n');
  if (plan.list.server)
    for (const Input& input : plan.list.inputs) sizes.add(input.stamp, '\n');
  for (const Archive& archive : plan.list.archives) {
    if (!archive.on_server()) continue;
    sizes.add(archive.size_bytes, ' ');
    sizes.add(archive.stamp, '\n');
  }
  for (FurtherField& field : plan.further) {
    find_sizes_of(field, options.threads());
    for (std::size_t i = 0; i < field.paths.size(); ++i) {
      sizes.add(field.paths[i]);
      sizes.add("\n");
      sizes.add(field.sizes[i], '\n');
    }
  }
  return sizes.digest();
}

// When the inputs on this machine were last written or changed.
std::uint64_t times_of(const Plan& plan) {
  TextDigest times;
  if (!plan.list.server)
    for (const Input& input : plan.list.inputs) times.add(input.stamp, '\n');
  for (const Archive& archive : plan.list.archives)
    if (!archive.on_server()) times.add(archive.stamp, '\n');
  for (const FurtherField& field : plan.further)
    for (const std::uint64_t stamp : field.stamps) times.add(stamp, '\n');
  return times.digest();
}

}  // namespace

Plan make_plan(const Options& options) {
  options.check_samples();
  if (!options.out.empty()) refuse_out_inside_images(options);
  Plan plan;
  scan_inputs(options, plan);
  std::optional<CocoAnnotations> annotations;
  if (!options.coco.empty()) {
    annotations.emplace(options);
    annotations->choose(plan.list);
  }
  std::optional<LabelFiles> label_files;
  if (!options.yolo.empty() || !options.voc.empty()) {
    label_files.emplace(options);
    label_files->choose(plan.list);
  }
  FurtherFolders further(options);
  further.choose(plan.list);
  AnnotationCounts beside;
  find_labels(options, plan, beside);
  if (annotations) add_annotations(annotations->table(plan.list), plan);
  if (label_files) add_annotations(label_files->table(plan.list), plan);
  plan.annotations.beside_folders = beside.beside_folders;
  if (options.strict) reject_skipped(plan.list);
  stop_at_rejects(options, plan.list);
  plan.listed = plan.list.inputs.size() + plan.list.rejects.size();
  if (plan.list.inputs.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("none of the {} inputs can be used: {} {}", plan.listed,
                            quoted_key(plan.list.rejects.front().key), plan.list.rejects.front().reason));
  choose_samples(options, further, plan);
  const std::uint64_t names = digest_of_names(plan);
  plan.names_digest = to_hex(names);
  plan.source_digest = to_hex(names ^ (find_sizes(options, plan) * 0xC2B2AE3D27D4EB4FU));
  plan.times = to_hex(times_of(plan));
  return plan;
}

std::vector<ColumnSpec> Plan::column_specs() const {
  std::vector<ColumnSpec> specs{labels.column};
  for (const ColumnTable& column : columns) specs.push_back(column.spec());
  return specs;
}

std::vector<FieldSpec> Plan::field_specs() const {
  std::vector<FieldSpec> specs;
  for (const FurtherField& field : further) specs.push_back(field.spec);
  return specs;
}

std::uint64_t Plan::sample_bytes() const {
  std::uint64_t bytes = preprocess.sample_spec().size_bytes();
  for (const FurtherField& field : further) bytes += field.spec.spec.size_bytes();
  return bytes;
}

DatasetSpec spec_of(const Options& options, const Plan& plan) {
  Options chosen = options;
  chosen.samples_per_shard = plan.per_shard;
  return spec_of(chosen, plan.column_specs(), plan.provenance, plan.field_specs());
}

Listing listing_of(const Plan& plan) {
  const bool numbers = plan.labels.classes.empty() && plan.list.has_numbers;
  return {plan.list.inputs.size(), plan.labels.classes,         numbers,
          plan.list.empty_folders, plan.list.skipped,           plan.list.rejects,
          plan.list.unlisted,      absent_classes(plan.labels), plan.warnings,
          plan.annotations,        plan.further_counts,         plan.preprocess};
}

}  // namespace shard::convert
