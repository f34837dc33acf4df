// ShardCache: a folder with whole shards of data sets on servers, shared by all processes of a node.
//
//   .NAME.part, locked --> room is taken --> all bytes, proven --> NAME --> NAME.proof
//                          '--------------- CacheLock ---------------------'
//
// NAME.proof says which file was proven, since which start of the system.
//
// A file counts if its proof names it: device, inode, size, and the times of its last change, at this start
// of the system, and if nobody but this user and root can write to the file and its proof. Any other file,
// also one that was changed since, is proven again before it is used, or replaced. What others can write to
// is not trusted after that either.
//
// Room is taken, and files get their names and proofs, by whoever has the folder's lock, so the files of all
// processes together never have more than `max_bytes`. The locks (flock) are dropped however a process ends,
// so another one takes the work over. Nothing whole is removed to make room: what came first stays.
//
// What goes wrong with the folder is no error: shards are not kept, and problem() says why.
// Thread safe, also in a child after fork().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

class CacheLock;

class ShardCache {
 public:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  static constexpr std::chrono::seconds kPatience{120};
  // Makes the folder if it is missing. `max_bytes`: of all files in it, of all data sets. `spare_bytes`: what
  // it leaves free on its disk. `patience`: how long another process may have a shard without writing to it,
  // and a quarter of it: how long it may have the folder. Errors: io.
  ShardCache(std::filesystem::path folder, std::uint64_t max_bytes, std::uint64_t spare_bytes = 0,
             std::chrono::duration<double> patience = kPatience);
  ShardCache(const ShardCache&) = delete;
  ShardCache& operator=(const ShardCache&) = delete;
  ~ShardCache();

  struct Entry {
    std::string name;  // entry_name()
    std::uint64_t size_bytes = 0;
  };
  // The name for a shard: the same for the same data set and head, whoever makes it.
  static std::string entry_name(std::string_view address, std::uint64_t head_digest);
  static constexpr std::string_view kSuffix = ".safetensors";

  const std::filesystem::path& folder() const noexcept { return folder_; }
  const std::shared_ptr<const UniqueFd>& handle() const noexcept { return handle_; }

  // The entry's file, for reading, if it is there and its proof counts; else invalid. Then it also removes
  // what a killed process may have left of it.
  UniqueFd find(const Entry& entry) const;
  bool has(const Entry& entry) const { return static_cast<bool>(find(entry)); }

  // Writes all bytes to the file, which has the size already, and throws unless they are those of the shard.
  using Fetch = std::function<void(int fd)>;
  // Throws corrupt unless a file that was there has the bytes of the shard.
  using Prove = std::function<void(int fd)>;
  struct Copy {
    UniqueFd fd;           // for reading
    bool trusted = false;  // false: others can write to it. It had the bytes of the shard just now
  };
  // The entry's file; where it is not there or not proven, it is made, by one process at a time. Nothing:
  // there is no room, in `max_bytes` or on the disk, the folder is read-only, or it cannot be used
  // (problem()). Errors: those of `fetch` and `prove`; cancelled.
  std::optional<Copy> get(const Entry& entry, const Fetch& fetch, const Prove& prove,
                          const std::stop_token& stop) const;

  // The first thing that kept a shard out of the folder, and what to do,
  // but for a lack of room or of the right to write; empty: nothing did.
  std::string problem() const;

 private:
  struct Part;
  std::filesystem::path part_of(const Entry& entry) const;
  void note(const std::string& problem) const;
  double patience() const noexcept;
  std::optional<Part> lock_part(const Entry& entry, const std::stop_token& stop) const;
  std::optional<CacheLock> lock_folder(const std::stop_token& stop) const;
  std::optional<Copy> prove_file(const Entry& entry, const Prove& prove, bool locked,
                                 const std::stop_token& stop) const;
  bool has_room(const Entry& entry, std::uint64_t size_bytes) const;
  bool remove_file(const std::filesystem::path& path) const;
  bool reserve(const Part& part, const Entry& entry, const std::stop_token& stop) const;
  std::optional<Copy> publish(Part& part, const Entry& entry, const std::stop_token& stop) const;
  std::optional<Copy> make(Part& part, const Entry& entry, const Fetch& fetch,
                           const std::stop_token& stop) const;

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  std::uint64_t spare_bytes_;
  std::chrono::duration<double> patience_;
  std::shared_ptr<const UniqueFd> handle_;  // of the folder
  mutable std::atomic<bool> waited_in_vain_{false};
  mutable std::atomic<const std::string*> problem_{
      nullptr};  // no lock, which a forked child could find locked for ever
};

}  // namespace shard
