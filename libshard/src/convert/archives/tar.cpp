#include "convert/archives/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kBlock = 512;
// Of a pax header or a long name: names are at most a few kilobytes.
constexpr std::uint64_t kMaxExtensionBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMaxNameBytes = 4096;  // PATH_MAX

// What stopped the listing.
struct Damage {
  std::string why;
};
[[noreturn]] void damaged(std::uint64_t at, const std::string& why) {
  throw Damage{fmt::format("damaged at byte {}: {}", at, why)};
}

// A field of a header: bytes [begin, begin + size).
struct Field {
  std::size_t begin;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kMagic{257, 6};
constexpr Field kPrefix{345, 155};
// Whether blocks with more pieces of a sparse file follow: in the header of GNU tar, in that of star,
// in such a block.
constexpr std::size_t kGnuMorePieces = 482;
constexpr std::size_t kStarMorePieces = 355;
constexpr std::size_t kMorePieces = 504;
constexpr Field kStarMagic{508, 4};

class Header {
 public:
  std::array<std::byte, kBlock> bytes{};

  bool empty() const {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
  }
  std::string_view text(Field field) const {
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()) + field.begin, field.size);
    return all.substr(0, all.find('\0'));
  }
  char type() const { return static_cast<char>(bytes[kType]); }
  bool flag(std::size_t at) const { return bytes[at] != std::byte{0}; }

  // Octal digits, or, with the first bit set, a big-endian number (GNU).
  std::optional<std::uint64_t> number(Field field) const {
    if ((bytes[field.begin] & std::byte{0x80}) != std::byte{0}) return binary(field);
    std::string_view digits(reinterpret_cast<const char*>(bytes.data()) + field.begin, field.size);
    while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
    digits = digits.substr(0, digits.find_first_of(std::string_view(" \0", 2)));
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    if (digits.empty()) return 0;
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  }

  // The sum of all bytes, where those of the checksum count as spaces; old writers took the bytes as signed.
  bool checksum_matches() const {
    std::int64_t plain = 0;
    std::int64_t with_sign = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const bool own = i >= kChecksum.begin && i < kChecksum.begin + kChecksum.size;
      const auto byte = own ? static_cast<unsigned char>(' ') : std::to_integer<unsigned char>(bytes[i]);
      plain += byte;
      with_sign += static_cast<signed char>(byte);
    }
    const auto stated = number(kChecksum);
    return stated &&
           (static_cast<std::int64_t>(*stated) == plain || static_cast<std::int64_t>(*stated) == with_sign);
  }

 private:
  std::optional<std::uint64_t> binary(Field field) const {
    if (bytes[field.begin] != std::byte{0x80}) return std::nullopt;  // negative, or beyond 64 bits
    std::uint64_t value = 0;
    for (std::size_t i = 1; i < field.size; ++i) {
      if (value >> 56U != 0) return std::nullopt;
      value = value << 8U | std::to_integer<std::uint64_t>(bytes[field.begin + i]);
    }
    return value;
  }
};

// What headers in front of a member say about it.
struct Extension {
  std::optional<std::string> name;
  std::optional<std::uint64_t> size;
  bool sparse = false;
};

// The records of a pax header: "LENGTH KEY=VALUE\n".
void read_pax(std::string_view text, std::uint64_t at, Extension& extension) {
  while (!text.empty() && text.front() != '\0') {
    std::string_view rest = text;
    const std::size_t length = take_number<std::size_t>(rest).value_or(0);
    const std::size_t digits = text.size() - rest.size();
    if (length > text.size() || length < digits + 3 || text[digits] != ' ' || text[length - 1] != '\n')
      damaged(at, "a pax header whose records have no right length");
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) damaged(at, "a record of a pax header has no '='");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      extension.name = std::string(value);
    } else if (key == "size") {
      extension.size = number_of<std::uint64_t>(value);
      if (!extension.size) damaged(at, "the size in a pax header is not a number");
    } else if (key.starts_with("GNU.sparse.")) {
      extension.sparse = true;
    }
  }
}

// Without "./" in front, doubled and "." parts.
std::string plain_name(std::string_view name) {
  std::string plain(name.substr(0, name.starts_with('/') ? 1 : 0));
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!part.empty() && part != ".") {
      if (!plain.empty() && plain.back() != '/') plain += '/';
      plain += part;
    }
    begin = end + 1;
  }
  return plain;
}

class Lister {
 public:
  Lister(const TarBytes& bytes, std::uint64_t archive_bytes) : bytes_(bytes), archive_bytes_(archive_bytes) {}

  TarListing list() {
    try {
      while (next()) {
      }
    } catch (const Damage& damage) {
      listing_.problem = damage.why;
    }
    return std::move(listing_);
  }

 private:
  void read(std::uint64_t at, std::span<std::byte> out) const {
    if (bytes_(at, out) != out.size()) damaged(at, "it was cut");
  }

  // False: the end of the archive.
  bool next() {
    if (at_ == archive_bytes_) {
      if (at_ == 0) damaged(0, "it is empty");
      // Some writers leave it out. Whether members followed cannot be told.
      damaged(at_, "it has no end (two empty blocks of 512 bytes), so it may have been cut");
    }
    Header header;
    read(at_, header.bytes);
    if (header.empty()) {
      if (extension_.name || extension_.size || extension_.sparse)
        damaged(at_, "its end follows a header that describes a member, and there is no member");
      check_rest(at_ + kBlock);
      return false;
    }
    if (!header.checksum_matches())
      damaged(at_, at_ == 0 ? "it is not a tar archive" : "a header without its checksum");
    const char type = header.type();
    const bool link = type == '1' || type == '2';
    auto size = header.number(kSize);
    if (!size) damaged(at_, "the size of a member is not a number");
    const bool describes = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (!describes && extension_.size) size = extension_.size;
    if (link) size = 0;
    const std::uint64_t begin = type == 'S' ? behind_pieces(header) : at_ + kBlock;
    if (*size > archive_bytes_ - begin && !describes) {
      add(header, begin, *size, fmt::format("its {} bytes reach beyond the end of the archive", *size));
      damaged(at_, "it was cut");
    }
    if (describes)
      extend(type, begin, *size);
    else
      take(header, begin, *size);
    at_ = begin + (*size + kBlock - 1) / kBlock * kBlock;
    if (at_ > archive_bytes_)
      damaged(archive_bytes_, "it was cut inside the block that its last member ends in");
    return true;
  }

  // Behind the end there are zeros only: the second block of the end, and what fills up a record. Anything
  // else would be lost without a word, and so would members of a file whose place was reserved and which was
  // not written to its end.
  void check_rest(std::uint64_t at) const {
    constexpr std::uint64_t kPieceBytes = 65536;
    const std::uint64_t end = at;
    std::vector<std::byte> piece;
    for (; at < archive_bytes_; at += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, archive_bytes_ - at)));
      read(at, piece);
      const auto data =
          std::find_if(piece.begin(), piece.end(), [](std::byte b) { return b != std::byte{0}; });
      if (data != piece.end())
        damaged(
            at + static_cast<std::uint64_t>(data - piece.begin()),
            "data behind its end, which is not read: archives were joined (give each of them as a file of "
            "its own, or join them with 'tar --concatenate')");
    }
    if (!fills_a_record(archive_bytes_ - end))
      damaged(end,
              fmt::format("{} bytes of zeros behind its end, more than writers of archives leave: it may "
                          "not have been written to its end",
                          archive_bytes_ - end));
  }

  // Records have 20 blocks (GNU tar, bsdtar and Python's tarfile unless asked for others) or a power of two
  // of them, up to 1 MiB.
  bool fills_a_record(std::uint64_t zeros) const noexcept {
    constexpr std::uint64_t kMostRecord = std::uint64_t{1} << 20U;
    if (zeros < 20 * kBlock + kBlock) return true;
    for (std::uint64_t record = kBlock; record <= kMostRecord; record *= 2)
      if (archive_bytes_ % record == 0 && zeros < record + kBlock) return true;
    return false;
  }

  // Where the bytes of a sparse file of old GNU tar or star begin: its header has room for four pieces.
  std::uint64_t behind_pieces(const Header& header) const {
    const bool gnu = header.text(kMagic) == "ustar ";
    const bool star = !gnu && header.text(kStarMagic) == "tar";
    bool more = (gnu && header.flag(kGnuMorePieces)) || (star && header.flag(kStarMorePieces));
    std::uint64_t at = at_ + kBlock;
    for (Header pieces; more; at += kBlock) {
      read(at, pieces.bytes);
      more = pieces.flag(kMorePieces);
    }
    return at;
  }

  void extend(char type, std::uint64_t begin, std::uint64_t size) {
    if (size > kMaxExtensionBytes || size > archive_bytes_ - begin)
      damaged(at_, fmt::format("a header of {} bytes; at most {} are read", size, kMaxExtensionBytes));
    if (type == 'K') return;  // the name of a link
    std::string text(size, '\0');
    read(begin, std::as_writable_bytes(std::span(text)));
    if (type == 'x') return read_pax(text, at_, extension_);
    if (type == 'g') {  // what all members have in common
      Extension common;
      read_pax(text, at_, common);
      if (common.name || common.size || common.sparse)
        damaged(at_, "a pax header gives all members behind it one name or size");
      return;
    }
    text.resize(std::min(text.find('\0'), text.size()));
    extension_.name = std::move(text);
  }

  void take(const Header& header, std::uint64_t begin, std::uint64_t size) {
    const char type = header.type();
    if (type == '5') {
      extension_ = {};
      return;
    }
    const bool old_folder = type == '\0' && header.text(kName).ends_with('/');
    if (old_folder) {
      extension_ = {};
      return;
    }
    std::string problem;
    if (type == '1' || type == '2')
      problem = "it is a link";
    else if (type == 'S' || extension_.sparse)
      problem = "it is a sparse file";
    else if (type != '0' && type != '\0' && type != '7')
      problem = fmt::format("it is not a file (type {})", quoted_excerpt(std::string_view(&type, 1)));
    add(header, begin, size, std::move(problem));
  }

  void add(const Header& header, std::uint64_t begin, std::uint64_t size, std::string problem) {
    std::string name;
    if (extension_.name) {
      name = *extension_.name;
    } else {
      const std::string_view prefix =
          header.text(kMagic) == "ustar" ? header.text(kPrefix) : std::string_view();
      name =
          prefix.empty() ? std::string(header.text(kName)) : fmt::format("{}/{}", prefix, header.text(kName));
    }
    if (problem.empty()) problem = problem_of_name(name);
    std::string plain = plain_name(name);
    if (problem.empty() && plain.empty()) problem = "it has no name";
    listing_.members.push_back({std::move(plain), begin, size, std::move(problem)});
    extension_ = {};
  }

  const TarBytes& bytes_;
  std::uint64_t archive_bytes_;
  std::uint64_t at_ = 0;
  Extension extension_;
  TarListing listing_;
};

}  // namespace

std::string problem_of_name(std::string_view name) {
  if (name.empty()) return "it has no name";
  if (name.size() > kMaxNameBytes)
    return fmt::format("its name has {} bytes; at most {} are taken", name.size(), kMaxNameBytes);
  if (name.front() == '/') return "its name is absolute";
  if (name.find('\0') != std::string_view::npos) return "its name contains a zero byte";
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..") return "its name contains \"..\"";
    begin = end + 1;
  }
  return {};
}

TarListing list_tar(const TarBytes& bytes, std::uint64_t archive_bytes) {
  return Lister(bytes, archive_bytes).list();
}

}  // namespace shard::convert
