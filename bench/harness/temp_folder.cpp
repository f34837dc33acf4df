#include "harness/temp_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include <fmt/core.h>

#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::bench {

TempFolder::TempFolder(const std::filesystem::path& parent) {
  std::error_code error;
  std::filesystem::path base = parent.empty() ? std::filesystem::temp_directory_path(error) : parent;
  if (!error) std::filesystem::create_directories(base, error);
  std::string name = (base / "shardbench-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    const std::string reason = error ? error.message() : std::generic_category().message(errno);
    throw Error(ErrorCode::io,
                fmt::format("cannot make a folder in {}: {}: name another place", quoted(base), reason));
  }
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace shard::bench
