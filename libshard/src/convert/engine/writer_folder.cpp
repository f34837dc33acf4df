// The folder of a Writer: new, unfinished or finished.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/files/publish.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/writer_impl.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/replace.hpp"
#include "format/shard/shard_profile.hpp"

namespace shard::convert {

namespace fs = std::filesystem;

void Writer::Impl::open_folder() {
  make_folders(out);
  if (folder.try_lock(out, true) == LockResult::busy) refuse_busy(out, folder.holder(), "");
  if (folder_state(out) == FolderState::foreign) refuse_foreign(out);
  if (options.overwrite) open_replacement();
  const FolderState state = folder_state(options.out);
  if (state == FolderState::complete) {
    if (!options.resume)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} holds a finished data set: use another folder, or `overwrite` to replace it",
                      quoted(out)));
    continue_finished();
  } else if (state == FolderState::incomplete) {
    resume_or_clear(read_plan(options.out));
  }
  if (!declared && !options.fields.empty()) declare(options.fields);
}

// `overwrite`: the rows go to the staging folder of `out`, if there is something to replace.
void Writer::Impl::open_replacement() {
  prepare_replacement(out);
  const FolderState there = folder_state(out);
  if (there != FolderState::complete && there != FolderState::incomplete) return;
  replaces = true;
  options.out = out / kStagingFolder;
  const bool go_on = options.resume;
  clear_staging(options.out, [go_on](const PlanRecord& found) { return go_on && !found.writer.empty(); });
  if (staging.try_lock(options.out, true) == LockResult::busy) refuse_busy(out, staging.holder(), "");
}

void Writer::Impl::continue_finished() {
  const DatasetInfo info = read_dataset_info(options.out);
  complete = true;
  continue_with(recorded_plan(info, writer_record(options, info.columns)));
  if (info.classes != options.classes && !options.classes.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} holds a finished data set with other classes", quoted(out)));
  spec = info;
  summary = summary_of(info);
  summary.was_complete = true;
  // Of a run that was killed after it wrote dataset.json. A staged data set is recognised by them.
  if (!replaces && has_leftovers(out)) remove_journal(out);
}

void Writer::Impl::resume_or_clear(const PlanRecord& there) {
  if (there.writer.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{} holds an unfinished conversion of files: finish it with shardify, use another folder, or "
            "`overwrite` to replace it",
            quoted(out)));
  if (options.resume) return continue_with(there);
  if (!receipts_in(options.out).empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} holds an unfinished data set: give `resume` to go on with it, `overwrite` to "
                            "replace it, or use another folder",
                            quoted(out)));
  remove_dataset_files(options.out);  // none of its shards was finished
}

// Takes over the rows of an earlier run.
void Writer::Impl::continue_with(const PlanRecord& there) {
  const fs::path& from = options.out;
  const auto columns = complete ? read_dataset_info(from).columns : parse_columns(there.writer);
  PlanRecord asked = writer_record(options, options.fields.empty() ? columns : options.fields);
  if (complete) {
    asked.source_digest = there.source_digest;
    asked.inputs = there.inputs;
    for (const char* name : {"source", "classes"}) asked.options.erase(name);
    PlanRecord plain = there;
    for (const char* name : {"source", "classes"}) plain.options.erase(name);
    require_same_plan(plain, asked, out);
  } else {
    require_same_plan(there, asked, out);
  }
  record = asked;
  take_columns(columns);
  if (!complete) {
    remove_stale_temporaries(from);
    shards = keep_full_shards(from, record);
  }
  const bool whole = read_input_rows(from, complete ? nullptr : &record, [&](InputRow&& row) {
    done_keys.insert(row.key);
    ++rows_before;
  });
  if (!whole)
    throw Error(ErrorCode::corrupt,
                fmt::format("what an earlier run recorded in {} is damaged", quoted(from)));
}

void Writer::Impl::take_columns(const std::vector<ColumnSpec>& columns) {
  spec = writer_spec(options, columns);
  per_shard = options.rows_per_shard(columns);
  head_row = head_bytes_per_sample(spec);
  if (replaces) record.stage = Stage::staged;
  declared = true;
}

void Writer::Impl::declare(std::vector<ColumnSpec> columns) {
  if (columns.empty() || columns.front().name != "labels")
    throw Error(ErrorCode::invalid_argument, "the first column must be labels");
  if (declared) {
    if (columns == spec.columns) return;
    std::string text;
    for (const ColumnSpec& column : spec.columns)
      text += fmt::format("\n  {} {}", column.name, to_string(column));
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has other columns:{}", quoted(options.out), text));
  }
  {
    const ShardWriterOptions asked(writer_spec(options, columns));
    check_writer_options(asked);
    check_header_bytes(asked);
  }
  record = writer_record(options, columns);
  take_columns(columns);
  declared = false;
  if (!publish_new_file(options.out / kPlanFile, serialize_plan(record)))
    throw Error(ErrorCode::resource,
                fmt::format("another process has just started to write to {}", quoted(out)));
  declared = true;
}

}  // namespace shard::convert
