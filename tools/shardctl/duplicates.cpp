// duplicates: samples that are stored more than once, or look alike, in a data set and across data sets.
#include <memory>
#include "base/system/parallel.hpp"
#include "cli/progress.hpp"
#include "shard/error.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/duplicates/find.hpp"
#include "shardctl/duplicates/near_groups.hpp"
#include "shardctl/duplicates/report.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

// Groups that lie within one data set go; the others stay whole.
void keep_across(const SetList& sets, Members& members) {
  Members kept;
  for_each_group(members, [&](std::span<const Member> group) {
    if (sets.is_across(group)) kept.insert(kept.end(), group.begin(), group.end());
  });
  number_groups(kept);
  members = std::move(kept);
}

}  // namespace

int duplicates(const DuplicatesOptions& options) {
  if (options.across && options.paths.size() < 2) {
    throw Error(ErrorCode::invalid_argument,
                "--across lists what two data sets have in common, and one is named: name two or more");
  }
  const unsigned threads = thread_count(options.jobs);
  const SetList sets(options.paths, threads);
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  Damage damage;
  Found found = options.near ? find_near(sets, *options.near, threads, progress, damage)
                             : find_equal(sets, options.verify, threads, progress, damage);
  progress.finish();
  if (options.across) keep_across(sets, found.members);

  const DuplicatesSummary summary = summarize(sets, found.members);
  const DuplicatesQuery query{options.near, !options.near && options.verify};
  if (!options.csv.empty()) write_csv(options.csv, sets, found.members);
  if (options.json)
    print_json(sets, found, summary, query, damage.count());
  else
    print_table(sets, found, summary, query);
  if (damage.found()) damage.report("they were not compared");
  return summary.groups > 0 || damage.found() ? kExitDifferent : kExitOk;
}

void add_duplicates(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<DuplicatesOptions>();
  CLI::App* const command = app.add_subcommand("duplicates", R"(
      List samples that are stored more than once, in a data set and across data sets

      Samples of the same group have the same pixels, whatever their codec. Exit code 1: there are some.)");
  command->add_option("PATHS", options->paths, "Folders of data sets, their parts FOLDER#NAME, or shards")
      ->required();
  command
      ->add_option("--near", options->near, R"(
      List samples that look alike: perceptual hashes of 64 bits that differ in at most N. 4 finds the same picture in
      another size or quality, 8 also slightly cropped ones; more finds pictures that only resemble each other.)")
      ->check(CLI::Range(0U, kMaxHashDistance));
  command->add_flag("--across", options->across, "List only groups with samples of more than one data set");
  command->add_flag("!--no-verify", options->verify,
                    "Trust equal digests, do not compare the bytes of the samples");
  command->add_option("--csv", options->csv, "Also write all groups to this file, as CSV")->type_name("FILE");
  add_jobs(command, options->jobs);
  add_quiet(command, options->quiet);
  add_json(command, options->json);
  runs(command, chosen, [options] { return duplicates(*options); });
}

}  // namespace shard::ctl
