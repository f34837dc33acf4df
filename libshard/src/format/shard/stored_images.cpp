// The images of one field of an open shard. Its bytes may change meanwhile, so each offset is checked again.
#include <fmt/format.h>

#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "format/shard/shard_reader_impl.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// No codec makes frames as large: what reads one takes memory for it.
constexpr std::uint64_t most_frame_bytes(std::uint64_t sample_bytes) {
  return 4 * sample_bytes + (std::uint64_t{1} << 20U);
}

}  // namespace

StoredImages::StoredImages(const ShardReader::Impl& shard, std::string name, const SampleSpec& spec,
                           const CodecSpec& codec_spec, Codec codec, ShardHeader::Range range)
    : shard_(&shard),
      name_(std::move(name)),
      spec_(spec),
      codec_spec_(codec_spec),
      framed_(codec_spec.framed()),
      codec_(std::move(codec)),
      range_(range),
      offsets_name_(tensor("frame_offsets")),
      checksums_(shard.tensor_begin(tensor("checksums"))),
      frame_offsets_(shard.tensor_begin(offsets_name_)),
      frame_checksums_(shard.tensor_begin(tensor("frame_checksums"))) {}

std::string StoredImages::tensor(std::string_view part) const {
  return name_.empty() ? std::string(part) : name_ + '.' + std::string(part);
}

std::string StoredImages::place() const {
  return name_.empty() ? std::string() : fmt::format("field {}: ", quoted_excerpt(name_));
}

void StoredImages::check_frames(std::span<const std::byte> offsets) const {
  shard_->check_offsets(offsets_name_, offsets, range_.end - range_.begin, true);
  const std::uint64_t least = codec_.least_frame_bytes();
  const std::uint64_t most = most_frame_bytes(spec_.size_bytes());
  for (std::size_t i = 0; i < shard_->header.samples; ++i) {
    const std::uint64_t size = load_u64(offsets, (i + 1) * 8) - load_u64(offsets, i * 8);
    if (size < least) {
      shard_->corrupt(
          fmt::format("{}the frame of sample {} has {} bytes, too few for the {} bytes of a sample", place(),
                      i, size, spec_.size_bytes()));
    }
    if (size > most)
      shard_->corrupt(
          fmt::format("{}the frame of sample {} has {} bytes, more than {} for a sample of {} bytes", place(),
                      i, size, most, spec_.size_bytes()));
    if (size % codec_.frame_alignment() != 0) {
      shard_->corrupt(
          fmt::format("{}the frame of sample {} has {} bytes: with codec {} it must be a multiple of {}",
                      place(), i, size, to_string(codec_spec_), codec_.frame_alignment()));
    }
  }
}

FileRange StoredImages::range_of(std::uint64_t sample) const {
  shard_->check_index(sample);
  if (!framed_) return {range_.begin + sample * spec_.size_bytes(), spec_.size_bytes()};
  const auto [begin, end] =
      shard_->offsets_at(offsets_name_.c_str(), frame_offsets_, sample, range_.end - range_.begin);
  return {range_.begin + begin, end - begin};
}

std::uint64_t StoredImages::stored_digest(std::uint64_t sample) const {
  return shard_->load_at(framed_ ? frame_checksums_ : checksums_, sample);
}

std::uint64_t StoredImages::checksum(std::uint64_t sample) const {
  shard_->check_index(sample);
  return shard_->load_at(checksums_, sample);
}

std::span<const std::byte> StoredImages::frame(std::uint64_t sample) const {
  shard_->require_local();
  const FileRange range = range_of(sample);
  return shard_->mapped(range.begin, range.size_bytes);
}

std::uint64_t StoredImages::frame_bytes(std::uint64_t sample) const { return range_of(sample).size_bytes; }

void StoredImages::read_frame(std::uint64_t sample, std::vector<std::byte>& out) const {
  const FileRange range = range_of(sample);
  out.resize(static_cast<std::size_t>(range.size_bytes));
  load_stored(sample, range.begin, out);
}

void StoredImages::read_frame(std::uint64_t sample, std::span<std::byte> out) const {
  const FileRange range = range_of(sample);
  if (out.size() != range.size_bytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a buffer of {} bytes for the frame of {}sample {} of shard {}: it has {}",
                            out.size(), place(), sample, quoted(shard_->path), range.size_bytes));
  load_stored(sample, range.begin, out);
}

void StoredImages::read(std::uint64_t sample, std::span<std::byte> out) const {
  shard_->check_index(sample);
  if (out.size() != spec_.size_bytes()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a buffer of {} bytes for {}sample {} of shard {}: a sample has {}", out.size(),
                            place(), sample, quoted(shard_->path), spec_.size_bytes()));
  }
  load(sample, out, false);
}

// From a server, bytes count if they match their digest.
void StoredImages::load_stored(std::uint64_t sample, std::uint64_t begin, std::span<std::byte> out) const {
  if (!shard_->remote) {
    shard_->copy(out, shard_->mapped(begin, out.size()));
    return shard_->check_unchanged();  // the rest of the page at which a file was cut reads as zeros
  }
  const std::uint64_t stated = stored_digest(sample);
  if (shard_->load_copy(out, begin, stated)) return;
  for (int attempt = 1;; ++attempt) {
    shard_->remote->read_ahead(begin, out, range_.end);
    const std::uint64_t found = xxh3(out);
    if (found == stated) return;
    shard_->remote->forget_ahead();
    if (attempt == kRemoteAttempts)
      shard_->corrupt_sample(
          sample, fmt::format("{}its stored bytes have the XXH3-64 {}, not {}, in {} answers of the server: "
                              "they are damaged there; upload the shard again",
                              place(), to_hex(found), to_hex(stated), attempt));
  }
}

void StoredImages::load(std::uint64_t sample, std::span<std::byte> out, bool check_frame) const {
  const FileRange range = range_of(sample);
  if (!framed_) return load_stored(sample, range.begin, out);
  thread_local std::vector<std::byte> frame;
  frame.resize(static_cast<std::size_t>(range.size_bytes));
  load_stored(sample, range.begin, frame);
  if (check_frame) {
    const std::uint64_t found = xxh3(frame);
    const std::uint64_t stated = stored_digest(sample);
    if (found != stated) {
      shard_->corrupt_sample(
          sample, fmt::format("{}its stored frame has the XXH3-64 {}, not {}: the bytes have changed",
                              place(), to_hex(found), to_hex(stated)));
    }
  }
  try {
    codec_.decode(frame, out);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    shard_->corrupt_sample(sample, place() + error.what());
  }
}

void StoredImages::verify(std::uint64_t sample, std::vector<std::byte>& scratch) const {
  scratch.resize(static_cast<std::size_t>(spec_.size_bytes()));
  load(sample, scratch, true);
  const std::uint64_t found = xxh3(scratch);
  const std::uint64_t stated = checksum(sample);
  if (found == stated) return;
  shard_->corrupt_sample(sample, fmt::format("{}its XXH3-64 is {}, not {}: the bytes have changed", place(),
                                             to_hex(found), to_hex(stated)));
}

}  // namespace shard
