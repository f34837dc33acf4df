// A folder appears whole, replaces only what it may, and leaves nothing behind.
#include "shardctl/page/new_folder.hpp"

#include <fstream>
#include <set>

#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;
using testing::names_in;

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

bool has_mark(const fs::path& folder) { return fs::exists(folder / "mark"); }

class NewFolderTest : public ::testing::Test {
 protected:
  fs::path target() const { return temp_.path() / "page"; }
  testing::TempDir temp_;
};

TEST_F(NewFolderTest, AppearsWithItsFilesWhenItIsPublished) {
  NewFolder folder(target(), nullptr);
  write_new_file(folder.path() / "a", {});
  EXPECT_FALSE(fs::exists(target()));
  folder.publish();
  EXPECT_EQ(names_in(target()), std::set<std::string>{"a"});
  EXPECT_EQ(names_in(temp_.path()), std::set<std::string>{"page"});
}

TEST_F(NewFolderTest, LeavesNothingUnlessItIsPublished) {
  { NewFolder folder(target() / "", nullptr); }
  EXPECT_TRUE(names_in(temp_.path()).empty());
}

TEST_F(NewFolderTest, TakesThePlaceOfAnEmptyFolder) {
  fs::create_directory(target());
  NewFolder folder(target() / "", nullptr);
  write_new_file(folder.path() / "a", {});
  folder.publish();
  EXPECT_EQ(names_in(target()), std::set<std::string>{"a"});
}

TEST_F(NewFolderTest, ReplacesOnlyWhatItMay) {
  fs::create_directory(target());
  write_text(target() / "mark", "");
  EXPECT_SHARD_ERROR(NewFolder(target(), nullptr), ErrorCode::invalid_argument, "--overwrite");
  {
    NewFolder folder(target(), has_mark);
    write_new_file(folder.path() / "new", {});
    EXPECT_EQ(names_in(target()), std::set<std::string>{"mark"});
    folder.publish();
  }
  EXPECT_EQ(names_in(target()), std::set<std::string>{"new"});
  EXPECT_SHARD_ERROR(NewFolder(target(), has_mark), ErrorCode::invalid_argument, "give a new folder");
  EXPECT_EQ(names_in(temp_.path()), std::set<std::string>{"page"});
}

TEST_F(NewFolderTest, RefusesAFile) {
  write_text(target(), "text");
  EXPECT_SHARD_ERROR(NewFolder(target(), has_mark), ErrorCode::invalid_argument, "is a file");
}

TEST_F(NewFolderTest, DoesNotReplaceWhatAppearedMeanwhile) {
  NewFolder folder(target(), nullptr);
  fs::create_directory(target());
  write_text(target() / "theirs", "");
  EXPECT_SHARD_ERROR(folder.publish(), ErrorCode::invalid_argument, "meanwhile");
  EXPECT_EQ(names_in(target()), std::set<std::string>{"theirs"});
}

TEST_F(NewFolderTest, RemovesWhatAKilledProcessLeftAndNothingElse) {
  fs::create_directories(temp_.path() / ".shardctl-page-0123456789abcdef" / "pictures");
  const NewFolder running(temp_.path() / "other", nullptr);
  const NewFolder folder(target(), nullptr);
  EXPECT_EQ(names_in(temp_.path()),
            (std::set<std::string>{running.path().filename().string(), folder.path().filename().string()}));
}

}  // namespace
}  // namespace shard::ctl
