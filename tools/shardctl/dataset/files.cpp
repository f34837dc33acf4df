#include "shardctl/dataset/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "base/unique_handle.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"
#include "shardctl/dataset/source.hpp"

namespace shard::ctl {

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
  for (const std::string& name : names_in(folder))
    if (!ours(name))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: not empty ({} is in it); give a new or empty folder", quoted(folder),
                              quoted(name)));
}

std::vector<std::string> list_shard_files(const std::filesystem::path& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [](const std::string& name) {
    return !name.starts_with("shard-") || !name.ends_with(".safetensors");
  });
  std::sort(names.begin(), names.end());
  return names;
}

SafetensorsFile read_safetensors_head(const std::filesystem::path& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    throw Error(code, fmt::format("{}: cannot open: {}", quoted(path), errno_text(errno)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not a regular file", quoted(path)));
  }
  SafetensorsFile result;
  result.size_bytes = static_cast<std::uint64_t>(status.st_size);
  try {
    std::vector<std::byte> head(8);
    head.resize(pread_some(file.get(), head, 0, path));
    const std::uint64_t end = safetensors_header_end(head, result.size_bytes);
    head.resize(end);  // at most the file's size and the format's cap
    head.resize(pread_some(file.get(), head, 0, path));
    if (head.size() != end) throw Error(ErrorCode::corrupt, "the file became shorter while it was read");
    result.header = parse_safetensors(head, result.size_bytes);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quoted(path), error.what()));
  }
  return result;
}

}  // namespace shard::ctl
