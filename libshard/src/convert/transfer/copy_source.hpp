// CopySource: the data set that is copied, in a folder or on a server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/publish/tables.hpp"
#include "format/dataset/dataset_part.hpp"
#include "remote/http/http_client.hpp"
#include "remote/s3/remote_folder.hpp"
#include "shard/dataset.hpp"

namespace shard::convert {

inline constexpr std::string_view kSelectionSuffix = ".selection";
// Shards that are copied at a time.
inline constexpr unsigned kShardsAtOnce = 4;

// Thread safe.
class CopySource {
 public:
  // Errors: those of Dataset::open(); invalid_argument: a selection, or a shard alone.
  explicit CopySource(const std::string& path);

  const std::filesystem::path& path() const noexcept { return part_->path(); }
  bool is_remote() const noexcept { return remote_ != nullptr; }
  const DatasetInfo& info() const noexcept { return part_->info(); }
  const ShardReader& shard(std::uint32_t index) const { return part_->shard(index); }
  // The bytes of dataset.json, which match its digest.
  const std::vector<std::byte>& document() const noexcept { return document_; }
  std::uint64_t shards_bytes() const noexcept;

  // rejects.csv, inputs.csv and selections, by name: those that there are. On a server each is asked for, but
  // those that `has` says are here. What the server does not tell is a note: names of selections (only S3
  // lists its files, if the keys may), and files that are refused: so stores hide what is not there from keys
  // that may not list it. Errors: io, and those of HttpClient.
  struct Table {
    std::string name;
    std::unique_ptr<HttpObject> object;  // null: a file of the folder
  };
  struct Tables {
    std::vector<Table> tables;
    std::vector<std::string> notes;
  };
  Tables tables(const std::function<bool(const std::string& name)>& has) const;

  // An object on a server, for read(). Null: a file of the folder.
  std::unique_ptr<HttpObject> object(const std::string& name, std::uint64_t size_bytes = 0) const;
  // Writes bytes [begin, begin + size) of a file to the same place of `fd`.
  void read(HttpObject* object, const std::string& name, std::uint64_t begin, std::uint64_t size_bytes,
            int fd) const;
  // Bytes that came from the folder or the server so far, of all files.
  std::uint64_t moved_bytes() const noexcept;
  const HttpStats* stats() const noexcept { return remote_ ? &remote_->client().stats() : nullptr; }
  // Throws resource unless the tables belong to the data set that was opened.
  void check_tables() const;

 private:
  void read_document();
  std::vector<std::string> selections_here() const;
  std::vector<std::string> selections_there(std::vector<std::string>& notes) const;
  bool is_there(Table& table, std::vector<std::string>& notes) const;

  std::optional<TableGuard> guard_;  // made before the data set is opened
  std::shared_ptr<const DatasetPart> part_;
  std::shared_ptr<const RemoteFolder> remote_;  // null: a folder
  std::vector<std::byte> document_;
  mutable std::atomic<std::uint64_t> read_bytes_{0};  // from a folder
  std::uint64_t before_bytes_ = 0;                    // of the client's statistics
};

// Throws corrupt unless `fd` has the bytes of the shard, by its digests.
void prove_shard(const ShardReader& reader, int fd);

}  // namespace shard::convert
