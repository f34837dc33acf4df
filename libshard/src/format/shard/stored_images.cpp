// The images of one field of an open shard. Its bytes may change meanwhile, so each offset is checked again.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "format/shard/shard_reader_impl.hpp"
#include "shard/error.hpp"

namespace shard {

StoredImages::StoredImages(const ShardReader::Impl& shard, std::string name, const SampleSpec& spec,
                           const LargestSample& largest, const CodecSpec& codec_spec, Codec codec,
                           ShardHeader::Range range)
    : shard_(&shard),
      name_(std::move(name)),
      spec_(spec),
      largest_(largest),
      codec_spec_(codec_spec),
      framed_(codec_spec.framed(spec)),
      codec_(std::move(codec)),
      range_(range),
      offsets_name_(tensor("frame_offsets")),
      checksums_(shard.tensor_begin(tensor("checksums"))),
      frame_offsets_(shard.tensor_begin(offsets_name_)),
      frame_checksums_(shard.tensor_begin(tensor("frame_checksums"))),
      shapes_(shard.tensor_begin(tensor(kShapes))),
      jpeg_files_(codec_spec.kind == CodecSpec::Kind::jpeg ? shard.tensor_begin(tensor(kJpegFiles)) : 0) {}

std::string StoredImages::tensor(std::string_view part) const {
  return name_.empty() ? std::string(part) : name_ + '.' + std::string(part);
}

std::size_t StoredImages::number() const noexcept {
  return static_cast<std::size_t>(this - shard_->images.data());
}

std::string StoredImages::place() const {
  return name_.empty() ? std::string() : fmt::format("field {}: ", quoted_excerpt(name_));
}

void StoredImages::check_frames(std::span<const std::byte> head) const {
  const auto table = static_cast<std::size_t>(frame_offsets_);
  const auto samples = static_cast<std::size_t>(shard_->header.samples);
  const std::span<const std::byte> offsets = head.subspan(table, (samples + 1) * 8);
  shard_->check_offsets(offsets_name_, offsets, range_.end - range_.begin, true);
  LargestSample found;
  for (std::size_t i = 0; i < samples; ++i) {
    SampleSpec of = spec_;
    if (spec_.is_free()) {
      of = size_at(head, static_cast<std::size_t>(shapes_) + i * kShapeBytes);
      check_size(i, of);
    }
    FrameSpec frame(of);
    if (jpeg_files_ != 0) {
      frame.file = load_jpeg_file(head, static_cast<std::size_t>(jpeg_files_) + i * kJpegFileBytes);
      check_file(i, frame);
    }
    const std::uint64_t frame_bytes = load_u64(offsets, (i + 1) * 8) - load_u64(offsets, i * 8);
    check_frame(i, frame_bytes, frame);
    found.include({of.height, of.width, of.size_bytes(), frame_bytes});
  }
  if (spec_.is_free() && found != largest_)
    shard_->corrupt(fmt::format("{}its metadata give \"{}\" as the largest samples: they have \"{}\"",
                                place(), largest_to_text(largest_), largest_to_text(found)));
}

void StoredImages::check_size(std::uint64_t sample, const SampleSpec& of) const {
  try {
    if (of.is_free()) throw Error(ErrorCode::corrupt, "0 rows and 0 columns");
    of.check();
  } catch (const Error& error) {
    shard_->corrupt(fmt::format("{}the size of sample {}: {}", place(), sample, error.what()));
  }
}

void StoredImages::check_file(std::uint64_t sample, const FrameSpec& of) const {
  try {
    codec_.check_file(of);
  } catch (const Error& error) {
    shard_->corrupt(fmt::format("{}{} of sample {}: {}", place(), kJpegFiles, sample, error.what()));
  }
}

void StoredImages::check_frame(std::uint64_t sample, std::uint64_t size, const FrameSpec& of) const {
  const std::uint64_t sample_bytes = of.sample.size_bytes();
  if (jpeg_files_ != 0 && size != codec_.least_frame_bytes(of))
    shard_->corrupt(
        fmt::format("{}the frame of sample {} has {} bytes: a file of {} bytes and its index have "
                    "{}",
                    place(), sample, size, of.file.bytes, codec_.least_frame_bytes(of)));
  if (size < codec_.least_frame_bytes(of)) {
    shard_->corrupt(fmt::format("{}the frame of sample {} has {} bytes, too few for the {} bytes of a sample",
                                place(), sample, size, sample_bytes));
  }
  if (size > codec_.most_frame_bytes(of))
    shard_->corrupt(
        fmt::format("{}the frame of sample {} has {} bytes, more than {} for a sample of {} bytes", place(),
                    sample, size, codec_.most_frame_bytes(of), sample_bytes));
  if (size % codec_.frame_alignment() != 0) {
    shard_->corrupt(
        fmt::format("{}the frame of sample {} has {} bytes: with codec {} it must be a multiple of {}",
                    place(), sample, size, to_string(codec_spec_), codec_.frame_alignment()));
  }
}

SampleSpec StoredImages::size_at(std::span<const std::byte> bytes, std::size_t at) const {
  return spec_.sized(load_u32(bytes, at), load_u32(bytes, at + 4));
}

SampleSpec StoredImages::spec_of(std::uint64_t sample) const {
  shard_->check_index(sample);
  if (!spec_.is_free()) return spec_;
  if (shard_->maker) return shard_->maker->spec_of(number(), sample);
  std::array<std::byte, kShapeBytes> size{};
  shard_->copy(size, shard_->mapped(shapes_ + sample * kShapeBytes, kShapeBytes));
  const SampleSpec of = size_at(size, 0);
  // The file may have changed since it was opened.
  if (of.height < 1 || of.height > largest_.height || of.width < 1 || of.width > largest_.width ||
      of.size_bytes() > largest_.sample_bytes)
    shard_->corrupt_sample(sample, fmt::format("{}its size is {} x {} now: the bytes have changed", place(),
                                               of.height, of.width));
  return of;
}

FrameSpec StoredImages::frame_spec(std::uint64_t sample) const {
  if (shard_->maker && codec_spec_.kind == CodecSpec::Kind::jpeg) {
    shard_->check_index(sample);
    return shard_->maker->make(sample)->images[number()].spec;
  }
  FrameSpec of(spec_of(sample));
  if (jpeg_files_ == 0) return of;
  std::array<std::byte, kJpegFileBytes> row{};
  shard_->copy(row, shard_->mapped(jpeg_files_ + sample * kJpegFileBytes, kJpegFileBytes));
  of.file = load_jpeg_file(row, 0);
  try {
    codec_.check_file(of);
  } catch (const Error& error) {  // the file may have changed since it was opened
    shard_->corrupt_sample(sample, fmt::format("{}{}: the bytes have changed", place(), error.what()));
  }
  return of;
}

FileRange StoredImages::range_of(std::uint64_t sample) const {
  shard_->check_index(sample);
  if (shard_->maker && codec_spec_.kind == CodecSpec::Kind::jpeg)
    return {0, shard_->maker->make(sample)->images[number()].bytes.size()};
  if (shard_->maker) return {0, spec_of(sample).size_bytes()};
  if (!framed_) return {range_.begin + sample * spec_.size_bytes(), spec_.size_bytes()};
  const auto [begin, end] =
      shard_->offsets_at(offsets_name_.c_str(), frame_offsets_, sample, range_.end - range_.begin);
  if (spec_.is_free() && end - begin > largest_.frame_bytes)
    shard_->corrupt_sample(
        sample, fmt::format("{}its frame has {} bytes now: the bytes have changed", place(), end - begin));
  const bool exact = jpeg_files_ != 0 || (spec_.is_free() && codec_spec_.kind == CodecSpec::Kind::none);
  if (exact && end - begin != codec_.least_frame_bytes(frame_spec(sample)))
    shard_->corrupt_sample(
        sample, fmt::format("{}its {} bytes are not those of its size now: the bytes have changed", place(),
                            end - begin));
  return {range_.begin + begin, end - begin};
}

std::uint64_t StoredImages::frame_checksum(std::uint64_t sample) const {
  shard_->check_index(sample);
  if (shard_->maker) return checksum(sample);
  return shard_->load_at(framed_ ? frame_checksums_ : checksums_, sample);
}

std::uint64_t StoredImages::checksum(std::uint64_t sample) const {
  shard_->check_index(sample);
  if (shard_->maker) return xxh3(shard_->maker->make(sample)->images[number()].bytes);
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

void StoredImages::read_file(std::uint64_t sample, std::vector<std::byte>& out) const {
  if (jpeg_files_ == 0)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}shard {} has codec {}: only with codec jpeg are there files", place(),
                            quoted(shard_->path), to_string(codec_spec_)));
  const FrameSpec of = frame_spec(sample);
  read_frame(sample, out);
  out.resize(of.file.bytes);
}

void StoredImages::read(std::uint64_t sample, std::span<std::byte> out) const {
  const FrameSpec of = frame_spec(sample);
  if (out.size() != of.sample.size_bytes()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a buffer of {} bytes for {}sample {} of shard {}: a sample has {}", out.size(),
                            place(), sample, quoted(shard_->path), of.sample.size_bytes()));
  }
  load(sample, of, out, false);
}

// From a server, bytes count if they match their digest.
void StoredImages::load_stored(std::uint64_t sample, std::uint64_t begin, std::span<std::byte> out) const {
  if (shard_->maker) {  // made with the size that the caller has asked for
    const std::shared_ptr<const MadeSample> made = shard_->maker->make(sample);
    std::copy_n(made->images[number()].bytes.data(), out.size(), out.data());
    return;
  }
  if (!shard_->remote) {
    shard_->copy(out, shard_->mapped(begin, out.size()));
    return shard_->check_unchanged();  // the rest of the page at which a file was cut reads as zeros
  }
  const std::uint64_t stated = frame_checksum(sample);
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

void StoredImages::load(std::uint64_t sample, const FrameSpec& of, std::span<std::byte> out,
                        bool check_frame) const {
  const FileRange range = range_of(sample);
  const bool is_pixels = shard_->maker && of.file.bytes == 0;
  if (!framed_ || is_pixels) return load_stored(sample, range.begin, out);
  thread_local std::vector<std::byte> frame;
  frame.resize(static_cast<std::size_t>(range.size_bytes));
  load_stored(sample, range.begin, frame);
  if (check_frame) {
    const std::uint64_t found = xxh3(frame);
    const std::uint64_t stated = frame_checksum(sample);
    if (found != stated) {
      shard_->corrupt_sample(
          sample, fmt::format("{}its stored frame has the XXH3-64 {}, not {}: the bytes have changed",
                              place(), to_hex(found), to_hex(stated)));
    }
  }
  try {
    codec_.decode(frame, out, of);
    if (check_frame) codec_.verify(frame, of);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    shard_->corrupt_sample(sample, place() + error.what());
  }
}

bool StoredImages::has_checksum(std::uint64_t sample) const {
  return jpeg_files_ == 0 || checksum(sample) != 0;
}

void StoredImages::verify(std::uint64_t sample, std::vector<std::byte>& scratch) const {
  const FrameSpec of = frame_spec(sample);
  scratch.resize(static_cast<std::size_t>(of.sample.size_bytes()));
  load(sample, of, scratch, true);
  if (!has_checksum(sample)) return;
  const std::uint64_t found = xxh3(scratch);
  const std::uint64_t stated = checksum(sample);
  if (found == stated) return;
  shard_->corrupt_sample(sample, fmt::format("{}its XXH3-64 is {}, not {}: the bytes have changed", place(),
                                             to_hex(found), to_hex(stated)));
}

}  // namespace shard
