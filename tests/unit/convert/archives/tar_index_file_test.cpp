// What is believed of an index that was kept, and what is not.
#include "convert/archives/tar_index_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file_io.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class TarIndexFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text(archive_, std::string(10'000, 'a'));
    write_text(dir_.path() / "other.tar", std::string(10'000, 'a'));
    std::this_thread::sleep_for(
        std::chrono::milliseconds(3'100));  // until its times are told from later ones
  }
  static TarIndexWriter some_index(const std::string& name = "1.jpg", std::size_t members = 1000) {
    TarListing listing;
    for (std::size_t i = 0; i < members; ++i) listing.members.push_back({name, 512, 7, ""});
    TarIndexWriter index;
    index.add(0, 10'000, listing);
    return index;
  }
  bool keep(const TarIndexWriter& index = some_index()) const {
    const UniqueFd fd = open_read(archive_);
    return TarIndexFile(folder_, archive_, fd.get()).write(index);
  }
  // The name of the first member. Empty: there is no index that is believed.
  std::string believed() const {
    const UniqueFd fd = open_read(archive_);
    std::optional<TarIndex> index = TarIndexFile(folder_, archive_, fd.get()).read();
    return index ? index->take(0, 10'000)->members.front().name : "";
  }
  fs::path kept() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder_)) found = entry.path();
    return found;
  }

  testing::TempDir dir_;
  fs::path archive_ = dir_.path() / "a.tar";
  fs::path folder_ = dir_.path() / "cache" / "shardify";
};

TEST_F(TarIndexFiles, AreBelievedUntilTheArchiveChanges) {
  EXPECT_EQ(believed(), "");
  ASSERT_TRUE(keep());
  EXPECT_EQ(believed(), "1.jpg");
  ASSERT_TRUE(keep(some_index("2.jpg")));
  EXPECT_EQ(believed(), "2.jpg");
  struct stat folder {};
  ASSERT_EQ(::stat(folder_.c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777U, 0700U);
  // Another byte, with the times of before: only the time of change tells.
  const auto time = fs::last_write_time(archive_);
  const UniqueFd fd(::open(archive_.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(fd.get(), "b", 1, 0), 1);
  fs::last_write_time(archive_, time);
  EXPECT_EQ(believed(), "");
}

TEST_F(TarIndexFiles, AreNotThoseOfAnArchiveThatHasGrownOrIsAnotherOne) {
  ASSERT_TRUE(keep());
  fs::rename(archive_, dir_.path() / "moved.tar");
  fs::copy_file(dir_.path() / "other.tar", archive_);
  EXPECT_EQ(believed(), "") << "another file of this name";
  fs::rename(dir_.path() / "moved.tar", archive_);
  std::ofstream(archive_, std::ios::app) << "more";
  EXPECT_EQ(believed(), "");
}

TEST_F(TarIndexFiles, AreNotKeptOfWhatChangesOrHasFewMembers) {
  EXPECT_FALSE(keep(some_index("1.jpg", 999)));
  const UniqueFd fd = open_read(archive_);
  const TarIndexFile before(folder_, archive_, fd.get());
  std::ofstream(archive_, std::ios::app) << "more";
  EXPECT_FALSE(before.write(some_index())) << "changed while it was listed";
  EXPECT_FALSE(keep()) << "changed a moment ago";
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(TarIndexFiles, AreNotBelievedIfAnyByteIsAnotherOne) {
  ASSERT_TRUE(keep());
  const fs::path file = kept();
  std::ifstream in(file, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t at = 0; at < good.size(); at += at < 300 ? 1 : 997) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_text(file, bad);
    EXPECT_EQ(believed(), "") << "byte " << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, good.size() / 2, good.size() - 1}) {
    write_text(file, good.substr(0, size));
    EXPECT_EQ(believed(), "") << size << " bytes";
  }
  write_text(file, good + "x");
  EXPECT_EQ(believed(), "");
  write_text(file, good);
  EXPECT_EQ(believed(), "1.jpg");
}

TEST_F(TarIndexFiles, AreNotBelievedIfOthersMayWriteThem) {
  ASSERT_TRUE(keep());
  const fs::path file = kept();
  for (const mode_t mode : {0620U, 0602U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_EQ(believed(), "");
  }
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_EQ(believed(), "");
  EXPECT_FALSE(keep());
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(believed(), "1.jpg");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
    EXPECT_EQ(believed(), "");
    ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  }
  const fs::path aside = dir_.path() / "aside";
  fs::rename(file, aside);
  fs::create_symlink(aside, file);
  EXPECT_EQ(believed(), "") << "a link";
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(believed(), "") << "a pipe";
}

TEST_F(TarIndexFiles, AreNoErrorWhereNoneCanBeKept) {
  write_text(dir_.path() / "cache", "a file");
  EXPECT_FALSE(keep());
  EXPECT_EQ(believed(), "");
  folder_.clear();
  EXPECT_FALSE(keep());
  EXPECT_EQ(believed(), "");
  folder_ = "/proc/shardify";
  EXPECT_FALSE(keep());
}

TEST_F(TarIndexFiles, AreWrittenBySeveralProcessesAtOnce) {
  ASSERT_TRUE(keep());
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool good = true;
      for (int round = 0; round < 50; ++round) {
        good = keep(some_index(std::string(1 + static_cast<std::size_t>(child), 'x'))) && good;
        good = !believed().empty() && good;
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  write_text(folder_ / ".a.index.part", "");
  tidy_kept_files(folder_);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_))
    files += entry.path().extension() == ".index" ? 1 : 0;
  EXPECT_EQ(files, 1U);
}

TEST(TarIndexFolder, IsTheOneThatTheEnvironmentNames) {
  const auto with = [](const char* own, const char* cache, const char* home) {
    for (const auto& [name, value] :
         {std::pair("SHARDIFY_INDEX_DIR", own), std::pair("XDG_CACHE_HOME", cache), std::pair("HOME", home)})
      value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
    return kept_files_folder().native();
  };
  EXPECT_EQ(with("/x/y", "/cache", "/home/me"), "/x/y");
  EXPECT_EQ(with("", "/cache", "/home/me"), "");
  EXPECT_EQ(with(nullptr, "/cache", "/home/me"), "/cache/shardify");
  EXPECT_EQ(with(nullptr, "relative", "/home/me"), "/home/me/.cache/shardify");
  EXPECT_EQ(with(nullptr, nullptr, "/home/me"), "/home/me/.cache/shardify");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace shard::convert
