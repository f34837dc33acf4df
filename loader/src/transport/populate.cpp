#include "transport/populate.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/text/quote.hpp"
#include "codec/sample_errors.hpp"
#include "shard/error.hpp"

namespace shard {

void populate(const std::filesystem::path& path, std::span<const std::byte> range,
              const std::stop_token& stop, const std::function<void()>& check_file) {
  while (!range.empty()) {
    if (stop.stop_requested())
      throw Error(ErrorCode::cancelled, fmt::format("{}: reading it in was stopped", quoted(path)));
    const std::span<const std::byte> piece = range.first(std::min(range.size(), kPopulatePiece));
    range = range.subspan(piece.size());
    if (::madvise(const_cast<std::byte*>(piece.data()), piece.size(), MADV_POPULATE_READ) == 0) continue;
    const int error = errno;
    if (error == EINVAL) return;  // a kernel before 5.14: the pages come when they are registered
    check_file();                 // throws if the file was cut, for which the kernel returns EFAULT
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot be read: {}", quoted(path), std::generic_category().message(error)));
  }
}

void populate(const ShardReader& shard, std::span<const std::byte> range, const std::stop_token& stop) {
  populate(shard.path(), range, stop, [&] { check_alive(shard); });
}

}  // namespace shard
