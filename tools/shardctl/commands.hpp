// The subcommands: options in, exit code out. All print on standard output and throw shard::Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shard/image/decode.hpp"

namespace shard::ctl {

inline constexpr int kExitOk = 0;
inline constexpr int kExitDifferent = 1;  // verify: corruption found; compare: differences
inline constexpr int kExitFailure = 2;    // usage, unreadable, incomplete

struct InfoOptions {
  std::string path;
  bool json = false;
};
int info(const InfoOptions& options);

struct LsOptions {
  std::string path;
  bool json = false;
  bool csv = false;
};
int ls(const LsOptions& options);

struct VerifyOptions {
  std::string path;
  unsigned jobs = 0;  // 0: one a core
  bool quiet = false;
  bool json = false;
};
int verify(const VerifyOptions& options);

struct ShowOptions {
  std::string path;
  std::vector<std::uint64_t> indices;
  std::string output;
  std::uint64_t count = 0;  // random samples; 0: `indices`
  std::uint64_t seed = 0;
  std::uint32_t columns = 0;  // 0: about square
};
int show(const ShowOptions& options);

struct CompareOptions {
  std::string path;
  std::string images;
  std::uint64_t samples = 0;  // 0: all, else as many, evenly spread
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  unsigned jobs = 0;
  bool quiet = false;
  bool json = false;
};
int compare(const CompareOptions& options);

struct ExportOptions {
  std::string path;
  std::string folder;
  bool quiet = false;
};
int export_npy(const ExportOptions& options);

struct RepackOptions {
  std::string path;
  std::string folder;
  std::string codec;
  unsigned jobs = 0;
  bool quiet = false;
};
int repack(const RepackOptions& options);

struct StatsOptions {
  std::string path;  // a data set, a shard, or images as shardify takes them
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  unsigned jobs = 0;
  bool quiet = false;
  bool json = false;
};
int stats(const StatsOptions& options);

}  // namespace shard::ctl
