#include "shard/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "format/dataset/shard_match.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kUnitBytes = std::uint64_t{16} << 20U;  // of samples, between two looks at the queue

[[noreturn]] void corrupt(const std::string& message) { throw Error(ErrorCode::corrupt, message); }

// Checks before opening (a pipe would wait for its writer) that this is a file, of the size in dataset.json.
void check_file(const VerifyTask& task) {
  if (is_remote(task.path)) return;  // the first answer of the server says its size
  std::error_code error;
  const auto status = std::filesystem::status(task.path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    corrupt("is missing; restore it, or convert again");
  if (error) throw Error(ErrorCode::io, fmt::format("cannot access it: {}", error.message()));
  if (status.type() != std::filesystem::file_type::regular) corrupt("is not a regular file");
  if (task.expected == nullptr) return;
  const std::uint64_t size = std::filesystem::file_size(task.path, error);
  if (!error && size != task.expected->size_bytes) {
    corrupt(fmt::format("has {} bytes, dataset.json says {}; restore it, or convert again", size,
                        task.expected->size_bytes));
  }
}

void check_against_dataset(const VerifyTask& task, const ShardReader& reader) {
  const auto it = shard_difference(reader, task.expected, task.dataset);
  if (!it) return;
  corrupt(
      fmt::format("does not belong to the data set: its {} is {}, {} says {}; restore it, or convert again",
                  it->what, it->found, kDatasetFile, it->stated));
}

void check_labels(const VerifyTask& task, const ShardReader& reader) {
  if (task.dataset == nullptr || task.dataset->classes.empty()) return;
  const auto labels = reader.columns().find("labels");
  if (labels == reader.columns().end() || labels->second.dtype != DType::i64 ||
      !labels->second.row_shape.empty())
    corrupt("its labels are not class ids, but dataset.json has classes");
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    const std::int64_t id = reader.label(sample);
    if (id < 0 || static_cast<std::uint64_t>(id) >= task.dataset->classes.size()) {
      corrupt(fmt::format("sample {} has the label {}, dataset.json has {} classes", sample, id,
                          task.dataset->classes.size()));
    }
  }
}

ShardReader open_task(const VerifyTask& task) {
  return task.expected != nullptr ? ShardReader::open(task.path, task.expected->size_bytes)
                                  : ShardReader::open(task.path);
}

struct OpenShard {
  OpenShard(ShardReader opened, const VerifyTask& of) : reader(std::move(opened)), task(of) {}
  ShardReader reader;
  const VerifyTask& task;
  std::atomic<std::uint64_t> units_left{0};
};

// A piece of work: the head of a shard (begin == end), or samples [begin, end).
struct Unit {
  std::shared_ptr<OpenShard> shard;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Messages of the library begin with the shard's path; the report names it already.
std::string without_path(std::string message, const std::filesystem::path& path) {
  const std::string prefix = fmt::format("shard {}: ", quoted(path));
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

// Gives out units, shard by shard. At most one shard more than there are threads is open at a time.
class Queue {
 public:
  Queue(const std::vector<VerifyTask>& tasks, VerifyFindings& findings)
      : tasks_(tasks), findings_(findings) {}

  std::optional<Unit> next() {
    const std::lock_guard lock(mutex_);
    while (!current_) {
      if (next_task_ == tasks_.size()) return std::nullopt;
      if (open(tasks_[next_task_++])) return Unit{current_, 0, 0};
    }
    const std::uint64_t step = unit_samples(current_->reader);
    const Unit unit{current_, begin_, std::min(begin_ + step, current_->reader.size())};
    begin_ = unit.end;
    if (begin_ == current_->reader.size()) current_.reset();
    return unit;
  }

 private:
  static std::uint64_t unit_samples(const ShardReader& reader) {
    const StoredImages& images = reader.images();
    const std::uint64_t sample_bytes =
        images.spec().is_free() ? images.largest().sample_bytes : images.spec().size_bytes();
    return std::max<std::uint64_t>(1, kUnitBytes / sample_bytes);
  }

  bool open(const VerifyTask& task) {
    try {
      check_file(task);
      auto shard = std::make_shared<OpenShard>(open_task(task), task);
      check_against_dataset(task, shard->reader);
      const std::uint64_t step = unit_samples(shard->reader);
      shard->units_left = 1 + (shard->reader.size() + step - 1) / step;
      current_ = std::move(shard);
      begin_ = 0;
      return true;
    } catch (const Error& error) {
      // A data set of this version has shards of this version, so a head with another version was changed.
      const bool changed = error.code() == ErrorCode::unsupported && task.expected != nullptr;
      findings_.add({escape_key(task.path.filename().native()),
                     std::nullopt,
                     {},
                     without_path(error.what(), task.path),
                     changed ? ErrorCode::corrupt : error.code()});
      return false;
    }
  }

  const std::vector<VerifyTask>& tasks_;
  VerifyFindings& findings_;
  std::mutex mutex_;
  std::size_t next_task_ = 0;
  std::shared_ptr<OpenShard> current_;
  std::uint64_t begin_ = 0;  // next sample of current_
};

void report(const ShardReader& reader, std::optional<std::uint64_t> sample, const Error& error,
            VerifyFindings& findings) {
  VerifyFailure failure{escape_key(reader.path().filename().native()),
                        sample,
                        {},
                        without_path(error.what(), reader.path()),
                        error.code()};
  if (sample) {
    failure.key = reader.key(*sample);
    const std::string place = fmt::format("sample {} ({}): ", *sample, quoted_key(failure.key));
    if (failure.message.starts_with(place)) failure.message.erase(0, place.size());
  }
  findings.add(std::move(failure));
}

void check_head(const OpenShard& shard, VerifyFindings& findings) {
  try {
    shard.reader.verify_head();
    check_labels(shard.task, shard.reader);
  } catch (const Error& error) {
    report(shard.reader, std::nullopt, error, findings);
  }
  findings.bytes += shard.reader.header().head_end;
}

void check_sample(const OpenShard& shard, std::uint64_t sample, std::vector<std::byte>& scratch,
                  VerifyFindings& findings) {
  try {
    shard.reader.verify_sample(sample, scratch);
  } catch (const Error& error) {
    report(shard.reader, sample, error, findings);
  }
  ++findings.samples;
  findings.bytes += shard.reader.stored_bytes(sample);
}

void check_end(const OpenShard& shard, VerifyFindings& findings) {
  try {
    shard.reader.check_unchanged();
  } catch (const Error& error) {
    report(shard.reader, std::nullopt, error, findings);
  }
  ++findings.shards;
}

}  // namespace

void VerifyFindings::add(VerifyFailure failure) {
  const std::lock_guard lock(mutex_);
  failures_.push_back(std::move(failure));
}

std::uint64_t VerifyFindings::count() const {
  const std::lock_guard lock(mutex_);
  return failures_.size();
}

std::vector<VerifyFailure> VerifyFindings::sorted() const {
  const std::lock_guard lock(mutex_);
  std::vector<VerifyFailure> all = failures_;
  std::stable_sort(all.begin(), all.end(), [](const VerifyFailure& a, const VerifyFailure& b) {
    return std::tie(a.file, a.sample) < std::tie(b.file, b.sample);
  });
  return all;
}

std::vector<VerifyTask> verify_tasks(const std::filesystem::path& folder, const DatasetInfo& info) {
  std::vector<VerifyTask> tasks;
  for (const ShardSummary& shard : info.shards) tasks.push_back({folder / shard.file, &info, &shard});
  return tasks;
}

std::vector<VerifyTask> verify_tasks(const Dataset& data) {
  if (data.is_unconverted())
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} is not converted: nothing is stored that could be verified", quoted(data.path())));
  std::vector<VerifyTask> tasks;
  for (std::uint32_t i = 0; i < data.info().shards.size(); ++i) {
    const Dataset::Source source = data.source(i);
    tasks.push_back({source.path, &source.dataset, &source.shard});
  }
  return tasks;
}

void verify_shards(const std::vector<VerifyTask>& tasks, unsigned threads, VerifyFindings& findings,
                   const std::function<void()>& progress, const std::stop_token& stop) {
  Queue queue(tasks, findings);
  std::atomic<bool> failed{false};
  const auto over = [&] { return failed || stop.stop_requested(); };
  run_threads(std::max(threads, 1U), [&](unsigned) {
    try {
      std::vector<std::byte> scratch;
      while (!over()) {
        const auto unit = queue.next();
        if (!unit) return;
        if (unit->end == 0) check_head(*unit->shard, findings);
        for (std::uint64_t sample = unit->begin; sample < unit->end && !over(); ++sample)
          check_sample(*unit->shard, sample, scratch, findings);
        if (--unit->shard->units_left == 0) check_end(*unit->shard, findings);
        if (progress) progress();
      }
    } catch (...) {
      failed = true;
      throw;
    }
  });
}

}  // namespace shard
