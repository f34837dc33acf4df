// The files that a conversion keeps in OUT until dataset.json is there: conversion.json (what is being made)
// and one receipt a finished shard (what came of it). All are published atomically; all are removed after
// dataset.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convert/scan.hpp"
#include "shard/dataset.hpp"

namespace shard::convert {

// conversion.json: written before the first shard. A later run must be the same to go on.
struct PlanRecord {
  std::string fingerprint;
  std::string source_digest;
  std::uint64_t inputs = 0;  // listed, those without a label included
  std::uint64_t samples_per_shard = 0;
  Pipeline options;          // for people: what differs is named
  bool overwriting = false;  // the former content of the folder is being removed
};
std::string serialize_plan(const PlanRecord& plan);
PlanRecord parse_plan(const std::string& json);  // throws corrupt
// Throws invalid_argument naming what differs between the conversion in the folder and the one asked for.
void require_same_plan(const PlanRecord& there, const PlanRecord& asked, const std::filesystem::path& out);

// .shard-00012.done.json: written after the shard itself.
struct Receipt {
  ShardSummary shard;  // samples 0: every input of the shard was rejected, there is no file
  std::vector<Reject> rejects;
};
std::string serialize_receipt(const Receipt& receipt);
Receipt parse_receipt(const std::string& json);  // throws corrupt

std::string shard_name(std::uint64_t shard);  // "shard-00012.safetensors"
std::filesystem::path receipt_path(const std::filesystem::path& out, std::uint64_t shard);

// The receipt of a shard that is done: the receipt is there and the file too, with the stated size.
std::optional<Receipt> finished_shard(const std::filesystem::path& out, std::uint64_t shard);

void remove_file(const std::filesystem::path& path);  // which may be absent; errors: io

// Removes receipts, conversion.json and temporaries of writers that are gone. Errors: io.
void remove_progress_files(const std::filesystem::path& out);
// Removes all that a conversion writes. conversion.json must say `overwriting`, so that a kill in between is
// seen. Errors: io.
void remove_dataset_files(const std::filesystem::path& out);

}  // namespace shard::convert
