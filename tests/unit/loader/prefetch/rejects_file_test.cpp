// The file that lists skipped images: each once, whoever skips it, and never half a line.
#include "prefetch/rejects_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

std::string rejects_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(RejectsFile, HasEachImageOnce) {
  const TempDir folder;
  const fs::path path = folder.path() / "skipped.csv";
  RejectsFile one(path);
  EXPECT_EQ(rejects_text(path), "path,reason\n");
  one.add("a/1.jpg", "JPEG: cut, and damaged");
  RejectsFile other(path);  // of another rank, or of a run before
  other.add("a/1.jpg", "another reason");
  other.add("b\"2,\n.jpg", "no pixels");
  one.add("b\"2,\n.jpg", "no pixels");
  one.add("c/3.jpg", "line\nfeed");
  EXPECT_EQ(rejects_text(path),
            "path,reason\na/1.jpg,\"JPEG: cut, and damaged\"\n\"b\"\"2,\n.jpg\",no "
            "pixels\nc/3.jpg,line\\x0afeed\n");
}

TEST(RejectsFile, TakesNothingWithoutAPathAndRefusesOneThatCannotBe) {
  RejectsFile none{fs::path()};
  none.add("a", "b");
  const TempDir folder;
  EXPECT_SHARD_ERROR(RejectsFile(folder.path() / "no" / "x.csv"), ErrorCode::not_found, "cannot open");
}

TEST(RejectsFile, IsTheOneThatWasNamedAlsoAfterTheFolderChanged) {
  const TempDir folder;
  const fs::path before = fs::current_path();
  fs::create_directories(folder.path() / "a");
  fs::create_directories(folder.path() / "b");
  fs::current_path(folder.path() / "a");
  RejectsFile file("x.csv");
  fs::current_path(folder.path() / "b");
  file.add("1.jpg", "why");
  fs::current_path(before);
  EXPECT_EQ(rejects_text(folder.path() / "a" / "x.csv"), "path,reason\n1.jpg,why\n");
  EXPECT_FALSE(fs::exists(folder.path() / "b" / "x.csv"));
}

// A limit on the size of files stands for a full disk.
TEST(RejectsFile, HasNoHalfLineWhereADiskIsFull) {
  const TempDir folder;
  const fs::path path = folder.path() / "skipped.csv";
  RejectsFile file(path);
  file.add("a/1.jpg", "why");
  const std::string whole = rejects_text(path);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit less = before;
  less.rlim_cur = whole.size() + 5;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  EXPECT_SHARD_ERROR(file.add("a/2.jpg", "why"), ErrorCode::io, "File too large");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(rejects_text(path), whole);
  file.add("a/2.jpg", "why");
  EXPECT_EQ(rejects_text(path), whole + "a/2.jpg,why\n");
}

TEST(RejectsFile, IsSharedByManyWriters) {
  const TempDir folder;
  const fs::path path = folder.path() / "skipped.csv";
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 8; ++writer)
    writers.emplace_back([&path, writer] {
      RejectsFile file(path);
      for (int i = 0; i < 50; ++i) file.add(std::to_string((i + 7 * writer) % 50), "why");
    });
  for (std::thread& writer : writers) writer.join();
  const std::string text = rejects_text(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 51);
  for (int i = 0; i < 50; ++i) EXPECT_NE(text.find("\n" + std::to_string(i) + ",why\n"), std::string::npos);
}

}  // namespace
}  // namespace shard
