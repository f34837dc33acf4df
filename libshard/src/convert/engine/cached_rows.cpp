#include "convert/engine/cached_rows.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/text/quote.hpp"
#include "convert/engine/cached_sample.hpp"
#include "convert/engine/plan_reader.hpp"
#include "convert/engine/steps.hpp"
#include "convert/publish/journal.hpp"
#include "convert/publish/pixel_bound.hpp"
#include "shard/convert/inputs.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

class CachedReader final : public RowReader {
 public:
  CachedReader(const Plan& plan, const Options& options, SampleLogs& logs,
               std::atomic<std::uint64_t>& decoded, const std::atomic<bool>* cancel,
               image::MemoryBudget& memory)
      : plan_(plan),
        options_(options),
        logs_(logs),
        decoded_(decoded),
        files_(plan, options, cancel, memory) {}

  bool take(std::uint64_t shard, std::uint64_t row, InputRow& input) override {
    return files_.take(shard, row, input);
  }

  std::uint64_t read(InputRow& input) override {
    index_ = input.index;
    stored_.reset();
    if (logs_.read(index_, bytes_)) stored_ = parse_sample(bytes_);
    if (stored_ && stored_->reject && refused_by_lower_bound(*stored_->reject, options_.max_pixels))
      stored_.reset();
    if (!stored_) {
      ++decoded_;
      return read_file(input);
    }
    input.digest = stored_->digest;
    if (stored_->reject && !stored_->digest) throw Error(ErrorCode::corrupt, *stored_->reject);
    return 0;
  }

  void decode(RowSample& sample) override {
    if (!stored_) return decode_file(sample);
    if (stored_->reject) throw Error(ErrorCode::corrupt, *stored_->reject);
    sample.warnings = stored_->warnings;
    sample.image = stored_->images.front();
    sample.image_bytes = sample.image.bytes.size();
    sample.jpeg = stored_->jpeg;
    sample.fields = std::span(stored_->images).subspan(1);
    sample.columns.assign(1, plan_.label_row(index_));
    for (const ColumnTable& column : plan_.columns) sample.columns.push_back(column.rows(index_));
  }

  void release() noexcept override {
    if (bytes_.capacity() > kKeptBytes) bytes_ = {};
    files_.release();
  }

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{64} << 20U;

  // What fails now may work later (a file that cannot be read, too little memory), so it does not become a
  // reject of a shard that nobody looks at while it is finished.
  std::uint64_t read_file(InputRow& input) {
    try {
      return files_.read(input);
    } catch (const UnreadableInput& error) {
      if (error.code() != ErrorCode::io && error.code() != ErrorCode::not_found) throw;
      postpone(error);
    }
  }

  void decode_file(RowSample& sample) {
    try {
      files_.decode(sample);
    } catch (const Error& error) {
      if (!lacks_memory(error)) throw;
      postpone(error);
    }
  }

  [[noreturn]] void postpone(const Error& error) const {
    const std::uint64_t shard = index_ / plan_.per_shard;
    throw ShardPostponed(shard, fmt::format("{} is not finished, because {}: {}", shard_name(shard),
                                            quoted_key(plan_.list.inputs[index_].key()), error.what()));
  }

  const Plan& plan_;
  const Options& options_;
  SampleLogs& logs_;
  std::atomic<std::uint64_t>& decoded_;
  PlanReader files_;
  std::uint64_t index_ = 0;
  std::vector<std::byte> bytes_;
  std::optional<CachedSample> stored_;  // views of bytes_
};

}  // namespace

CachedRows::CachedRows(const Plan& plan, const Options& options, SampleLogs& logs,
                       std::function<std::optional<std::uint64_t>()> next,
                       std::function<void(std::uint64_t)> published, std::atomic<std::uint64_t>& decoded,
                       const std::atomic<bool>* cancel)
    : plan_(plan),
      options_(options),
      spec_(spec_of(options, plan)),
      logs_(logs),
      next_(std::move(next)),
      published_(std::move(published)),
      decoded_(decoded),
      cancel_(cancel) {}

std::unique_ptr<RowReader> CachedRows::reader(image::MemoryBudget& memory) {
  return std::make_unique<CachedReader>(plan_, options_, logs_, decoded_, cancel_, memory);
}

std::optional<ShardToFill> CachedRows::next_shard() {
  if (stop_) return std::nullopt;
  const std::optional<std::uint64_t> shard = next_();
  if (!shard) return std::nullopt;
  return to_fill(plan_, spec_, *shard);
}

}  // namespace shard::convert
