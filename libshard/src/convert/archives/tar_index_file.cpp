#include "convert/archives/tar_index_file.hpp"

#include <sys/stat.h>

#include <exception>
#include <system_error>
#include <utility>

namespace shard::convert {

namespace {

// The whole path. Empty: there is none.
std::string name_of(const std::filesystem::path& archive) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(archive, error);
  return error ? std::string() : whole.native();
}

}  // namespace

TarIndexFile::TarIndexFile(std::filesystem::path folder, const std::filesystem::path& archive, int fd)
    : fd_(fd), state_(fd), file_(std::move(folder), "tar", name_of(archive), state_.text()) {}

std::optional<TarIndex> TarIndexFile::read() const noexcept {
  try {
    struct stat archive {};
    std::optional<std::string> bytes = file_.read();
    if (!bytes || ::fstat(fd_, &archive) != 0) return std::nullopt;
    return TarIndex::parse(std::move(*bytes), static_cast<std::uint64_t>(archive.st_size));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool TarIndexFile::write(const TarIndexWriter& index) const noexcept {
  return index.entries() >= kFewestEntries && state_.is_settled() && file_.write(index.bytes());
}

}  // namespace shard::convert
