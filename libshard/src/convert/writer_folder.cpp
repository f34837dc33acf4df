// The folder of a Writer: new, unfinished or finished.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/publish.hpp"
#include "base/quote.hpp"
#include "convert/claim.hpp"
#include "convert/replace.hpp"
#include "convert/writer_impl.hpp"
#include "format/shard_profile.hpp"

namespace shard::convert {

namespace fs = std::filesystem;

void Writer::Impl::open_folder() {
  const fs::path& out = options.out;
  make_folders(out);
  if (folder.try_lock(out, true) == LockResult::busy) refuse_busy(out, folder.holder(), "");
  const FolderState state = folder_state(out);
  if (state == FolderState::foreign) refuse_foreign(out);
  if (state == FolderState::complete && !options.resume)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} holds a finished data set: use another folder", quoted(out)));
  if (state == FolderState::complete) {
    const DatasetInfo info = read_dataset_info(out);
    complete = true;
    continue_with(recorded_plan(info, writer_record(options, info.columns)));
    if (info.classes != options.classes && !options.classes.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} holds a finished data set with other classes", quoted(out)));
    spec = info;
    summary = summary_of(info);
    summary.was_complete = true;
    if (has_leftovers(out)) remove_journal(out);  // of a run that was killed after it wrote dataset.json
  } else if (state == FolderState::incomplete) {
    const PlanRecord there = read_plan(out);
    if (there.writer.empty())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "{} holds an unfinished conversion of files: finish it with shardify, or use another folder",
              quoted(out)));
    if (!options.resume && !receipts_in(out).empty())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "{} holds an unfinished data set: give `resume` to go on with it, or use another folder",
              quoted(out)));
    if (options.resume) {
      continue_with(there);
    } else {
      remove_dataset_files(out);  // none of its shards was finished
    }
  }
  if (!declared && !options.fields.empty()) declare(options.fields);
}

// Takes over the rows of an earlier run.
void Writer::Impl::continue_with(const PlanRecord& there) {
  const fs::path& out = options.out;
  const auto columns = complete ? read_dataset_info(out).columns : parse_columns(there.writer);
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
  spec = writer_spec(options, columns);
  declared = true;
  if (!complete) {
    remove_stale_temporaries(out);
    first_shard = next_shard = keep_full_shards(out, record);
  }
  const bool whole =
      read_input_rows(out, complete ? nullptr : &record, [&](InputRow&& row) { done_keys.insert(row.key); });
  if (!whole)
    throw Error(ErrorCode::corrupt,
                fmt::format("what an earlier run recorded in {} is damaged", quoted(out)));
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
  spec = writer_spec(options, columns);
  check_writer_options(ShardWriterOptions(spec));
  record = writer_record(options, columns);
  if (!publish_new_file(options.out / kPlanFile, serialize_plan(record)))
    throw Error(ErrorCode::resource,
                fmt::format("another process has just started to write to {}", quoted(options.out)));
  declared = true;
}

}  // namespace shard::convert
