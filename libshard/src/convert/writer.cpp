#include "shard/convert/writer.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>

#include "base/bytes.hpp"
#include "base/quote.hpp"
#include "convert/steps.hpp"
#include "convert/writer_impl.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using WriterClock = std::chrono::steady_clock;

constexpr std::size_t kOpenShards = 2;  // one is being filled, one is being published
constexpr std::uint64_t kQueueBytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t kRowsPerThread = 16;    // that wait in the queue
constexpr std::uint64_t kWindowPerThread = 32;  // that a thread may be ahead of the slowest
constexpr auto kForever = std::chrono::hours(24 * 365);

[[noreturn]] void refuse_twice(const WriterRow& row) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the key {} was added before: each row needs a key of its own", quoted(row.key)));
}

}  // namespace

std::uint64_t WriterOptions::rows_per_shard() const {
  return tensor ? per_shard(tensor->size_bytes()) : per_shard();
}

void WriterRow::set_label(std::int64_t label) {
  columns.resize(std::max<std::size_t>(1, columns.size()));
  columns.front().resize(8);
  store_u64(columns.front(), 0, static_cast<std::uint64_t>(label));
}

Writer::Impl::Impl(const WriterOptions& given)
    : options(given),
      per_shard(0),
      memory(given.decode_memory_bytes != 0 ? given.decode_memory_bytes
                                            : image::MemoryBudget::default_bytes()) {
  options.images = "a program";
  options.overwrite = options.refresh = options.append = options.claim = false;
  options.rank = 0;
  options.world_size = 1;
  options.jobs = options.threads();  // asks the system, so once
  options.check();
  if (options.tensor) options.tensor->check();
  per_shard = options.rows_per_shard();
  for (std::string& name : options.classes) name = escape_key(name);
  open_folder();
}

Writer::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  has_work.notify_all();
  has_room.notify_all();
  may_publish.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void Writer::Impl::start() {
  if (!threads.empty() || complete) return;
  since.restart();
  // No signal reaches these threads: they belong to the program, and no write or fsync ends early.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    for (unsigned i = 0; i < options.threads(); ++i) threads.emplace_back([this] { work(); });
    threads.emplace_back([this] { publish_loop(); });
  } catch (...) {  // those that were started end
    error = std::current_exception();
    stop = true;
    has_work.notify_all();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  throw_if_failed();
}

void Writer::Impl::fail(std::exception_ptr failed) noexcept {
  {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(failed);
    stop = true;
  }
  has_work.notify_all();
  has_room.notify_all();
  may_publish.notify_all();
}

// With mutex held.
void Writer::Impl::throw_if_failed() const {
  if (error) std::rethrow_exception(error);
  if (cancelled) throw Error(ErrorCode::cancelled, "interrupted");
}

// With mutex held. The shard that the next row belongs to; null if no further one may be opened yet.
WriterShard* Writer::Impl::shard_for(const WriterRow& row) {
  if (!open.empty() && !open.back()->full) return open.back().get();
  if (open.size() >= kOpenShards) return nullptr;
  ShardWriterOptions shard_options{spec};
  shard_options.may_exist = true;
  shard_options.preallocate = false;  // the last shard ends where the rows end
  // Keys are usually about as long as those before. If not, rows are moved when the shard is published.
  shard_options.planned_key_bytes =
      last_key_bytes != 0 ? last_key_bytes : per_shard * escape_key(row.key).size();
  auto writer =
      ShardWriter::create(options.out / shard_name(next_shard), per_shard, std::move(shard_options));
  open.push_back(std::make_unique<WriterShard>(std::move(writer), next_shard));
  ++next_shard;
  return open.back().get();
}

std::optional<bool> Writer::Impl::try_add(WriterRow& row, std::chrono::milliseconds patience) {
  const auto deadline = WriterClock::now() + patience;
  const std::string key = escape_key(row.key);
  std::unique_lock lock(mutex);
  throw_if_failed();
  if (closed) throw Error(ErrorCode::invalid_argument, "the writer is closed");
  if (done_keys.contains(key)) return false;
  if (complete)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is finished, and rows cannot be added to it",
                                                         quoted(row.key), quoted(options.out)));
  if (!declared) throw Error(ErrorCode::invalid_argument, "the columns are not declared");
  check(row);
  if (keys.contains(key)) refuse_twice(row);
  start();
  const std::uint64_t bytes = bytes_of(row);
  WriterShard* shard = nullptr;
  const auto room = [&] {
    if (stop) return true;
    if (added - handled >= kWindowPerThread * options.threads()) return false;
    if (!queue.empty() &&
        (queue.size() >= kRowsPerThread * options.threads() || queue_bytes + bytes > kQueueBytes))
      return false;
    shard = shard_for(row);
    return shard != nullptr;
  };
  if (!has_room.wait_until(lock, deadline, room)) return std::nullopt;
  throw_if_failed();
  if (!keys.insert(key)) refuse_twice(row);  // another thread has added it meanwhile
  WriterTask task{std::move(row), shard, &shard->rows.emplace_back(), shard->added++, added++};
  task.row.key = key;
  shard->key_bytes += key.size();
  if (shard->added == per_shard) {
    shard->full = true;
    last_key_bytes = shard->key_bytes;
  }
  ahead.push_back(false);
  queue_bytes += bytes;
  queue.push_back(std::move(task));
  lock.unlock();
  has_work.notify_one();
  return true;
}

Summary Writer::Impl::close() {
  std::unique_lock lock(mutex);
  if (closed) return *closed;
  throw_if_failed();
  if (complete) return *(closed = summary);
  if (!open.empty() && open.back()->added == 0) {  // it was opened for a row that was refused then
    open.pop_back();
    --next_shard;
  }
  if (!open.empty() && !open.back()->full) {
    WriterShard& last = *open.back();
    for (std::uint64_t row = last.added; row < per_shard; ++row) last.writer.skip(row);
    last.full = true;
    may_publish.notify_all();
  }
  has_room.wait(lock, [&] { return stop || open.empty(); });
  throw_if_failed();
  if (next_shard == 0)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("nothing was added: a data set has at least one image ({})", quoted(options.out)));
  const std::uint64_t rows = added + first_shard * per_shard;
  summary.convert_seconds = since.seconds();
  lock.unlock();
  Ending ending{next_shard, DatasetInfo(spec), {}};
  ending.info.samples_per_shard = per_shard;
  ending.info.classes = options.classes;
  ending.info.inputs = rows;
  Summary whole = summary;
  if (!publish_dataset(options.out, record, std::move(ending), whole))
    throw Error(ErrorCode::io, fmt::format("shards of {} have been lost or changed", quoted(options.out)));
  remove_journal(options.out);
  lock.lock();
  closed = whole;
  return whole;
}

Writer::Writer(const WriterOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

void Writer::declare(std::vector<ColumnSpec> columns) {
  const std::lock_guard lock(impl_->mutex);
  impl_->declare(std::move(columns));
}

bool Writer::is_declared() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->declared;
}

std::vector<ColumnSpec> Writer::columns() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->declared ? impl_->spec.columns : std::vector<ColumnSpec>();
}

bool Writer::add(WriterRow row) { return *impl_->try_add(row, kForever); }

std::optional<bool> Writer::try_add(WriterRow& row, std::chrono::milliseconds patience) {
  return impl_->try_add(row, patience);
}

bool Writer::is_done(std::string_view key) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->done_keys.contains(escape_key(key));
}

std::vector<std::string> Writer::keys_done() const {
  std::vector<std::string> keys;
  const bool complete = impl_->complete || impl_->closed;
  std::uint64_t left = complete ? ~std::uint64_t{0} : impl_->first_shard * impl_->per_shard;
  if (!impl_->declared || left == 0) return keys;
  read_input_rows(impl_->options.out, complete ? nullptr : &impl_->record, [&](InputRow&& row) {
    if (impl_->done_keys.contains(row.key)) keys.push_back(unescape_key(row.key));
  });
  return keys;
}

std::uint64_t Writer::size() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->complete ? impl_->summary.inputs : impl_->added + impl_->first_shard * impl_->per_shard;
}

Summary Writer::close() { return impl_->close(); }

void Writer::cancel() noexcept {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->cancelled = true;
    impl_->stop = true;
  }
  impl_->has_work.notify_all();
  impl_->has_room.notify_all();
  impl_->may_publish.notify_all();
}

}  // namespace shard::convert
