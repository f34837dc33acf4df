// TransitArea: whole shards on their way through this machine: files in a folder,
// which are gone when nobody needs them.
//
//   alone     a file without a name, in which one shard follows the other (SpareFiles)
//   shared    .NAME.transit, which processes of a node find: locked alone (flock) by the one that fetches it,
//             and then together by all that have it mapped, so that each shard is fetched once; the last one
//             to give it back removes it. Whoever opens the area removes what killed processes left
//
// How many bytes are in it at a time is the caller's business. Thread safe. Errors of all: io.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"
#include "remote/cache/spare_files.hpp"
#include "shard/error.hpp"

namespace shard {

// Whether a folder takes no new files, by the errno of open(): its disk is full, or it is read-only.
bool takes_no_files(int error) noexcept;

class TransitArea {
 public:
  // Makes the folder if it is missing.
  TransitArea(std::filesystem::path folder, bool shared);
  ~TransitArea();
  TransitArea(TransitArea&&) = delete;

  static constexpr std::string_view kSuffix = ".transit";

  // Writes all bytes of a shard to the file, which has at least its size, and throws unless they are right.
  using Fetch = std::function<void(int fd)>;
  // `shared`: another process may have written it, so it is not proven, and may be reading it.
  struct File {
    UniqueFd fd;
    std::uint64_t size_bytes = 0;
    bool shared = false;
  };
  // A file of `size_bytes` with a shard, until it is given back; `name` is the same for the same shard in all
  // processes. A process that takes a minute to fetch it is not waited for. Nothing: the disk is full (or the
  // folder read-only), also that of TMPDIR. Errors: those of `fetch`; cancelled.
  std::optional<File> get(const std::string& name, std::uint64_t size_bytes, const Fetch& fetch,
                          const std::stop_token& stop) const;
  // This process has unmapped the file: another shard will be written to it or, if it is shared, it is
  // removed after the last process has given it back.
  void give_back(const std::string& name, File file) const noexcept;

 private:
  // Removes the files that processes left which were killed.
  void remove_abandoned() const noexcept;
  std::filesystem::path path_of(const std::string& name) const;
  std::optional<UniqueFd> get_shared(const std::filesystem::path& path, std::uint64_t size_bytes,
                                     const Fetch& fetch, const std::stop_token& stop) const;

  std::filesystem::path folder_;
  bool shared_;
  std::unique_ptr<SpareFiles> files_;
};

}  // namespace shard
