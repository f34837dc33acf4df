// Boxes, keypoints and matrices of a batch: the columns that follow the views (targets.hpp).
//
// They are moved on the host, before the columns go to the device: 100 boxes of a sample are 1.6 kB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fields/drawn_steps.hpp"
#include "shard/loader/geometry.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

// Fills in the boxes and keypoints that the data set knows, if views move pixels, and which columns go along
// with boxes, and checks all options of boxes, keypoints and as_stored. Errors: invalid_argument, naming
// option, column and what is possible; a column of which it cannot be told whether it must move
// (likely_targets.hpp).
void resolve_target_columns(const DatasetInfo& info, LoaderOptions& options);
// By the name of each column of boxes, those that the data set knows too: the columns with a row for each of
// them. The options are resolved.
std::map<std::string, std::vector<std::string>> columns_by_boxes(const DatasetInfo& info,
                                                                 const LoaderOptions& options);
// True if each view has its own values of the column. The options are resolved.
bool follows_views(const ColumnSpec& column, const LoaderOptions& options);

// Not thread safe.
class TargetColumns {
 public:
  // Of resolved options.
  TargetColumns(const Dataset& dataset, const LoaderOptions& options);

  // `views`, which is borrowed, has what was drawn for the next batch.
  void start_batch(std::span<const DrawnSteps> views) { views_ = views; }
  // Reads the boxes of the sample that is row `row` of the batch. Errors: corrupt, io; invalid_argument (a
  // box outside of its image, which has a size of its own).
  void start_sample(const ShardReader& shard, std::uint64_t sample, std::size_t row);
  // Replaces the rows of a column, as they are stored, by those of a view.
  // `column`: its position in DatasetInfo::columns.
  void follow(std::size_t column, std::size_t view, std::vector<std::byte>& rows);
  // From the stored sample to each view: 9 values for each, in C order.
  void write_matrices(float* out) const;

 private:
  // A column of boxes, and what has become of those of the current sample.
  struct BoxSet {
    std::size_t column = 0;
    BoxOptions options;
    struct View {
      std::vector<float> boxes;
      std::vector<std::uint32_t> kept;  // stored rows
    };
    std::vector<View> views;
    std::uint64_t count = 0;  // stored
  };
  void check_boxes(const BoxSet& set) const;
  void move_boxes(BoxSet& set, std::size_t view);
  void keep_rows(const BoxSet& set, std::size_t column, std::size_t view, std::vector<std::byte>& rows) const;
  void move_keypoints(const KeypointOptions& options, const ColumnSpec& column, std::size_t view,
                      std::vector<std::byte>& rows) const;

  const Dataset& dataset_;
  // By column of the data set.
  struct Role {
    std::optional<std::size_t> boxes;  // in sets_: it is their column, or goes along
    const KeypointOptions* keypoints = nullptr;
  };
  std::vector<Role> roles_;
  std::vector<BoxSet> sets_;

  std::span<const DrawnSteps> views_;
  // Of the current sample, by view.
  std::vector<Geometry> geometries_;
  std::vector<std::vector<GeometryStep>> steps_;
  std::vector<std::byte> stored_;  // boxes
  const ShardReader* shard_ = nullptr;
  std::uint64_t sample_ = 0;
};

}  // namespace shard
