#include "shard/convert/input_name.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "base/unique_handle.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"

namespace shard::convert {

namespace {

// In lower case. Windows, macOS and the network storage of Synology and QNAP leave these behind.
constexpr std::array<std::string_view, 15> kLitter{
    "__macosx",          "@eadir",      "#recycle",    "#snapshot", "@recycle",   "@recently-snapshot",
    "$recycle.bin",      "thumbs.db",   "ehthumbs.db", "icon\r",    "lost+found", "system volume information",
    "ehthumbs_vista.db", "desktop.ini", "__pycache__"};

}  // namespace

std::string_view to_string(SkipReason reason) noexcept {
  switch (reason) {
    case SkipReason::hidden:
      return "hidden name";
    case SkipReason::litter:
      return "left by a system or a program";
    case SkipReason::no_image:
      return "no image by name or content";
    case SkipReason::walked:
      break;
  }
  return "link to a folder whose images are in this class already";
}

std::optional<SkipReason> skip_by_name(std::string_view name) {
  if (name.starts_with('.')) return SkipReason::hidden;
  const bool litter = std::any_of(kLitter.begin(), kLitter.end(), [&](std::string_view known) {
    return name.size() == known.size() && is_in_lower_case(name, known);
  });
  return litter ? std::optional(SkipReason::litter) : std::nullopt;
}

std::optional<SkipReason> skip_by_path(std::string_view path) {
  for (;;) {
    const std::size_t slash = path.find('/');
    if (const auto reason = skip_by_name(path.substr(0, slash))) return reason;
    if (slash == std::string_view::npos) return std::nullopt;
    path.remove_prefix(slash + 1);
  }
}

std::string sample_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, path.find('.', slash == std::string_view::npos ? 0 : slash + 1)));
}

std::string_view without_extension(std::string_view path) {
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos || dot <= name ? path : path.substr(0, dot);
}

bool has_image_name(std::string_view name) {
  constexpr std::size_t kLongest = 4;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot - 1 > kLongest) return false;
  std::array<char, kLongest> lower{};
  const std::string_view extension = name.substr(dot + 1);
  std::transform(extension.begin(), extension.end(), lower.begin(), [](char c) { return ascii_lower(c); });
  return image::is_image_extension({lower.data(), extension.size()});
}

bool has_image_content(std::span<const std::byte> begin) noexcept {
  // Markup is not an image, even if the page or README contains an SVG drawing.
  const auto first = std::find_if(begin.begin(), begin.end(), [](std::byte b) {
    return b != std::byte{' '} && b != std::byte{'\t'} && b != std::byte{'\r'} && b != std::byte{'\n'};
  });
  if (first != begin.end() && *first == std::byte{'<'}) return false;
  const image::FileKind::Class group = image::recognize_file(begin).group;
  return group == image::FileKind::Class::decodable || group == image::FileKind::Class::image;
}

bool is_image_file(int dir_fd, const char* path, bool known_regular) {
  struct stat info {};
  if (!known_regular && ::fstatat(dir_fd, path, &info, 0) != 0) return true;
  // Pipes and devices are not opened: opening one could already have an effect.
  if (!known_regular && !S_ISREG(info.st_mode)) return false;
  const UniqueFd fd(::openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    const int error = errno;
    if (error == EMFILE || error == ENFILE)
      throw Error(ErrorCode::resource, fmt::format("cannot open {}: {} (raise 'ulimit -n')", quoted(path),
                                                   std::generic_category().message(error)));
    return true;
  }
  std::array<std::byte, image::kFileKindBytes> begin{};
  ssize_t got = 0;
  do {
    got = ::pread(fd.get(), begin.data(), begin.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return true;
  return has_image_content(std::span(begin).first(static_cast<std::size_t>(got)));
}

}  // namespace shard::convert
