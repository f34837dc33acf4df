// ShardCache: a folder with whole shards of data sets on servers, shared by all processes of a node.
//
//   .NAME.part, locked --> all bytes, proven --> NAME --> NAME.proof: which file was proven, since which start of the system
//
// A file counts if its proof names it: device, inode, size, and the times of its last change, at this start of the system. Any other file, also one
// that was changed since, is proven again before it is used, or replaced. The lock (flock) is dropped however a process ends, so another one
// takes the work over. Nothing is removed to make room: what came first stays.
//
// Thread safe. Errors of all: io.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

class ShardCache {
 public:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  // Makes the folder if it is missing. `max_bytes`: of all files in it, of all data sets. `spare_bytes`: what it leaves free on its disk.
  ShardCache(std::filesystem::path folder, std::uint64_t max_bytes, std::uint64_t spare_bytes = 0);

  struct Entry {
    std::string name;  // entry_name()
    std::uint64_t size_bytes = 0;
  };
  // The name for a shard: the same for the same data set and head, whoever makes it.
  static std::string entry_name(std::string_view address, std::uint64_t head_digest);
  static constexpr std::string_view kSuffix = ".safetensors";

  const std::filesystem::path& folder() const noexcept { return folder_; }
  const std::shared_ptr<const UniqueFd>& handle() const noexcept { return handle_; }

  // Whether the entry is there and proven. Then it also removes what a killed process may have left of it.
  bool has(const Entry& entry) const;

  // Writes all bytes to the file, which has the size already, and throws unless they are those of the shard.
  using Fetch = std::function<void(int fd)>;
  // Throws corrupt unless a file that was there has the bytes of the shard.
  using Prove = std::function<void(int fd)>;
  // The entry's file; where it is not there or not proven, it is made, by one process at a time. Nothing: there is no room, in `max_bytes` or on the
  // disk, or the folder is read-only. Errors: those of `fetch` and `prove`; cancelled.
  std::optional<UniqueFd> get(const Entry& entry, const Fetch& fetch, const Prove& prove,
                              const std::stop_token& stop) const;

 private:
  std::filesystem::path part_of(const Entry& entry) const;
  void write_proof(const std::string& name, int fd) const;
  std::optional<UniqueFd> lock_part(const std::filesystem::path& part, const std::stop_token& stop) const;
  std::uint64_t bytes_of_others(const Entry& entry, const std::filesystem::path& part) const;
  bool reserve(int fd, const Entry& entry, const std::filesystem::path& part) const;

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  std::uint64_t spare_bytes_;
  std::shared_ptr<const UniqueFd> handle_;  // of the folder
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::uint64_t, std::less<>> sizes_;  // of entries and proofs that were seen
};

// What lies in a cache folder.
struct CacheFile {
  std::string name;
  std::uint64_t size_bytes = 0;
  enum class State : std::uint8_t { proven, unproven, unfinished, foreign } state = State::foreign;
};
// In the order of their names. Errors: not_found, io.
std::vector<CacheFile> list_cache(const std::filesystem::path& folder);
// Removes a file of the list, with its proof. False: a process is filling it, or it is foreign. Errors: io.
bool remove_cached(const std::filesystem::path& folder, const CacheFile& file);

}  // namespace shard
