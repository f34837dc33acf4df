// TransitArea: whole shards on their way through this machine: files in a folder, which are gone when nobody needs them.
//
//   alone     a file without a name: the kernel removes it with its last mapping
//   shared    .NAME.transit, which processes of a node find: locked alone (flock) by the one that fetches it, and then together by all that have it
//             mapped, so that each shard is fetched once; the last one to give it back removes it. Whoever opens the area removes what killed processes left
//
// How many bytes are in it at a time is the caller's business. Thread safe. Errors of all: io.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

// Whether a folder takes no new files, by the errno of open(): its disk is full, or it is read-only.
bool takes_no_files(int error) noexcept;

class TransitArea {
 public:
  // Makes the folder if it is missing.
  TransitArea(std::filesystem::path folder, bool shared);
  bool shared() const noexcept { return shared_; }

  static constexpr std::string_view kSuffix = ".transit";

  // Writes all bytes of a shard to the file, which has at least its size, and throws unless they are right.
  using Fetch = std::function<void(int fd)>;
  // A file of `size_bytes` with a shard; `name` is the same for the same shard in all processes. In a shared area another process may have written it, so
  // it is not proven; a process that takes a minute for it is not waited for. The file counts as needed until its last mapping is gone. Nothing: the disk is full (or the folder read-only), also that of TMPDIR. Errors: those of
  // `fetch`; cancelled.
  std::optional<UniqueFd> get(const std::string& name, std::uint64_t size_bytes, const Fetch& fetch,
                              const std::stop_token& stop) const;
  // After this process has unmapped the file: removes it if no other process needs it.
  void give_back(const std::string& name) const noexcept;

 private:
  std::filesystem::path path_of(const std::string& name) const;
  std::optional<UniqueFd> get_shared(const std::filesystem::path& path, std::uint64_t size_bytes,
                                     const Fetch& fetch, const std::stop_token& stop) const;

  std::filesystem::path folder_;
  bool shared_;
};

}  // namespace shard
