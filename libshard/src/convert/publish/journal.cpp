#include "convert/publish/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/digest/checksum.hpp"
#include "base/files/file.hpp"
#include "base/files/file_io.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "convert/plan/advice.hpp"
#include "convert/publish/pixel_bound.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;
constexpr std::string_view kReceiptPrefix = ".shard-";
constexpr std::string_view kReceiptSuffix = ".done.json";

// Turns the exceptions of the JSON library into ours.
template <class Parse>
auto parse_json(const std::string& text, const char* what, Parse parse) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version").get<int>() != kVersion)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{} was written by another version of shardify: continue with that version", what));
    return parse(json);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::corrupt, fmt::format("{} cannot be read: {}", what, error.what()));
  }
}

std::string read_text(const fs::path& path, std::uint64_t max_bytes) {
  const std::vector<std::byte> bytes = read_file(path, max_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Match>
void remove_matching(const fs::path& folder, Match match) {
  for (const std::string& name : names_in(folder))
    if (match(name)) remove_file(folder / name);
}

bool is_receipt(const std::string& name) {
  return name.starts_with(kReceiptPrefix) && name.ends_with(kReceiptSuffix);
}
bool is_shard(const std::string& name) { return shard_number(name).has_value(); }

// The size from which a receipt counts as damaged. The bound per input is far above what an input takes.
std::uint64_t max_receipt_bytes(const PlanRecord& plan) {
  constexpr std::uint64_t kBytesPerInput = 64 << 10U;
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30U;
  const std::uint64_t inputs = std::min(plan.samples_per_shard, plan.inputs);
  return std::min(kMost, (1 + std::min(inputs, kMost / kBytesPerInput)) * kBytesPerInput);
}

constexpr auto kJpegUses = words_of(JpegUse{});
constexpr std::array<std::string_view, 3> kStages{"converting", "staged", "replacing"};

// The end of a receipt, its last member: a digest over the text before it, the conversion and the shard.
std::string seal(std::string_view body, const PlanRecord& plan, std::uint64_t shard) {
  Xxh3Stream hash;
  hash.update(fmt::format("{} {} {}\n", plan.fingerprint, plan.source_digest, shard));
  hash.update(body);
  return fmt::format(",\n \"digest\": \"xxh3:{}\"\n}}\n", to_hex(hash.digest()));
}

}  // namespace

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw Error(ErrorCode::io, fmt::format("cannot remove {}: {}", quoted(path), error.message()));
}

std::string serialize_plan(const PlanRecord& plan) {
  Json json{{"version", kVersion},
            {"what", "a conversion by shardify that is not finished: run the same command again"},
            {"fingerprint", plan.fingerprint},
            {"source_digest", plan.source_digest},
            {"inputs", plan.inputs},
            {"samples_per_shard", plan.samples_per_shard},
            {"stage", kStages.at(static_cast<std::size_t>(plan.stage))},
            {"options", plan.options}};
  if (!plan.times.empty()) json["times"] = plan.times;
  if (!plan.writer.empty()) {
    json["what"] = "a data set that a program has not finished: add its rows again with resume";
    json["writer"] = plan.writer;
  }
  return json.dump(2) + "\n";
}

PlanRecord parse_plan(const std::string& json) {
  return parse_json(json, kPlanFile, [](const Json& j) {
    PlanRecord plan;
    j.at("fingerprint").get_to(plan.fingerprint);
    j.at("source_digest").get_to(plan.source_digest);
    j.at("inputs").get_to(plan.inputs);
    j.at("samples_per_shard").get_to(plan.samples_per_shard);
    const auto stage = std::find(kStages.begin(), kStages.end(), j.at("stage").get<std::string>());
    if (stage == kStages.end())
      throw Error(ErrorCode::corrupt, fmt::format("{} has an unknown stage", kPlanFile));
    plan.stage = static_cast<Stage>(stage - kStages.begin());
    plan.options = j.at("options").get<Provenance>();
    plan.times = j.value("times", std::string());
    plan.writer = j.value("writer", std::string());
    return plan;
  });
}

PlanRecord read_plan(const fs::path& out) {
  constexpr std::uint64_t kMaxPlanBytes = std::uint64_t{16}
                                          << 20U;  // what it records fits into a shard's header
  const fs::path path = out / kPlanFile;
  try {
    return parse_plan(read_text(path, kMaxPlanBytes));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported &&
        error.code() != ErrorCode::resource)
      throw;
    throw Error(error.code(), fmt::format("{}: {}; {}", quoted(path), error.what(), kAdviseForPlan));
  }
}

std::string differences_between(const PlanRecord& there, const PlanRecord& asked) {
  std::string differences;
  auto differ = [&](const std::string& name, const std::string& was, const std::string& is) {
    if (was != is)
      differences += fmt::format("\n  {}: {} recorded, {} requested", name, quoted(was), quoted(is));
  };
  Provenance names = there.options;
  names.insert(asked.options.begin(), asked.options.end());
  const auto compare = [&](const std::string& name) {
    const auto was = there.options.find(name);
    const auto is = asked.options.find(name);
    differ(name, was == there.options.end() ? "-" : was->second,
           is == asked.options.end() ? "-" : is->second);
  };
  constexpr const char* kPerShard = "samples_per_shard";
  for (const auto& [name, unused] : names)
    if (name != kPerShard) compare(name);
  // By default it follows from the size of a sample, and so from the options above.
  if (differences.empty()) compare(kPerShard);
  differ("inputs", std::to_string(there.inputs), std::to_string(asked.inputs));
  if (there.fingerprint != asked.fingerprint && differences.empty())
    differences += fmt::format(
        "\n  samples_per_shard (`samples_per_shard` or `shard_bytes`): not as before "
        "(fingerprint {} recorded, {} requested)",
        there.fingerprint, asked.fingerprint);
  return differences;
}

void require_same_plan(const PlanRecord& there, const PlanRecord& asked, const fs::path& out,
                       const std::function<std::string()>& changed_inputs) {
  refuse_wrong_pages(there.options, out);
  std::string differences = differences_between(there, asked);
  const bool options_differ = there.options != asked.options || there.fingerprint != asked.fingerprint;
  if (there.source_digest != asked.source_digest) {
    const std::string changed = changed_inputs ? changed_inputs() : std::string();
    if (!changed.empty())
      differences += changed;
    else if (there.inputs == asked.inputs)
      differences += "\n  the input files, their sizes or their labels or columns are not the same as before";
  }
  if (!differences.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} holds a conversion with other {}:{}\n{}", quoted(out),
                            options_differ ? "options or inputs" : "inputs", differences,
                            options_differ ? kAdviseForOptions : kAdviseForInputs));
}

std::string serialize_receipt(const Receipt& receipt, const PlanRecord& plan, std::uint64_t shard) {
  Json rejects = Json::array();
  for (const Reject& reject : receipt.rejects)
    rejects.push_back({{"key", reject.key}, {"reason", reject.reason}});
  Json json{{"version", kVersion},
            {"file", receipt.shard.file},
            {"samples", receipt.shard.samples},
            {"size_bytes", receipt.shard.size_bytes},
            {"head_digest", to_hex(receipt.shard.head_digest)},
            {"rejects", std::move(rejects)},
            {"inputs", receipt.inputs}};
  for (const LargestSample& of : receipt.shard.largest)
    json["largest"].push_back({of.height, of.width, of.sample_bytes, of.frame_bytes});
  for (std::size_t i = 0; i < image::kWarnings; ++i)
    if (receipt.warnings.images[i] > 0)
      json["warnings"][std::string(to_string(static_cast<image::Warning>(i)))] = receipt.warnings.images[i];
  for (std::size_t i = 0; i < kJpegUses.size(); ++i)
    if (receipt.jpeg.images[i] > 0) json["jpeg"][std::string(kJpegUses[i])] = receipt.jpeg.images[i];
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.rfind('\n'));  // without the closing brace, which is part of the seal
  text += seal(text, plan, shard);
  return text;
}

Receipt parse_receipt(const std::string& json, const PlanRecord& plan, std::uint64_t shard) {
  const std::size_t seal_bytes = seal({}, plan, shard).size();
  const std::string_view body =
      std::string_view(json).substr(0, json.size() - std::min(json.size(), seal_bytes));
  if (!json.ends_with(seal(body, plan, shard)))
    throw Error(ErrorCode::corrupt,
                fmt::format("the receipt of shard {} is damaged, or belongs to another conversion", shard));
  return parse_json(json, "a shard's receipt", [](const Json& j) {
    Receipt receipt;
    j.at("file").get_to(receipt.shard.file);
    j.at("samples").get_to(receipt.shard.samples);
    j.at("size_bytes").get_to(receipt.shard.size_bytes);
    const auto digest = from_hex(j.at("head_digest").get_ref<const std::string&>());
    if (!digest) throw Error(ErrorCode::corrupt, "a shard's receipt has no digest");
    receipt.shard.head_digest = *digest;
    for (const Json& of : j.value("largest", Json::array()))
      receipt.shard.largest.push_back({of.at(0).get<std::uint32_t>(), of.at(1).get<std::uint32_t>(),
                                       of.at(2).get<std::uint64_t>(), of.at(3).get<std::uint64_t>()});
    const Json warnings = j.value("warnings", Json::object());
    for (std::size_t i = 0; i < image::kWarnings; ++i)
      receipt.warnings.images[i] =
          warnings.value(std::string(to_string(static_cast<image::Warning>(i))), std::uint64_t{0});
    const Json jpeg = j.value("jpeg", Json::object());
    for (std::size_t i = 0; i < kJpegUses.size(); ++i)
      receipt.jpeg.images[i] = jpeg.value(std::string(kJpegUses[i]), std::uint64_t{0});
    for (const Json& reject : j.at("rejects"))
      receipt.rejects.push_back(
          {reject.at("key").get<std::string>(), reject.at("reason").get<std::string>()});
    j.at("inputs").get_to(receipt.inputs);
    return receipt;
  });
}

std::string shard_name(std::uint64_t shard) { return fmt::format("shard-{:05}.safetensors", shard); }

fs::path receipt_path(const fs::path& out, std::uint64_t shard) {
  return out / fmt::format("{}{:05}{}", kReceiptPrefix, shard, kReceiptSuffix);
}

std::optional<std::uint64_t> shard_number(std::string_view name) {
  constexpr std::string_view kPrefix = "shard-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::string_view rest = name.substr(kPrefix.size());
  const auto number = take_number<std::uint64_t>(rest);
  return number && shard_name(*number) == name ? number : std::nullopt;
}

std::vector<std::uint64_t> receipts_in(const fs::path& out) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names_in(out)) {
    if (!is_receipt(name)) continue;
    std::string_view rest = std::string_view(name).substr(kReceiptPrefix.size());
    const auto number = take_number<std::uint64_t>(rest);
    if (number && receipt_path(out, *number).filename() == name) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::optional<Receipt> finished_shard(const fs::path& out, const PlanRecord& plan, std::uint64_t shard) {
  Receipt receipt;
  try {
    receipt = parse_receipt(read_text(receipt_path(out, shard), max_receipt_bytes(plan)), plan, shard);
  } catch (const Error& error) {
    // If the receipt is damaged or missing, the shard is converted again. A failed read is an error.
    if (error.code() == ErrorCode::io) throw;
    return std::nullopt;
  }
  if (receipt.shard.file != shard_name(shard)) return std::nullopt;
  for (const Reject& reject : receipt.rejects)
    if (plan.max_pixels != 0 && pixel_bound_of(reject.reason).value_or(plan.max_pixels) < plan.max_pixels)
      return std::nullopt;
  if (receipt.shard.samples != 0) {
    std::error_code error;
    const auto size = fs::file_size(out / receipt.shard.file, error);
    if (error || size != receipt.shard.size_bytes) return std::nullopt;
  }
  return receipt;
}

bool is_sample_log(std::string_view name) noexcept { return name.starts_with(kSampleLog); }

bool is_ours(const std::string& name) {
  return name == kDatasetFile || name == kPlanFile || name == kRejectsFile || name == kInputsFile ||
         is_receipt(name) || is_shard(name) || is_sample_log(name);
}

void remove_journal(const fs::path& out) {
  remove_file(out / kPlanFile);
  remove_matching(out, is_receipt);
  remove_matching(out, is_sample_log);
  remove_stale_temporaries(out);
}

void remove_dataset_files(const fs::path& out) {
  remove_file(out / kDatasetFile);
  remove_matching(out, is_ours);
  remove_stale_temporaries(out);
}

}  // namespace shard::convert
