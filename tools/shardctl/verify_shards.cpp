#include "shardctl/verify_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "cli/text.hpp"
#include "shardctl/labels.hpp"
#include "shardctl/parallel.hpp"
#include "shardctl/source.hpp"

namespace shard::ctl {
namespace {

constexpr std::uint64_t kUnitBytes = std::uint64_t{16} << 20U;  // of samples, between two looks at the queue

[[noreturn]] void corrupt(const std::string& message) { throw Error(ErrorCode::corrupt, message); }

// Before it is opened (a pipe would wait for its writer): a file, and of the size that dataset.json says.
void check_file(const ShardTask& task) {
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

void check_against_dataset(const ShardTask& task, const ShardReader& reader) {
  const ShardHeader& header = reader.header();
  if (task.expected != nullptr) {
    if (header.samples != task.expected->samples) {
      corrupt(fmt::format("has {} samples, dataset.json says {}", header.samples, task.expected->samples));
    }
    if (header.head_digest != task.expected->head_digest) {
      corrupt(
          fmt::format("has the head digest {:016x}, dataset.json says {:016x}: it is another shard (swapped "
                      "or replaced), "
                      "or its head was changed",
                      header.head_digest, task.expected->head_digest));
    }
  }
  if (task.dataset == nullptr) return;
  if (header.spec != task.dataset->spec)
    corrupt("its samples have another dtype, layout or shape than dataset.json says");
  if (header.codec != task.dataset->codec) {
    corrupt(fmt::format("has the codec {}, dataset.json says {}", to_string(header.codec),
                        to_string(task.dataset->codec)));
  }
  if (header.normalization != task.dataset->normalization)
    corrupt("has another mean or std than dataset.json says");
  if (header.fingerprint != task.dataset->fingerprint) {
    corrupt(fmt::format("has the fingerprint {}, dataset.json says {}: it was made with other options",
                        header.fingerprint, task.dataset->fingerprint));
  }
}

void check_labels(const ShardTask& task, const ShardReader& reader) {
  if (task.dataset == nullptr || task.dataset->classes.empty()) return;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    const auto id = class_id(reader, sample);
    if (!id) corrupt("its labels are not class ids, but dataset.json has classes");
    if (*id < 0 || static_cast<std::uint64_t>(*id) >= task.dataset->classes.size()) {
      corrupt(fmt::format("sample {} has the label {}, dataset.json has {} classes", sample, *id,
                          task.dataset->classes.size()));
    }
  }
}

struct OpenShard {
  OpenShard(ShardReader opened, const ShardTask& of) : reader(std::move(opened)), task(of) {}
  ShardReader reader;
  const ShardTask& task;
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
  const std::string prefix = fmt::format("shard \"{}\": ", path.native());
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

// Hands out units, shard by shard: at most a shard more than there are threads is open at a time.
class Queue {
 public:
  Queue(const std::vector<ShardTask>& tasks, Findings& findings) : tasks_(tasks), findings_(findings) {}

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
    return std::max<std::uint64_t>(1, kUnitBytes / reader.header().spec.size_bytes());
  }

  bool open(const ShardTask& task) {
    try {
      check_file(task);
      auto shard = std::make_shared<OpenShard>(ShardReader::open(task.path), task);
      check_against_dataset(task, shard->reader);
      const std::uint64_t step = unit_samples(shard->reader);
      shard->units_left = 1 + (shard->reader.size() + step - 1) / step;
      current_ = std::move(shard);
      begin_ = 0;
      return true;
    } catch (const Error& error) {
      // A data set of this version has shards of this version: a head that says otherwise was changed.
      const bool changed = error.code() == ErrorCode::unsupported && task.expected != nullptr;
      findings_.add({path_text(task.path.filename()),
                     std::nullopt,
                     {},
                     without_path(error.what(), task.path),
                     changed ? ErrorCode::corrupt : error.code()});
      return false;
    }
  }

  const std::vector<ShardTask>& tasks_;
  Findings& findings_;
  std::mutex mutex_;
  std::size_t next_task_ = 0;
  std::shared_ptr<OpenShard> current_;
  std::uint64_t begin_ = 0;  // next sample of current_
};

void report(const ShardReader& reader, std::optional<std::uint64_t> sample, const Error& error,
            Findings& findings) {
  Failure failure{path_text(reader.path().filename()),
                  sample,
                  {},
                  without_path(error.what(), reader.path()),
                  error.code()};
  if (sample) {
    failure.key = reader.key(*sample);
    const std::string place = fmt::format("sample {} (\"{}\"): ", *sample, failure.key);
    if (failure.message.starts_with(place)) failure.message.erase(0, place.size());
  }
  findings.add(std::move(failure));
}

void check_head(const OpenShard& shard, Findings& findings) {
  try {
    shard.reader.verify_head();
    check_labels(shard.task, shard.reader);
  } catch (const Error& error) {
    report(shard.reader, std::nullopt, error, findings);
  }
  findings.bytes += shard.reader.header().images_begin;
}

void check_sample(const OpenShard& shard, std::uint64_t sample, std::vector<std::byte>& scratch,
                  Findings& findings) {
  try {
    shard.reader.verify_sample(sample, scratch);
  } catch (const Error& error) {
    report(shard.reader, sample, error, findings);
  }
  ++findings.samples;
  findings.bytes += shard.reader.frame(sample).size();
}

void check_end(const OpenShard& shard, Findings& findings) {
  try {
    shard.reader.check_unchanged();
  } catch (const Error& error) {
    report(shard.reader, std::nullopt, error, findings);
  }
  ++findings.shards;
}

}  // namespace

void Findings::add(Failure failure) {
  const std::lock_guard lock(mutex_);
  failures_.push_back(std::move(failure));
}

std::uint64_t Findings::count() const {
  const std::lock_guard lock(mutex_);
  return failures_.size();
}

std::vector<Failure> Findings::sorted() const {
  const std::lock_guard lock(mutex_);
  std::vector<Failure> all = failures_;
  std::stable_sort(all.begin(), all.end(), [](const Failure& a, const Failure& b) {
    return std::tie(a.file, a.sample) < std::tie(b.file, b.sample);
  });
  return all;
}

void verify_shards(const std::vector<ShardTask>& tasks, unsigned threads, cli::Progress& progress,
                   Findings& findings) {
  const auto start = std::chrono::steady_clock::now();
  Queue queue(tasks, findings);
  run_threads(threads, [&](unsigned) {
    std::vector<std::byte> scratch;
    while (const auto unit = queue.next()) {
      if (unit->end == 0) check_head(*unit->shard, findings);
      for (std::uint64_t sample = unit->begin; sample < unit->end; ++sample) {
        check_sample(*unit->shard, sample, scratch, findings);
      }
      if (--unit->shard->units_left == 0) check_end(*unit->shard, findings);
      if (progress.due()) {
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const std::uint64_t bytes = findings.bytes;
        progress.update(
            fmt::format("{} of {} shards, {} samples, {} at {}/s, {} failures", findings.shards.load(),
                        tasks.size(), cli::human_count(findings.samples), cli::human_bytes(bytes),
                        cli::human_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds)),
                        findings.count()));
      }
    }
  });
}

}  // namespace shard::ctl
