// Data sets on servers: where a folder or shard may be named, https://HOST/PATH, http://HOST/PATH can be given (docs/remote.md).
#pragma once

#include <filesystem>

namespace shard {

// Whether `path` is an address: it begins with "https://", "http://", "s3://" or "hf://", in lower case.
bool is_remote(const std::filesystem::path& path) noexcept;

}  // namespace shard
