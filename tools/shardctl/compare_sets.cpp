// compare with another data set: which samples both have, and whether pixels,
// labels and columns of these are the same.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/sizes.hpp"
#include "shardctl/dataset/source.hpp"

namespace shard::ctl {
namespace {

std::string key_at(const Source& source, std::uint64_t index) {
  const Source::Sample sample = source.locate(index);
  return std::string(sample.reader.key(sample.index));
}

// Where a key is in the second data set. Two data sets of the same images have it at the same place.
class Keys {
 public:
  explicit Keys(const Source& source) : source_(source) {}

  std::optional<std::uint64_t> find(const std::string& key, std::uint64_t near) {
    if (index_.empty() && near < source_.size() && key_at(source_, near) == key) return near;
    if (index_.empty())
      for (std::uint64_t i = 0; i < source_.size(); ++i) index_.emplace(key_at(source_, i), i);
    const auto at = index_.find(key);
    return at == index_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  const Source& source_;
  std::unordered_map<std::string, std::uint64_t> index_;
};

// A value for a message, cut off.
std::string excerpt(std::string text) {
  constexpr std::size_t kMost = 60;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return quoted_excerpt(text);
}

struct Difference {
  std::uint64_t samples = 0;  // that differ
  std::string first;          // where, and the two values
};

class SetComparer {
 public:
  SetComparer(const Source& a, const Source& b)
      : a_(a), b_(b), same_pixels_form_(may_be_equal(a.info().spec, b.info().spec)) {
    compare_specs();
  }

  void compare(std::uint64_t index, std::uint64_t other, const std::string& key, Damage& damage) {
    if (same_pixels_form_) {
      SampleSpec one;
      SampleSpec two;
      const bool whole = damage.survives(index, [&] {
        one = a_.read(index, sample_a_);
        two = b_.read(other, sample_b_);
      });
      if (whole) compare_pixels("images", key, one, sample_a_, two, sample_b_);
    }
    const Source::Sample left = a_.locate(index);
    const Source::Sample right = b_.locate(other);
    if (class_names()) {
      const std::string one = label_name(a_, left.reader, left.index);
      const std::string two = label_name(b_, right.reader, right.index);
      if (one != two) note("labels", key, fmt::format("{} and {}", excerpt(one), excerpt(two)));
    }
    for (const auto& field : fields_) {
      SampleSpec one;
      SampleSpec two;
      const bool whole = damage.survives(index, [&] {
        one = read_field(left, field.first, rows_a_);
        two = read_field(right, field.second, rows_b_);
      });
      if (whole) compare_pixels(a_.info().fields[field.first].name, key, one, rows_a_, two, rows_b_);
    }
    for (const ColumnSpec& spec : common_) {
      if (spec.name == "labels" && class_names()) continue;
      const Column& one = left.reader.column(spec.name);
      const Column& two = right.reader.column(spec.name);
      left.reader.read_column(one, left.index, rows_a_);
      right.reader.read_column(two, right.index, rows_b_);
      if (rows_a_ != rows_b_)
        note(spec.name, key,
             fmt::format("{} and {}", excerpt(column_text(left.reader, one, left.index)),
                         excerpt(column_text(right.reader, two, right.index))));
    }
  }

  // In the order of the first data set; not of the samples: what the data sets are.
  std::vector<std::string> forms;
  std::vector<std::pair<std::string, Difference>> differences;

 private:
  bool class_names() const { return !a_.info().classes.empty() && !b_.info().classes.empty(); }

  static SampleSpec read_field(const Source::Sample& sample, std::size_t field, std::vector<std::byte>& out) {
    const StoredImages& images = sample.reader.images(field);
    const SampleSpec of = images.spec_of(sample.index);
    out.resize(static_cast<std::size_t>(of.size_bytes()));
    images.read(sample.index, out);
    return of;
  }
  void compare_pixels(const std::string& what, const std::string& key, const SampleSpec& one,
                      const std::vector<std::byte>& bytes, const SampleSpec& two,
                      const std::vector<std::byte>& other) {
    if (one != two)
      note(what, key, fmt::format("{} and {} pixels", size_text(one), size_text(two)));
    else if (bytes != other)
      note(what, key, "other pixels");
  }

  void compare_specs() {
    if (a_.info().spec != b_.info().spec)
      forms.push_back(
          fmt::format("samples: {} and {}", spec_text(a_.info().spec), spec_text(b_.info().spec)));
    if (a_.info().classes != b_.info().classes)
      forms.push_back(fmt::format("classes: {} and {}, or other names", a_.info().classes.size(),
                                  b_.info().classes.size()));
    for (const ColumnSpec& one : a_.info().columns) {
      const ColumnSpec* two = find(b_, one.name);
      if (two == nullptr)
        forms.push_back(fmt::format("column {}: {}, only in the first", quoted(one.name), to_string(one)));
      else if (!(one == *two))
        forms.push_back(
            fmt::format("column {}: {} and {}", quoted(one.name), to_string(one), to_string(*two)));
      else
        common_.push_back(one);
    }
    const auto& fields = a_.info().fields;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto other = find_field(b_.info().fields, fields[f].name);
      if (!other) {
        forms.push_back(
            fmt::format("image {}: {}, only in the first", quoted(fields[f].name), field_text(fields[f])));
        continue;
      }
      const FieldSpec& two = b_.info().fields[*other];
      if (fields[f].spec != two.spec)
        forms.push_back(fmt::format("image {}: {} and {}", quoted(fields[f].name), field_text(fields[f]),
                                    field_text(two)));
      if (may_be_equal(fields[f].spec, two.spec)) fields_.emplace_back(f, *other);
    }
    for (const FieldSpec& two : b_.info().fields)
      if (!find_field(fields, two.name))
        forms.push_back(fmt::format("image {}: {}, only in the second", quoted(two.name), field_text(two)));
    for (const ColumnSpec& two : b_.info().columns)
      if (find(a_, two.name) == nullptr)
        forms.push_back(fmt::format("column {}: {}, only in the second", quoted(two.name), to_string(two)));
  }
  static const ColumnSpec* find(const Source& source, const std::string& name) {
    for (const ColumnSpec& column : source.info().columns)
      if (column.name == name) return &column;
    return nullptr;
  }
  void note(const std::string& what, const std::string& key, const std::string& values) {
    for (auto& [name, difference] : differences)
      if (name == what) {
        ++difference.samples;
        return;
      }
    differences.push_back({what, {1, fmt::format("sample {}: {}", quoted_key(key), values)}});
  }

  const Source& a_;
  const Source& b_;
  bool same_pixels_form_;
  std::vector<ColumnSpec> common_;
  std::vector<std::pair<std::size_t, std::size_t>> fields_;  // further images: their positions in both
  std::vector<std::byte> sample_a_, sample_b_, rows_a_, rows_b_;
};

}  // namespace

int compare_sets(const CompareOptions& options) {
  const Source a = Source::open(options.path);
  const Source b = Source::open(options.images);
  SetComparer comparer(a, b);
  Keys keys(b);
  Damage damage;
  const std::uint64_t count = options.samples == 0 ? a.size() : std::min(options.samples, a.size());
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  std::uint64_t missing = 0;
  std::string first_missing;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = i * (a.size() / count) + std::min(i, a.size() % count);
    const std::string key = key_at(a, index);
    if (const auto other = keys.find(key, index)) {
      comparer.compare(index, *other, key, damage);
    } else if (missing++ == 0) {
      first_missing = key;
    }
    if (progress.due()) progress.update(fmt::format("{} of {} samples compared", i + 1, count));
  }
  progress.finish();
  const std::uint64_t compared = count - missing;
  // Keys are unique, so these are in the second only.
  const std::uint64_t more = options.samples == 0 && b.size() > compared ? b.size() - compared : 0;
  const bool identical =
      missing == 0 && more == 0 && comparer.forms.empty() && comparer.differences.empty() && !damage.found();
  if (options.json) {
    Json json = {
        {"identical", identical},       {"samples_compared", compared}, {"samples_damaged", damage.count()},
        {"only_in_first", missing},     {"only_in_second", more},       {"forms", comparer.forms},
        {"differences", Json::object()}};
    for (const auto& [name, difference] : comparer.differences)
      json["differences"][name] = {{"samples", difference.samples}, {"first", difference.first}};
    cli::write_out(json_text(json, 2) + "\n");
  } else {
    for (const std::string& form : comparer.forms) cli::out("{}\n", form);
    if (missing > 0)
      cli::out("only in the first: {}, first {}\n", cli::counted(missing, "sample"),
               quoted_key(first_missing));
    if (more > 0) cli::out("only in the second: {}\n", cli::counted(more, "sample"));
    for (const auto& [name, difference] : comparer.differences)
      cli::out("{}: {} {}, first {}\n", escape_key(name), cli::counted(difference.samples, "sample"),
               difference.samples == 1 ? "differs" : "differ", difference.first);
    cli::out("{} compared: {}\n", cli::counted(compared, "sample"),
             identical ? "identical" : "the data sets differ");
  }
  if (damage.found()) damage.report("they were not compared");
  return identical ? kExitOk : kExitDifferent;
}

}  // namespace shard::ctl
