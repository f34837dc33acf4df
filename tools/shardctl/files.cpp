#include "shardctl/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "shard/error.hpp"
#include "shardctl/source.hpp"

namespace shard::ctl {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20U;

std::string error_text(int error) { return std::generic_category().message(error); }

// Up to out.size() bytes from `offset`; fewer at the end of the file.
std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> out,
                    const std::filesystem::path& path) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got =
        pread(fd, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(ErrorCode::io, fmt::format("{}: cannot read: {}", path_text(path), error_text(errno)));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

}  // namespace

void FileTraits::close(int fd) noexcept { ::close(fd); }

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot make the folder: {}", path_text(folder), error.message()));
}

void require_only(const std::filesystem::path& folder,
                  const std::function<bool(const std::string& name)>& ours) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!ours(name))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: not empty ('{}' is in it); give a new or empty folder", path_text(folder),
                              path_text(name)));
  }
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot list the folder: {}", path_text(folder), error.message()));
}

std::vector<std::string> list_shard_files(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.starts_with("shard-") && name.ends_with(".safetensors")) names.push_back(std::move(name));
  }
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot list the folder: {}", path_text(folder), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

SafetensorsFile read_safetensors_head(const std::filesystem::path& path) {
  const FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    throw Error(code, fmt::format("{}: cannot open: {}", path_text(path), error_text(errno)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not a regular file", path_text(path)));
  }
  SafetensorsFile result;
  result.size_bytes = static_cast<std::uint64_t>(status.st_size);
  try {
    std::vector<std::byte> head(8);
    head.resize(read_at(file.get(), 0, head, path));
    const std::uint64_t end = safetensors_header_end(head, result.size_bytes);
    head.resize(end);  // at most the file's size and the format's cap
    head.resize(read_at(file.get(), 0, head, path));
    if (head.size() != end) throw Error(ErrorCode::corrupt, "the file became shorter while it was read");
    result.header = parse_safetensors(head, result.size_bytes);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path_text(path), error.what()));
  }
  return result;
}

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_.parent_path() / ("." + path_.filename().string() + ".partial");
  file_.reset(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_) fail("create", errno);
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  if (file_) unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t take = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(take));
    bytes = bytes.subspan(take);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void OutputFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = ::write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail("write", wrote < 0 ? errno : EIO);
    done += static_cast<std::size_t>(wrote);
  }
  buffer_.clear();
}

void OutputFile::finish() {
  flush();
  if (fsync(file_.get()) != 0) fail("fsync", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename", errno);
  file_.reset();
}

void OutputFile::fail(const char* what, int error) const {
  throw Error(ErrorCode::io, fmt::format("{}: cannot {}: {}{}", path_text(path_), what, error_text(error),
                                         error == ENOSPC ? "; free space or choose another disk" : ""));
}

}  // namespace shard::ctl
