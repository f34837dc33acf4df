// SampleLogs: samples that are made, but whose shards are not finished, in files beside the shards. Each
// process that makes samples appends them to a log of its own, and reads those of all.
//
//   .samples-RANDOM.data    the samples, one after the other
//   .samples-RANDOM.index   for each: u64 input | u64 offset | u64 bytes | u64 XXH3-64 of them | u64 seal
//
// An entry is written after its sample, and sealed with a digest over itself and the conversion, so a sample
// is there completely or not at all, also after a kill. Nothing is flushed: what a crash of the system loses
// does not match its digest, and is made again. The logs of a process that ended stay and are used. They are
// removed when the data set is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/unique_handle.hpp"

namespace shard::convert {

// Thread safe.
class SampleLogs {
 public:
  // `key`: of the conversion. `inputs`: how many it has, at most 2^32.
  SampleLogs(std::filesystem::path folder, std::uint64_t key, std::uint64_t inputs, std::uint64_t per_shard);
  SampleLogs(const SampleLogs&) = delete;
  SampleLogs& operator=(const SampleLogs&) = delete;
  ~SampleLogs();

  // Looks at what other processes have added, and for new logs. Errors: io.
  void refresh();
  // The same, and for new logs only if something was made or removed in the folder: some microseconds.
  void catch_up();
  // Appends a sample, whose bytes come in pieces, unless there is one of this input. Errors: io.
  void append(std::uint64_t input, std::span<const std::span<const std::byte>> pieces);
  // Copies the sample of an input to `out`, which is resized. False: there is none, or it is damaged; then it
  // is forgotten.
  bool read(std::uint64_t input, std::vector<std::byte>& out);

  bool has(std::uint64_t input) const;
  // How many samples there are of a shard, and of all.
  std::uint64_t count(std::uint64_t shard) const;
  std::uint64_t count() const;
  // The shard is finished: gives the space of its samples back, where the file system can.
  void drop(std::uint64_t shard) noexcept;

 private:
  struct Log;
  // Where the sample of an input is: entry `entry` of logs_[log - 1]. log 0: there is none.
  struct Place {
    std::uint32_t log = 0;
    std::uint32_t entry = 0;
  };
  struct Entry {
    std::uint64_t input = 0;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t digest = 0;
  };

  std::vector<std::byte> serialize(const Entry& entry) const;
  // False: these bytes are no entry of this conversion.
  bool parse(std::span<const std::byte> bytes, Entry& entry) const;
  void read_others();                                 // with mutex_ held
  void read_entries(Log& log, std::uint32_t number);  // likewise
  void note(std::uint64_t input, Place place);        // likewise
  void make_own();                                    // likewise
  bool take_over(std::uint32_t number);               // likewise
  std::uint64_t inputs_of(std::uint64_t shard) const noexcept;

  const std::filesystem::path folder_;
  const std::uint64_t key_;
  const std::uint64_t inputs_;
  const std::uint64_t per_shard_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<std::shared_ptr<Log>> logs_;
  std::set<std::string> known_;  // names of logs
  std::filesystem::file_time_type changed_;
  std::uint32_t own_ = 0;  // as Place::log
  std::vector<Place> places_;
  std::vector<std::uint64_t> counts_;  // of each shard
  std::uint64_t total_ = 0;
};

}  // namespace shard::convert
