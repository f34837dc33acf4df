// DatasetBuilder: builds a DatasetInfo while dataset.json is read, and refuses at once what does not belong
// there.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest/checksum.hpp"
#include "base/text/json.hpp"
#include "base/text/quote.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard {

// Values are at most five levels deep. Each belongs to the top-level member `section_` and, below it, to the
// member `field_` of an object. Unknown members at the top level are skipped with all their content, so that
// later versions may add members. Nothing else may be unknown. parse_dataset() checks rules about several
// members. The counts of entries are bounded, so that the result takes no more memory than the text and 64
// MiB, whatever the text is.
class DatasetBuilder final : public JsonHandler {
 public:
  static constexpr std::string_view kSections[] = {
      "format",      "version",  "samples", "inputs",  "rejects", "source_digest",
      "fingerprint", "dtype",    "layout",  "shape",   "mean",    "std",
      "codec",       "pipeline", "columns", "classes", "shards",  "digest"};
  // Not in data sets of earlier versions; not in those of one conversion.
  static constexpr std::string_view kOptionalSections[] = {"samples_per_shard", "parts", "fields", "targets",
                                                           "tables"};

  static constexpr std::size_t kMaxClasses = std::size_t{1} << 20;
  static constexpr std::size_t kMaxShards = std::size_t{1} << 20;
  static constexpr std::size_t kMaxParts = std::size_t{1} << 20;
  static constexpr std::size_t kMaxTables = 16;
  static constexpr std::size_t kMaxColumns = 4096;
  static constexpr std::size_t kMaxPipeline = 4096;

  DatasetInfo info;
  std::uint64_t version = 0;
  std::uint64_t samples = 0;
  std::string format_name, dtype_name, layout_name, codec_name, digest_text;
  std::vector<std::uint64_t> shape;
  std::vector<float> mean, std;
  // What an entry of "fields" says, in the order of info.fields, which has the names.
  struct Field {
    std::string role, dtype, layout, codec;
    std::vector<std::uint64_t> shape;
    std::vector<float> mean, std;
  };
  std::vector<Field> fields;
  std::set<std::string> sections;  // of kSections, that were there

  DatasetBuilder() { info.columns.clear(); }

  [[noreturn]] static void corrupt(const std::string& why) {
    throw Error(ErrorCode::corrupt, "dataset.json: " + why);
  }

  void null() override { misfit("null"); }
  void boolean(bool) override { misfit("true or false"); }

  void other_number(std::string_view text) override {
    if (!is_float_list()) return misfit("a number that is not an integer from 0 to 2^64 - 1");
    take_float(text);
  }

  void unsigned_integer(std::uint64_t value) override {
    if (is_float_list()) return take_float(fmt::to_string(value));
    if (std::uint64_t* const place = number_place()) {
      *place = value;
    } else if (in_largest()) {
      if (largest_.size() == 4) corrupt("an entry of largest has more than four numbers");
      largest_.push_back(value);
    } else if ((section_ == "shape" && depth_ == 2) || in_field_list("shape")) {
      std::vector<std::uint64_t>& axes = section_ == "shape" ? shape : fields.back().shape;
      if (axes.size() == kMaxTensorAxes) corrupt("shape has more than four axes");
      axes.push_back(value);
    } else if (in_row_shape()) {
      if (info.columns.back().row_shape.size() == 8) corrupt("a column has more than 8 axes");
      info.columns.back().row_shape.push_back(value);
    } else {
      misfit("a number");
    }
  }

  void string(std::string&& value) override {
    if (std::string* const place = string_place()) {
      *place = std::move(value);
    } else if (section_ == "pipeline" && depth_ == 2) {
      bound("pipeline values", info.provenance.size(), kMaxPipeline);
      if (!info.provenance.emplace(field_, std::move(value)).second)
        corrupt(fmt::format("pipeline names {} twice", quoted_excerpt(field_)));
    } else if (section_ == "targets" && depth_ == 2) {
      const auto parsed = target_kind_from_string(value);
      if (!parsed)
        throw Error(ErrorCode::unsupported,
                    fmt::format("dataset.json: column {} is {}: this build knows boxes and keypoints",
                                quoted_excerpt(field_), quoted_excerpt(value)));
      bound("targets", info.targets.size(), kMaxColumns);
      info.targets.emplace(field_, *parsed);
    } else if (section_ == "classes" && depth_ == 2) {
      bound("classes", info.classes.size(), kMaxClasses);
      info.classes.push_back(std::move(value));
    } else if (std::uint64_t* const digest = digest_place()) {
      const auto parsed =
          value.starts_with("xxh3:") ? from_hex(std::string_view(value).substr(5)) : std::nullopt;
      if (!parsed)
        corrupt(fmt::format("{} is {}: it must be \"xxh3:\" and 16 hexadecimal digits", field_,
                            quoted_excerpt(value)));
      *digest = *parsed;
    } else if (section_ == "columns" && depth_ == 3 && field_ == "dtype") {
      const auto parsed = dtype_from_string(value);
      if (!parsed) corrupt(fmt::format("a column has the unknown dtype {}", quoted_excerpt(value)));
      info.columns.back().dtype = *parsed;
    } else if (section_ == "columns" && depth_ == 3 && field_ == "kind") {
      const auto parsed = column_kind_from_string(value);
      if (!parsed || *parsed == ColumnKind::fixed)
        throw Error(ErrorCode::unsupported,
                    fmt::format("dataset.json: a column has the kind {}: this build knows ragged and text",
                                quoted_excerpt(value)));
      info.columns.back().kind = *parsed;
    } else {
      misfit("a string");
    }
  }

  void begin_object() override {
    enter();
    if (skipped()) return;
    const bool item = depth_ == 3 && (section_ == "columns" || section_ == "fields" || section_ == "shards" ||
                                      section_ == "parts" || section_ == "tables");
    const bool of_names = depth_ == 2 && (section_ == "pipeline" || section_ == "targets");
    if (depth_ != 1 && !of_names && !item) misfit("an object");
    fields_.clear();
    if (item && section_ == "columns") {
      bound("columns", info.columns.size(), kMaxColumns);
      info.columns.emplace_back();
    }
    if (item && section_ == "fields") {
      bound("fields", info.fields.size(), kMaxFields);
      info.fields.emplace_back();
      fields.emplace_back();
    }
    if (item && section_ == "shards") {
      bound("shards", info.shards.size(), kMaxShards);
      info.shards.emplace_back();
    }
    if (item && section_ == "tables") {
      bound("tables", info.tables.size(), kMaxTables);
      info.tables.emplace_back();
    }
    if (item && section_ == "parts") {
      bound("parts", info.parts.size(), kMaxParts);
      info.parts.emplace_back();
    }
  }

  void key(std::string&& name) override {
    if (depth_ == 1) {
      section_ = std::move(name);
      field_.clear();
      in_member_ = true;
      const auto is_one_of = [&](const auto& list) {
        return std::find(std::begin(list), std::end(list), section_) != std::end(list);
      };
      known_ = is_one_of(kSections) || is_one_of(kOptionalSections);
      if (known_ && !sections.insert(section_).second)
        corrupt(fmt::format("{} occurs twice", quoted_excerpt(section_)));
    } else if (!skipped()) {
      if (section_ != "pipeline" && !fields_.insert(name).second) {
        corrupt(fmt::format("{} occurs twice in one of {}", quoted_excerpt(name), quoted_excerpt(section_)));
      }
      field_ = std::move(name);
    }
  }

  void end_object() override {
    std::size_t expected = section_ == "fields" ? 8 : 4;
    if (section_ == "shards" && fields_.contains("largest")) expected = 5;
    if (section_ == "tables" || (section_ == "columns" && !fields_.contains("kind"))) expected = 3;
    if (!skipped() && depth_ == 3 && fields_.size() != expected) {
      corrupt(fmt::format("an entry of {} has {} members: it must have {}", quoted_excerpt(section_),
                          fields_.size(), expected));
    }
    --depth_;
  }

  void begin_array() override {
    enter();
    if (skipped()) return;
    constexpr std::string_view kLists[] = {"shape",   "mean",   "std",   "columns", "fields",
                                           "classes", "shards", "parts", "tables"};
    const bool list =
        depth_ == 2 && std::find(std::begin(kLists), std::end(kLists), section_) != std::end(kLists);
    const bool in_field = in_field_list("shape") || in_field_list("mean") || in_field_list("std");
    const bool of_largest = depth_ == 4 && section_ == "shards" && field_ == "largest";
    if (!list && !in_row_shape() && !in_field && !of_largest && !in_largest()) misfit("an array");
    if (in_largest()) largest_.clear();
  }

  void end_array() override {
    if (in_largest()) {
      std::vector<LargestSample>& all = info.shards.back().largest;
      bound("image fields", all.size(), kMaxFields + 1);
      if (largest_.size() != 4 || std::max(largest_[0], largest_[1]) > kMaxSide)
        corrupt(fmt::format(
            "an entry of largest is [{}]: it must be rows and columns up to {}, bytes of a sample "
            "and bytes of a frame",
            fmt::join(largest_, ", "), kMaxSide));
      all.push_back({static_cast<std::uint32_t>(largest_[0]), static_cast<std::uint32_t>(largest_[1]),
                     largest_[2], largest_[3]});
    }
    --depth_;
  }

 private:
  static constexpr std::size_t kMaxDepth = 16;

  static void bound(const char* what, std::size_t count, std::size_t most) {
    if (count >= most) corrupt(fmt::format("it has more than {} {}", most, what));
  }

  void enter() {
    if (++depth_ > kMaxDepth) corrupt(fmt::format("objects and arrays are more than {} deep", kMaxDepth));
  }

  bool skipped() const { return in_member_ && !known_; }
  bool is_float_list() const {
    return (depth_ == 2 && (section_ == "mean" || section_ == "std")) || in_field_list("mean") ||
           in_field_list("std");
  }
  bool in_field_list(std::string_view name) const {
    return depth_ == 4 && section_ == "fields" && field_ == name;
  }
  bool in_largest() const { return depth_ == 5 && section_ == "shards" && field_ == "largest" && !skipped(); }
  bool in_row_shape() const { return depth_ == 4 && section_ == "columns" && field_ == "row_shape"; }

  void misfit(std::string_view found) const {
    if (skipped()) return;
    corrupt(fmt::format("{} is not allowed in {}, member {}", found,
                        section_.empty() ? "the document" : quoted_excerpt(section_),
                        quoted_excerpt(field_)));
  }

  void take_float(std::string_view text) {
    const bool in_field = section_ == "fields";
    const std::string& name = in_field ? field_ : section_;
    std::vector<float>& means = in_field ? fields.back().mean : mean;
    std::vector<float>& stds = in_field ? fields.back().std : std;
    std::vector<float>& list = name == "mean" ? means : stds;
    const auto value = float_from_text(text);
    if (list.size() == kMaxSampleChannels || !value)
      corrupt(fmt::format("{} must be finite numbers of float32: three, or one for each of up to {} channels",
                          quoted_excerpt(name), kMaxSampleChannels));
    list.push_back(*value);
  }

  std::uint64_t* number_place() {
    if (depth_ == 1) {
      if (section_ == "version") return &version;
      if (section_ == "samples") return &samples;
      if (section_ == "inputs") return &info.inputs;
      if (section_ == "rejects") return &info.rejects;
      if (section_ == "samples_per_shard") return &info.samples_per_shard;
    }
    if (depth_ == 3 && section_ == "shards") {
      if (field_ == "samples") return &info.shards.back().samples;
      if (field_ == "size_bytes") return &info.shards.back().size_bytes;
    }
    if (depth_ == 3 && section_ == "tables" && field_ == "size_bytes") return &info.tables.back().size_bytes;
    if (depth_ == 3 && section_ == "parts") {
      if (field_ == "inputs") return &info.parts.back().inputs;
      if (field_ == "rejects") return &info.parts.back().rejects;
      if (field_ == "shards") return &info.parts.back().shards;
    }
    return nullptr;
  }

  std::uint64_t* digest_place() {
    if (depth_ == 3 && section_ == "shards" && field_ == "head_digest")
      return &info.shards.back().head_digest;
    if (depth_ == 3 && section_ == "tables" && field_ == "digest") return &info.tables.back().digest;
    return nullptr;
  }

  std::string* string_place() {
    if (depth_ == 1) {
      if (section_ == "format") return &format_name;
      if (section_ == "source_digest") return &info.source_digest;
      if (section_ == "fingerprint") return &info.fingerprint;
      if (section_ == "dtype") return &dtype_name;
      if (section_ == "layout") return &layout_name;
      if (section_ == "codec") return &codec_name;
      if (section_ == "digest") return &digest_text;
    }
    if (depth_ == 3 && section_ == "shards" && field_ == "file") return &info.shards.back().file;
    if (depth_ == 3 && section_ == "tables" && field_ == "file") return &info.tables.back().file;
    if (depth_ == 3 && section_ == "parts" && field_ == "source_digest")
      return &info.parts.back().source_digest;
    if (depth_ == 3 && section_ == "columns" && field_ == "name") return &info.columns.back().name;
    if (depth_ == 3 && section_ == "fields") {
      if (field_ == "name") return &info.fields.back().name;
      if (field_ == "role") return &fields.back().role;
      if (field_ == "dtype") return &fields.back().dtype;
      if (field_ == "layout") return &fields.back().layout;
      if (field_ == "codec") return &fields.back().codec;
    }
    return nullptr;
  }

  std::size_t depth_ = 0;
  bool in_member_ = false;  // of the document
  bool known_ = false;      // that one
  std::string section_, field_;
  std::vector<std::uint64_t> largest_;  // the entry that is being read
  std::set<std::string> fields_;        // of the entry that is being read
};

}  // namespace shard
