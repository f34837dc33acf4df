// The subcommands: options in, exit code out. All print on standard output and throw shard::Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shard/image/decode.hpp"

namespace shard::ctl {

inline constexpr int kExitOk = 0;
// Damage was found in what was read; compare: or differences; duplicates: or duplicates; doctor: or
// something of the machine that should be looked at.
inline constexpr int kExitDifferent = 1;
inline constexpr int kExitFailure = 2;  // usage, unreadable, incomplete

struct InfoOptions {
  std::string path;
  bool json = false;
};
int info(const InfoOptions& options);

struct LsOptions {
  std::string path;
  bool json = false;
  bool csv = false;
  bool columns = false;  // also those beside the labels
};
int ls(const LsOptions& options);

struct VerifyOptions {
  std::string path;
  unsigned jobs = 0;  // 0: one per core
  bool quiet = false;
  bool json = false;
};
int verify(const VerifyOptions& options);

struct ShowOptions {
  std::string path;
  // Indices and half-open ranges: "7", "0..16".
  std::vector<std::string> samples;
  std::string output;             // a file; empty: the terminal
  std::string graphics = "auto";  // auto, kitty, sixel, blocks
  std::uint64_t count = 0;        // random samples; 0: `samples`, or 12
  std::uint64_t seed = 0;
  std::uint32_t columns = 0;  // 0: about square; with `augment`, a row for each sample
  std::string augment;        // a policy (augmented.hpp): what training gets beside each sample
  std::uint32_t views = 4;    // of `augment`, epochs from 0 on
  bool targets = true;        // draw masks, boxes, keypoints and further images
  bool verify = true;         // compare what is read with its digests
};
int show(const ShowOptions& options);

struct CompareOptions {
  std::string path;
  std::string images;
  std::string array_layout;  // nhwc, nchw, hwc, chw, hw; empty: as the shape says
  // Folders of further images, as shardify takes them: "DIR", and "NAME=DIR" for each.
  // Only names and folders count.
  std::string mask;
  std::vector<std::string> pairs;
  std::uint64_t samples = 0;  // 0: all, else as many, evenly spread
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  unsigned jobs = 0;
  bool quiet = false;
  bool json = false;
};
// `images` may be another data set: then samples, labels and columns are compared (compare_sets.cpp).
int compare(const CompareOptions& options);
int compare_sets(const CompareOptions& options);

struct DuplicatesOptions {
  std::vector<std::string> paths;
  // Bits by which perceptual hashes may differ; none: only equal samples.
  std::optional<unsigned> near;
  bool across = false;  // only groups of more than one data set
  bool verify = true;   // compare the bytes of samples with equal digests
  std::string csv;      // a file to write, or empty
  unsigned jobs = 0;
  bool quiet = false;
  bool json = false;
};
int duplicates(const DuplicatesOptions& options);

struct ExportOptions {
  std::string path;
  std::string format = "npy";  // npy, tar, parquet
  std::string folder;          // of tar: the file
  bool verify = true;
  bool quiet = false;
};
int export_npy(const ExportOptions& options);
int export_tar(const ExportOptions& options);
int export_files(const ExportOptions& options);

struct PageOptions {
  std::string path;
  std::string folder;
  std::uint64_t samples = 12;  // of each class
  std::uint64_t seed = 0;
  bool duplicates = false;
  std::string augment;     // a policy (augmented.hpp): a row of what training gets of some samples
  bool overwrite = false;  // replace a page
  bool targets = true;     // draw masks, boxes and keypoints over the pictures
  unsigned jobs = 0;
  bool quiet = false;
};
int page(const PageOptions& options);

struct RepackOptions {
  std::string path;
  std::string folder;
  std::string codec;
  unsigned jobs = 0;
  bool quiet = false;
};
int repack(const RepackOptions& options);

struct SplitOptions {
  std::string path;
  std::vector<double> fractions;
  std::vector<std::string> names;  // empty: train,val or train,val,test
  std::uint64_t seed = 0;
  bool quiet = false;
  bool json = false;
};
int split(const SplitOptions& options);

struct JoinCommandOptions {
  std::string folder;
  std::vector<std::string> paths;
  bool copy = false;  // no hard links
  bool quiet = false;
};
int join(const JoinCommandOptions& options);

struct CacheOptions {
  std::string folder;
  bool verify = false;
  bool remove = false;
  bool remove_damaged = false;  // with verify
  bool json = false;
};
int cache(const CacheOptions& options);

struct CopyOptions {
  std::string from;
  std::string to;
  bool quiet = false;
  bool json = false;
};
int copy(const CopyOptions& options);

struct DoctorOptions {
  std::string folder = ".";  // whose disk is looked at
  bool json = false;
};
int doctor(const DoctorOptions& options);

struct StatsOptions {
  std::string path;  // a data set, a shard, or images as shardify takes them
  bool verify = true;
  std::uint64_t max_pixels = image::DecodeOptions{}.max_pixels;
  unsigned jobs = 0;
  bool quiet = false;
  bool json = false;
};
int stats(const StatsOptions& options);

}  // namespace shard::ctl
