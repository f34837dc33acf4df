#include "shard/convert/writer.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>

#include "base/bytes.hpp"
#include "base/text/quote.hpp"
#include "convert/archives/array.hpp"
#include "convert/engine/writer_impl.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;
using WriterClock = std::chrono::steady_clock;

constexpr std::uint64_t kQueueBytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t kRowsPerThread = 16;  // that wait in the queue
constexpr std::uint64_t kDefaultHeadBytes = kMaxHeadBytes / 4;
constexpr std::uint64_t kMostByDefault = std::uint64_t{4} << 20U;
constexpr auto kForever = std::chrono::hours(24 * 365);

[[noreturn]] void refuse_twice(const WriterRow& row) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the key {} was added before: each row needs a key of its own", quoted(row.key)));
}

}  // namespace

std::uint64_t WriterOptions::rows_per_shard(const std::vector<ColumnSpec>& of_columns) const {
  DatasetSpec spec;
  spec.codec = codec;
  spec.columns = of_columns;
  spec.fields = image_fields;
  const std::uint64_t head_row = head_bytes_per_sample(spec) + 1;  // with the shortest key
  const std::uint64_t rows = per_shard(sample_spec().size_bytes());
  const std::uint64_t most = kMaxHeadRowBytes / head_row;
  if (rows <= most) return rows;
  if (samples_per_shard != 0)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("`samples_per_shard` is {}, but a shard has at most {} rows of these columns, which "
                    "take {} bytes each in its head",
                    samples_per_shard, most, head_row - 1));
  return std::clamp<std::uint64_t>(kDefaultHeadBytes / head_row, 1, kMostByDefault);
}

void WriterOptions::check() const {
  const auto refuse = [](const char* member) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is for conversions of files: a Writer is handed its rows", member));
  };
  if (refresh) refuse("`refresh`");
  if (append) refuse("`append`");
  if (claim) refuse("`claim`");
  if (world_size != 1 || rank != 0) refuse("`world_size`");
  if (!labels.empty()) refuse("`labels`");
  if (!columns.empty()) refuse("`columns`");
  if (!coco.empty() || !yolo.empty() || !voc.empty() || !box_classes.empty() || yolo_keypoints != 0)
    refuse("`coco`, `yolo` or `voc`");
  if (!pairs.empty()) refuse("`pairs`");
  if (keep_channels) refuse("`channels` keep");
  if (pages) refuse("`pages`");
  Options files = *this;
  files.images = "a program";
  if (tensor) {
    tensor->check();
    files.shard_bytes = Options{}.shard_bytes;  // it is compared with the size of an image
    if (samples_per_shard == 0 && shard_bytes < tensor->size_bytes())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("`shard_bytes` {} is less than one sample of {} bytes: give a larger size",
                              shard_bytes, tensor->size_bytes()));
  }
  files.check();
}

void WriterRow::set_label(std::int64_t label) {
  columns.resize(std::max<std::size_t>(1, columns.size()));
  columns.front().resize(8);
  store_u64(columns.front(), 0, static_cast<std::uint64_t>(label));
}

void WriterRow::set_array(std::string_view dtype, std::span<const std::uint64_t> shape, ArrayLayout layout,
                          std::span<const std::byte> elements) {
  const ArrayImages one = images_of({std::string(dtype), {shape.begin(), shape.end()}, 0}, layout);
  if (!is_single(layout) || elements.size() != one.item_bytes())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} bytes with array_layout {}: one image of {} bytes is expected, as hw, hwc or chw",
                    elements.size(), words_of(layout)[static_cast<std::size_t>(layout)], one.item_bytes()));
  image = tiff_header(one);
  image.insert(image.end(), elements.begin(), elements.end());
  pixels.reset();
  is_array = true;
}

Writer::Impl::Impl(const WriterOptions& given) : options(given), out(given.out) {
  image::PreprocessOptions& samples = options.preprocess;
  // As of a conversion (choose_preprocess()): the preset's are those of RGB.
  if (options.keep_normalization && samples.channels != 0 && samples.channels != 3)
    samples.normalization = for_channels({}, samples.channels);
  options.check();
  options.jobs = options.threads();  // asks the system, so once
  for (std::string& name : options.classes) name = escape_key(name);
  open_folder();
}

Writer::Impl::~Impl() {
  cancel();
  {
    std::unique_lock lock(mutex);
    no_guests.wait(lock, [&] { return guests == 0; });
  }
  if (engine.joinable()) engine.join();
}

void Writer::Impl::start() {
  if (engine.joinable() || complete) return;
  since.restart();
  // No signal reaches the engine's threads: they belong to the program, and no write or fsync ends early.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    engine = std::thread([this] { run_engine(); });
    running = true;
  } catch (...) {
    end(std::current_exception());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  throw_if_failed();
}

void Writer::Impl::run_engine() noexcept {
  std::exception_ptr failed;
  Hooks hooks;
  hooks.cancel = &stopping;
  try {
    convert_rows(*this, options, record, hooks, summary);
  } catch (...) {
    failed = std::current_exception();
  }
  const std::lock_guard lock(mutex);
  running = false;
  if (failed) end(std::move(failed));
  has_room.notify_all();
}

// With mutex held.
void Writer::Impl::end(std::exception_ptr failed) noexcept {
  if (!error) error = std::move(failed);
  stopping = true;
  has_rows.notify_all();
  has_room.notify_all();
}

void Writer::Impl::cancel() noexcept {
  const std::lock_guard lock(mutex);
  cancelled = true;
  end(nullptr);
}

// With mutex held.
void Writer::Impl::throw_if_failed() const {
  if (error) std::rethrow_exception(error);
  if (cancelled) throw Error(ErrorCode::cancelled, "interrupted");
}

std::uint64_t bytes_of(const WriterRow& row) {
  std::uint64_t bytes = row.image.size() + row.key.size();
  for (const auto& column : row.columns) bytes += column.size();
  for (const auto& image : row.images) bytes += image.size();
  return bytes;
}

std::optional<bool> Writer::Impl::try_add(WriterRow& row, std::chrono::milliseconds patience) {
  require_own_process();
  const auto deadline = WriterClock::now() + patience;
  const std::string key = escape_key(row.key);
  std::unique_lock lock(mutex);
  const Guest guest(*this);
  const auto require_open = [&] {
    throw_if_failed();
    if (ended)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the writer is closed: {} comes too late", quoted(row.key)));
  };
  require_open();
  if (done_keys.contains(key)) return false;
  if (complete)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is finished, and rows cannot be added to it",
                                                         quoted(row.key), quoted(out)));
  if (!declared) throw Error(ErrorCode::invalid_argument, "the columns are not declared");
  check(row);
  if (keys.contains(key)) refuse_twice(row);
  static_cast<void>(head_bytes_of(row, key));
  start();
  const std::uint64_t bytes = bytes_of(row);
  const auto room = [&] {
    return error || cancelled || ended || queue.empty() ||
           (queue.size() < kRowsPerThread * options.threads() && queue_bytes + bytes <= kQueueBytes);
  };
  if (!has_room.wait_until(lock, deadline, room)) return std::nullopt;
  require_open();
  if (!keys.insert(key)) refuse_twice(row);  // another thread has added it meanwhile
  try {
    row.key = key;
    queue_bytes += bytes_of(row);  // as take() counts it, with the escaped key
    queue.push_back(std::move(row));
  } catch (...) {  // of memory: its key is taken
    end(std::current_exception());
    throw;
  }
  ++added;
  has_rows.notify_one();
  return true;
}

void Writer::Impl::require_own_process() const {
  if (::getpid() != process)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the Writer on {} was made by another process, of which this is a fork: its threads are "
                    "not here; make a Writer in this process, on another folder",
                    quoted(out)));
}

void Writer::Destroy::operator()(Impl* impl) const noexcept {
  if (::getpid() == impl->process) delete impl;
}

Writer::Writer(const WriterOptions& options) : impl_(new Impl(options)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

void Writer::declare(std::vector<ColumnSpec> columns) {
  impl_->require_own_process();
  const std::lock_guard lock(impl_->mutex);
  impl_->declare(std::move(columns));
}

bool Writer::is_declared() const {
  impl_->require_own_process();
  const std::lock_guard lock(impl_->mutex);
  return impl_->declared;
}

std::vector<ColumnSpec> Writer::columns() const {
  impl_->require_own_process();
  const std::lock_guard lock(impl_->mutex);
  return impl_->declared ? impl_->spec.columns : std::vector<ColumnSpec>();
}

bool Writer::add(WriterRow row) { return *impl_->try_add(row, kForever); }

std::optional<bool> Writer::try_add(WriterRow& row, std::chrono::milliseconds patience) {
  return impl_->try_add(row, patience);
}

bool Writer::is_done(std::string_view key) const {
  impl_->require_own_process();
  const std::lock_guard lock(impl_->mutex);
  return impl_->done_keys.contains(escape_key(key));
}

std::vector<std::string> Writer::keys_done() const {
  impl_->require_own_process();
  std::unique_lock lock(impl_->mutex);
  const Impl::Guest guest(*impl_);
  impl_->has_room.wait(lock, [&] { return !impl_->closing; });  // receipts and tables stay where they are
  std::vector<std::string> keys;
  if (!impl_->declared || impl_->rows_before == 0) return keys;
  const bool closed = impl_->closed.has_value();
  read_input_rows(closed ? impl_->out : impl_->options.out,
                  impl_->complete || impl_->published_set ? nullptr : &impl_->record, [&](InputRow&& row) {
                    if (impl_->done_keys.contains(row.key)) keys.push_back(unescape_key(row.key));
                  });
  return keys;
}

std::uint64_t Writer::size() const {
  impl_->require_own_process();
  const std::lock_guard lock(impl_->mutex);
  return impl_->rows_before + impl_->added;
}

std::string Writer::enlargement() const {
  impl_->require_own_process();
  const std::lock_guard lock(impl_->mutex);
  return impl_->small.many() ? enlargement_text(impl_->small, impl_->options.preprocess, true)
                             : std::string();
}

Summary Writer::close() { return impl_->close(); }

void Writer::cancel() noexcept {
  if (::getpid() == impl_->process) impl_->cancel();
}

}  // namespace shard::convert
