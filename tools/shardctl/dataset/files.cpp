#include "shardctl/dataset/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "base/text/quote.hpp"
#include "base/unique_handle.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"
#include "shardctl/dataset/source.hpp"

namespace shard::ctl {
namespace {

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
      throw Error(ErrorCode::io, fmt::format("{}: cannot read: {}", quoted(path), error_text(errno)));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

}  // namespace

void make_folder(const std::filesystem::path& folder) {
  if (is_remote(folder))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is an address, and this writes to a folder: give one", quoted(folder)));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot make the folder: {}", quoted(folder), error.message()));
}

void require_only(const std::filesystem::path& folder,
                  const std::function<bool(const std::string& name)>& ours) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!ours(name))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: not empty ({} is in it); give a new or empty folder", quoted(folder),
                              quoted(name)));
  }
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot list the folder: {}", quoted(folder), error.message()));
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
                fmt::format("{}: cannot list the folder: {}", quoted(folder), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

SafetensorsFile read_safetensors_head(const std::filesystem::path& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    throw Error(code, fmt::format("{}: cannot open: {}", quoted(path), error_text(errno)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not a regular file", quoted(path)));
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
    throw Error(error.code(), fmt::format("{}: {}", quoted(path), error.what()));
  }
  return result;
}

}  // namespace shard::ctl
