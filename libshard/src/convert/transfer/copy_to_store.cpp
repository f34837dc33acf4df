// A copy from a folder to an object store.
#include <fmt/format.h>

#include <algorithm>

#include "base/files/file_io.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "convert/publish/stored_shard.hpp"
#include "convert/transfer/copy_source.hpp"
#include "convert/transfer/copy_steps.hpp"
#include "format/dataset/dataset_json.hpp"
#include "remote/s3/object_upload.hpp"

namespace shard::convert {
namespace {

class CopyToStore : public Copy {
 public:
  CopyToStore(const std::string& from, const std::string& to) : from_(from), store_(to) {}

  CopySummary run() override {
    CopySummary summary;
    summary.info = from_.info();
    store_.check_access(kDatasetFile);
    const bool there = is_there();
    send_shards(there, summary);
    if (!there) require_shards();
    const CopySource::Tables tables = from_.tables([](const std::string&) { return false; });
    for (const CopySource::Table& table : tables.tables) {
      const std::filesystem::path path = from_.path() / table.name;
      const UniqueFd fd = open_read(path);
      upload_file(store_, table.name, fd.get(), path, tables_);
      summary.files.push_back(table.name);
    }
    from_.check_tables();
    if (!there) upload_bytes(store_, kDatasetFile, from_.document(), tables_);
    summary.was_complete = there && summary.copied_shards == 0;
    summary.bytes = progress();
    const HttpStats& stats = store_.folder().client().stats();
    summary.requests = stats.requests;
    summary.retries = stats.retries;
    return summary;
  }

  CopyProgress progress() const override {
    return {from_.shards_bytes(), shards_.sent_bytes, shards_.kept_bytes};
  }

 private:
  // Whether dataset.json is there already. Throws if it is that of another data set.
  bool is_there() const {
    const std::unique_ptr<HttpObject> object = store_.folder().object(kDatasetFile);
    if (!store_.stat(kDatasetFile)) return false;
    if (store_.folder().client().read_all(*object, kMaxDatasetBytes) == from_.document()) return true;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{} holds another data set than {}: nothing is overwritten; remove it, or choose another prefix",
            quoted(store_.address()), quoted(from_.path())));
  }

  // `there`: dataset.json is, so it is enough that each shard is too.
  void send_shards(bool there, CopySummary& summary) {
    std::atomic<std::uint64_t> sent{0};
    parallel_for(kShardsAtOnce, from_.info().shards.size(), [&](unsigned, std::uint64_t i) {
      const ShardSummary& shard = from_.info().shards[i];
      if (there && look_at_stored(store_, shard) == StoredShard::as_sent) {
        shards_.kept_bytes += shard.size_bytes;
        return;
      }
      const std::filesystem::path path = from_.path() / shard.file;
      const UniqueFd fd = open_read(path);
      const auto prove = [&] { prove_shard(from_.shard(static_cast<std::uint32_t>(i)), fd.get()); };
      if (upload_file(store_, shard.file, fd.get(), path, shards_, {}, prove) == Uploaded::sent) ++sent;
    });
    summary.copied_shards = sent;
    summary.kept_shards = from_.info().shards.size() - sent;
  }

  // Before dataset.json says that they are a data set.
  void require_shards() const {
    const std::vector<ShardSummary>& shards = from_.info().shards;
    const std::vector<StoredShard> found = look_at_stored(store_, shards);
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i] != StoredShard::as_sent)
        throw Error(
            ErrorCode::corrupt,
            fmt::format("{} was sent, but {} since, as by another copy to the same prefix: remove what is "
                        "there and copy again",
                        quoted(store_.folder().address_of(shards[i].file)),
                        found[i] == StoredShard::missing ? "was removed" : "was replaced"));
  }

  CopySource from_;
  S3Store store_;
  UploadCounters shards_;
  UploadCounters tables_;
};

}  // namespace

std::unique_ptr<Copy> copy_to_store(const std::string& from, const std::string& to) {
  return std::make_unique<CopyToStore>(from, to);
}

}  // namespace shard::convert
