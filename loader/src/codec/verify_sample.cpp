#include "codec/verify_sample.hpp"

#include <fmt/format.h>

#include "base/digest/checksum.hpp"
#include "base/system/guarded_read.hpp"
#include "codec/sample_errors.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

void expect_checksum(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                     std::uint64_t found) {
  const std::uint64_t recorded = form.images(shard).checksum(sample);
  if (found == recorded) return;
  throw Error(
      ErrorCode::corrupt,
      fmt::format("{} does not match its checksum: {} where {} is stored; restore the shard or convert "
                  "again",
                  form.name_of(shard, sample), to_hex(found), to_hex(recorded)));
}

}  // namespace

void verify_stored(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                   std::span<const std::byte> bytes) {
  std::uint64_t found = 0;
  try {
    found = form.checksum(shard, sample, bytes);
  } catch (const Error& error) {
    rethrow_for(shard, form.name_of(shard, sample), error);
  }
  expect_checksum(form, shard, sample, found);
}

void verify_mapped(const StoredForm& form, const ShardReader& shard, std::uint64_t sample) {
  const std::span<const std::byte> bytes = form.images(shard).frame(sample);
  std::uint64_t found = 0;
  try {
    guarded("verify", [&] { found = form.checksum(shard, sample, bytes); });
  } catch (const Error& error) {
    rethrow_for(shard, form.name_of(shard, sample), error);
  }
  expect_checksum(form, shard, sample, found);
}

}  // namespace shard
