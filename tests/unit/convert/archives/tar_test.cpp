// list_tar: archives of GNU tar in all its formats, and hostile ones.
#include "convert/archives/tar.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "convert/sources/input_file.hpp"
#include "convert/sources/scan.hpp"
#include "support/expect_error.hpp"
#include "support/rounds.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

TarListing list(const std::string& archive) {
  return list_tar(
      [&](std::uint64_t offset, std::span<std::byte> out) {
        if (offset > archive.size()) return std::size_t{0};
        const std::size_t count = std::min(out.size(), archive.size() - static_cast<std::size_t>(offset));
        std::memcpy(out.data(), archive.data() + offset, count);
        return count;
      },
      archive.size());
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct Entry {
  std::string name;
  std::string bytes;
  char type = '0';
  std::uint64_t stated_size = ~std::uint64_t{0};  // instead of that of the bytes
};

std::string header_of(const Entry& entry) {
  std::string block(512, '\0');
  const std::uint64_t size = entry.stated_size == ~std::uint64_t{0} ? entry.bytes.size() : entry.stated_size;
  const auto put = [&](std::size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  const auto octal = [](std::uint64_t value, int digits) {
    std::string text(static_cast<std::size_t>(digits), '0');
    for (std::size_t i = text.size(); i-- > 0; value /= 8) text[i] = static_cast<char>('0' + value % 8);
    return text;
  };
  put(0, entry.name.substr(0, 100));
  put(124, octal(size, 11));
  put(156, std::string(1, entry.type));
  put(257, std::string("ustar\00000", 8));
  put(148, "        ");
  std::uint64_t sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + '\0');
  return block;
}

std::string archive_of(const std::vector<Entry>& entries) {
  std::string archive;
  for (const Entry& entry : entries) {
    archive += header_of(entry) + entry.bytes;
    archive.resize((archive.size() + 511) / 512 * 512);
  }
  return archive + std::string(1024, '\0');
}

TEST(Tar, FindsEveryFileInEachFormatOfGnuTar) {
  const TempDir dir;
  std::map<std::string, std::string> files{
      {"a/1.jpg", "one"}, {"empty", ""}, {"b/" + std::string(90, 'x') + ".png", "long"}};
  std::map<std::string, std::string> longer = files;
  longer["c/" + std::string(150, 'y') + "/" + std::string(200, 'z') + ".webp"] = std::string(70'000, 'w');
  longer["d/caf\xc3\xa9 \xff.jpg"] = "bytes";
  for (const std::string format : {"v7", "oldgnu", "gnu", "ustar", "posix"}) {
    const auto& wanted = format == "gnu" || format == "oldgnu" || format == "posix" ? longer : files;
    const fs::path folder = dir.path() / format;
    for (const auto& [name, text] : wanted) write(folder / name, text);
    const std::string file = (dir.path() / (format + ".tar")).string();
    const std::string command =
        "tar --format=" + format + " -C '" + folder.string() + "' -cf '" + file + "' .";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const std::string archive = content(file);
    const TarListing found = list(archive);
    EXPECT_EQ(found.problem, "") << format;
    std::map<std::string, std::string> seen;
    for (const TarMember& member : found.members) {
      EXPECT_EQ(member.problem, "") << member.name;
      seen[member.name] = archive.substr(member.offset, member.size_bytes);
    }
    EXPECT_EQ(seen, wanted) << format;
  }
}

TEST(Tar, NamesWhatCannotBeUsed) {
  const auto problem = [](const Entry& entry) {
    const TarListing found = list(archive_of({entry, {"after", "x"}}));
    EXPECT_EQ(found.problem, "");
    EXPECT_EQ(found.members.size(), 2U);
    EXPECT_EQ(found.members.back().name, "after");
    EXPECT_EQ(found.members.back().problem, "");
    return found.members.front().problem;
  };
  EXPECT_EQ(problem({"../up", "x"}), "its name contains \"..\"");
  EXPECT_EQ(problem({"a/../../up", "x"}), "its name contains \"..\"");
  EXPECT_EQ(problem({"/etc/passwd", "x"}), "its name is absolute");
  EXPECT_EQ(problem({"", "x"}), "it has no name");
  EXPECT_EQ(problem({"././", "x"}), "it has no name");
  EXPECT_EQ(problem({"hard", "", '1'}), "it is a link");
  EXPECT_EQ(problem({"soft", "", '2', 77}), "it is a link");
  EXPECT_EQ(problem({"device", "", '3'}), "it is not a file (type \"3\")");
  EXPECT_EQ(problem({"sparse", "x", 'S'}), "it is a sparse file");
  EXPECT_EQ(problem({"fine..jpg", "x"}), "");
  EXPECT_EQ(list(archive_of({{"./a//b/./c", "x"}})).members[0].name, "a/b/c");
  EXPECT_TRUE(list(archive_of({{"folder/", "", '5'}, {"old/", "", '\0'}})).members.empty());
}

TEST(Tar, FindsWhatFollowsASparseFileOfManyPieces) {
  // GNU tar: four pieces in the header, 21 in each block behind it,
  // which the size of the member does not count.
  for (const std::size_t blocks : {0U, 1U, 2U, 5U}) {
    std::string sparse = header_of({"sparse", std::string(1024, 's'), 'S'});
    sparse.replace(257, 8, "ustar  ", 8);
    sparse[482] = blocks > 0 ? '\1' : '\0';
    sparse.replace(148, 8, "        ");
    std::uint64_t sum = 0;
    for (const char c : sparse) sum += static_cast<unsigned char>(c);
    std::string digits(6, '0');
    for (std::size_t i = 6; i-- > 0; sum /= 8) digits[i] = static_cast<char>('0' + sum % 8);
    sparse.replace(148, 8, digits + '\0' + ' ');
    for (std::size_t i = 0; i < blocks; ++i) {
      std::string block(512, 'p');
      block[504] = i + 1 < blocks ? '\1' : '\0';
      sparse += block;
    }
    const TarListing found = list(sparse + std::string(1024, 's') + archive_of({{"after", "x"}}));
    EXPECT_EQ(found.problem, "") << blocks;
    ASSERT_EQ(found.members.size(), 2U) << blocks;
    EXPECT_EQ(found.members[0].problem, "it is a sparse file");
    EXPECT_EQ(found.members[1].name, "after");
  }
}

TEST(Tar, TakesNamesAndSizesOfPax) {
  const auto pax = [](const std::string& records) {
    return list(archive_of({{"x", records, 'x'}, {"short", "12345"}}));
  };
  const TarListing named = pax("18 path=long/name\n");
  ASSERT_EQ(named.members.size(), 1U);
  EXPECT_EQ(named.members[0].name, "long/name");
  EXPECT_EQ(named.members[0].size_bytes, 5U);
  EXPECT_EQ(pax("10 size=3\n").members[0].size_bytes, 3U);
  EXPECT_EQ(pax("22 GNU.sparse.major=1\n").members[0].problem, "it is a sparse file");
  EXPECT_EQ(pax("13 path=../x\n").members[0].problem, "its name contains \"..\"");
  for (const std::string bad : {"99 path=x\n", "x path=x\n", "3 x", "9 path x\n", "12 size=abc\n", "0 \n",
                                "18446744073709551615 a=b\n"})
    EXPECT_NE(pax(bad).problem.find("pax"), std::string::npos) << bad << ": " << pax(bad).problem;
}

TEST(Tar, SaysWhereAnArchiveIsDamaged) {
  const std::string good = archive_of({{"a", std::string(1000, 'a')}, {"b", "b"}});
  EXPECT_EQ(list("").problem, "damaged at byte 0: it is empty");
  EXPECT_EQ(list(std::string(2000, 'x')).problem, "damaged at byte 0: it is not a tar archive");
  EXPECT_EQ(list(good.substr(0, 300)).problem, "damaged at byte 0: it was cut");
  const TarListing cut = list(good.substr(0, 1000));
  ASSERT_EQ(cut.members.size(), 1U);
  EXPECT_EQ(cut.members[0].problem, "its 1000 bytes reach beyond the end of the archive");
  EXPECT_EQ(cut.problem, "damaged at byte 0: it was cut");
  std::string flipped = good;
  flipped[1536 + 3] = 'q';
  const TarListing half = list(flipped);
  EXPECT_EQ(half.members.size(), 1U);
  EXPECT_EQ(half.problem, "damaged at byte 1536: a header without its checksum");
  // Cut inside the block that the last member ends in, and behind it: the members are there,
  // but others may have followed.
  const TarListing padding = list(good.substr(0, 1536 + 513));
  EXPECT_EQ(padding.members.size(), 2U);
  EXPECT_EQ(padding.problem,
            "damaged at byte 2049: it was cut inside the block that its last member ends in");
  const TarListing endless = list(good.substr(0, 1536 + 1024));
  EXPECT_EQ(endless.members.size(), 2U);
  EXPECT_NE(endless.problem.find("it has no end"), std::string::npos) << endless.problem;
  // One empty block is an end. Zeros may follow, and nothing else.
  EXPECT_EQ(list(good.substr(0, good.size() - 512)).problem, "");
  const auto filled = [&](std::size_t record) {
    return good + std::string((record - good.size() % record) % record, '\0');
  };
  for (const std::size_t record : {512U, 10'240U, 65'536U, 1'048'576U})
    EXPECT_EQ(list(filled(record)).problem, "") << record;
  // More of them may be members that never came.
  EXPECT_NE(list(good + std::string(100'000, '\0')).problem.find("zeros behind its end"), std::string::npos);
  EXPECT_NE(list(filled(1'048'576) + std::string(1'048'576, '\0')).problem.find("zeros behind its end"),
            std::string::npos);
  const TarListing joined = list(good + good);
  EXPECT_EQ(joined.members.size(), 2U);
  EXPECT_NE(joined.problem.find("damaged at byte 3584: data behind its end"), std::string::npos)
      << joined.problem;
  EXPECT_NE(list(filled(10'240) + "x").problem.find("damaged at byte 10240"), std::string::npos);
  // 8 GiB in an archive of 2 KiB, as octal digits and as a binary number.
  EXPECT_EQ(list(archive_of({{"huge", "x", '0', std::uint64_t{1} << 32U}})).members[0].problem,
            "its 4294967296 bytes reach beyond the end of the archive");
  EXPECT_NE(list(archive_of({{"x", "", 'x', std::uint64_t{1} << 30U}})).problem.find("at most 1048576"),
            std::string::npos);
}

TEST(Tar, IsNotReadWhenItHasChanged) {
  const TempDir dir;
  const fs::path file = dir.path() / "a.tar";
  write(file, archive_of({{"1.jpg", "one"}, {"2.jpg", "two"}}));
  const InputList found = scan({.images = file.string()});
  ASSERT_EQ(found.inputs.size(), 2U);
  const auto bytes = InputReader(found).read(found.inputs[1]).size();
  EXPECT_EQ(bytes, 3U);
  write(file, archive_of({{"0.jpg", "another"}, {"1.jpg", "one"}, {"2.jpg", "two"}}));
  InputReader reader(found);
  EXPECT_SHARD_ERROR(reader.read(found.inputs[1]), ErrorCode::invalid_argument, "when this run started");
}

TEST(Tar, SurvivesEveryFlippedByte) {
  const std::string good =
      archive_of({{"x", "18 path=long/name\n", 'x'}, {"a", "aa"}, {"name", "b", 'L'}, {"b", "bb"}});
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      for (const TarMember& member : list(bad).members) {
        if (!member.problem.empty()) continue;
        ASSERT_LE(member.offset, bad.size());
        ASSERT_LE(member.size_bytes, bad.size() - member.offset);
        ASSERT_EQ(member.name.find(".."), std::string::npos);
      }
    }
}

}  // namespace
}  // namespace shard::convert
