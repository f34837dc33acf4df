// The table of the kinds of sources: what a new row needs beside it.
#include "convert/sources/source_kind.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

// How the rows of the first table begin: "| a list: `@FILE`, `-` | ...".
std::set<std::string> documented_kinds() {
  std::ifstream in(std::filesystem::path(SHARD_TEST_DATA).parent_path() / "docs" / "sources.md");
  std::set<std::string> kinds;
  for (std::string line; std::getline(in, line) && !line.starts_with("## ");) {
    if (!line.starts_with("| ")) continue;
    std::string kind = line.substr(2, line.find_first_of(":|", 2) - 2);
    while (kind.ends_with(' ')) kind.pop_back();
    kinds.insert(kind);
  }
  return kinds;
}

TEST(SourceKinds, EachHasARowInTheDocuments) {
  const std::set<std::string> documented = documented_kinds();
  for (const SourceKind& kind : source_kinds())
    EXPECT_TRUE(documented.contains(kind.name))
        << "the first table of docs/sources.md has no row that begins with \"" << kind.name << "\"";
}

TEST(SourceKinds, EachMatchesItsOwnNames) {
  const testing::TempDir dir;
  const std::multimap<std::string, std::string> examples{
      {"a list", "-"},
      {"a list", "@photos.txt"},
      {"a tar archive", "a.tar"},
      {"a tar archive", "s3://bucket/train-{000..146}.tar"},
      {"an array", "x.npy"},
      {"an array", "train-images-idx3-ubyte"},
      {"a folder", dir.path()},
      {"a folder", "not there"},
  };
  for (const auto& [name, images] : examples) EXPECT_EQ(source_kind(images).name, name) << images;
  std::set<std::string> names;
  for (const SourceKind& kind : source_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " is in two rows";
    EXPECT_GE(examples.count(kind.name), 2U) << kind.name << " has too few examples in this test";
    EXPECT_FALSE(std::string(kind.about_servers).empty()) << kind.name;
    EXPECT_TRUE(kind.has_archives || !kind.has_side_members) << kind.name << " has members but no archives";
  }
}

TEST(SourceKinds, MessagesNameThoseThatFit) {
  EXPECT_SHARD_ERROR(static_cast<void>(source_kind("s3://bucket/x.npy")), ErrorCode::invalid_argument,
                     "\"s3://bucket/x.npy\": arrays are read from files only, and folders on servers are not "
                     "listed: give @FILE with an address per line, or tar archives");
  EXPECT_EQ(names_of_kinds([](const SourceKind& kind) { return kind.has_side_members; }), "a tar archive");
  EXPECT_EQ(names_of_kinds([](const SourceKind& kind) { return kind.has_archives; }),
            "a tar archive or an array");
  EXPECT_EQ(names_of_kinds([](const SourceKind& kind) { return !kind.on_servers || kind.has_archives; }),
            "a tar archive, an array or a folder");
}

}  // namespace
}  // namespace shard::convert
