#include "shardify/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "common/format.hpp"
#include "common/output.hpp"
#include "shard/keys.hpp"

namespace shard::shardify {

namespace {

using Json = nlohmann::ordered_json;
using cli::human_bytes;
using cli::human_count;
using cli::human_duration;

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

// A path for JSON or a terminal: bytes that are not UTF-8 are escaped.
std::string shown(const std::filesystem::path& path) { return escape_key(path.string()); }

Json describe(const convert::Options& options) {
  const SampleSpec spec = options.preprocess.sample_spec();
  return {{"dtype", to_string(spec.dtype)},
          {"layout", to_string(spec.layout)},
          {"shape", spec.shape()},
          {"sample_bytes", spec.size_bytes()},
          {"codec", to_string(options.codec)},
          {"jobs", options.threads()},
          {"pipeline", convert::pipeline_of(options)}};
}

std::string sample_text(const convert::Options& options) {
  const SampleSpec spec = options.preprocess.sample_spec();
  return fmt::format("{} [{}] {}, {} each, codec {}", to_string(spec.dtype), fmt::join(spec.shape(), ", "),
                     to_string(spec.layout), human_bytes(spec.size_bytes()), to_string(options.codec));
}

}  // namespace

void print_estimate(const convert::Options& options, const convert::Estimate& e, bool json) {
  const auto stored = static_cast<std::uint64_t>(static_cast<double>(e.out_bytes) * e.compressed_ratio);
  if (json) {
    Json classes = Json::object();
    for (std::size_t c = 0; c < e.classes.size(); ++c) classes[e.classes[c]] = e.class_counts[c];
    Json out{{"dry_run", true},
             {"images", options.images},
             {"out", shown(options.out)},
             {"inputs", e.inputs},
             {"rejects_while_listing", e.rejects.size()},
             {"classes", classes},
             {"shards", e.shards},
             {"samples_per_shard", e.per_shard},
             {"bytes", stored},
             {"bytes_before_codec", e.out_bytes},
             {"bytes_packed", e.mean_packed_bytes * e.inputs},
             {"free_bytes", e.free_bytes ? Json(*e.free_bytes) : Json(nullptr)},
             {"sampled", e.sampled},
             {"sampled_rejects", e.sampled_rejects},
             {"mean_input_bytes", e.mean_input_bytes},
             {"seconds", e.seconds},
             {"options", describe(options)}};
    return cli::write_out(dump(out));
  }
  cli::out("plan: {} images -> {} shards of up to {} samples in '{}'\n", human_count(e.inputs),
           human_count(e.shards), human_count(e.per_shard), shown(options.out));
  cli::out("sample: {}\n", sample_text(options));
  for (const auto& [key, value] : convert::pipeline_of(options)) cli::out("  {}: {}\n", key, value);
  if (!e.classes.empty()) {
    cli::out("classes: {}\n", e.classes.size());
    cli::Table table({cli::Table::Align::right, cli::Table::Align::left, cli::Table::Align::right}, "  ");
    for (std::size_t c = 0; c < e.classes.size(); ++c)
      table.add_row({std::to_string(c), e.classes[c], human_count(e.class_counts[c])});
    cli::write_out(table.to_string());
  }
  cli::out("size: {}{}, input about {}\n", human_bytes(stored), e.compressed_ratio < 1 ? " (estimated)" : "",
           human_bytes(e.mean_input_bytes * e.inputs));
  if (e.mean_packed_bytes > 0 && options.codec.kind != Codec::Kind::packed)
    cli::out("with --codec packed: about {}, {:.2f} bits a value, without loss\n",
             human_bytes(e.mean_packed_bytes * e.inputs),
             8.0 * static_cast<double>(e.mean_packed_bytes) /
                 static_cast<double>(options.preprocess.sample_spec().elements()));
  if (e.free_bytes)
    cli::out("free: {}{}\n", human_bytes(*e.free_bytes), *e.free_bytes < stored ? "  NOT ENOUGH" : "");
  cli::out("time: about {} with {} threads ({} images decoded for this estimate, {:.2f} ms each)\n",
           human_duration(e.seconds), options.threads(), e.sampled, 1e3 * e.seconds_per_image);
  if (!e.rejects.empty())
    cli::out("rejected while listing: {}, first: {}: {}\n", e.rejects.size(), e.rejects[0].key,
             e.rejects[0].reason);
  if (e.sampled_rejects > 0) {
    cli::out("rejected of the {} tried: {}\n", e.sampled, e.sampled_rejects);
    for (const auto& reject : e.sampled_reject_list) cli::out("  {}: {}\n", reject.key, reject.reason);
  }
}

void print_summary(const convert::Options& options, const convert::Summary& s, double seconds, bool json) {
  const double rate = s.convert_seconds > 0 ? static_cast<double>(s.converted) / s.convert_seconds : 0;
  if (json) {
    Json out{{"complete", s.complete},
             {"was_complete", s.was_complete},
             {"out", shown(options.out)},
             {"inputs", s.inputs},
             {"samples", s.samples},
             {"rejects", s.rejects},
             {"shards", s.shards},
             {"bytes", s.size_bytes},
             {"converted", s.converted},
             {"bytes_read", s.bytes_read},
             {"seconds", seconds},
             {"scan_seconds", s.scan_seconds},
             {"convert_seconds", s.convert_seconds},
             {"images_per_second", rate},
             {"stage_seconds",
              {{"read", s.stages.read},
               {"preprocess", s.stages.preprocess},
               {"store", s.stages.store},
               {"publish", s.stages.publish},
               {"wait", s.stages.wait}}},
             {"options", describe(options)}};
    return cli::write_out(dump(out));
  }
  if (!s.complete) {
    cli::out(
        "rank {} of {}: {} images converted; other processes are still at work, the last one completes "
        "'{}'\n",
        options.rank, options.world, human_count(s.converted), shown(options.out));
    return;
  }
  cli::out("{}: {} samples in {} shards, {}\n", s.was_complete ? "already complete" : "complete",
           human_count(s.samples), human_count(s.shards), human_bytes(s.size_bytes));
  cli::out("sample: {}\n", sample_text(options));
  if (s.converted > 0)
    cli::out("speed: {:.0f} images/s with {} threads, {} in all\n", rate, options.threads(),
             human_duration(seconds));
  if (s.rejects > 0)
    cli::out("rejected: {} of {} inputs; see '{}'\n", human_count(s.rejects), human_count(s.inputs),
             shown(options.out / kRejectsFile));
}

}  // namespace shard::shardify
