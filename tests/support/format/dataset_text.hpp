// A data set's description, and dataset.json as text for tests that change it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/digest/checksum.hpp"
#include "shard/dataset.hpp"

namespace shard::testing {

// `text` with `from` replaced by `to`, and a digest that is right again.
inline std::string edited(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::string last = "  \"digest\": \"xxh3:";
  text.resize(text.rfind(last));
  return text + last + to_hex(xxh3(text)) + "\"\n}\n";
}

inline DatasetInfo example() {
  DatasetInfo info;
  info.spec = {DType::f16, Layout::nhwc, 3, 4, 5};
  info.normalization = {{-1.0F, 0.456F, 1e-7F}, {0.229F, 2.0F, 0.225F}};
  info.provenance = {{"filter", "bilinear"}, {"resize", "4"}};
  info.codec = {CodecSpec::Kind::zstd, 7};
  info.fingerprint = "0123456789abcdef";
  info.columns = {{"labels", DType::i64, {}}, {"box", DType::f32, {2, 2}}};
  info.classes = {"cat", "caf\xc3\xa9", "quote\"", "\\xff"};
  info.source_digest = "fedcba9876543210";
  info.inputs = 8;
  info.rejects = 1;
  info.samples_per_shard = 4;
  info.shards = {{"s-0.safetensors", 4, 8192, 1}, {"s-1.safetensors", 3, 8000, ~std::uint64_t{0}}};
  return info;
}

inline DatasetInfo example_of_targets() {
  DatasetInfo info = example();
  info.columns.push_back({"boxes", DType::f32, {4}, ColumnKind::ragged});
  info.columns.push_back({"eyes", DType::f32, {2, 3}});
  info.targets = {{"boxes", TargetKind::boxes}, {"eyes", TargetKind::keypoints}};
  return info;
}

}  // namespace shard::testing
