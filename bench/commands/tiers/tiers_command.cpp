#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "commands.hpp"
#include "commands/tiers/tiers_bench.hpp"
#include "feeds/loader_arguments.hpp"
#include "feeds/sample_reference.hpp"
#include "harness/filesystem_facts.hpp"
#include "harness/interrupt.hpp"
#include "harness/measure.hpp"
#include "sections.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

struct TiersArguments {
  std::vector<std::string> datasets, tiers, emulate;
  std::string images, cache, device = "auto", order = "windowed";
  Outputs outputs;
  std::uint64_t count = 0;
  double need = 0;
  TierOptions options;
};

// "u8", "f16 packed"; with the folder's name where that is not enough.
std::vector<std::string> labels_of(const std::vector<fs::path>& folders) {
  std::vector<std::string> labels;
  for (const fs::path& folder : folders) {
    const Dataset dataset = Dataset::open(folder);
    const DatasetInfo& info = dataset.info();
    if (dataset.size() == 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: it has no samples", quoted(folder)));
    check_deliverable(dataset);
    if (info.spec.is_free() != Dataset::open(folders[0]).info().spec.is_free())
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} and {}: one has samples of any size, the other one of one size, and they "
                              "are delivered in different sizes: measure each by itself",
                              quoted(folders[0]), quoted(folder)));
    labels.emplace_back(to_string(info.spec.dtype));
    if (info.codec.framed(info.spec)) labels.back() += " " + to_string(info.codec);
  }
  std::vector<std::string> unique = labels;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (std::count(labels.begin(), labels.end(), labels[i]) > 1) unique[i] += " " + quoted(folders[i]);
  return unique;
}

class TiersRun {
 public:
  TiersRun(TiersArguments& arguments, const std::string& command)
      : arguments_(arguments), report_("tiers", command, arguments.outputs) {
    if (arguments_.order == "shuffle") arguments_.options.order = OrderMode::shuffle;
    if (arguments_.order == "sequential") arguments_.options.order = OrderMode::sequential;
    for (const std::string& text : arguments_.emulate) emulated_.push_back(parse_emulated(text));
    for (const std::string& text : arguments_.tiers) places_.push_back(parse_tier(text));
    if (places_.empty()) places_ = {{"memory", "/dev/shm"}, {"here", {}}};
    for (const std::string& folder : arguments_.datasets) datasets_.emplace_back(folder);
    labels_ = labels_of(datasets_);
    device_ = devices_of(arguments_.device, std::min(arguments_.options.jobs(), 64U))[0];
  }

  int run() {
    const InterruptGuard interrupt;
    attempt(images_.problem, [&] {
      images_ = match_images(Dataset::open(datasets_[0]), arguments_.images, arguments_.count);
    });
    for (const TierPlace& place : places_) {
      if (is_remote(place.folder))
        measure(place.name, [&](Report::Json& facts) { return at_server(place, facts); });
      else
        measure_data(place.name, place, nullptr);
    }
    for (const EmulatedTier& tier : emulated_) measure_data(tier.name + " (emulated)", {}, &tier);
    save();
    report_.finish(tiers_section, {}, need_text(report_.json()["rows"], arguments_.need));
    return problems_.empty() && !any_problem(rows_) ? 0 : 1;
  }

 private:
  // The rows of a tier; `make` says what they are, and what is known of it.
  void measure(const std::string& name,
               const std::function<std::vector<TierTask>(Report::Json& facts)>& make) {
    const std::size_t before = rows_.size();
    std::string problem;
    attempt(problem, [&] {
      Report::Json facts{{"name", name}};
      auto tasks = make(facts);
      report_.json()["tiers"].push_back(facts);
      run_tasks(tasks, arguments_.options.repeat, interrupt_flag(), [&](unsigned repeats) {
        rows_.resize(before);
        for (const TierTask& task : tasks) rows_.push_back(task.row);
        const std::size_t each = arguments_.options.repeat;
        save();
        report_.save(done_ + repeats, each * (places_.size() + emulated_.size()), name);
      });
    });
    if (!problem.empty()) problems_.push_back(fmt::format("tier {} was left out: {}", name, problem));
    done_ += arguments_.options.repeat;
  }

  // On this machine; the data are copied to a folder.
  void measure_data(const std::string& name, const TierPlace& place, const EmulatedTier* emulated) {
    std::optional<TierData> data;
    measure(name, [&](Report::Json& facts) {
      const auto note = [&](const std::string& text) { report_.progress().prepare(text); };
      data.emplace(place, datasets_, images_, interrupt_flag(), note);
      facts["path"] = data->folder().string();
      if (emulated != nullptr) {
        facts["emulated"] = emulated->description();
        facts["bytes_per_second"] = emulated->bytes_per_second;
        facts["latency_seconds"] = emulated->latency_seconds;
        return emulated_tasks(*emulated, *data, labels_, device_, arguments_.options, interrupt_flag());
      }
      const Report::Json filesystem = filesystem_facts(data->folder());
      facts["filesystem"] = filesystem.value("type", "");
      facts["source"] = filesystem.value("source", "");
      return tier_tasks(name, *data, labels_, device_, arguments_.options, interrupt_flag());
    });
  }

  std::vector<TierTask> at_server(const TierPlace& place, Report::Json& facts) {
    facts["path"] = place.folder.string();
    facts["server"] = true;
    const ServerTier tier{place.name, addresses_of(place.folder, datasets_), datasets_, arguments_.cache};
    return server_tasks(tier, labels_, device_, arguments_.options, interrupt_flag());
  }

  void save() {
    Report::Json& json = report_.json();
    json["device"] = device_->info().name;
    json["datasets"] = Report::Json::array();
    for (std::size_t i = 0; i < datasets_.size(); ++i)
      json["datasets"].push_back({{"folder", datasets_[i].string()}, {"name", labels_[i]}});
    json["images"] = images_.paths.size();
    if (Dataset::open(datasets_[0]).info().spec.is_free())
      json["delivered"] = fmt::format("short side to {0}, centre {1}x{1}", kDeliveredShort, kDeliveredSide);
    json["threads"] = arguments_.options.jobs();
    json["batch_size"] = arguments_.options.batch_size;
    json["order"] = arguments_.order;
    json["repeat"] = arguments_.options.repeat;
    json["seconds"] = arguments_.options.seconds;
    json["problems"] = problems_;
    json["rows"] = tiers_json(rows_);
  }

  TiersArguments& arguments_;
  Report report_;
  std::vector<TierPlace> places_;
  std::vector<EmulatedTier> emulated_;
  std::vector<fs::path> datasets_;
  std::vector<std::string> labels_;
  std::shared_ptr<Device> device_;
  TierImages images_;
  std::vector<TierRow> rows_;
  std::vector<std::string> problems_;
  std::size_t done_ = 0;  // repeats of former tiers
};

int run_tiers(TiersArguments& arguments, const std::string& command) {
  return TiersRun(arguments, command).run();
}

}  // namespace

void add_tiers(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<TiersArguments>();
  TierOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("tiers", R"(
      Measure shards and decoding on the fly from each of your storage devices, cold and warm

      Every row is beside its limit, and every candidate must produce the samples of the data set before it is timed.
      Cold means that the page cache of exactly these files is dropped, and that this is verified. The files are copied
      to a new folder below each tier, which is removed. Exit code 1: a row was left out, with the reason.

      Example: shardbench tiers out/train --images photos --tier nvme=/mnt/nvme --emulate hdd --need 20000)",
                                  arguments, run_tiers);
  sub.add_option("DATASET", arguments->datasets,
                 R"(
Folders made by shardify from the same images, such as a plain and a packed one)")
      ->required();
  sub.add_option("--images", arguments->images, "The images from which the data sets were made")
      ->type_name("IMAGES")
      ->required();
  sub.add_option("--tier", arguments->tiers, R"(
A folder on the tier, to which the data are copied, or the address of a copy on a server (https://, s3://): of DATASET, or of a folder with all of them by
their names. Can be repeated)")
      ->type_name("NAME=PATH")
      ->default_str("/dev/shm and the folder of DATASET");
  sub.add_option("--cache", arguments->cache, "Where caches of tiers on servers are made, and removed")
      ->type_name("DIR")
      ->default_str("$TMPDIR or /tmp");
  sub.add_option("--emulate", arguments->emulate,
                 R"(
A tier that you do not have: hdd, sata, nvme, nfs, http or bw=150MB/s,lat=8ms[,depth=N]; can be repeated)")
      ->type_name("TIER");
  sub.add_option("--need", arguments->need, "Print which tiers keep a GPU that consumes X samples/s fed")
      ->check(CLI::Range(0.0, 1e9))
      ->default_str("");
  add_device_option(sub, arguments->device);
  sub.add_option("--count", arguments->count, "Images to decode, evenly spread")
      ->default_str("all; 512 with --quick");
  sub.add_option("--order", arguments->order, R"(
Order of the loader's samples: shuffle, sequential or windowed)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"shuffle", "sequential", "windowed"}));
  add_threads_option(sub, options.threads, "Threads that decode; threads of the host device");
  sub.add_option("--batch-size", options.batch_size, "Samples per batch")->check(CLI::Range(1, 65536));
  add_seconds_option(sub, options.seconds, "Length of a sample that has no natural end");
  add_repeat_option(sub, options.repeat);
  add_quick_option(sub, options.repeat, options.seconds, 0.5, ", and decode 512 images", [arguments] {
    if (arguments->count == 0) arguments->count = 512;
  });
  add_output_options(sub, arguments->outputs);
}

}  // namespace shard::bench
