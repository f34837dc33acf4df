#include "convert/progress_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "shard/error.hpp"
#include "shard/file.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::string_view kReceiptPrefix = ".shard-";
constexpr std::string_view kReceiptSuffix = ".done.json";

// Turns the exceptions of the JSON library into ours.
template <class Parse>
auto parse_json(const std::string& text, const char* what, Parse parse) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version").get<int>() != kVersion)
      throw Error(ErrorCode::unsupported, fmt::format("{} was written by another version of shardify", what));
    return parse(json);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::corrupt, fmt::format("{} cannot be read: {}", what, error.what()));
  }
}

std::string read_text(const fs::path& path) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30U;
  const std::vector<std::byte> bytes = read_file(path, kMaxBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Match>
void remove_matching(const fs::path& folder, Match match) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (match(it->path().filename().string())) found.push_back(it->path());
  if (error)
    throw Error(ErrorCode::io, fmt::format("cannot read folder '{}': {}", folder.string(), error.message()));
  for (const fs::path& path : found) remove_file(path);
}

bool is_receipt(const std::string& name) {
  return name.starts_with(kReceiptPrefix) && name.ends_with(kReceiptSuffix);
}
bool is_shard(const std::string& name) {
  return name.starts_with("shard-") && name.ends_with(".safetensors");
}

}  // namespace

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error)
    throw Error(ErrorCode::io, fmt::format("cannot remove '{}': {}", path.string(), error.message()));
}

std::string serialize_plan(const PlanRecord& plan) {
  Json json{{"version", kVersion},
            {"what", "a conversion by shardify that is not finished: run the same command again"},
            {"fingerprint", plan.fingerprint},
            {"source_digest", plan.source_digest},
            {"inputs", plan.inputs},
            {"samples_per_shard", plan.samples_per_shard},
            {"overwriting", plan.overwriting},
            {"options", plan.options}};
  return json.dump(2) + "\n";
}

PlanRecord parse_plan(const std::string& json) {
  return parse_json(json, kPlanFile, [](const Json& j) {
    PlanRecord plan;
    j.at("fingerprint").get_to(plan.fingerprint);
    j.at("source_digest").get_to(plan.source_digest);
    j.at("inputs").get_to(plan.inputs);
    j.at("samples_per_shard").get_to(plan.samples_per_shard);
    j.at("overwriting").get_to(plan.overwriting);
    plan.options = j.at("options").get<Pipeline>();
    return plan;
  });
}

void require_same_plan(const PlanRecord& there, const PlanRecord& asked, const fs::path& out) {
  std::string differences;
  auto differ = [&](const std::string& name, const std::string& was, const std::string& is) {
    if (was != is) differences += fmt::format("\n  {}: '{}' there, '{}' asked for", name, was, is);
  };
  Pipeline names = there.options;
  names.insert(asked.options.begin(), asked.options.end());
  for (const auto& [name, unused] : names) {
    const auto was = there.options.find(name);
    const auto is = asked.options.find(name);
    differ(name, was == there.options.end() ? "-" : was->second,
           is == asked.options.end() ? "-" : is->second);
  }
  differ("inputs", std::to_string(there.inputs), std::to_string(asked.inputs));
  if (there.source_digest != asked.source_digest && there.inputs == asked.inputs)
    differences += "\n  the input files or their labels are not the same as then";
  if (there.fingerprint != asked.fingerprint && differences.empty())
    differences += fmt::format(
        "\n  samples_per_shard (--samples-per-shard or --shard-size): not as then "
        "(fingerprint {} there, {} asked for)",
        there.fingerprint, asked.fingerprint);
  if (!differences.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' holds a conversion with other options or inputs:{}\n"
                            "use another folder, or --overwrite to replace what is there",
                            out.string(), differences));
}

std::string serialize_receipt(const Receipt& receipt) {
  Json rejects = Json::array();
  for (const Reject& reject : receipt.rejects)
    rejects.push_back({{"key", reject.key}, {"reason", reject.reason}});
  Json json{{"version", kVersion},
            {"file", receipt.shard.file},
            {"samples", receipt.shard.samples},
            {"size_bytes", receipt.shard.size_bytes},
            {"head_digest", fmt::format("{:016x}", receipt.shard.head_digest)},
            {"rejects", std::move(rejects)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Receipt parse_receipt(const std::string& json) {
  return parse_json(json, "a shard's receipt", [](const Json& j) {
    Receipt receipt;
    j.at("file").get_to(receipt.shard.file);
    j.at("samples").get_to(receipt.shard.samples);
    j.at("size_bytes").get_to(receipt.shard.size_bytes);
    receipt.shard.head_digest = std::stoull(j.at("head_digest").get<std::string>(), nullptr, 16);
    for (const Json& reject : j.at("rejects"))
      receipt.rejects.push_back(
          {reject.at("key").get<std::string>(), reject.at("reason").get<std::string>()});
    return receipt;
  });
}

std::string shard_name(std::uint64_t shard) { return fmt::format("shard-{:05}.safetensors", shard); }

fs::path receipt_path(const fs::path& out, std::uint64_t shard) {
  return out / fmt::format("{}{:05}{}", kReceiptPrefix, shard, kReceiptSuffix);
}

std::optional<Receipt> finished_shard(const fs::path& out, std::uint64_t shard) {
  const fs::path path = receipt_path(out, shard);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  Receipt receipt;
  try {
    receipt = parse_receipt(read_text(path));
  } catch (const Error&) {
    if (!fs::exists(path, error)) return std::nullopt;  // another process has just completed the data set
    throw;
  }
  if (receipt.shard.samples != 0) {
    const auto size = fs::file_size(out / receipt.shard.file, error);
    if (error || size != receipt.shard.size_bytes) return std::nullopt;
  }
  return receipt;
}

void remove_progress_files(const fs::path& out) {
  remove_file(out / kPlanFile);
  remove_matching(out, is_receipt);
  remove_stale_temporaries(out);
}

void remove_dataset_files(const fs::path& out) {
  remove_file(out / kDatasetFile);
  remove_matching(out, [](const std::string& name) { return is_receipt(name) || is_shard(name); });
  remove_file(out / kRejectsFile);
  remove_stale_temporaries(out);
}

}  // namespace shard::convert
