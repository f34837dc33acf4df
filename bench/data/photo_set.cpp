#include "data/photo_set.hpp"

#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "base/files/file.hpp"
#include "base/system/system_memory.hpp"
#include "base/text/quote.hpp"
#include "limits/pure_decode.hpp"
#include "shard/convert/inputs.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

// Empty when it cannot be read: it is excluded then.
std::vector<std::byte> readable(const fs::path& path) {
  try {
    return read_file(path, ~std::uint64_t{0});
  } catch (const Error&) {
    return {};
  }
}

void write_list(const fs::path& file, const fs::path& root, const std::vector<std::string>& paths) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  for (const std::string& path : paths) out << (root / path).string() << '\n';
  out.close();
  if (!out)
    throw Error(ErrorCode::io, fmt::format("cannot write {}: give another folder by --out", quoted(file)));
}

// root/<class>/name -> links/<class>/00007_name, for repeat 7.
std::vector<std::string> link_repeats(const fs::path& root, const std::vector<std::string>& paths,
                                      std::uint64_t count, const fs::path& links) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    const fs::path path = paths[i % paths.size()];
    const fs::path link =
        path.parent_path() / fmt::format("{:05}_{}", i / paths.size(), path.filename().string());
    fs::create_directories(links / link.parent_path());
    fs::create_symlink(root / path, links / link);
    names.push_back(link.string());
  }
  return names;
}

}  // namespace

void PhotoSet::load(const fs::path& root, std::vector<std::string>& paths, std::uint64_t count,
                    const std::atomic<bool>& cancel) {
  const std::uint64_t bound = available_memory_bytes() / 10 * 6;
  std::uint64_t held = 0;
  PureDecoder decoder;
  std::vector<std::string> kept;
  for (std::uint64_t i = 0; i < paths.size(); ++i) {
    if (cancel) throw Error(ErrorCode::cancelled, "stopped while reading the images");
    // Evenly over the folder when fewer are wanted than there are.
    if (count < paths.size() && i * count / paths.size() == (i + 1) * count / paths.size()) continue;
    std::vector<std::byte> file = readable(root / paths[i]);
    const std::uint64_t pixels = paths[i].find('\n') == std::string::npos ? decoder.decode(file) : 0;
    if (pixels == 0) {
      ++excluded_;
      continue;
    }
    held += file.size();
    if (held > bound) {
      throw Error(
          ErrorCode::resource,
          fmt::format(
              "{}: the images exceed {} bytes, 60 % of the free memory, in which they are all held: give "
              "--count, less than {}",
              quoted(root), bound, kept.size()));
    }
    files_.push_back(std::move(file));
    file_pixels_.push_back(pixels);
    kept.push_back(paths[i]);
  }
  paths = std::move(kept);
}

PhotoSet::PhotoSet(const std::string& images, std::uint64_t count, const fs::path& scratch,
                   const std::atomic<bool>& cancel, std::uint64_t most) {
  const convert::Inputs inputs(images);
  const fs::path root = fs::absolute(inputs.root());
  std::vector<std::string> paths;
  for (std::uint64_t i = 0; i < inputs.size(); ++i) paths.push_back(inputs.path(i));
  const std::uint64_t listed = paths.size();
  load(root, paths, count != 0 ? count : most != 0 ? std::min(most, listed) : listed, cancel);
  if (paths.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} holds no JPEG that decodes without a warning: give a folder of JPEGs",
                            quoted(images)));
  }
  count_ = count > listed ? count : paths.size();
  for (std::uint64_t i = 0; i < count_; ++i) {
    bytes_ += files_[i % files_.size()].size();
    pixels_ += file_pixels_[i % files_.size()];
  }
  try {
    root_ = root;
    if (count_ > paths.size()) {
      root_ = scratch / "links";
      paths = link_repeats(root, paths, count_, root_);
    }
    const fs::path list = scratch / "list.txt";
    write_list(list, root_, paths);
    list_ = fmt::format("@{}", list.string());
    paths_ = std::move(paths);
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::io, error.what());
  }
}

}  // namespace shard::bench
