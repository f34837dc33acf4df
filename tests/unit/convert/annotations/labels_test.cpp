// Labels by folders and by tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "shard/error.hpp"
#include "support/convert/input_folder.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> whole_labels(const LabelTable& table) {
  std::vector<std::int64_t> labels(table.rows.size() / 8);
  std::memcpy(labels.data(), table.rows.data(), table.rows.size());
  return labels;
}

using Labels = InputFolder;

TEST_F(Labels, GivesClassIdsInTheOrderOfFolderNamesAndNoneToEmptyFolders) {
  write(images_ / "cat/1");
  write(images_ / "ant/1");
  fs::create_directories(images_ / "bee/deep");
  InputList list = scan({.images = images_.string()});
  const LabelTable table = labels_from_folders(list);
  EXPECT_THAT(table.classes, ElementsAre("ant", "cat"));
  EXPECT_THAT(whole_labels(table), ElementsAre(0, 1));
  EXPECT_THAT(list.empty_folders, ElementsAre("bee"));
}

TEST_F(Labels, KeepsTwoClassesWhoseNamesDifferOnlyByNormalisation) {
  write(images_ / "\xc3\xa9/1");   // U+00E9
  write(images_ / "e\xcc\x81/1");  // e, U+0301
  InputList list = scan({.images = images_.string()});
  EXPECT_THAT(labels_from_folders(list).classes, ElementsAre("e\xcc\x81", "\xc3\xa9"));
}

TEST_F(Labels, LabelsAFlatFolderZero) {
  write(images_ / "2");
  write(images_ / "1");
  InputList list = scan({.images = images_.string()});
  const LabelTable table = labels_from_folders(list);
  EXPECT_TRUE(table.classes.empty());
  EXPECT_THAT(whole_labels(table), ElementsAre(0, 0));
}

TEST_F(Labels, RejectsAFileBesideClassFoldersAndSaysWhy) {
  write(images_ / "cat/1");
  write(images_ / "stray");
  InputList list = scan({.images = images_.string()});
  labels_from_folders(list);
  EXPECT_THAT(paths(list), ElementsAre("cat/1"));
  ASSERT_EQ(list.rejects.size(), 1U);
  EXPECT_EQ(list.rejects[0].key, "stray");
  EXPECT_THAT(list.rejects[0].reason, HasSubstr("no class"));
}

TEST_F(Labels, ReadsWholeNumbersNamesAndValuesFromCsv) {
  for (const char* name : {"1", "2", "3,\"x\""}) write(images_ / name);
  auto labels = [&](const std::string& csv) {
    write(dir_.path() / "l.csv", csv);
    InputList list = scan({.images = images_.string()});
    return labels_from_csv(list, dir_.path() / "l.csv");
  };
  const LabelTable whole = labels("path,label\r\n2,-7\r\n1,5\r\n\"3,\"\"x\"\"\",9\r\n");
  EXPECT_THAT(whole_labels(whole), ElementsAre(5, -7, 9));
  EXPECT_TRUE(whole.classes.empty());
  const LabelTable names = labels("1,dog\n2,cat\n\"3,\"\"x\"\"\",dog");
  EXPECT_THAT(names.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(whole_labels(names), ElementsAre(1, 0, 1));
  const LabelTable values = labels("1,0.5,1\n2,-2,3e2\n\"3,\"\"x\"\"\",0,0\n");
  EXPECT_EQ(values.column.dtype, DType::f32);
  EXPECT_THAT(values.column.row_shape, ElementsAre(2U));
  float row[2];
  std::memcpy(row, values.rows.data() + 8, 8);
  EXPECT_THAT(row, ElementsAre(-2.0F, 300.0F));
}

TEST_F(Labels, NamesTheLineOfABadRowInCsv) {
  for (const char* name : {"1", "2"}) write(images_ / name);
  auto refuse = [&](const std::string& csv, const std::string& piece) {
    write(dir_.path() / "l.csv", csv);
    InputList list = scan({.images = images_.string()});
    EXPECT_SHARD_ERROR(labels_from_csv(list, dir_.path() / "l.csv"), ErrorCode::invalid_argument, piece);
  };
  refuse("1,0\nnone,1\n", "l.csv\": line 2: no such image: \"none\"");
  refuse("1,0\n1,1\n", "l.csv\": line 2: \"1\" is labelled twice");
  refuse("1,0\n2\n", "l.csv\": line 2: 1 fields");
  refuse("1,0.5,1\n2,nan,1\n", "\"nan\" is not a finite number");
  refuse("1,\"0\n", "has no closing quote");
  refuse("", "has no rows");
}

TEST_F(Labels, RejectsImagesThatTheTableDoesNotName) {
  for (const char* name : {"1", "2"}) write(images_ / name);
  write(dir_.path() / "l.csv", "2,1\n");
  InputList list = scan({.images = images_.string()});
  const LabelTable table = labels_from_csv(list, dir_.path() / "l.csv");
  EXPECT_THAT(paths(list), ElementsAre("2"));
  EXPECT_THAT(whole_labels(table), ElementsAre(1));
  ASSERT_EQ(list.rejects.size(), 1U);
  EXPECT_EQ(list.rejects[0], (Reject{"1", "has no label in l.csv"}));
}

}  // namespace
}  // namespace shard::convert
