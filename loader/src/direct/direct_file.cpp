#include "direct/direct_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard {

DirectFile::DirectFile(const ShardReader& shard) {
  descriptor_.reset(shard.reopen(O_DIRECT | O_NONBLOCK));
  if (!descriptor_) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) shard.check_unchanged();
    const ErrorCode code = error == EINVAL                      ? ErrorCode::unsupported
                           : error == EMFILE || error == ENFILE ? ErrorCode::resource
                                                                : ErrorCode::io;
    throw Error(code,
                fmt::format("{}: cannot be opened for direct reads (O_DIRECT): {}", quoted(shard.path()),
                            std::generic_category().message(error) + descriptor_advice(error)));
  }
  if (file_identity(descriptor_.get(), shard.path()) != shard.identity()) {
    shard.check_unchanged();  // throws if the file was replaced
    throw Error(
        ErrorCode::corrupt,
        fmt::format("{}: the file was replaced while it was opened for direct reads; open the data set "
                    "again",
                    quoted(shard.path())));
  }
}

}  // namespace shard
