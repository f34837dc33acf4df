#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "format/codec/codec_check.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"
#include "shard/shard_reader.hpp"

namespace shard {
namespace {

[[noreturn]] void corrupt(const std::string& why) {
  throw Error(ErrorCode::corrupt, "shard profile: " + why);
}
[[noreturn]] void unsupported(const std::string& why) {
  throw Error(ErrorCode::unsupported, "shard profile: " + why);
}

const std::string& metadata(const ShardHeader& header, std::string_view key) {
  const auto found = header.container.metadata.find(std::string(key));
  if (found == header.container.metadata.end()) corrupt(fmt::format("__metadata__ has no \"{}\"", key));
  return found->second;
}

std::vector<std::uint64_t> parse_shape(std::string_view text, Layout layout) {
  const std::size_t most = layout == Layout::tensor ? kMaxTensorAxes : 3;
  const std::size_t least = layout == Layout::tensor ? 1 : 3;
  std::vector<std::uint64_t> shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::uint32_t axis = 0;
    const auto [next, status] = std::from_chars(at, end, axis);
    const bool more = status == std::errc{} && next != end && *next == ',' && shape.size() + 1 < most;
    if (status != std::errc{} || (!more && next != end)) break;
    shape.push_back(axis);
    at = next + 1;
    if (!more) {
      if (shape.size() < least) break;
      return shape;
    }
  }
  if (layout == Layout::tensor)
    corrupt(
        fmt::format("shape is {}: it must be one to four numbers such as \"4,64,64\"", quoted_excerpt(text)));
  corrupt(fmt::format("shape is {}: it must be three numbers such as \"3,224,224\"", quoted_excerpt(text)));
}

// `prefix`: of the metadata of a further image field; empty for the main one.
SampleSpec parse_spec(const ShardHeader& header, const std::string& prefix) {
  const std::string& dtype = metadata(header, prefix + "dtype");
  const std::string& layout = metadata(header, prefix + "layout");
  const auto known_dtype = dtype_from_string(dtype);
  const auto known_layout = layout_from_string(layout);
  if (!known_dtype) unsupported(fmt::format("dtype {} is not known", quoted_excerpt(dtype)));
  if (!known_layout) unsupported(fmt::format("layout {} is not known", quoted_excerpt(layout)));
  const std::vector<std::uint64_t> shape = parse_shape(metadata(header, prefix + "shape"), *known_layout);
  try {
    return spec_of_shape(*known_dtype, *known_layout, shape);
  } catch (const Error& error) {
    corrupt(error.what());
  }
}

CodecSpec parse_codec_spec(const std::string& text) {
  std::optional<CodecSpec> codec;
  try {
    codec = codec_spec_from_string(text);
  } catch (const Error&) {
    unsupported(fmt::format("codec {} is not known", quoted_excerpt(text)));
  }
  if (to_string(*codec) != text)
    corrupt(fmt::format("codec {} must be written {}", quoted_excerpt(text), to_string(*codec)));
  return *codec;
}

Normalization parse_normalization(const ShardHeader& header, const std::string& prefix) {
  const auto mean = floats_from_text(metadata(header, prefix + "mean"));
  const auto std = floats_from_text(metadata(header, prefix + "std"));
  if (!mean || !std)
    corrupt("mean and std must be three finite numbers such as \"0.5,0.5,0.5\", or one for each channel");
  return {*mean, *std};
}

// `prefix` as for parse_spec().
LargestSample parse_largest(const ShardHeader& header, const std::string& prefix) {
  const std::string key = prefix + std::string(kLargestKey);
  const std::string& text = metadata(header, key);
  const auto largest = largest_from_text(text);
  if (!largest || largest_to_text(*largest) != text)
    corrupt(
        fmt::format("{} is {}: it must be rows, columns, bytes of a sample and bytes of a frame, such as "
                    "\"480,640,921600,921600\"",
                    key, quoted_excerpt(text)));
  return *largest;
}

// One digit. Nothing: it is not one.
std::optional<std::uint64_t> profile_of(const ShardHeader& header) {
  const std::string& text = metadata(header, kProfileKey);
  if (text.size() != 1 || text[0] < '0' || text[0] > '9') return std::nullopt;
  return static_cast<std::uint64_t>(text[0] - '0');
}

void parse_metadata(ShardHeader& header, std::string_view json) {
  const auto profile = header.container.metadata.find(std::string(kProfileKey));
  if (profile == header.container.metadata.end())
    corrupt("this is a safetensors file, but not a shard: __metadata__ has no \"shard.profile\"");
  const auto version = profile_of(header);
  if (!version || *version < 1 || *version > kLastVersion)
    unsupported(fmt::format("version {}: this build reads versions 1 to {}; install a later one",
                            quoted_excerpt(profile->second), kLastVersion));
  header.spec = parse_spec(header, {});
  header.normalization = parse_normalization(header, {});
  header.codec = parse_codec_spec(metadata(header, "codec"));
  header.largest.resize(1);
  if (header.spec.is_free()) header.largest[0] = parse_largest(header, {});
  header.fingerprint = metadata(header, "fingerprint");
  if (!from_hex(header.fingerprint))
    corrupt(fmt::format("fingerprint is {}: it must be 16 lower-case hexadecimal digits",
                        quoted_excerpt(header.fingerprint)));
  const auto digits_at = find_digest_digits(json);
  if (!digits_at)
    corrupt(
        "__metadata__ has no \"head_digest\":\"<16 lower-case hexadecimal digits>\" in exactly this form");
  header.head_digest = *from_hex(json.substr(*digits_at, kDigestDigits));
  for (const auto& [key, value] : header.container.metadata) {
    if (key.starts_with(kPipelinePrefix))
      header.provenance.emplace(key.substr(kPipelinePrefix.size()), value);
  }
  try {
    check_normalization(header.normalization, header.spec);
    check_codec(header.codec, header.spec);
    check_provenance(header.provenance);
  } catch (const Error& error) {
    corrupt(error.what());
  }
}

const TensorInfo& require(const ShardHeader& header, std::string_view name, DType dtype,
                          const std::vector<std::uint64_t>& shape) {
  const TensorInfo* const tensor = header.container.find(name);
  if (tensor == nullptr) corrupt(fmt::format("tensor \"{}\" is missing", name));
  if (tensor->dtype != dtype || tensor->shape != shape) {
    corrupt(fmt::format("tensor \"{}\" is {} [{}]: it must be {} [{}]", name, safetensors_name(tensor->dtype),
                        fmt::join(tensor->shape, ", "), safetensors_name(dtype), fmt::join(shape, ", ")));
  }
  return *tensor;
}

// The number of samples is the length of `checksums`.
std::uint64_t count_samples(const ShardHeader& header) {
  const TensorInfo* const checksums = header.container.find("checksums");
  if (checksums == nullptr) corrupt("tensor \"checksums\" is missing");
  if (checksums->shape.size() != 1)
    corrupt(fmt::format("tensor \"checksums\" has {} axes: it must have 1", checksums->shape.size()));
  const std::uint64_t samples = checksums->shape[0];
  if (samples < 1 || samples > kMaxSamples)
    corrupt(fmt::format("{} samples: a shard has 1 to {}", samples, kMaxSamples));
  return samples;
}

// Version 2: what the metadata say about the kinds of columns, by name.
// Those that are image fields go to header.fields.
std::map<std::string, ColumnKind> column_kinds(ShardHeader& header) {
  std::map<std::string, ColumnKind> kinds;
  if (profile_of(header) == 1) return kinds;
  for (const auto& [key, value] : header.container.metadata) {
    if (!key.starts_with(kFieldPrefix)) continue;
    const std::string name = key.substr(kFieldPrefix.size());
    if (const auto role = field_role_from_string(value)) {
      const std::string prefix = fmt::format("{}{}.", kImagePrefix, name);
      header.fields.push_back({name, *role, parse_spec(header, prefix), parse_normalization(header, prefix),
                               parse_codec_spec(metadata(header, prefix + "codec"))});
      continue;
    }
    const auto kind = column_kind_from_string(value);
    if (!kind || *kind == ColumnKind::fixed)
      unsupported(fmt::format("field {} is {}: this build knows ragged, text, image and mask",
                              quoted_excerpt(name), quoted_excerpt(value)));
    if (is_reserved_tensor(name) || header.container.find(name) == nullptr)
      corrupt(fmt::format("__metadata__ has the field {}: there is no such column", quoted_excerpt(name)));
    kinds.emplace(name, *kind);
  }
  return kinds;
}

// Checks the tensors of the further image fields, and puts the fields into the order of their images.
// Returns the names of these tensors.
std::set<std::string> set_fields(ShardHeader& header) {
  std::set<std::string> names;
  const std::uint64_t n = header.samples;
  const auto position = [&](const FieldSpec& field) {
    const TensorInfo* const images = header.container.find(field_images(field));
    if (images == nullptr) corrupt(fmt::format("tensor {} is missing", quoted_excerpt(field_images(field))));
    return images - header.container.tensors.data();
  };
  std::sort(header.fields.begin(), header.fields.end(),
            [&](const FieldSpec& a, const FieldSpec& b) { return position(a) < position(b); });
  for (const FieldSpec& field : header.fields) {
    const auto belongs = [&](const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape) {
      require(header, name, dtype, shape);
      names.insert(name);
    };
    const TensorInfo& images = header.container.tensors[static_cast<std::size_t>(position(field))];
    belongs(field_tensor(field, "checksums"), DType::u64, {n});
    const bool free = field.spec.is_free();
    header.largest.push_back(free ? parse_largest(header, fmt::format("{}{}.", kImagePrefix, field.name))
                                  : LargestSample{});
    if (free) belongs(field_tensor(field, kShapes), DType::u32, {n, 2});
    if (field.codec.kind == CodecSpec::Kind::jpeg)
      belongs(field_tensor(field, kJpegFiles), DType::u32, {n, 4});
    if (field.codec.framed(field.spec)) {
      belongs(images.name, DType::u8, {images.size_bytes()});
      belongs(field_tensor(field, "frame_offsets"), DType::u64, {n + 1});
      belongs(field_tensor(field, "frame_checksums"), DType::u64, {n});
    } else {
      std::vector<std::uint64_t> shape{n};
      for (const std::uint32_t axis : field.spec.shape()) shape.push_back(axis);
      belongs(images.name, field.spec.dtype, shape);
    }
    const std::uint64_t begin = header.container.data_begin + images.begin;
    const std::uint64_t end = begin + images.size_bytes();
    if (begin % kImagesAlignment != 0)
      corrupt(fmt::format("{} starts at byte {} of the file: it must be a multiple of {}",
                          quoted_excerpt(images.name), begin, kImagesAlignment));
    belongs(field_tensor(field, "padding"), DType::u8, {round_up(end, kImagesAlignment) - end});
    header.field_ranges.push_back({begin, end});
  }
  return names;
}

// From head_end on, the images of each further field, its padding and at last the main
// images follow one another.
void check_image_order(const ShardHeader& header) {
  const std::vector<TensorInfo>& tensors = header.container.tensors;
  const std::size_t first = tensors.size() - 1 - 2 * header.fields.size();
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    const FieldSpec& field = header.fields[i];
    if (tensors[first + 2 * i].name != field_images(field) ||
        tensors[first + 2 * i + 1].name != field_tensor(field, "padding"))
      corrupt(fmt::format(
          "after {} comes {}: {} and {} are expected before the main images",
          quoted_excerpt(tensors[first + 2 * i].name), quoted_excerpt(tensors[first + 2 * i + 1].name),
          quoted_excerpt(field_images(field)), quoted_excerpt(field_tensor(field, "padding"))));
  }
}

void set_columns(ShardHeader& header) {
  std::vector<ColumnSpec>& columns = header.columns;
  columns.clear();
  const std::map<std::string, ColumnKind> kinds = column_kinds(header);
  std::set<std::string> of_images = set_fields(header);
  if (header.spec.is_free()) of_images.emplace(kShapes);
  if (header.codec.kind == CodecSpec::Kind::jpeg) of_images.emplace(kJpegFiles);
  std::set<std::string> offsets;
  for (const auto& [name, kind] : kinds) {
    offsets.insert(name + "_offsets");
    require(header, name + "_offsets", DType::u64, {header.samples + 1});
  }
  for (const auto& [name, kind] : kinds)
    if (offsets.contains(name))
      corrupt(fmt::format("field {} has the name of the offsets of another one", quoted_excerpt(name)));
  for (const TensorInfo& tensor : header.container.tensors) {
    if (is_reserved_tensor(tensor.name) || offsets.contains(tensor.name) || of_images.contains(tensor.name))
      continue;
    const auto found = kinds.find(tensor.name);
    const ColumnKind kind = found == kinds.end() ? ColumnKind::fixed : found->second;
    if (tensor.shape.empty() || (kind == ColumnKind::fixed && tensor.shape[0] != header.samples)) {
      corrupt(fmt::format("tensor {} is [{}]: its first axis must be the {} samples",
                          quoted_excerpt(tensor.name), fmt::join(tensor.shape, ", "), header.samples));
    }
    const bool labels = tensor.name == "labels";
    columns.insert(labels ? columns.begin() : columns.end(),
                   {tensor.name, tensor.dtype, {tensor.shape.begin() + 1, tensor.shape.end()}, kind});
  }
  try {
    check_columns(columns);
    check_fields(header);
  } catch (const Error& error) {
    corrupt(error.what());
  }
  check_image_order(header);
}

void check_tensors(ShardHeader& header) {
  for (const TensorInfo& tensor : header.container.tensors)
    if (!tensor.foreign_dtype.empty())
      unsupported(fmt::format("tensor {} has dtype {}: this version of the format does not allow it",
                              quoted_excerpt(tensor.name), tensor.foreign_dtype));
  const std::uint64_t n = header.samples = count_samples(header);
  require(header, "checksums", DType::u64, {n});
  require(header, "key_offsets", DType::u64, {n + 1});
  const TensorInfo* const keys = header.container.find("keys");
  if (keys == nullptr) corrupt("tensor \"keys\" is missing");
  require(header, "keys", DType::u8, {keys->size_bytes()});

  const bool frames = header.codec.framed(header.spec);
  if (header.spec.is_free()) require(header, kShapes, DType::u32, {n, 2});
  if (header.codec.kind == CodecSpec::Kind::jpeg) require(header, kJpegFiles, DType::u32, {n, 4});
  const std::string_view images = frames ? "image_frames" : "images";
  const TensorInfo& last = header.container.tensors.back();  // not empty: checksums is there
  if (last.name != images)
    corrupt(fmt::format("the last tensor is {}: it must be \"{}\"", quoted_excerpt(last.name), images));
  if (frames) {
    require(header, "frame_offsets", DType::u64, {n + 1});
    require(header, "frame_checksums", DType::u64, {n});
    require(header, images, DType::u8, {last.size_bytes()});
  } else {
    std::vector<std::uint64_t> shape{n};
    for (const std::uint32_t axis : header.spec.shape()) shape.push_back(axis);
    require(header, images, header.spec.dtype, shape);
  }
  for (std::string_view foreign : {"images", "image_frames", "frame_offsets", "frame_checksums"}) {
    const bool belongs = (foreign == "images") != frames;
    if (!belongs && header.container.find(foreign) != nullptr) {
      corrupt(fmt::format("tensor \"{}\" does not belong to codec {} and samples of {} size", foreign,
                          to_string(header.codec), header.spec.is_free() ? "any" : "one"));
    }
  }
  set_columns(header);
  const NeededVersion needed = needed_version(header);
  if (profile_of(header) < needed.version)
    corrupt(fmt::format("version {} does not have {}", metadata(header, kProfileKey), needed.use));
  for (const TensorInfo& tensor : header.container.tensors) {
    const std::uint64_t begin = header.container.data_begin + tensor.begin;
    if (begin % size_bytes(tensor.dtype) != 0) {
      corrupt(
          fmt::format("tensor {} starts at byte {} of the file: it must be a multiple of its element size {}",
                      quoted_excerpt(tensor.name), begin, size_bytes(tensor.dtype)));
    }
  }
  header.images_begin = header.container.data_begin + last.begin;
  header.images_end = header.container.data_begin + last.end;
  if (header.images_begin % kImagesAlignment != 0) {
    corrupt(fmt::format("\"{}\" starts at byte {} of the file: it must be a multiple of {}", images,
                        header.images_begin, kImagesAlignment));
  }
  header.head_end = header.fields.empty() ? header.images_begin : header.field_ranges.front().begin;
  if (header.head_end > kMaxHeadBytes) {
    corrupt(fmt::format("the first image starts at byte {} of the file: at most {} bytes may come before it",
                        header.head_end, kMaxHeadBytes));
  }
}

}  // namespace

std::vector<LargestSample> ShardHeader::largest_of_free() const {
  std::vector<LargestSample> of_free;
  if (spec.is_free()) of_free.push_back(largest.front());
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].spec.is_free()) of_free.push_back(largest[i + 1]);
  return of_free;
}

ShardHeader parse_shard_header(std::span<const std::byte> head, std::uint64_t file_size_bytes) {
  ShardHeader header;
  const std::uint64_t end = safetensors_header_end(head, file_size_bytes);
  if (end - 8 > kMaxShardHeaderBytes)
    corrupt(
        fmt::format("the JSON header has {} bytes: a shard's has at most {}", end - 8, kMaxShardHeaderBytes));
  header.container = parse_safetensors(head, file_size_bytes);
  parse_metadata(header, as_text(head.subspan(8, static_cast<std::size_t>(end - 8))));
  check_tensors(header);
  return header;
}

}  // namespace shard
