// The files that a conversion keeps in OUT until dataset.json is there: conversion.json (what is being made)
// and one receipt per finished shard (what came of it). All are published atomically; all are removed after
// dataset.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/scan.hpp"
#include "shard/dataset.hpp"
#include "shard/image/warnings.hpp"

namespace shard::convert {

// What becomes of the conversion when it is finished.
enum class Stage : std::uint8_t {
  converting,  // the folder is OUT
  staged,      // the folder is to take the place of OUT, which holds another data set (replace.hpp)
  replacing,   // in OUT: what is staged in it is complete and is being moved up, file by file
};

// conversion.json: written before the first shard. A later run must be the same to go on.
struct PlanRecord {
  std::string fingerprint;
  std::string source_digest;
  std::uint64_t inputs = 0;  // listed, those without a label included
  std::uint64_t samples_per_shard = 0;
  Provenance options;  // for people: what differs is named
  Stage stage = Stage::converting;
  // Not recorded: source_digest as earlier versions made it, without the sizes of the inputs.
  std::string names_digest;
};
std::string serialize_plan(const PlanRecord& plan);
PlanRecord parse_plan(const std::string& json);  // throws corrupt, unsupported
// conversion.json in `out`. Errors: those of parse_plan, naming the file and what to do; not_found, io.
PlanRecord read_plan(const std::filesystem::path& out);
// Throws invalid_argument naming what differs between the conversion in the folder and the one asked for. The
// stage does not count. `changed_inputs` says more about inputs that are not the same: lines, or nothing.
void require_same_plan(const PlanRecord& there, const PlanRecord& asked, const std::filesystem::path& out,
                       const std::function<std::string()>& changed_inputs = {});

// .shard-00012.done.json: written after the shard itself.
struct Receipt {
  ShardSummary shard;  // samples 0: every input of the shard was rejected, there is no file
  std::vector<Reject> rejects;
  image::WarningCounts warnings;  // of the images stored
  std::string inputs;             // rows of inputs.csv for the inputs of this shard
};
// Belongs to one shard of one conversion: it is of no use in another.
std::string serialize_receipt(const Receipt& receipt, const PlanRecord& plan, std::uint64_t shard);
// Throws corrupt for anything but what serialize_receipt returns for this plan and shard.
Receipt parse_receipt(const std::string& json, const PlanRecord& plan, std::uint64_t shard);

std::string shard_name(std::uint64_t shard);                       // "shard-00012.safetensors"
std::optional<std::uint64_t> shard_number(std::string_view name);  // the inverse
std::filesystem::path receipt_path(const std::filesystem::path& out, std::uint64_t shard);
// The numbers of the shards for which `out` holds receipts, ascending. Errors: io.
std::vector<std::uint64_t> receipts_in(const std::filesystem::path& out);

// The receipt of a shard that is done: the receipt is there and the file too, with the stated size. A receipt
// that is damaged, or of another conversion, counts as none. Errors: io.
std::optional<Receipt> finished_shard(const std::filesystem::path& out, const PlanRecord& plan,
                                      std::uint64_t shard);

void remove_file(const std::filesystem::path& path);  // which may be absent; errors: io

// Whether a file of that name is one that conversions write.
bool is_ours(const std::string& name);
// Removes receipts, conversion.json and temporaries of writers that are gone. Errors: io.
void remove_progress_files(const std::filesystem::path& out);
// Removes all that a conversion writes, dataset.json first. Other files stay. Errors: io.
void remove_dataset_files(const std::filesystem::path& out);

}  // namespace shard::convert
