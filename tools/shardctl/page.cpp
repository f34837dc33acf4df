// page: a folder with an HTML page that shows a data set, and needs no network.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include <memory>
#include "base/system/parallel.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/remote.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/draw/augmented.hpp"
#include "shardctl/draw/overlay.hpp"
#include "shardctl/duplicates/find.hpp"
#include "shardctl/page/describe.hpp"
#include "shardctl/page/document.hpp"
#include "shardctl/page/new_folder.hpp"
#include "shardctl/page/pictures.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMostPictures = 4000;
constexpr std::uint64_t kMostMeasured = 4096;  // samples for the statistics of the channels
constexpr std::size_t kAugmentedSamples = 8;
constexpr std::uint32_t kAugmentedEpochs = 6;
constexpr const char* kPageFile = "index.html";
constexpr const char* kPictureFolder = "pictures";

// A folder that this command has made.
bool is_page(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name != kPageFile && name != kPictureFolder) return false;
  }
  std::ifstream file(folder / kPageFile, std::ios::binary);
  std::string doctype;
  std::string mark;
  std::getline(file, doctype);
  std::getline(file, mark);
  return !error && mark == "<!-- shardctl page -->";
}

std::uint64_t pictures_per_class(std::uint64_t asked, std::size_t classes) {
  return std::clamp<std::uint64_t>(kMostPictures / std::max<std::size_t>(classes, 1), 1, asked);
}

}  // namespace

int page(const PageOptions& options) {
  NewFolder folder(options.folder, options.overwrite ? is_page : std::function<bool(const fs::path&)>());
  const unsigned threads = thread_count(options.jobs);
  const Source source = Source::open(options.path);
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  Damage unmeasured;
  Damage uncompared;
  Damage unshown;

  std::optional<Augmented> augmented;
  if (!options.augment.empty()) augmented.emplace(source.info(), options.augment, options.seed);
  Json data = describe_source(source, options.path);
  const std::vector<PageClass> classes = count_page_classes(source);
  add_classes(data, source, classes);
  progress.update("measuring the channels");
  add_channels(data, measure_channels(source, kMostMeasured, threads, unmeasured));

  const std::uint64_t per_class = pictures_per_class(options.samples, classes.size());
  std::vector<ShownSample> samples = choose_samples(source, classes, per_class, options.seed);
  if (samples.size() > kMostPictures) samples.resize(kMostPictures);  // one each of the first classes
  std::set<std::uint64_t> pictured;
  for (const ShownSample& sample : samples) pictured.insert(sample.index);
  std::optional<SetList> sets;
  Members duplicates;
  if (options.duplicates) {
    sets.emplace(std::vector<std::string>{options.path}, threads);
    duplicates = find_equal(*sets, true, threads, progress, uncompared).members;
    pictured.merge(pictured_duplicates(duplicates));
  }
  const fs::path pictures = folder.path() / kPictureFolder;
  make_folder(pictures);
  const Overlay overlay(source.info());
  const Overlay* const drawn = options.targets ? &overlay : nullptr;
  const WrittenPictures written =
      write_pictures(source, pictured, pictures, threads, progress, unshown, drawn);

  std::uint64_t augmented_bytes = 0;
  if (augmented) {
    std::vector<std::uint64_t> some;  // one each of classes that lie apart
    for (std::size_t i = 0; i < kAugmentedSamples && !written.indices.empty(); ++i) {
      const std::size_t at = i * written.indices.size() / kAugmentedSamples;
      some.push_back(*std::next(written.indices.begin(), static_cast<std::ptrdiff_t>(at)));
    }
    some.erase(std::unique(some.begin(), some.end()), some.end());
    augmented_bytes = write_augmented(source, *augmented, some, kAugmentedEpochs, pictures, drawn);
    add_augmented(data, source, options.augment, some, kAugmentedEpochs);
  }
  add_samples(data, source, samples, written.indices, per_class);
  if (options.duplicates)
    add_duplicates(data, *sets, duplicates, written.indices);
  else
    add_no_duplicates(data, "Not looked for; shardctl page --duplicates does.");
  const fs::path of = parse_dataset_path(options.path).folder;
  const bool on_server = is_remote(of);
  add_rejects(data, source, source.is_dataset() && !on_server ? read_rejects(of / kRejectsFile) : Rejects());
  if (source.is_dataset() && on_server)
    data["reject_note"] = fmt::format("{} not stored. {} says which and why; it is not read from a server.",
                                      cli::counted(source.info().rejects, "input"), kRejectsFile);

  const std::string html = html_document(data["name"].get<std::string>(), data);
  publish_file(folder.path() / kPageFile, html);
  folder.publish();
  progress.finish();
  if (!options.quiet) {
    cli::out("{}: {}, {}\n", path_text(folder.target() / kPageFile),
             cli::counted(written.indices.size(), "picture"),
             cli::human_bytes(written.size_bytes + augmented_bytes + html.size()));
    if (per_class < options.samples && !classes.empty())
      cli::out("{} of each class instead of {}: a page has at most {} pictures\n", per_class, options.samples,
               kMostPictures);
  }
  if (unmeasured.found()) unmeasured.report("the channels were measured without them");
  if (uncompared.found()) uncompared.report("they were not compared");
  if (unshown.found()) unshown.report("they are not on the page");
  return unmeasured.found() || uncompared.found() || unshown.found() ? kExitDifferent : kExitOk;
}

void add_page(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<PageOptions>();
  CLI::App* const command = app.add_subcommand("page", R"(
      Write an HTML page that shows a data set

      It needs no network: open DIR/index.html in a browser, or copy the folder to a web server.)");
  add_path(command, options->path);
  command->add_option("DIR", options->folder, "The folder to write: new or empty")->required();
  command
      ->add_option("--samples", options->samples, R"(
      Random samples of each class; fewer if there would be more than 4000 pictures)")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the random samples")->capture_default_str();
  command->add_flag("--duplicates", options->duplicates, "Also find and show equal samples");
  command
      ->add_option("--augment", options->augment, R"(
      Also show what training makes of some samples: a policy of show --augment)")
      ->type_name("POLICY");
  command->add_flag("!--no-targets", options->targets, R"(
      Do not draw masks, boxes and keypoints over the samples)");
  command->add_flag("--overwrite", options->overwrite, "Replace a page that is in DIR");
  add_jobs(command, options->jobs);
  add_quiet(command, options->quiet, "Print nothing");
  runs(command, chosen, [options] { return page(*options); });
}

}  // namespace shard::ctl
