// The files that a conversion keeps in OUT until it is complete: conversion.json (the plan) and one receipt
// per finished shard (its result). All are published atomically. They are removed after dataset.json was
// published.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/sources/scan.hpp"
#include "shard/convert/jpeg_counts.hpp"
#include "shard/dataset.hpp"
#include "shard/image/warnings.hpp"

namespace shard::convert {

// What the folder of conversion.json is.
enum class Stage : std::uint8_t {
  converting,  // OUT, into which the conversion writes
  staged,      // a folder that will replace OUT, which holds another data set (replace.hpp)
  replacing,   // OUT, into which the complete staged data set is being moved, file by file
};

// conversion.json: published before the first shard. A later run must have the same plan to continue.
struct PlanRecord {
  std::string fingerprint;
  std::string source_digest;
  std::uint64_t inputs = 0;  // all listed inputs, including those without a label
  std::uint64_t samples_per_shard = 0;
  Provenance options;  // as text, so that a message can name what differs
  Stage stage = Stage::converting;
  // Not recorded: source_digest as earlier versions made it, without the sizes of the inputs.
  std::string names_digest = {};
  // Not recorded: the bound on pixels of this run; 0: none is known.
  // A receipt with an image that only a lower bound refused does not count.
  std::uint64_t max_pixels = 0;
  // Of the inputs when the conversion began: Plan::times. Not compared; empty where nothing is known.
  std::string times = {};
  // Of a Writer: its columns (writer_journal.hpp). Not compared; empty for a conversion of files.
  std::string writer = {};
};
std::string serialize_plan(const PlanRecord& plan);
PlanRecord parse_plan(const std::string& json);  // throws corrupt, unsupported
// conversion.json in `out`. Errors: those of parse_plan, naming the file and what to do; not_found, io.
PlanRecord read_plan(const std::filesystem::path& out);
// A line for each option that differs, and one if the numbers of inputs do, each after a line feed. Sources
// and stages are not compared. Empty: no difference.
std::string differences_between(const PlanRecord& there, const PlanRecord& asked);
// Throws invalid_argument if the conversion in the folder and the requested one differ, naming the
// differences. Stages are not compared. `changed_inputs` returns lines about inputs that changed, or an empty
// string.
void require_same_plan(const PlanRecord& there, const PlanRecord& asked, const std::filesystem::path& out,
                       const std::function<std::string()>& changed_inputs = {});

// .shard-00012.done.json: written after the shard itself.
struct Receipt {
  ShardSummary shard;  // samples 0: every input of the shard was rejected, and there is no file
  std::vector<Reject> rejects;
  image::WarningCounts warnings;  // of the images stored
  JpegCounts jpeg;                // likewise, with codec jpeg
  std::string inputs;             // rows of inputs.csv for the inputs of this shard
};
// The text is sealed with a digest over the plan and the shard, so it is valid for this shard of this
// conversion only.
std::string serialize_receipt(const Receipt& receipt, const PlanRecord& plan, std::uint64_t shard);
// Throws corrupt for anything but what serialize_receipt returns for this plan and shard.
Receipt parse_receipt(const std::string& json, const PlanRecord& plan, std::uint64_t shard);

std::string shard_name(std::uint64_t shard);                       // "shard-00012.safetensors"
std::optional<std::uint64_t> shard_number(std::string_view name);  // the inverse
std::filesystem::path receipt_path(const std::filesystem::path& out, std::uint64_t shard);
// The numbers of the shards for which `out` holds receipts, ascending. Errors: io.
std::vector<std::uint64_t> receipts_in(const std::filesystem::path& out);

// The receipt of a finished shard. Nothing if there is no receipt, if it is damaged or of another conversion,
// if it rejects an image because of a lower bound on pixels than plan.max_pixels, or if the shard's file is
// missing or has another size. Errors: io.
std::optional<Receipt> finished_shard(const std::filesystem::path& out, const PlanRecord& plan,
                                      std::uint64_t shard);

void remove_file(const std::filesystem::path& path);  // does nothing if there is no such file; errors: io

// Whether a log of samples that are not in a shard yet has a name like this (engine/sample_logs.hpp).
inline constexpr std::string_view kSampleLog = ".samples-";
bool is_sample_log(std::string_view name) noexcept;

// Whether conversions write files of this name.
bool is_ours(const std::string& name);
// Removes conversion.json, the receipts, logs of samples, and temporary files of processes that have ended.
// Errors: io.
void remove_journal(const std::filesystem::path& out);
// Removes all files that a conversion writes, dataset.json first. Other files stay. Errors: io.
void remove_dataset_files(const std::filesystem::path& out);

}  // namespace shard::convert
