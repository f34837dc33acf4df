#include "shard/convert/writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/publish.hpp"
#include "base/quote.hpp"
#include "base/stopwatch.hpp"
#include "convert/claim.hpp"
#include "convert/decoding.hpp"
#include "convert/folder_lock.hpp"
#include "convert/input_file.hpp"
#include "convert/input_table.hpp"
#include "convert/key_set.hpp"
#include "convert/replace.hpp"
#include "convert/steps.hpp"
#include "convert/writer_journal.hpp"
#include "format/shard_profile.hpp"
#include "shard/keys.hpp"
#include "shard/shard_writer.hpp"

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

std::uint64_t bytes_of(const WriterRow& row) {
  std::uint64_t bytes = row.image.size() + row.key.size();
  for (const auto& column : row.columns) bytes += column.size();
  for (const auto& image : row.images) bytes += image.size();
  return bytes;
}

}  // namespace

// A shard that is being written.
struct WriterShard {
  WriterShard(ShardWriter shard_writer, std::uint64_t number)
      : writer(std::move(shard_writer)), shard(number) {}

  ShardWriter writer;
  const std::uint64_t shard;
  std::deque<InputRow> rows;  // made with the writer's mutex, set by the thread that handles the row
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, Reject>> rejects;  // by row; guarded by mutex
  image::WarningCounts warnings;                          // likewise
  std::atomic<std::uint64_t> stored{0};
  std::uint64_t added = 0;      // rows handed over; guarded by the writer's mutex, as are the following
  std::uint64_t done = 0;       // of these, rows that were handled
  std::uint64_t key_bytes = 0;  // of these
  bool full = false;            // no more rows follow
};

struct WriterTask {
  WriterRow row;
  WriterShard* shard = nullptr;
  InputRow* input = nullptr;
  std::uint64_t index = 0;   // of the row in the shard
  std::uint64_t number = 0;  // of the row in this run
};

std::uint64_t WriterOptions::rows_per_shard() const {
  return tensor ? per_shard(tensor->size_bytes()) : per_shard();
}

void WriterRow::set_label(std::int64_t label) {
  columns.resize(std::max<std::size_t>(1, columns.size()));
  columns.front().resize(8);
  store_u64(columns.front(), 0, static_cast<std::uint64_t>(label));
}

struct Writer::Impl {
  explicit Impl(const WriterOptions& given);
  ~Impl();

  void open_folder();
  void declare(std::vector<ColumnSpec> columns);
  void continue_with(const PlanRecord& there);
  void start();
  void check(const WriterRow& row) const;
  WriterShard* shard_for(const WriterRow& row);
  void work() noexcept;
  void convert(WriterTask& task, struct WriterTools& tools);
  void decode(WriterTask& task, struct WriterTools& tools, InputRow& input, image::WarningSet& found);
  void publish_loop() noexcept;
  void publish(WriterShard& shard);
  void fail(std::exception_ptr error) noexcept;
  void throw_if_failed() const;
  std::optional<bool> try_add(WriterRow& row, std::chrono::milliseconds patience);
  Summary close();
  Summary publish_all();

  WriterOptions options;
  std::uint64_t per_shard;
  FolderLock folder;
  image::MemoryBudget memory;
  std::atomic<bool> stop{false};  // cancels decoding too

  // Set before the threads start.
  bool declared = false;
  bool complete = false;  // OUT held the finished data set
  DatasetSpec spec;
  PlanRecord record;
  std::uint64_t first_shard = 0;  // of this run

  mutable std::mutex mutex;  // guards all below
  std::condition_variable has_work;
  std::condition_variable has_room;
  std::condition_variable may_publish;
  KeySet done_keys;
  KeySet keys;  // of this run
  std::deque<WriterTask> queue;
  std::uint64_t queue_bytes = 0;
  std::uint64_t added = 0;                        // rows of this run
  std::uint64_t handled = 0;                      // each row before it was handled
  std::deque<bool> ahead;                         // of the rows from `handled` on: whether it was
  std::deque<std::unique_ptr<WriterShard>> open;  // in order
  std::uint64_t next_shard = 0;
  std::uint64_t last_key_bytes = 0;  // per row, of the shard before
  bool cancelled = false;
  std::exception_ptr error;
  Summary summary;
  Stopwatch since;
  std::optional<Summary> closed;
  std::vector<std::thread> threads;
};

// What each thread has of its own.
struct WriterTools {
  WriterTools(const WriterOptions& options, image::MemoryBudget& memory, const std::atomic<bool>& stop)
      : reader(fs::path()),
        preprocessor(options.preprocess),
        decode(decode_options(options, &stop)),
        sample(options.sample_spec().size_bytes()) {
    decode.memory = &memory;
  }

  InputReader reader;
  image::Decoder decoder;
  image::Preprocessor preprocessor;
  image::DecodeOptions decode;
  std::vector<std::byte> sample;
  std::vector<std::uint8_t> rgb;
  std::vector<std::span<const std::byte>> columns, images;
};

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

void Writer::Impl::open_folder() {
  const fs::path& out = options.out;
  make_folders(out);
  if (folder.try_lock(out, true) == LockResult::busy) refuse_busy(out, folder.holder(), "");
  const FolderState state = folder_state(out);
  if (state == FolderState::foreign)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is not empty and holds no data set of shardify: choose an empty or a new folder",
                    quoted(out)));
  if (state == FolderState::complete && !options.resume)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} holds a finished data set: use another folder", quoted(out)));
  if (state == FolderState::complete) {
    const DatasetInfo info = read_dataset_info(out);
    complete = true;
    continue_with(recorded_plan(info, writer_record(options, info.columns)));
    if (info.classes != options.classes && !options.classes.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} holds a finished data set with other classes", quoted(out)));
    spec = info;
    summary = summary_of(info);
    summary.was_complete = true;
    if (has_leftovers(out)) remove_journal(out);  // of a run that was killed after it wrote dataset.json
  } else if (state == FolderState::incomplete) {
    const PlanRecord there = read_plan(out);
    if (there.writer.empty())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "{} holds an unfinished conversion of files: finish it with shardify, or use another folder",
              quoted(out)));
    if (!options.resume && !receipts_in(out).empty())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "{} holds an unfinished data set: give `resume` to go on with it, or use another folder",
              quoted(out)));
    if (options.resume) {
      continue_with(there);
    } else {
      remove_dataset_files(out);  // none of its shards was finished
    }
  }
  if (!declared && !options.fields.empty()) declare(options.fields);
}

// Takes over the rows of an earlier run.
void Writer::Impl::continue_with(const PlanRecord& there) {
  const fs::path& out = options.out;
  const auto columns = complete ? read_dataset_info(out).columns : parse_columns(there.writer);
  PlanRecord asked = writer_record(options, options.fields.empty() ? columns : options.fields);
  if (complete) {
    asked.source_digest = there.source_digest;
    asked.inputs = there.inputs;
    for (const char* name : {"source", "classes"}) asked.options.erase(name);
    PlanRecord plain = there;
    for (const char* name : {"source", "classes"}) plain.options.erase(name);
    require_same_plan(plain, asked, out);
  } else {
    require_same_plan(there, asked, out);
  }
  record = asked;
  spec = writer_spec(options, columns);
  declared = true;
  if (!complete) {
    remove_stale_temporaries(out);
    first_shard = next_shard = keep_full_shards(out, record);
  }
  const bool whole =
      read_input_rows(out, complete ? nullptr : &record, [&](InputRow&& row) { done_keys.insert(row.key); });
  if (!whole)
    throw Error(ErrorCode::corrupt,
                fmt::format("what an earlier run recorded in {} is damaged", quoted(out)));
}

void Writer::Impl::declare(std::vector<ColumnSpec> columns) {
  if (columns.empty() || columns.front().name != "labels")
    throw Error(ErrorCode::invalid_argument, "the first column must be labels");
  if (declared) {
    if (columns == spec.columns) return;
    std::string text;
    for (const ColumnSpec& column : spec.columns)
      text += fmt::format("\n  {} {}", column.name, to_string(column));
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has other columns:{}", quoted(options.out), text));
  }
  spec = writer_spec(options, columns);
  check_writer_options(ShardWriterOptions(spec));
  record = writer_record(options, columns);
  if (!publish_new_file(options.out / kPlanFile, serialize_plan(record)))
    throw Error(ErrorCode::resource,
                fmt::format("another process has just started to write to {}", quoted(options.out)));
  declared = true;
}

void Writer::Impl::start() {
  if (!threads.empty() || complete) return;
  since.restart();
  // No signal reaches these threads: they belong to the program, and no write or fsync ends early.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  for (unsigned i = 0; i < options.threads(); ++i) threads.emplace_back([this] { work(); });
  threads.emplace_back([this] { publish_loop(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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

void Writer::Impl::check(const WriterRow& row) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(row.key), why));
  };
  if (row.key.empty()) throw Error(ErrorCode::invalid_argument, "a row has an empty key");
  if (row.columns.size() != spec.columns.size())
    refuse(fmt::format("{} columns, but the data set has {}", row.columns.size(), spec.columns.size()));
  for (std::size_t i = 0; i < row.columns.size(); ++i) {
    const ColumnSpec& column = spec.columns[i];
    const std::uint64_t bytes = row.columns[i].size();
    const bool fits =
        column.kind == ColumnKind::fixed ? bytes == column.row_bytes() : bytes % column.row_bytes() == 0;
    if (!fits)
      refuse(fmt::format("column {} has {} bytes, but a row is {} of {} bytes", quoted(column.name), bytes,
                         to_string(column), column.row_bytes()));
  }
  if (row.images.size() != spec.fields.size())
    refuse(fmt::format("{} further images, but the data set has {} such fields", row.images.size(),
                       spec.fields.size()));
  for (std::size_t i = 0; i < row.images.size(); ++i)
    if (row.images[i].size() != spec.fields[i].spec.size_bytes())
      refuse(fmt::format("field {} has {} bytes, but {} has {}", quoted(spec.fields[i].name),
                         row.images[i].size(), to_string(spec.fields[i]), spec.fields[i].spec.size_bytes()));
  const ColumnSpec& labels = spec.columns.front();
  if (!options.classes.empty() && labels.dtype == DType::i64 && labels.row_shape.empty()) {
    const auto label = static_cast<std::int64_t>(load_u64(row.columns.front(), 0));
    if (label < 0 || static_cast<std::uint64_t>(label) >= options.classes.size())
      refuse(fmt::format("label {}, but there are {} classes", label, options.classes.size()));
  }
  if (options.tensor && (row.pixels || !row.file.empty() || row.image.size() != options.tensor->size_bytes()))
    refuse(fmt::format("the sample has {} bytes, but the samples are tensors of {}: {} [{}]",
                       row.image.size(), options.tensor->size_bytes(), to_string(options.tensor->dtype),
                       fmt::join(options.tensor->shape(), ", ")));
  if (!row.pixels) return;
  const Pixels& pixels = *row.pixels;
  if (pixels.width == 0 || pixels.height == 0 ||
      (pixels.channels != 1 && pixels.channels != 3 && pixels.channels != 4) ||
      row.image.size() != std::uint64_t{pixels.width} * pixels.height * pixels.channels)
    refuse(fmt::format("{} bytes are not {}x{} pixels of 1, 3 or 4 channels (channels: {})", row.image.size(),
                       pixels.width, pixels.height, pixels.channels));
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

void Writer::Impl::decode(WriterTask& task, WriterTools& tools, InputRow& input, image::WarningSet& found) {
  const WriterRow& row = task.row;
  if (options.tensor) {
    input.size_bytes = row.image.size();
    input.digest = xxh3(row.image);
    std::copy(row.image.begin(), row.image.end(), tools.sample.begin());
    return;
  }
  if (row.pixels && row.file.empty()) {
    input.size_bytes = row.image.size();
    input.digest = xxh3(row.image);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(row.image.data());
    const Pixels& pixels = *row.pixels;
    const std::size_t count = std::size_t{pixels.width} * pixels.height;
    if (count > options.max_pixels)
      throw Error(ErrorCode::unsupported,
                  fmt::format("has {} pixels, more than {}", count, options.max_pixels));
    if (pixels.channels != 3) {
      tools.rgb.resize(count * 3);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < 3; ++c)
          tools.rgb[3 * i + c] = bytes[pixels.channels == 1 ? i : 4 * i + c];
      bytes = tools.rgb.data();
    }
    tools.preprocessor.run({bytes, pixels.width, pixels.height, std::size_t{pixels.width} * 3}, tools.sample);
    return;
  }
  const std::span<const std::byte> file =
      row.file.empty() ? std::span<const std::byte>(row.image) : tools.reader.read(row.file.string());
  input.size_bytes = file.size();
  input.digest = xxh3(file);
  found = tools.preprocessor.run_file(tools.decoder, file, tools.decode, tools.sample);
}

void Writer::Impl::convert(WriterTask& task, WriterTools& tools) {
  WriterShard& shard = *task.shard;
  InputRow& input = *task.input;
  input.key = task.row.key;
  image::WarningSet found;
  try {
    decode(task, tools, input, found);
  } catch (const Error& failed) {
    const bool ours = failed.code() == ErrorCode::cancelled || failed.code() == ErrorCode::invalid_argument ||
                      (failed.code() == ErrorCode::resource && !input.digest &&
                       dynamic_cast<const UnreadableInput*>(&failed) == nullptr);
    if (ours) throw;
    const std::string reason = reject_reason(failed);
    if (options.on_error == OnError::fail)
      throw Error(ErrorCode::corrupt, fmt::format("{}: {} (`on_error` fail)", quoted_key(input.key), reason));
    shard.writer.skip(task.index);
    const std::lock_guard lock(shard.mutex);
    shard.rejects.emplace_back(task.index, Reject{input.key, escape_key(reason)});
    return;
  }
  tools.columns.assign(task.row.columns.begin(), task.row.columns.end());
  tools.images.assign(task.row.images.begin(), task.row.images.end());
  shard.writer.put(task.index, input.key, tools.columns, tools.sample, tools.images);
  ++shard.stored;
  if (found.empty()) return;
  const std::lock_guard lock(shard.mutex);
  shard.warnings.add(found);
}

void Writer::Impl::work() noexcept {
  try {
    WriterTools tools(options, memory, stop);
    std::unique_lock lock(mutex);
    for (;;) {
      has_work.wait(lock, [&] { return stop || !queue.empty(); });
      if (stop) return;
      WriterTask task = std::move(queue.front());
      queue.pop_front();
      queue_bytes -= bytes_of(task.row);
      lock.unlock();
      has_room.notify_all();
      convert(task, tools);
      task.row = WriterRow();
      lock.lock();
      ahead[task.number - handled] = true;
      const bool oldest = task.number == handled;
      while (!ahead.empty() && ahead.front()) {
        ahead.pop_front();
        ++handled;
      }
      if (oldest) has_room.notify_all();
      if (++task.shard->done == task.shard->added && task.shard->full) may_publish.notify_all();
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

void Writer::Impl::publish(WriterShard& shard) {
  Receipt receipt;
  if (shard.stored > 0)
    receipt.shard = shard.writer.publish();
  else
    receipt.shard.file = shard_name(shard.shard);
  std::sort(shard.rejects.begin(), shard.rejects.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [row, reject] : shard.rejects) receipt.rejects.push_back(std::move(reject));
  receipt.warnings = shard.warnings;
  for (const InputRow& row : shard.rows) receipt.inputs += serialize_row(row);
  replace_file(receipt_path(options.out, shard.shard), serialize_receipt(receipt, record, shard.shard));
}

// In order, so that the shards of a run that is stopped are the first ones.
void Writer::Impl::publish_loop() noexcept {
  try {
    std::unique_lock lock(mutex);
    for (;;) {
      may_publish.wait(lock, [&] {
        return stop || (!open.empty() && open.front()->full && open.front()->done == open.front()->added);
      });
      if (stop) return;
      WriterShard& shard = *open.front();
      lock.unlock();
      const Stopwatch watch;
      publish(shard);
      lock.lock();
      summary.stages.publish += watch.seconds();
      summary.converted += shard.stored;
      for (const InputRow& row : shard.rows) summary.bytes_read += row.size_bytes.value_or(0);
      ++summary.converted_shards;
      open.pop_front();
      has_room.notify_all();
    }
  } catch (...) {
    fail(std::current_exception());
  }
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
