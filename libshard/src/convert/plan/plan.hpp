// The plan of a conversion: a pure function of the inputs and the options.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/plan/further_images.hpp"
#include "convert/sources/scan.hpp"
#include "shard/convert/listing.hpp"
#include "shard/convert/options.hpp"
#include "shard/target_kinds.hpp"

namespace shard::convert {

// The inputs and labels of a conversion, and how they are divided into shards.
struct Plan {
  InputList list;
  LabelTable labels;
  std::vector<ColumnTable> columns;  // the others
  TargetKinds targets;               // of these
  // Of each input: what its image must measure, upright. {0, 0}: anything. Empty: the same for all.
  std::vector<image::Size> stated_sizes;
  std::vector<FurtherField> further;
  std::vector<FurtherCounts> further_counts;
  Provenance provenance;  // besides that of the options
  AnnotationCounts annotations;
  // Those of the options, or what the inputs decide (choose.hpp). A caller puts them into its options.
  image::PreprocessOptions preprocess;
  std::uint64_t per_shard = 0;
  std::vector<std::string> warnings;  // Listing::warnings
  std::uint64_t listed = 0;           // inputs, and files that were rejected while listing
  static constexpr std::uint64_t kUnknownSize = ~std::uint64_t{0};
  // The size of each of list.inputs, in bytes. kUnknownSize if the file cannot be looked at.
  std::vector<std::uint64_t> sizes;
  // Over keys, sizes, labels and columns.
  std::string source_digest;
  // Over keys, labels and columns: what earlier versions recorded as source_digest.
  std::string names_digest;
  // Over the stamps of inputs that are on this machine. Copies of them have others.
  std::string times;
  // The bytes of an input and its further images. Nothing: one of them cannot be looked at.
  std::optional<std::uint64_t> size_of(std::uint64_t input) const;
  // Throws invalid_argument if `found` is not the size that the input had when the plan was made, or `stamp`
  // not that of its file (0: it is in an archive, or on a server).
  void require_same(std::uint64_t input, std::uint64_t found, std::uint64_t stamp) const;
  // Labels first.
  std::vector<ColumnSpec> column_specs() const;
  std::vector<FieldSpec> field_specs() const;
  // Of one sample, with its further images, before the codec.
  std::uint64_t sample_bytes() const;
  std::span<const std::byte> label_row(std::uint64_t input) const {
    return std::span(labels.rows).subspan(input * labels.row_bytes, labels.row_bytes);
  }
  std::uint64_t shards() const noexcept { return (list.inputs.size() + per_shard - 1) / per_shard; }
  std::uint64_t shard_inputs(std::uint64_t shard) const noexcept;  // planned samples of a shard
};
// Looks up the size of every input, on options.threads() threads. `out` may be empty: nothing is converted.
Plan make_plan(const Options& options);
Listing listing_of(const Plan& plan);
// What every shard of the plan records (recorded.hpp). `options` are those of the plan.
DatasetSpec spec_of(const Options& options, const Plan& plan);

}  // namespace shard::convert
