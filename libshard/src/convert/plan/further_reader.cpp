#include "convert/plan/further_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "convert/plan/advice.hpp"
#include "convert/plan/plan.hpp"
#include "convert/sources/open_archive.hpp"
#include "shard/convert/decoding.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

std::string pixels_text(image::Size size) { return fmt::format("{}x{}", size.width, size.height); }

// What a reject says of a file of a field.
std::string about(const FurtherField& field, const std::string& path, const std::string& what) {
  return fmt::format("{} {}: {}", field.from.name, quoted_key(escape_key(path)), what);
}

void require_same_size(image::Size is, image::Size upright) {
  if (is == upright) return;
  const bool turned = is == image::Size{upright.height, upright.width};
  throw Error(ErrorCode::corrupt,
              fmt::format("it has {} pixels, its image {}{}", pixels_text(is), pixels_text(upright),
                          turned ? " (upright, as its EXIF data say: turn this file too)" : ""));
}

std::uint32_t value_at(const image::WideImage& mask, std::size_t i) {
  if (mask.info.dtype == DType::u8) return std::to_integer<std::uint32_t>(mask.data[i]);
  std::uint16_t value = 0;
  std::memcpy(&value, &mask.data[2 * i], sizeof value);
  return value;
}

std::uint32_t most_class(const FurtherImages& from, DType stored) {
  if (from.classes != 0) return from.classes - 1;
  return stored == DType::u8 ? 255 : 65535;
}

// Whether each value may be in a mask.
std::vector<bool> known_values(const FurtherImages& from, DType stored) {
  std::vector<bool> known(65536);
  std::fill_n(known.begin(), most_class(from, stored) + 1, true);
  if (from.ignore) known[*from.ignore] = true;
  return known;
}

// Refuses a value that is not a class.
void check_classes(const image::WideImage& mask, const FurtherImages& from, DType stored,
                   const std::vector<bool>& known) {
  const std::uint32_t most = most_class(from, stored);
  if (most >= (mask.info.dtype == DType::u8 ? 255U : 65535U)) return;  // all of them are
  const std::size_t count = std::size_t{mask.info.width} * mask.info.height;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t value = value_at(mask, i);
    if (known[value]) continue;
    const std::string rule =
        from.classes == 0
            ? fmt::format("the masks are stored as {}, up to {} (the first is; give dtype u16)",
                          to_string(stored), most)
            : fmt::format("there are {} classes, 0 to {}{}", from.classes, most,
                          from.ignore ? fmt::format(", and {} is ignored", *from.ignore) : std::string());
    throw Error(ErrorCode::corrupt, fmt::format("value {} at column {}, row {}: {}", value,
                                                i % mask.info.width, i / mask.info.width, rule));
  }
}

// Values stay what they are: they were checked.
void convert_elements(image::WideImage& mask, DType to) {
  if (mask.info.dtype == to) return;
  const std::size_t count = std::size_t{mask.info.width} * mask.info.height;
  std::vector<std::byte> elements(count * size_bytes(to));
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::uint16_t>(value_at(mask, i));
    if (to == DType::u8)
      elements[i] = static_cast<std::byte>(value);
    else
      std::memcpy(&elements[2 * i], &value, sizeof value);
  }
  mask.data = std::move(elements);
  mask.info.dtype = to;
}

}  // namespace

FurtherReader::Field::Field(const FurtherField& field)
    : of(&field),
      reader(field.from.folder),
      preprocessor(field.preprocess),
      known(known_values(field.from, field.spec.spec.dtype)) {}

FurtherReader::FurtherReader(const std::vector<FurtherField>& fields) {
  fields_.reserve(fields.size());
  for (const FurtherField& field : fields) fields_.emplace_back(field);
}

std::uint64_t FurtherReader::read(std::uint64_t input, std::uint64_t image) {
  if (fields_.empty()) return image;
  std::vector<std::uint64_t> digests{image};
  for (Field& field : fields_) {
    const std::string& path = field.of->paths[input];
    field.input = input;
    field.file = {};
    if (path.empty()) {
      digests.push_back(0);
      continue;
    }
    try {
      field.file = field.reader.read(path);
    } catch (const UnreadableInput& error) {
      throw UnreadableInput(error.code(), about(*field.of, path, error.what()));
    }
    const std::uint64_t planned = field.of->sizes[input];
    if (planned != field.file.size())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} has {} bytes, which is not what it had when this run started: inputs must not "
                      "change while they are converted; run the same command again, {}",
                      quoted(field.of->from.folder / path), field.file.size(), kAdviseForChange));
    if (!field.of->stamps.empty() && field.reader.stamp() != field.of->stamps[input])
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "{} {}: inputs must not change while they are converted; run the same command again, {}",
              quoted(field.of->from.folder / path), kOtherStamp, kAdviseForChange));
    digests.push_back(xxh3(field.file));
  }
  return xxh3(std::as_bytes(std::span(digests)));
}

std::uint64_t FurtherReader::bytes_read() const noexcept {
  std::uint64_t bytes = 0;
  for (const Field& field : fields_) bytes += field.file.size();
  return bytes;
}

void FurtherReader::make_sample(Field& field, image::Decoder& decoder, image::Size upright,
                                const image::DecodeOptions& decode) {
  const FurtherImages& from = field.of->from;
  const FieldSpec& stored = field.of->spec;
  const bool packs_floats = stored.codec.kind == CodecSpec::Kind::packed && is_floating(stored.spec.dtype);
  if (!from.any_size || packs_floats) {
    const image::WideInfo info = image::read_wide_info(field.file, decode.max_pixels);
    if (!from.any_size) require_same_size({info.width, info.height}, upright);
    if (packs_floats && info.dtype != DType::u8)
      throw Error(
          ErrorCode::corrupt,
          fmt::format("its values are {}, and codec packed holds {} of 8-bit files only: give this field "
                      "codec=zstd",
                      to_string(info.dtype), to_string(stored.spec.dtype)));
  }
  if (from.role != FieldRole::mask) {
    field.preprocessor.run_file(decoder, field.file, decode, field.sample);
    return;
  }
  image::WideImage mask = image::decode_mask(field.file, decode);
  check_classes(mask, from, field.of->spec.spec.dtype, field.known);
  convert_elements(mask, field.of->spec.spec.dtype);
  field.preprocessor.run(mask.view(), field.sample);
}

std::span<const SampleValues> FurtherReader::samples(image::Decoder& decoder, image::Size upright,
                                                     const SampleSpec& image,
                                                     const image::DecodeOptions& decode) {
  image::DecodeOptions options = decode;
  options.fast_min_short_side = 0;
  options.page = 0;
  options.depth = 0;  // it is said of the images
  samples_.clear();
  for (Field& field : fields_) {
    SampleSpec made = field.of->spec.spec;
    if (field.of->paths[field.input].empty()) {
      if (made.is_free()) made = made.sized(image.height, image.width);
      field.sample.assign(static_cast<std::size_t>(made.size_bytes()), std::byte{0});
    } else {
      try {
        make_sample(field, decoder, upright, options);
        made = field.preprocessor.made();
      } catch (const Error& error) {
        if (error.code() == ErrorCode::cancelled) throw;
        throw Error(ErrorCode::corrupt, about(*field.of, field.of->paths[field.input], reject_reason(error)));
      }
    }
    samples_.emplace_back(field.sample, made.height, made.width);
  }
  return samples_;
}

}  // namespace shard::convert
