#include "codec/verify_sample.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/digest/checksum.hpp"
#include "base/system/guarded_read.hpp"
#include "codec/sample_errors.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

void expect_checksum(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                     std::string_view what, std::uint64_t found, std::uint64_t recorded) {
  if (found == recorded) return;
  throw Error(ErrorCode::corrupt,
              fmt::format("{}{} does not match its checksum: {} where {} is stored; restore the shard or "
                          "convert again",
                          form.name_of(shard, sample), what, to_hex(found), to_hex(recorded)));
}

// XXH3-64 of a sample, and of what is stored of it.
struct Digests {
  std::uint64_t sample = 0;
  std::uint64_t frame = 0;
};

// `bytes`: as they go to the device.
Digests checksums_of_bytes(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                           std::span<const std::byte> bytes) {
  const std::uint64_t decoded = form.checksum(shard, sample, bytes);
  return {decoded, form.decoded_by_device() ? xxh3(bytes) : decoded};
}

void expect_digests(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                    const Digests& found) {
  const StoredImages& images = form.images(shard);
  if (!form.decoded_by_host() && images.framed())
    expect_checksum(form, shard, sample, ": its stored frame", found.frame, images.frame_checksum(sample));
  if (images.has_checksum(sample))
    expect_checksum(form, shard, sample, "", found.sample, images.checksum(sample));
}

}  // namespace

void verify_frame(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                  std::span<const std::byte> frame) {
  expect_checksum(form, shard, sample, ": its stored frame", xxh3(frame),
                  form.images(shard).frame_checksum(sample));
}

void verify_stored(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                   std::span<const std::byte> bytes) {
  Digests found;
  try {
    found = checksums_of_bytes(form, shard, sample, bytes);
  } catch (const Error& error) {
    rethrow_for(shard, form.name_of(shard, sample), error);
  }
  expect_digests(form, shard, sample, found);
}

void verify_mapped(const StoredForm& form, const ShardReader& shard, std::uint64_t sample) {
  const std::span<const std::byte> bytes = form.images(shard).frame(sample);
  Digests found;
  try {
    guarded("verify", [&] { found = checksums_of_bytes(form, shard, sample, bytes); });
  } catch (const Error& error) {
    rethrow_for(shard, form.name_of(shard, sample), error);
  }
  expect_digests(form, shard, sample, found);
}

void verify_whole(const StoredForm& form, const ShardReader& shard, std::uint64_t sample) {
  verify_mapped(form, shard, sample);
  std::vector<std::byte> frame;
  form.images(shard).read_frame(sample, frame);
  try {
    form.images(shard).codec().verify(frame, form.images(shard).frame_spec(sample));
  } catch (const Error& error) {
    rethrow_for(shard, form.name_of(shard, sample), error);
  }
}

void read_verified(const StoredForm& form, const ShardReader& shard, std::uint64_t sample,
                   std::span<std::byte> out) {
  thread_local std::vector<std::byte> frame;
  const StoredImages& images = form.images(shard);
  images.read_frame(sample, frame);
  verify_frame(form, shard, sample, frame);
  try {
    images.codec().decode(frame, out, images.frame_spec(sample));
  } catch (const Error& error) {
    rethrow_for(shard, form.name_of(shard, sample), error);
  }
}

}  // namespace shard
