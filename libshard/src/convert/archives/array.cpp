#include "convert/archives/array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"

namespace shard::convert {

namespace {

[[noreturn]] void damaged_array(const std::string& why) { throw Error(ErrorCode::corrupt, why); }
[[noreturn]] void unsupported_array(const std::string& why) { throw Error(ErrorCode::unsupported, why); }

template <class T>
T load_number(const std::byte* at, std::size_t size, bool big_endian) {
  T value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value = static_cast<T>(value << 8U | std::to_integer<T>(at[big_endian ? i : size - 1 - i]));
  return value;
}

// The Python dictionary of an .npy header: strings, True, False, and tuples of whole numbers.
class NpyText {
 public:
  explicit NpyText(std::string_view text) : text_(text) {}

  ArrayHeader parse() {
    ArrayHeader header;
    bool has_dtype = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        skip_space();
        if (!text_.empty() && text_.front() == '[')
          unsupported_array("an array of structures: save one field of it as an array of its own");
        header.dtype = string();
        has_dtype = true;
      } else if (key == "fortran_order") {
        if (boolean()) unsupported_array("is in Fortran order: save numpy.ascontiguousarray(x)");
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        damaged_array("its header is not that of an array: an unknown key");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!has_dtype || !has_order || !has_shape) damaged_array("its header lacks dtype, order or shape");
    return header;
  }

 private:
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  bool take(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) damaged_array(fmt::format("its header is damaged: '{}' is missing", c));
  }
  std::string string() {
    skip_space();
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') damaged_array("its header is damaged: a string is missing");
    const std::size_t end = text_.find(quote, 1);
    if (end > 64)  // or not found
      damaged_array("its header is damaged: a string does not end");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    damaged_array("its header is damaged: True or False is missing");
  }
  std::vector<std::uint64_t> tuple() {
    constexpr std::size_t kMostAxes = 32;
    std::vector<std::uint64_t> values;
    expect('(');
    while (!take(')')) {
      skip_space();
      const auto value = take_number<std::uint64_t>(text_);
      if (!value) damaged_array("the shape in its header is not a tuple of whole numbers");
      if (!text_.empty() && text_.front() == 'L') text_.remove_prefix(1);  // of Python 2
      values.push_back(*value);
      if (values.size() > kMostAxes) damaged_array("its header has too many axes");
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view text_;
};

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

ArrayHeader parse_npy_header(std::span<const std::byte> begin) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (!text.starts_with(kMagic) || begin.size() < 10) damaged_array("is not an array of numpy (.npy)");
  const auto version = std::to_integer<unsigned>(begin[6]);
  if (version < 1 || version > 3)
    unsupported_array(fmt::format("has version {} of the .npy format; 1 to 3 are read", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t at = 8 + length_bytes;
  if (begin.size() < at) damaged_array("ends in its header");
  const auto length = load_number<std::uint64_t>(begin.data() + 8, length_bytes, false);
  if (length > kMaxArrayHeaderBytes - at)
    damaged_array(
        fmt::format("has a header of {} bytes; at most {} are read", length, kMaxArrayHeaderBytes - at));
  if (length > begin.size() - at) damaged_array("ends in its header");
  ArrayHeader header = NpyText(text.substr(at, length)).parse();
  if (header.dtype.find('O') != std::string::npos)
    unsupported_array("holds Python objects (pickled), which are not read: save an array of numbers");
  header.data_offset = at + length;
  return header;
}

bool is_idx_of_images(std::span<const std::byte> begin) noexcept {
  return begin.size() >= 4 && begin[0] == std::byte{0} && begin[1] == std::byte{0} &&
         begin[2] == std::byte{8} && (begin[3] == std::byte{3} || begin[3] == std::byte{4});
}

ArrayHeader parse_idx_header(std::span<const std::byte> begin) {
  if (begin.size() < 4 || begin[0] != std::byte{0} || begin[1] != std::byte{0})
    damaged_array("is not an IDX file");
  const auto type = std::to_integer<unsigned>(begin[2]);
  if (type != 8)
    unsupported_array(fmt::format("is an IDX file of type 0x{:02x}; unsigned bytes (0x08) are read", type));
  const auto axes = std::to_integer<std::size_t>(begin[3]);
  if (axes == 0 || axes > 8) damaged_array(fmt::format("is an IDX file with {} axes", axes));
  if (begin.size() < 4 + 4 * axes) damaged_array("ends in its header");
  ArrayHeader header{"|u1", {}, 4 + 4 * axes};
  for (std::size_t i = 0; i < axes; ++i)
    header.shape.push_back(load_number<std::uint64_t>(begin.data() + 4 + 4 * i, 4, true));
  return header;
}

std::uint64_t count_elements(const ArrayHeader& header, std::uint64_t element_bytes,
                             std::uint64_t file_bytes) {
  if (std::find(header.shape.begin(), header.shape.end(), std::uint64_t{0}) != header.shape.end()) return 0;
  const std::uint64_t there = header.data_offset > file_bytes ? 0
                                                              : (file_bytes - header.data_offset) /
                                                                    std::max<std::uint64_t>(element_bytes, 1);
  std::uint64_t count = 1;
  for (const std::uint64_t axis : header.shape) {
    if (count > there / axis)
      damaged_array(
          fmt::format("has the shape {}, for which its {} bytes are too few: it is cut off or damaged",
                      shape_text(header.shape), file_bytes));
    count *= axis;
  }
  return count;
}

std::uint64_t integer_bytes(const std::string& dtype) noexcept {
  if (dtype.size() != 3 || (dtype[1] != 'i' && dtype[1] != 'u')) return 0;
  const bool ordered = dtype[0] == '<' || dtype[0] == '>';
  switch (dtype[2]) {
    case '1':
      return ordered || dtype[0] == '|' ? 1 : 0;
    case '2':
    case '4':
    case '8':
      return ordered ? static_cast<std::uint64_t>(dtype[2] - '0') : 0;
    default:
      return 0;
  }
}

std::int64_t load_integer(const std::string& dtype, const std::byte* element) {
  const std::uint64_t bytes = integer_bytes(dtype);
  const auto value = load_number<std::uint64_t>(element, static_cast<std::size_t>(bytes), dtype[0] == '>');
  const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
  if (dtype[1] == 'u') {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      damaged_array(fmt::format("has the label {}, more than 64 bits with a sign hold", value));
    return static_cast<std::int64_t>(value);
  }
  return static_cast<std::int64_t>((value ^ sign) - sign);
}

namespace {

// "<u2": 2 bytes, unsigned. Nothing: not of an image.
std::optional<ArrayImages> element_of(const std::string& dtype) {
  if (dtype.size() != 3) return std::nullopt;
  ArrayImages images;
  const char kind = dtype[1];
  const char bytes = dtype[2];
  const bool ordered = dtype[0] == '<' || dtype[0] == '>';
  const bool whole = (kind == 'u' || kind == 'i') && (bytes == '1' || (bytes == '2' && ordered));
  const bool floating = kind == 'f' && ordered && (bytes == '2' || bytes == '4' || bytes == '8');
  if ((!whole && !floating) || (!ordered && dtype[0] != '|')) return std::nullopt;
  images.element_bytes = static_cast<unsigned>(bytes - '0');
  images.sample_format = kind == 'u' ? 1 : kind == 'i' ? 2 : 3;
  images.big_endian = dtype[0] == '>' && images.element_bytes > 1;
  return images;
}

// Of four axes with neither of 1, 3 or 4 channels: where two neighbours are the sides of a square, the other
// one has the channels; else the smaller one has.
bool channels_first(const std::vector<std::uint64_t>& shape) {
  if (shape[1] == shape[2] || shape[2] == shape[3]) return shape[2] == shape[3];
  return shape[1] < shape[3];
}

}  // namespace

std::uint64_t element_bytes(const std::string& dtype) noexcept {
  const std::optional<ArrayImages> image = element_of(dtype);
  return image ? image->element_bytes : integer_bytes(dtype);
}

namespace {

// Of an image: rows, columns, channels; and whether the channels come first.
struct ImageAxes {
  std::array<std::uint64_t, 3> of{};
  bool planes = false;
};

ImageAxes axes_of_one(const std::vector<std::uint64_t>& shape, ArrayLayout layout) {
  if (shape.size() != (layout == ArrayLayout::hw ? 2U : 3U))
    unsupported_array(fmt::format("has the shape {}: `array_layout` {} says that it is one image, {}",
                                  shape_text(shape), words_of(layout)[static_cast<std::size_t>(layout)],
                                  layout == ArrayLayout::hw    ? "[rows, columns]"
                                  : layout == ArrayLayout::hwc ? "[rows, columns, channels]"
                                                               : "[channels, rows, columns]"));
  if (layout == ArrayLayout::hw) return {{shape[0], shape[1], 1}};
  if (layout == ArrayLayout::hwc) return {{shape[0], shape[1], shape[2]}};
  return {{shape[1], shape[2], shape[0]}, true};
}

ImageAxes axes_of_many(const std::vector<std::uint64_t>& shape, ArrayLayout layout) {
  const auto is_channels = [](std::uint64_t axis) { return axis == 1 || axis == 3 || axis == 4; };
  if (shape.size() == 3) {
    if (layout == ArrayLayout::automatic && is_channels(shape[2]))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "has the shape {}, which may be one image: give `array_layout` hwc, or save x[None], of "
              "shape [1, {}, {}, {}]",
              shape_text(shape), shape[0], shape[1], shape[2]));
    return {{shape[1], shape[2], 1}};
  }
  if (shape.size() != 4)
    unsupported_array(fmt::format(
        "has the shape {}: expected [images, rows, columns], [images, rows, columns, channels] or "
        "[images, channels, rows, columns]; of one image give `array_layout` hw, hwc or chw",
        shape_text(shape)));
  const bool last = is_channels(shape[3]);
  const bool first = is_channels(shape[1]);
  if (layout == ArrayLayout::automatic && first == last && (first || shape[1] == shape[3]))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("has the shape {}: the channels may be its second or its last axis; "
                            "`array_layout` nchw or nhwc says which",
                            shape_text(shape)));
  const bool planes = layout == ArrayLayout::nchw ||
                      (layout == ArrayLayout::automatic && (first != last ? first : channels_first(shape)));
  if (planes) return {{shape[2], shape[3], shape[1]}, true};
  return {{shape[1], shape[2], shape[3]}};
}

}  // namespace

ArrayImages images_of(const ArrayHeader& header, ArrayLayout layout) {
  const auto& shape = header.shape;
  const std::optional<ArrayImages> element = element_of(header.dtype);
  if (!element)
    unsupported_array(
        fmt::format("has the dtype {}: images are uint8, uint16, int8, int16, float16, float32 or float64; "
                    "convert it first, for "
                    "example with x.astype(\"float32\")",
                    quoted(header.dtype)));
  if (std::find(shape.begin(), shape.end(), std::uint64_t{0}) != shape.end())
    damaged_array(fmt::format("has the shape {}: it holds no image", shape_text(shape)));
  const auto [axes, planes] = is_single(layout) ? axes_of_one(shape, layout) : axes_of_many(shape, layout);
  if (axes[2] > kMaxSampleChannels)
    unsupported_array(
        fmt::format("has the shape {}: images have 1 to {} channels, as the last axis or the {}",
                    shape_text(shape), kMaxSampleChannels, is_single(layout) ? "first" : "second"));
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;  // of an input
  if (axes[0] > kMostBytes / axes[1] / axes[2] / element->element_bytes)
    unsupported_array(
        fmt::format("has the shape {}: an image has at most {} bytes", shape_text(shape), kMostBytes));
  constexpr std::uint64_t kMostSide = 0xffffffffU;
  if (axes[0] > kMostSide || axes[1] > kMostSide)
    unsupported_array(fmt::format("has the shape {}: a side is too long", shape_text(shape)));
  ArrayImages images = *element;
  images.count = is_single(layout) ? 1 : shape[0];
  images.width = static_cast<std::uint32_t>(axes[1]);
  images.height = static_cast<std::uint32_t>(axes[0]);
  images.channels = static_cast<unsigned>(axes[2]);
  images.planes = planes && axes[2] > 1;
  return images;
}

namespace {

void put_number(std::vector<std::byte>& out, std::uint64_t value, int bytes, bool big_endian) {
  for (int i = 0; i < bytes; ++i)
    out.push_back(static_cast<std::byte>(value >> (8 * (big_endian ? bytes - 1 - i : i))));
}

}  // namespace

std::vector<std::byte> tiff_header(const ArrayImages& images) {
  constexpr unsigned kShort = 3;
  constexpr unsigned kLong = 4;
  struct Entry {
    unsigned tag;
    unsigned type;
    std::vector<std::uint64_t> values;
  };
  const bool rgb = images.channels == 3 || images.channels == 4;
  const bool big = images.big_endian;
  const std::size_t strips = images.planes ? images.channels : 1;
  const std::uint64_t strip_bytes = images.item_bytes() / strips;
  std::vector<Entry> entries{
      {256, kLong, {images.width}},
      {257, kLong, {images.height}},
      {258, kShort, std::vector<std::uint64_t>(images.channels, 8 * images.element_bytes)},
      {259, kShort, {1}},                                // not compressed
      {262, kShort, {rgb ? 2U : 1U}},                    // RGB, or 0 is black
      {273, kLong, std::vector<std::uint64_t>(strips)},  // where the samples are: below
      {277, kShort, {images.channels}},
      {278, kLong, {images.height}},
      {279, kLong, std::vector<std::uint64_t>(strips, strip_bytes)},
      {284, kShort, {images.planes ? 2U : 1U}},
  };
  // What the further channels are is not said: readers of RGB drop a fourth one, others keep it.
  if (images.channels > (rgb ? 3U : 1U))
    entries.push_back({338, kShort, std::vector<std::uint64_t>(images.channels - (rgb ? 3U : 1U), 0)});
  if (images.sample_format != 1)
    entries.push_back({339, kShort, std::vector<std::uint64_t>(images.channels, images.sample_format)});
  constexpr std::size_t kDirectory = 8;
  std::uint64_t behind =
      kDirectory + 2 + 12 * entries.size() + 4;  // where values that do not fit into an entry are
  std::uint64_t samples = behind;
  const auto size_of = [](const Entry& entry) {
    return entry.values.size() * (entry.type == kShort ? 2 : 4);
  };
  for (const Entry& entry : entries)
    if (size_of(entry) > 4) samples += size_of(entry);
  for (Entry& entry : entries)
    if (entry.tag == 273)
      for (std::size_t i = 0; i < strips; ++i) entry.values[i] = samples + i * strip_bytes;

  std::vector<std::byte> out;
  for (int i = 0; i < 2; ++i) out.push_back(static_cast<std::byte>(big ? 'M' : 'I'));
  put_number(out, 42, 2, big);
  put_number(out, kDirectory, 4, big);
  put_number(out, entries.size(), 2, big);
  std::vector<std::byte> values;
  for (const Entry& entry : entries) {
    put_number(out, entry.tag, 2, big);
    put_number(out, entry.type, 2, big);
    put_number(out, entry.values.size(), 4, big);
    std::vector<std::byte> data;
    for (const std::uint64_t value : entry.values) put_number(data, value, entry.type == kShort ? 2 : 4, big);
    if (data.size() > 4) {
      put_number(out, behind + values.size(), 4, big);
      values.insert(values.end(), data.begin(), data.end());
    } else {
      data.resize(4);
      out.insert(out.end(), data.begin(), data.end());
    }
  }
  put_number(out, 0, 4, big);
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

namespace {

// Where the directory of a ZIP file is, and how many entries it has.
struct ZipEnd {
  std::uint64_t entries = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t offset = 0;
};

std::vector<std::byte> zip_bytes(const FileBytes& bytes, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> out(size);
  if (bytes(offset, out) != size) damaged_array("is not a whole ZIP file (.npz): it is cut off");
  return out;
}

std::uint64_t zip_field(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  return load_number<std::uint64_t>(bytes.data() + at, size, false);
}

ZipEnd find_zip_end(const FileBytes& bytes, std::uint64_t file_bytes) {
  constexpr std::size_t kEnd = 22;
  constexpr std::size_t kLocator = 20;
  constexpr std::size_t kMostComment = 65535;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, kEnd + kMostComment));
  const std::vector<std::byte> tail = zip_bytes(bytes, file_bytes - size, size);
  for (std::size_t at = size < kEnd ? 0 : size - kEnd + 1; at-- > 0;) {
    if (zip_field(tail, at, 4) != 0x06054B50) continue;
    ZipEnd end{zip_field(tail, at + 10, 2), zip_field(tail, at + 12, 4), zip_field(tail, at + 16, 4)};
    if (end.entries != 0xFFFF && end.size_bytes != 0xFFFFFFFF && end.offset != 0xFFFFFFFF) return end;
    if (at < kLocator || zip_field(tail, at - kLocator, 4) != 0x07064B50) return end;
    const std::vector<std::byte> large = zip_bytes(bytes, zip_field(tail, at - kLocator + 8, 8), 56);
    if (zip_field(large, 0, 4) != 0x06064B50)
      damaged_array("is not a whole ZIP file (.npz): its end is damaged");
    return {zip_field(large, 32, 8), zip_field(large, 40, 8), zip_field(large, 48, 8)};
  }
  damaged_array("is not a ZIP file (.npz), or it is cut off");
}

}  // namespace

std::vector<ZipMember> list_npz(const FileBytes& bytes, std::uint64_t file_bytes) {
  constexpr std::size_t kEntry = 46;
  constexpr std::size_t kLocal = 30;
  constexpr std::uint64_t kMostDirectory = std::uint64_t{1} << 20U;
  const ZipEnd end = find_zip_end(bytes, file_bytes);
  if (end.size_bytes > kMostDirectory || end.offset > file_bytes || end.size_bytes > file_bytes - end.offset)
    damaged_array("is not a whole ZIP file (.npz): its directory is damaged");
  const std::vector<std::byte> directory =
      zip_bytes(bytes, end.offset, static_cast<std::size_t>(end.size_bytes));
  std::vector<ZipMember> members;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < end.entries; ++i) {
    if (directory.size() - at < kEntry || zip_field(directory, at, 4) != 0x02014B50)
      damaged_array("is a ZIP file (.npz) with a damaged directory");
    const auto name_bytes = static_cast<std::size_t>(zip_field(directory, at + 28, 2));
    const auto extra_bytes = static_cast<std::size_t>(zip_field(directory, at + 30, 2));
    const auto comment_bytes = static_cast<std::size_t>(zip_field(directory, at + 32, 2));
    if (directory.size() - at - kEntry < name_bytes + extra_bytes + comment_bytes)
      damaged_array("is a ZIP file (.npz) with a damaged directory");
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(directory.data()) + at + kEntry, name_bytes);
    const std::uint64_t method = zip_field(directory, at + 10, 2);
    const bool encrypted = (zip_field(directory, at + 8, 2) & 1U) != 0;
    member.size_bytes = zip_field(directory, at + 24, 4);
    member.stored_bytes = zip_field(directory, at + 20, 4);
    member.checksum = static_cast<std::uint32_t>(zip_field(directory, at + 16, 4));
    member.deflated = method == 8;
    std::uint64_t local = zip_field(directory, at + 42, 4);
    // Sizes beyond 32 bits: in this order, those that do not fit.
    const std::span<const std::byte> extra =
        std::span(directory).subspan(at + kEntry + name_bytes, extra_bytes);
    for (std::size_t field = 0; extra.size() - field >= 4;) {
      const auto id = zip_field(extra, field, 2);
      const auto size = static_cast<std::size_t>(zip_field(extra, field + 2, 2));
      field += 4;
      if (size > extra.size() - field) break;
      std::size_t value = field;
      const auto next = [&](std::uint64_t& target) {
        if (target != 0xFFFFFFFF || value + 8 > field + size) return;
        target = zip_field(extra, value, 8);
        value += 8;
      };
      if (id == 1) {
        next(member.size_bytes);
        next(member.stored_bytes);
        next(local);
      }
      field += size;
    }
    at += kEntry + name_bytes + extra_bytes + comment_bytes;
    if ((method != 0 && method != 8) || encrypted)
      unsupported_array(fmt::format(
          "has the member {}, which is {}: save it with numpy.savez", quoted_excerpt(member.name),
          encrypted ? "encrypted" : fmt::format("compressed in a way that numpy does not use ({})", method)));
    if (local > file_bytes || file_bytes - local < kLocal)
      damaged_array("is a ZIP file (.npz) with a damaged directory");
    const std::vector<std::byte> head = zip_bytes(bytes, local, kLocal);
    if (zip_field(head, 0, 4) != 0x04034B50) damaged_array("is a ZIP file (.npz) with a damaged member");
    member.offset = local + kLocal + zip_field(head, 26, 2) + zip_field(head, 28, 2);
    if (!member.deflated) member.stored_bytes = member.size_bytes;
    if (member.offset > file_bytes || member.stored_bytes > file_bytes - member.offset)
      damaged_array(fmt::format("is a ZIP file (.npz) whose member {} reaches beyond its end",
                                quoted_excerpt(member.name)));
    members.push_back(std::move(member));
  }
  // Readers differ in which one they take: numpy the last.
  std::vector<std::string_view> names;
  for (const ZipMember& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    damaged_array(
        fmt::format("has two members {}: which one counts cannot be told; save it again with "
                    "numpy.savez",
                    quoted_excerpt(*twice)));
  return members;
}

}  // namespace shard::convert
