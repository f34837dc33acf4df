// split: divides a data set into named selections by the hash of the keys.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include <memory>
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/error.hpp"
#include "shard/selection.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

constexpr double kRounding = 1e-9;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

std::vector<std::string> names_of(const SplitOptions& options) {
  std::vector<std::string> names = options.names;
  if (names.empty() && options.fractions.size() == 2) names = {"train", "val"};
  if (names.empty() && options.fractions.size() == 3) names = {"train", "val", "test"};
  if (names.size() != options.fractions.size())
    refuse(fmt::format("`names` has {} names for {} fractions: give one for each", names.size(),
                       options.fractions.size()));
  for (const std::string& name : names) check_selection_name(name);
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size())
    refuse(fmt::format("`names` is {}: each name may be given once", fmt::join(names, ",")));
  return names;
}

// Where each part begins and ends among all hashes.
std::vector<double> bounds_of(const std::vector<double>& fractions) {
  std::vector<double> bounds{0};
  for (const double fraction : fractions) {
    if (!(fraction > 0 && fraction <= 1))
      refuse(fmt::format("`fractions` has {}: each must be above 0 and at most 1", fraction));
    bounds.push_back(bounds.back() + fraction);
  }
  if (std::abs(bounds.back() - 1) > kRounding)
    refuse(fmt::format("`fractions` add up to {}: they must add up to 1", bounds.back()));
  bounds.back() = 1;
  return bounds;
}

}  // namespace

int split(const SplitOptions& options) {
  const std::vector<std::string> names = names_of(options);
  const std::vector<double> bounds = bounds_of(options.fractions);
  require_dataset_folder(options.path);
  const Dataset data = Dataset::open(options.path);
  if (data.is_lone_shard())
    refuse(fmt::format("{} is a shard alone: only folders can be split", quoted(options.path)));

  // All are made before the first is written.
  std::vector<Dataset> parts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    try {
      parts.push_back(
          data.select(Selection::hashed(bounds[i], bounds[i + 1], options.seed, data.cuts(options.seed))));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      refuse(fmt::format(
          "the part {} would have none of the {} samples: give it a larger fraction, or another `seed`",
          quoted(names[i]), data.size()));
    }
  }
  Json list = Json::array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    parts[i].save_selection(names[i]);
    list.push_back({{"name", names[i]},
                    {"samples", parts[i].size()},
                    {"path", path_text(options.path + "#" + names[i])}});
  }
  if (options.json) {
    cli::write_out(json_text(list, 2) + "\n");
  } else if (!options.quiet) {
    for (std::size_t i = 0; i < names.size(); ++i)
      cli::out("{}: {} of {} samples\n", path_text(options.path + "#" + names[i]),
               cli::human_count(parts[i].size()), cli::human_count(data.size()));
  }
  return kExitOk;
}

void add_split(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<SplitOptions>();
  CLI::App* const command = app.add_subcommand("split", R"(
      Divide a data set into named parts, for instance to train and to validate

      A part is a small file, NAME.selection, in the folder of the data set. PATH#NAME is a data set for every program. The part of a
      sample is decided by the hash of its key, so more data do not change it.)");
  add_path(command, options->path, "The folder of a data set");
  command->add_option("--fractions", options->fractions, "The size of each part; they add up to 1")
      ->type_name("F,F,...")
      ->delimiter(',')
      ->required();
  command
      ->add_option("--names", options->names,
                   "A name for each part; two are train,val and three train,val,test without it")
      ->type_name("NAME,NAME,...")
      ->delimiter(',');
  command->add_option("--seed", options->seed, "Another seed, another split")->capture_default_str();
  add_quiet(command, options->quiet, "Print nothing");
  add_json(command, options->json);
  runs(command, chosen, [options] { return split(*options); });
}

}  // namespace shard::ctl
