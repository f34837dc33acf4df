#include "convert/plan/kept_sizes.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/unique_handle.hpp"
#include "shard/image/jpeg_originals.hpp"

namespace shard::convert {

namespace {

// As it is kept, one after the other.
static_assert(sizeof(KnownImage) == 24);

UniqueFd open_archive(const Archive& archive) {
  return UniqueFd(::open(archive.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// Where each input is.
std::uint64_t digest_of_places(const InputList& list) {
  std::vector<std::uint64_t> places;
  places.reserve(3 * list.inputs.size());
  for (const Input& input : list.inputs) {
    places.push_back(std::uint64_t{input.archive} << 32U | input.page);
    places.push_back(input.offset);
    places.push_back(input.size_bytes);
  }
  return xxh3(std::as_bytes(std::span(places)));
}

bool are_in_archives(const InputList& list) {
  return std::all_of(list.inputs.begin(), list.inputs.end(), [&](const Input& input) {
    const Archive* const archive = list.archive_of(input);
    return archive != nullptr && !archive->open && !archive->is_array();
  });
}

bool is_right(const KnownImage& known, std::uint64_t file_bytes) {
  if ((known.width == 0) != (known.height == 0)) return false;
  if (known.file.bytes == 0) return true;
  return known.width != 0 && known.file.bytes == file_bytes && image::is_jpeg_file(known.file);
}

}  // namespace

KeptSizes::KeptSizes(const Plan& plan, std::string_view options) : plan_(plan) {
  const InputList& list = plan.list;
  if (list.inputs.size() < kFewestImages || !are_in_archives(list)) return;
  std::string names;
  std::string states;
  for (const Archive& archive : list.archives) {
    const UniqueFd fd = open_archive(archive);
    if (!fd || file_stamp(fd.get()) != archive.stamp) return;
    const std::string& state = states_.emplace_back(ArchiveState(fd.get()).text());
    if (state.empty()) return;
    std::error_code error;
    names += std::filesystem::absolute(archive.path, error).native() + '\n';
    states += state + '\n';
  }
  file_.emplace(kept_files_folder(), "sizes", fmt::format("{}{}", names, options),
                fmt::format("{} images\n{}\n{}\n{}", list.inputs.size(), to_hex(xxh3(states)),
                            to_hex(digest_of_places(list)), to_hex(xxh3(options))));
}

std::vector<KnownImage> KeptSizes::read() const {
  const std::optional<std::string> bytes = file_ ? file_->read() : std::nullopt;
  std::vector<KnownImage> known(plan_.list.inputs.size());
  if (!bytes || bytes->size() != known.size() * sizeof(KnownImage)) return {};
  std::memcpy(known.data(), bytes->data(), bytes->size());
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!is_right(known[i], plan_.sizes[i])) return {};
  return known;
}

void KeptSizes::flush() {
  for (std::size_t i = 0; file_ && i < states_.size(); ++i) {
    const UniqueFd fd = open_archive(plan_.list.archives[i]);
    ArchiveState state(fd.get());
    state.flush();
    if (state.text() != states_[i] || !state.is_settled()) file_.reset();
  }
}

bool KeptSizes::are_unchanged() const {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const UniqueFd fd = open_archive(plan_.list.archives[i]);
    if (ArchiveState(fd.get()).text() != states_[i]) return false;
  }
  return true;
}

void KeptSizes::write(const std::vector<KnownImage>& known) const {
  if (!file_ || !are_unchanged()) return;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(known));
  static_cast<void>(file_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

}  // namespace shard::convert
