#include "convert/archives/tar_index.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/bytes.hpp"

namespace shard::convert {

namespace {

constexpr char kListing = 'L';
constexpr char kRead = 'R';
constexpr std::size_t kLeastMemberBytes = 4 + 8 + 8 + 4;

void add_u64(std::string& out, std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  store_u64(bytes, 0, value);
  out += as_text(bytes);
}

void add_text(std::string& out, std::string_view text) {
  std::array<std::byte, 4> bytes{};
  store_u32(bytes, 0, static_cast<std::uint32_t>(text.size()));
  out += as_text(bytes);
  out += text;
}

// What is not in the bytes is 0 or empty, and then good() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool good() const noexcept { return good_; }
  bool at_end() const noexcept { return at_ == bytes_.size(); }
  std::size_t at() const noexcept { return at_; }
  std::size_t left() const noexcept { return bytes_.size() - at_; }
  std::string_view take(std::size_t size) {
    if (size > left()) {
      good_ = false;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::uint64_t u64() {
    const std::string_view bytes = take(8);
    return bytes.empty() ? 0 : load_u64(as_byte_span(bytes));
  }
  std::string_view text() {
    const std::string_view bytes = take(4);
    return bytes.empty() ? std::string_view() : take(load_u32(as_byte_span(bytes)));
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

// Nothing: these are not the members of an archive of `size` bytes.
std::optional<TarListing> listing_of(Reader& from, std::uint64_t size) {
  TarListing listing;
  const std::uint64_t members = from.u64();
  if (members > from.left() / kLeastMemberBytes) return std::nullopt;
  listing.members.reserve(static_cast<std::size_t>(members));
  for (std::uint64_t i = 0; i < members; ++i) {
    const std::string_view name = from.text();
    const std::uint64_t offset = from.u64();
    const std::uint64_t bytes = from.u64();
    const std::string_view problem = from.text();
    if (!from.good() || offset > size) return std::nullopt;
    if (problem.empty() && (bytes > size - offset || !problem_of_name(name).empty())) return std::nullopt;
    listing.members.push_back({std::string(name), offset, bytes, std::string(problem)});
  }
  listing.problem = from.text();
  if (!from.good()) return std::nullopt;
  return listing;
}

}  // namespace

void TarIndexWriter::add(std::uint64_t begin, std::uint64_t size, const TarListing& listing) {
  bytes_ += kListing;
  add_u64(bytes_, begin);
  add_u64(bytes_, size);
  add_u64(bytes_, listing.members.size());
  for (const TarMember& member : listing.members) {
    add_text(bytes_, member.name);
    add_u64(bytes_, member.offset);
    add_u64(bytes_, member.size_bytes);
    add_text(bytes_, member.problem);
  }
  add_text(bytes_, listing.problem);
  entries_ += listing.members.size();
}

void TarIndexWriter::add(std::uint64_t offset, std::span<const std::byte> bytes) {
  bytes_ += kRead;
  add_u64(bytes_, offset);
  add_text(bytes_, as_text(bytes));
  ++entries_;
}

std::optional<TarIndex> TarIndex::parse(std::string bytes, std::uint64_t archive_bytes) {
  TarIndex index;
  index.bytes_ = std::move(bytes);
  Reader from(index.bytes_);
  while (!from.at_end()) {
    const char kind = from.take(1).front();
    if (kind == kListing) {
      const std::uint64_t begin = from.u64();
      const std::uint64_t size = from.u64();
      if (begin > archive_bytes || size > archive_bytes - begin) return std::nullopt;
      std::optional<TarListing> listing = listing_of(from, size);
      if (!listing) return std::nullopt;
      index.listings_.insert_or_assign({begin, size}, std::move(*listing));
    } else if (kind == kRead) {
      const std::uint64_t offset = from.u64();
      const std::size_t size = from.text().size();
      if (!from.good() || offset > archive_bytes || size > archive_bytes - offset) return std::nullopt;
      index.pieces_.push_back({offset, from.at() - size, size});
    } else {
      return std::nullopt;
    }
  }
  if (!from.good()) return std::nullopt;
  std::stable_sort(index.pieces_.begin(), index.pieces_.end(),
                   [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
  return index;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> TarIndex::places() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const auto& [place, listing] : listings_) places.push_back(place);
  return places;
}

std::optional<TarListing> TarIndex::take(std::uint64_t begin, std::uint64_t size) {
  auto found = listings_.extract({begin, size});
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

std::optional<std::string_view> TarIndex::read(std::uint64_t offset, std::size_t size) const {
  auto at = std::lower_bound(pieces_.begin(), pieces_.end(), offset,
                             [](const Piece& piece, std::uint64_t of) { return piece.offset < of; });
  for (; at != pieces_.end() && at->offset == offset; ++at)
    if (at->size == size) return std::string_view(bytes_).substr(at->at, size);
  return std::nullopt;
}

}  // namespace shard::convert
