#include "fields/delivered_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/system/guarded_read.hpp"
#include "base/text/quote.hpp"
#include "fields/fields.hpp"
#include "fields/views.hpp"
#include "shard/error.hpp"
#include "slot/slot.hpp"

namespace shard {

namespace {

using What = DeliveredColumn::What;

// The most rows that a sample of the data set has.
std::uint64_t most_rows(const Dataset& dataset, const std::string& name) {
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
    const ShardReader& shard = dataset.shard(i);
    const Column& column = shard.column(name);
    for (std::uint64_t sample = 0; sample < shard.size(); ++sample)
      most = std::max(most, shard.rows_of(column, sample).count);
  }
  return most;
}

void set_number(const std::byte* at, std::uint64_t value) {
  std::memcpy(const_cast<std::byte*>(at), &value, sizeof(value));
}

// Rows and columns of a view that have pixels of the sample; of views that are not padded all.
SampleSize content_of(const DrawnSteps& view, std::size_t row, const TransformOptions& options) {
  const SampleCrop& crop = view.crops[row];
  if (options.patch != 0) return {crop.resized_height, crop.resized_width};
  return {crop.resized_height != 0 ? std::min(crop.resized_height, view.height) : view.height,
          crop.resized_width != 0 ? std::min(crop.resized_width, view.width) : view.width};
}

void write_size(const SampleSize& size, std::byte* at) {
  const std::array<std::int64_t, 2> both{size.height, size.width};
  std::memcpy(at, both.data(), sizeof(both));
}

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

}  // namespace

namespace {

// True if every sample of the first shard with boxes has as many rows in both columns.
bool has_a_row_for_each(const Dataset& dataset, const std::string& boxes, const std::string& other) {
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
    const ShardReader& shard = dataset.shard(i);
    bool some = false;
    for (std::uint64_t sample = 0; sample < shard.size(); ++sample) {
      const std::uint64_t count = shard.rows_of(shard.column(boxes), sample).count;
      if (shard.rows_of(shard.column(other), sample).count != count) return false;
      some = some || count > 0;
    }
    if (some) return true;
  }
  return false;
}

// Boxes that are gone take the rows along that belong to them.
// `stated`: the boxes of which it was said which columns those are.
void refuse_rows_that_may_go_along(const Dataset& dataset, const LoaderOptions& options,
                                   const std::set<std::string>& stated) {
  if (options.as_stored.count("*") != 0) return;
  for (const auto& set : options.boxes) {
    if (stated.count(set.first) != 0) continue;
    for (const ColumnSpec& column : dataset.info().columns)
      if (column.kind == ColumnKind::ragged && options.as_stored.count(column.name) == 0 &&
          !follows_views(column, options) && has_a_row_for_each(dataset, set.first, column.name))
        refuse(
            fmt::format("column {} ({}) has as many rows as {} has boxes, of which those that leave the view "
                        "are dropped: it cannot be "
                        "told whether its rows belong to the boxes. Name it in `along` of these boxes if "
                        "they do (Python: "
                        "fields={{{}: Boxes(along=[{}, ...])}}), and in as_stored if they do not",
                        quoted(column.name), to_string(column), quoted(set.first), quoted(set.first),
                        quoted(column.name)));
  }
}

// Boxes and the columns along have a row for each box: they are cut after the same one, also where nothing
// moves.
void cut_along(const Dataset& dataset, LoaderOptions& options) {
  for (const auto& [boxes, along] : columns_by_boxes(dataset.info(), options)) {
    std::vector<std::string> members{boxes};
    members.insert(members.end(), along.begin(), along.end());
    const std::string* stated = nullptr;  // the first member with a limit
    std::uint64_t limit = 0;
    for (const std::string& name : members) {
      const auto found = options.ragged.find(name);
      if (found == options.ragged.end() || found->second.max_rows == 0) continue;
      if (stated != nullptr && found->second.max_rows != limit)
        refuse(
            fmt::format("max_rows of {} is {}, and that of {} is {}: both have a row for each box, so they "
                        "are cut after the same one. Give one number for both, or only one of them",
                        quoted(*stated), limit, quoted(name), found->second.max_rows));
      stated = &name;
      limit = found->second.max_rows;
    }
    if (stated == nullptr)
      for (const std::string& name : members) limit = std::max(limit, most_rows(dataset, name));
    for (const std::string& name : members) options.ragged[name].max_rows = limit;
  }
}

}  // namespace

void set_row_limits(const Dataset& dataset, LoaderOptions& options) {
  std::set<std::string> stated;
  for (const auto& [name, boxes] : options.boxes)
    if (boxes.along) stated.insert(name);
  resolve_target_columns(dataset.info(), options);
  refuse_rows_that_may_go_along(dataset, options, stated);
  const std::vector<ColumnSpec>& columns = dataset.info().columns;
  for (const auto& entry : options.ragged) {
    const std::string& name = entry.first;  // clang 14 captures no structured binding
    const auto found =
        std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.name == name; });
    if (found == columns.end() || found->kind != ColumnKind::ragged)
      refuse(fmt::format("option ragged names {}: {} has no ragged column of this name", quoted(name),
                         quoted(dataset.path())));
  }
  cut_along(dataset, options);
  for (const ColumnSpec& column : columns) {
    if (column.kind != ColumnKind::ragged) continue;
    RaggedOptions& ragged = options.ragged[column.name];
    if (ragged.max_rows == 0) ragged.max_rows = most_rows(dataset, column.name);
    constexpr std::uint64_t kMaxBatchBytes = std::uint64_t{1} << 40U;
    const auto row = checked_mul(ragged.max_rows, column.row_bytes());
    const auto batch = row ? checked_mul(*row, options.most_rows()) : std::nullopt;
    if (!batch || *batch > kMaxBatchBytes)
      refuse(fmt::format(
          "column {}: {} rows of {} bytes in each of {} samples are too much for a batch: lower max_rows",
          quoted(column.name), ragged.max_rows, column.row_bytes(), options.most_rows()));
  }
  std::set<std::string> names{"ids", "mask"};
  for (const DeliveredColumn& column : delivered_columns(dataset.info(), options))
    if (column.view == 0 && !names.insert(column.name).second && column.name != "ids" &&
        column.name != "mask")
      refuse(fmt::format(
          "two tensors of a batch would have the name {}: deliver the ragged column the other way "
          "(option ragged, flat), or give it another name",
          quoted(column.name)));
}

namespace {

// Of one column, for one view. follows: each view has its own.
void append_delivered(const ColumnSpec& column, std::size_t source, const LoaderOptions& options,
                      std::size_t view, bool follows, std::vector<DeliveredColumn>& all) {
  const std::uint64_t batch = options.most_rows();
  DeliveredColumn values{
      column.name, What::fixed, column.dtype, column.row_shape, source, batch * column.row_bytes(),
      view,        follows};
  if (column.kind == ColumnKind::fixed) {
    all.push_back(std::move(values));
    return;
  }
  const RaggedOptions& ragged = options.ragged.at(column.name);
  values.bytes *= ragged.max_rows;
  values.what = ragged.flat ? What::flat : What::padded;
  if (!ragged.flat) values.shape.insert(values.shape.begin(), ragged.max_rows);
  all.push_back(std::move(values));
  if (ragged.flat)
    all.push_back(
        {column.name + "_offsets", What::offsets, DType::i64, {}, source, (batch + 1) * 8, view, follows});
  else
    all.push_back({column.name + "_counts", What::counts, DType::i64, {}, source, batch * 8, view, follows});
}

}  // namespace

std::vector<DeliveredColumn> delivered_columns(const DatasetInfo& info, const LoaderOptions& options) {
  const std::uint64_t batch = options.most_rows();
  std::vector<DeliveredColumn> all;
  for (std::size_t i = 0; i < info.columns.size(); ++i) {
    if (info.columns[i].kind == ColumnKind::text) continue;
    const bool follows = follows_views(info.columns[i], options);
    for (std::size_t view = 0; view < (follows ? view_count(options) : 1); ++view)
      append_delivered(info.columns[i], i, options, view, follows, all);
  }
  if (options.correspondence) {
    const std::uint64_t views = view_count(options);
    all.push_back({"correspondence", What::matrices, DType::f32, {views, 3, 3}, 0, batch * views * 9 * 4});
  }
  if (info.spec.is_free()) all.push_back({"stored_sizes", What::sizes, DType::i64, {2}, 0, batch * 2 * 8});
  bool padded = false;
  for (std::size_t view = 0; view < view_count(options); ++view)
    padded = padded || view_options(options, view).padded != 0;
  for (std::size_t view = 0; padded && view < view_count(options); ++view)
    all.push_back({"view_sizes", What::view_sizes, DType::i64, {2}, 0, batch * 2 * 8, view});
  for (std::size_t view = 0; view < view_count(options); ++view) {
    const TransformOptions& of = view_options(options, view);
    if (of.patch == 0) continue;
    const std::uint64_t patches = batch * of.max_tokens;
    all.push_back({"patch_offsets", What::patches, DType::i32, {}, 0, (batch + 1) * 4, view});
    all.push_back({"patch_coords", What::patches, DType::i32, {2}, 0, patches * 2 * 4, view});
    all.push_back({"patch_samples", What::patches, DType::i32, {}, 0, patches * 4, view});
  }
  if (options.mix.enabled()) {
    const auto labels =
        std::find_if(all.begin(), all.end(), [](const DeliveredColumn& c) { return c.name == "labels"; });
    if (labels != all.end()) {
      const std::size_t source = labels->source;
      DeliveredColumn partner = *labels;
      partner.name = "labels_b";
      partner.what = What::partner;
      all.push_back(std::move(partner));
      all.push_back({"share", What::share, DType::f32, {}, source, batch * 4});
    }
  }
  return all;
}

ColumnGather::ColumnGather(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset),
      options_(options),
      delivered_(delivered_columns(dataset.info(), options)),
      columns_(dataset.info().shards.size()),
      targets_(dataset, options) {
  for (std::uint32_t shard = 0; shard < columns_.size(); ++shard)
    maps_labels_ = maps_labels_ || dataset.maps_labels(shard);
}

bool ColumnGather::is_copied(const DeliveredColumn& column) noexcept {
  return column.what == What::fixed && !column.follows;
}

const std::vector<const Column*>& ColumnGather::columns_of(std::uint32_t shard) {
  std::vector<const Column*>& columns = columns_[shard];
  if (columns.empty())
    for (const DeliveredColumn& of : delivered_)
      columns.push_back(&dataset_.shard(shard).columns().at(dataset_.info().columns[of.source].name));
  return columns;
}

void ColumnGather::gather(Slot& slot, std::span<const DrawnSteps> views) {
  const std::uint64_t rows = slot.locations.size();
  for (std::size_t c = 0; c < delivered_.size(); ++c) {
    const What what = delivered_[c].what;
    slot.columns[c].shape[0] = what == What::flat ? 0 : what == What::offsets ? rows + 1 : rows;
    if (what == What::offsets) set_number(slot.columns[c].host, 0);
    if (is_copied(delivered_[c])) copy_rows(slot, c);
  }
  if (!std::all_of(delivered_.begin(), delivered_.end(), is_copied)) gather_by_sample(slot, views);
  if (options_.mix.enabled()) gather_mix(slot);
  for (std::size_t view = 0; view < views.size(); ++view)
    if (const std::uint32_t patch = view_options(options_, view).patch; patch != 0)
      write_patches(slot, view, views[view], patch);
}

// Columns that need more than their rows, sample after sample.
void ColumnGather::gather_by_sample(Slot& slot, std::span<const DrawnSteps> views) {
  const bool follows = has_targets(options_);
  if (follows) targets_.start_batch(views);
  for (std::size_t i = 0; i < slot.locations.size(); ++i) {
    const Dataset::Location& at = slot.locations[i];
    const std::vector<const Column*>& columns = columns_of(at.shard);
    if (follows) targets_.start_sample(dataset_.shard(at.shard), at.sample, i);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (is_copied(delivered_[c])) continue;
      if (delivered_[c].what == What::padded || delivered_[c].what == What::flat) {
        gather_ragged(*columns[c], at, i, slot, c);
        continue;
      }
      auto* const host = const_cast<std::byte*>(slot.columns[c].host);
      if (delivered_[c].what == What::fixed)
        gather_following(*columns[c], at, host + i * columns[c]->row_bytes, c);
      else if (delivered_[c].what == What::matrices)
        targets_.write_matrices(reinterpret_cast<float*>(host) + i * view_count(options_) * 9);
      else if (delivered_[c].what == What::sizes)
        write_size(slot.shapes[i], host + i * 2 * sizeof(std::int64_t));
      else if (delivered_[c].what == What::view_sizes)
        write_size(content_of(views[delivered_[c].view], i, view_options(options_, delivered_[c].view)),
                   host + i * 2 * sizeof(std::int64_t));
    }
  }
}

// Columns patch_offsets, patch_coords and patch_samples.
void ColumnGather::write_patches(Slot& slot, std::size_t view, const DrawnSteps& drawn, std::uint32_t patch) {
  std::array<std::int32_t*, 3> columns{};
  std::array<std::uint64_t*, 3> rows{};
  std::size_t found = 0;
  for (std::size_t c = 0; c < delivered_.size(); ++c)
    if (delivered_[c].what == What::patches && delivered_[c].view == view) {
      columns[found] = reinterpret_cast<std::int32_t*>(const_cast<std::byte*>(slot.columns[c].host));
      rows[found++] = &slot.columns[c].shape[0];
    }
  auto [offsets, coords, samples] = columns;
  std::int32_t at = 0;
  *offsets++ = at;
  for (std::size_t row = 0; row < drawn.crops.size(); ++row) {
    const SampleCrop& crop = drawn.crops[row];
    const auto down = static_cast<std::int32_t>(crop.resized_height / patch);
    const auto across = static_cast<std::int32_t>(crop.resized_width / patch);
    for (std::int32_t y = 0; y < down; ++y)
      for (std::int32_t x = 0; x < across; ++x) {
        *coords++ = y;
        *coords++ = x;
        *samples++ = static_cast<std::int32_t>(row);
      }
    at += down * across;
    *offsets++ = at;
  }
  *rows[0] = drawn.crops.size() + 1;
  *rows[1] = *rows[2] = static_cast<std::uint64_t>(at);
}

// The rows of a whole batch in one guarded read: a guard for each cost more than the rows.
void ColumnGather::copy_rows(Slot& slot, std::size_t c) {
  auto* const host = const_cast<std::byte*>(slot.columns[c].host);
  const auto size = static_cast<std::size_t>(delivered_[c].bytes / options_.most_rows());
  sources_.clear();
  for (const Dataset::Location& at : slot.locations) {
    const std::span<const std::byte> bytes = columns_of(at.shard)[c]->bytes;
    sources_.push_back(bytes.subspan(static_cast<std::size_t>(at.sample * size), size).data());
  }
  const auto copy = [&] {
    if (size == sizeof(std::uint64_t))  // labels
      for (std::size_t i = 0; i < sources_.size(); ++i) std::memcpy(host + i * 8, sources_[i], 8);
    else
      for (std::size_t i = 0; i < sources_.size(); ++i) std::memcpy(host + i * size, sources_[i], size);
  };
  try {
    guarded("columns", copy);
  } catch (const UnreadablePage&) {  // this names the shard
    for (std::size_t i = 0; i < slot.locations.size(); ++i) {
      const Dataset::Location& at = slot.locations[i];
      dataset_.shard(at.shard).read_rows(*columns_of(at.shard)[c], at.sample, {host + i * size, size});
    }
  }
  if (maps_labels_ && delivered_[c].name == "labels") map_labels(slot, host);
}

// To the classes of the data set, of shards that have their own.
void ColumnGather::map_labels(const Slot& slot, std::byte* labels) const {
  for (std::size_t i = 0; i < slot.locations.size(); ++i, labels += sizeof(std::int64_t)) {
    if (!dataset_.maps_labels(slot.locations[i].shard)) continue;
    std::int64_t label = 0;
    std::memcpy(&label, labels, sizeof(label));
    label = dataset_.label_of(slot.locations[i].shard, label);
    std::memcpy(labels, &label, sizeof(label));
  }
}

void ColumnGather::gather_following(const Column& column, const Dataset::Location& at, std::byte* row,
                                    std::size_t c) {
  dataset_.shard(at.shard).read_column(column, at.sample, rows_);
  targets_.follow(delivered_[c].source, delivered_[c].view, rows_);
  std::copy_n(rows_.begin(), column.row_bytes, row);
}

// Rows are an even number.
void ColumnGather::gather_mix(Slot& slot) {
  const std::byte* labels = nullptr;
  for (std::size_t c = 0; c < delivered_.size(); ++c) {
    auto* const host = const_cast<std::byte*>(slot.columns[c].host);
    if (delivered_[c].name == "labels") labels = host;
    const std::size_t size = delivered_[c].bytes / options_.most_rows();
    for (std::size_t i = 0; i < slot.locations.size(); ++i) {
      if (delivered_[c].what == What::partner) std::memcpy(host + i * size, labels + (i ^ 1U) * size, size);
      if (delivered_[c].what == What::share) std::memcpy(host + i * size, &slot.pairs[i / 2].share, size);
    }
  }
}

// Also writes the column's counts or offsets, which follow it.
void ColumnGather::gather_ragged(const Column& column, const Dataset::Location& at, std::size_t row,
                                 Slot& slot, std::size_t c) {
  dataset_.shard(at.shard).read_column(column, at.sample, rows_);
  if (delivered_[c].follows) targets_.follow(delivered_[c].source, delivered_[c].view, rows_);
  const std::string& name = dataset_.info().columns[delivered_[c].source].name;
  const std::uint64_t most = options_.ragged.at(name).max_rows;
  const std::uint64_t count = std::min<std::uint64_t>(rows_.size() / column.row_bytes, most);
  const auto size = static_cast<std::size_t>(count * column.row_bytes);
  auto* const target = const_cast<std::byte*>(slot.columns[c].host);
  SlotColumn& numbers = slot.columns[c + 1];
  if (delivered_[c].what == What::flat) {
    std::uint64_t& used = slot.columns[c].shape[0];
    std::copy_n(rows_.begin(), size, target + used * column.row_bytes);
    used += count;
    set_number(numbers.host + (row + 1) * 8, used);
    return;
  }
  std::byte* const begin = target + row * most * column.row_bytes;
  std::fill(std::copy_n(rows_.begin(), size, begin), begin + most * column.row_bytes, std::byte{0});
  set_number(numbers.host + row * 8, count);
}

}  // namespace shard
