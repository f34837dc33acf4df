// How descriptions of samples are compared.
#include <gtest/gtest.h>

#include "shard/dataset.hpp"
#include "support/format/dataset_text.hpp"

namespace shard {
namespace {

using namespace shard::testing;

TEST(DatasetSpec, DifferencesNameBothValues) {
  const DatasetSpec spec = example();
  const auto differs = [&](auto change) {
    DatasetSpec other = spec;
    change(other);
    const auto found = difference(other, spec);
    return found ? found->what + ": " + found->found + " | " + found->stated : std::string("equal");
  };
  EXPECT_EQ(differs([](DatasetSpec&) {}), "equal");
  EXPECT_EQ(differs([](DatasetSpec& s) { std::swap(s.columns[0], s.columns[1]); }), "equal");
  EXPECT_EQ(differs([](DatasetSpec& s) { s.spec.width = 6; }),
            "sample: f16 nhwc [4, 6, 3] | f16 nhwc [4, 5, 3]");
  EXPECT_EQ(differs([](DatasetSpec& s) { s.codec = {}; }), "codec: none | zstd:7");
  EXPECT_EQ(differs([](DatasetSpec& s) { s.normalization.std[1] = 1; }),
            "normalization: mean [-1, 0.456, 1e-07], std [0.229, 1, 0.225] | mean [-1, 0.456, 1e-07], std "
            "[0.229, 2, 0.225]");
  EXPECT_EQ(differs([](DatasetSpec& s) { s.provenance.clear(); }),
            "provenance: filter not recorded, resize not recorded | filter \"bilinear\", resize \"4\"");
  EXPECT_EQ(differs([](DatasetSpec& s) { s.provenance["resize"] = "5"; }),
            "provenance: resize \"5\" | resize \"4\"");
  EXPECT_EQ(differs([](DatasetSpec& s) { s.columns.pop_back(); }),
            "columns: \"labels\" i64 [] | \"box\" f32 [2, 2], \"labels\" i64 []");
  EXPECT_EQ(differs([](DatasetSpec& s) { s.fingerprint = "f0"; }), "fingerprint: f0 | 0123456789abcdef");
}

}  // namespace
}  // namespace shard
