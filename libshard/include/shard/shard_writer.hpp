// ShardWriter: writes one shard so that nothing partial is ever visible.
//
//   create -> put / skip every planned sample, in any order, from any thread -> publish
//
// The bytes go to a temporary file beside the target (locked with flock, so that a later run can tell it from
// a live one), preallocated to the planned size (codec none). publish() compacts what was skipped, writes the
// head, fsyncs, renames and fsyncs the folder. A writer destroyed before publish() removes its file. The
// bytes of the published shard are a function of the samples alone, whatever the order and number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/sample_spec.hpp"

namespace shard {

// A further tensor with one row a sample. `labels` is the first of them: I64 [N] or F32 [N, k].
struct ColumnSpec {
  std::string name;
  DType dtype = DType::i64;
  std::vector<std::uint64_t> row_shape;  // empty: one element a sample
};

struct ShardWriterOptions {
  SampleSpec spec;
  Normalization normalization;
  Pipeline pipeline;
  Codec codec;
  std::string fingerprint;  // 16 hexadecimal digits
  std::vector<ColumnSpec> columns{{"labels", DType::i64, {}}};
  // The lengths of all planned keys together; 0: not known. A hint: with the right number, rows need no move
  // at publish().
  std::uint64_t planned_key_bytes = 0;
  // The target may exist: publish() keeps a file with the very same bytes and replaces any other. It is never
  // removed before.
  bool may_exist = false;
};

// What is known of a published shard; dataset.json keeps it.
struct ShardSummary {
  std::string file;  // name without folder
  std::uint64_t samples = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t head_digest = 0;
  bool operator==(const ShardSummary&) const = default;
};

class ShardWriter {
 public:
  // `path` must not exist, unless options.may_exist. `planned` samples, 1 to 2^32. Errors: invalid_argument,
  // io (ENOSPC, EACCES, ...), each naming path.
  static ShardWriter create(const std::filesystem::path& path, std::uint64_t planned,
                            ShardWriterOptions options);
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) noexcept;
  ~ShardWriter();

  // Stores planned sample `index`: `sample` is spec.size_bytes() long, `columns` are the rows of all columns
  // one after the other, in the order of options.columns. Thread safe; each index once. Compression and
  // hashing run on the caller's thread. `key` is an escaped key (keys.hpp). Codecs with frames of variable
  // size are written in the order of the indices: up to the frames that wait for an earlier one are held in
  // memory.
  void put(std::uint64_t index, std::string_view key, std::span<const std::byte> columns,
           std::span<const std::byte> sample);
  // Planned sample `index` does not exist (its input was rejected). Thread safe.
  void skip(std::uint64_t index);

  // After every index was put or skipped, and at least one was put. Once. With `expected`: what the shard
  // must come out as; when it does not, corrupt is thrown and what has the name stays. Errors: io, corrupt;
  // afterwards nothing is left of it.
  ShardSummary publish(const ShardSummary* expected = nullptr);

 private:
  struct Impl;
  explicit ShardWriter(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

// Removes temporary files in `folder` whose writers are gone: those of this node whose lock is free, and
// those of any node that nobody wrote to for 24 hours. Returns how many. Errors: io.
std::uint64_t remove_stale_temporaries(const std::filesystem::path& folder);

}  // namespace shard
