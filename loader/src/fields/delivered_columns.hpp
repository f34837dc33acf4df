// Which tensors a batch has beside images, ids and mask, and how the rows of its samples get into them.
//
//   fixed column   NAME          [batch, ...]
//   ragged, padded NAME          [batch, max_rows, ...], zeros after the rows of a sample
//                  NAME_counts   i64 [batch]
//   ragged, flat   NAME          [rows of all samples, ...], one sample after the other
//                  NAME_offsets  i64 [batch + 1]
//   text                         none; Batch::texts() reads it
//   boxes, keypoints, and columns that go along with boxes (target_columns.hpp): once for each view
//   with correspondence          f32 [batch, views, 3, 3]
//   samples of any size          stored_sizes, i64 [batch, 2]: rows and columns
//   if a view is padded          view_sizes, i64 [batch, 2], once for each view: rows and columns that have
//                                pixels of the sample
//   of views of patches          patch_offsets, i32 [batch + 1]: where the patches of each sample begin
//                                patch_coords, i32 [patches, 2]: row and column of each in its sample
//                                patch_samples, i32 [patches]: the row of the batch that it belongs to
//   with mix       labels_b      the labels of the neighbours
//                  share         f32 [batch]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fields/target_columns.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

struct Slot;

struct DeliveredColumn {
  enum class What : std::uint8_t {
    fixed,
    padded,
    counts,
    flat,
    offsets,
    partner,
    share,
    matrices,
    sizes,
    view_sizes,
    patches
  };
  std::string name;
  What what = What::fixed;
  DType dtype = DType::i64;
  // Without the first axis.
  std::vector<std::uint64_t> shape;
  // The column of the data set that it comes from, in DatasetInfo::columns.
  std::size_t source = 0;
  // Of a whole batch, at most.
  std::uint64_t bytes = 0;
  // If it follows the views: the one whose values it has.
  std::size_t view = 0;
  bool follows = false;
};

// Fills in the options of targets (resolve_target_columns()), and sets options.ragged[...].max_rows of every
// ragged column: for those that are not stated, the most rows that any sample has, for which all shards are
// opened. Errors: invalid_argument (a name that is no ragged column; names that two tensors of the batch
// would have; a column that may belong to boxes and was not named), and those of Dataset::shard().
void set_row_limits(const Dataset& dataset, LoaderOptions& options);

// In the order of the columns. The limits are set.
std::vector<DeliveredColumn> delivered_columns(const DatasetInfo& info, const LoaderOptions& options);

// Copies columns into the host memory of slots. Not thread safe.
class ColumnGather {
 public:
  ColumnGather(const Dataset& dataset, const LoaderOptions& options);
  // Writes the rows of slot.locations to slot.columns, and sets their shapes. Errors: corrupt, io.
  // `views`: what was drawn for them.
  void gather(Slot& slot, std::span<const DrawnSteps> views);

 private:
  // Its rows are those of the samples, as they are stored.
  static bool is_copied(const DeliveredColumn& column) noexcept;
  // In the order of `delivered_`. Errors: those of Dataset::shard().
  const std::vector<const Column*>& columns_of(std::uint32_t shard);
  void copy_rows(Slot& slot, std::size_t c);
  void map_labels(const Slot& slot, std::byte* labels) const;
  void gather_by_sample(Slot& slot, std::span<const DrawnSteps> views);
  void gather_mix(Slot& slot);
  void write_patches(Slot& slot, std::size_t view, const DrawnSteps& drawn, std::uint32_t patch);
  void gather_following(const Column& column, const Dataset::Location& at, std::byte* row, std::size_t c);
  void gather_ragged(const Column& column, const Dataset::Location& at, std::size_t row, Slot& slot,
                     std::size_t c);

  const Dataset& dataset_;
  const LoaderOptions& options_;
  std::vector<DeliveredColumn> delivered_;
  std::vector<std::vector<const Column*>> columns_;  // by shard; filled at first use
  bool maps_labels_ = false;                         // Dataset::maps_labels(), of any shard
  TargetColumns targets_;
  std::vector<std::byte> rows_;            // of a sample
  std::vector<const std::byte*> sources_;  // of a batch
};

}  // namespace shard
