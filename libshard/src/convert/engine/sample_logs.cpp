#include "convert/engine/sample_logs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "convert/publish/journal.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexEnd = ".index";
constexpr std::string_view kDataEnd = ".data";
constexpr std::size_t kLogEntryBytes = 40;
constexpr std::size_t kLogEntriesAtOnce = 256;
constexpr std::uint64_t kMostLogSampleBytes = std::uint64_t{1} << 36U;  // far more than a sample has

// A process takes over logs of its own node only: locks may be valid on one node.
std::string prefix_of_node() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name.front() = 0;
  return fmt::format("{}{:08x}-", kSampleLog, xxh3(std::string_view(name.data())) & 0xFFFFFFFFU);
}

}  // namespace

struct SampleLogs::Log {
  fs::path data_path;
  fs::path index_path;
  UniqueFd data;
  UniqueFd index;
  bool writable = false;
  std::uint64_t entries = 0;     // that were read or written
  std::uint64_t data_bytes = 0;  // of the own log
};

SampleLogs::SampleLogs(fs::path folder, std::uint64_t key, std::uint64_t inputs, std::uint64_t per_shard)
    : folder_(std::move(folder)),
      key_(key),
      inputs_(inputs),
      per_shard_(per_shard),
      places_(static_cast<std::size_t>(inputs)),
      counts_(static_cast<std::size_t>((inputs + per_shard - 1) / per_shard)) {}

SampleLogs::~SampleLogs() = default;

std::vector<std::byte> SampleLogs::serialize(const Entry& entry) const {
  std::vector<std::byte> bytes(kLogEntryBytes);
  store_u64(bytes, 0, entry.input);
  store_u64(bytes, 8, entry.offset);
  store_u64(bytes, 16, entry.size_bytes);
  store_u64(bytes, 24, entry.digest);
  store_u64(bytes, 32, xxh3(std::span(bytes).first(32)) ^ key_);
  return bytes;
}

bool SampleLogs::parse(std::span<const std::byte> bytes, Entry& entry) const {
  if (load_u64(bytes, 32) != (xxh3(bytes.first(32)) ^ key_)) return false;
  entry = {load_u64(bytes, 0), load_u64(bytes, 8), load_u64(bytes, 16), load_u64(bytes, 24)};
  return entry.input < inputs_ && entry.size_bytes <= kMostLogSampleBytes;
}

void SampleLogs::note(std::uint64_t input, Place place) {
  Place& known = places_[static_cast<std::size_t>(input)];
  if (known.log != 0) return;
  known = place;
  ++counts_[static_cast<std::size_t>(input / per_shard_)];
  ++total_;
}

// Stops at an entry that is not complete yet, or never will be.
void SampleLogs::read_entries(Log& log, std::uint32_t number) {
  std::array<std::byte, kLogEntriesAtOnce * kLogEntryBytes> bytes;  // NOLINT: filled by reading
  for (;;) {
    const std::size_t got = pread_some(log.index.get(), bytes, log.entries * kLogEntryBytes, log.index_path);
    for (std::size_t at = 0; at + kLogEntryBytes <= got; at += kLogEntryBytes) {
      Entry entry;
      if (!parse(std::span(bytes).subspan(at, kLogEntryBytes), entry)) return;
      note(entry.input, {number, static_cast<std::uint32_t>(log.entries)});
      ++log.entries;
    }
    if (got < bytes.size()) return;
  }
}

void SampleLogs::refresh() {
  const std::vector<std::string> names = names_in(folder_);
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names) {
    if (!is_sample_log(name) || !name.ends_with(kIndexEnd) || known_.contains(name)) continue;
    auto log = std::make_shared<Log>();
    log->index_path = folder_ / name;
    log->data_path = folder_ / (name.substr(0, name.size() - kIndexEnd.size()) + std::string(kDataEnd));
    log->data = open_plain(log->data_path, O_RDWR);
    log->writable = static_cast<bool>(log->data);
    if (!log->data) log->data = open_plain(log->data_path, O_RDONLY);
    log->index = open_plain(log->index_path, O_RDONLY);
    // Another process may just be making it, or has removed it.
    if (!log->data || !log->index) continue;
    known_.insert(name);
    logs_.push_back(std::move(log));
  }
  read_others();
}

void SampleLogs::catch_up() {
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(folder_, error);
  {
    const std::lock_guard lock(mutex_);
    if (error || changed == changed_) return read_others();
    changed_ = changed;
  }
  refresh();
}

void SampleLogs::read_others() {
  for (std::uint32_t i = 0; i < logs_.size(); ++i)
    if (i + 1 != own_) read_entries(*logs_[i], i + 1);
}

// Takes over a log whose process has ended, so that there are no more than processes at a time.
bool SampleLogs::take_over(std::uint32_t number) {
  Log& log = *logs_[number - 1];
  if (!log.writable || !log.index_path.filename().string().starts_with(prefix_of_node())) return false;
  UniqueFd index = open_plain(log.index_path, O_RDWR);
  if (!index || lock_alone(index.get()) != LockState::taken) return false;
  log.index = std::move(index);
  read_entries(log, number);
  log.data_bytes = regular_file_size(log.data.get(), log.data_path);
  return true;
}

void SampleLogs::make_own() {
  for (std::uint32_t number = 1; number <= logs_.size() && own_ == 0; ++number)
    if (take_over(number)) own_ = number;
  std::random_device random;
  while (own_ == 0) {
    const std::string name = fmt::format("{}{:08x}{:08x}", prefix_of_node(), random(), random());
    auto log = std::make_shared<Log>();
    log->data_path = folder_ / (name + std::string(kDataEnd));
    log->index_path = folder_ / (name + std::string(kIndexEnd));
    const auto create = [](const fs::path& path) {
      UniqueFd file = open_plain(path, O_RDWR | O_CREAT | O_EXCL);
      if (!file) throw_errno("cannot make", path, errno);
      return file;
    };
    log->data = create(log->data_path);  // first: who sees the index finds it
    log->index = create(log->index_path);
    // Another process may have found it first.
    if (lock_alone(log->index.get()) == LockState::busy) continue;
    log->writable = true;
    known_.insert(log->index_path.filename());
    logs_.push_back(std::move(log));
    own_ = static_cast<std::uint32_t>(logs_.size());
  }
}

void SampleLogs::append(std::uint64_t input, std::span<const std::span<const std::byte>> pieces) {
  std::shared_ptr<Log> log;
  Entry entry{input, 0, 0, 0};
  Xxh3Stream digest;
  for (const std::span<const std::byte> piece : pieces) {
    digest.update(piece);
    entry.size_bytes += piece.size();
  }
  entry.digest = digest.digest();
  {
    const std::lock_guard lock(mutex_);
    if (places_[static_cast<std::size_t>(input)].log != 0) return;
    if (own_ == 0) make_own();
    log = logs_[own_ - 1];
    entry.offset = log->data_bytes;
    log->data_bytes += entry.size_bytes;
  }
  std::uint64_t at = entry.offset;
  for (const std::span<const std::byte> piece : pieces) {
    pwrite_all(log->data.get(), piece, at, log->data_path);
    at += piece.size();
  }
  const std::vector<std::byte> bytes = serialize(entry);
  const std::lock_guard lock(mutex_);
  if (places_[static_cast<std::size_t>(input)].log != 0) return;
  pwrite_all(log->index.get(), bytes, log->entries * kLogEntryBytes, log->index_path);
  note(input, {own_, static_cast<std::uint32_t>(log->entries)});
  ++log->entries;
}

bool SampleLogs::read(std::uint64_t input, std::vector<std::byte>& out) {
  std::shared_ptr<Log> log;
  Place place;
  {
    const std::lock_guard lock(mutex_);
    place = places_[static_cast<std::size_t>(input)];
    if (place.log == 0) return false;
    log = logs_[place.log - 1];
  }
  const auto is_there = [&] {
    std::array<std::byte, kLogEntryBytes> bytes{};
    Entry entry;
    if (pread_some(log->index.get(), bytes, std::uint64_t{place.entry} * kLogEntryBytes, log->index_path) !=
            bytes.size() ||
        !parse(bytes, entry) || entry.input != input)
      return false;
    out.resize(static_cast<std::size_t>(entry.size_bytes));
    return pread_some(log->data.get(), out, entry.offset, log->data_path) == out.size() &&
           xxh3(out) == entry.digest;
  };
  try {
    if (is_there()) return true;
  } catch (const Error&) {  // a sample that cannot be read is made again
  }
  const std::lock_guard lock(mutex_);
  Place& known = places_[static_cast<std::size_t>(input)];
  if (known.log == place.log && known.entry == place.entry) {
    known = {};
    --counts_[static_cast<std::size_t>(input / per_shard_)];
    --total_;
  }
  return false;
}

bool SampleLogs::has(std::uint64_t input) const {
  const std::lock_guard lock(mutex_);
  return places_[static_cast<std::size_t>(input)].log != 0;
}

std::uint64_t SampleLogs::count(std::uint64_t shard) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<std::size_t>(shard)];
}

std::uint64_t SampleLogs::count() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::uint64_t SampleLogs::inputs_of(std::uint64_t shard) const noexcept {
  return std::min(per_shard_, inputs_ - shard * per_shard_);
}

void SampleLogs::drop(std::uint64_t shard) noexcept {
  for (std::uint64_t i = 0; i < inputs_of(shard); ++i) {
    const std::uint64_t input = shard * per_shard_ + i;
    std::shared_ptr<Log> log;
    Place place;
    {
      const std::lock_guard lock(mutex_);
      place = places_[static_cast<std::size_t>(input)];
      if (place.log == 0) continue;
      log = logs_[place.log - 1];
    }
    if (!log->writable) continue;
    std::array<std::byte, kLogEntryBytes> bytes{};
    Entry entry;
    if (::pread(log->index.get(), bytes.data(), bytes.size(),
                static_cast<off_t>(std::uint64_t{place.entry} * kLogEntryBytes)) !=
            static_cast<ssize_t>(bytes.size()) ||
        !parse(bytes, entry) || entry.input != input || entry.size_bytes == 0)
      continue;
    if (::fallocate(log->data.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(entry.offset), static_cast<off_t>(entry.size_bytes)) != 0 &&
        (errno == EOPNOTSUPP || errno == ENOSYS))
      return;
  }
}

}  // namespace shard::convert
