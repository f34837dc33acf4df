// export --format tar: a WebDataset. Of sample cat/1.jpg:
//
//   cat/1.png     its pixels, if they are 8-bit RGB; else cat/1.npy, the stored array
//   cat/1.jpg     instead, with codec jpeg: the file
//   cat/1.cls     the label, if it is a whole number
//   cat/1.NAME.npy   a further image of the sample
//   cat/1.json    {"class": "cat", "boxes": [[...], ...], ...}: the name of the class, and the columns
//
// Members in the order of the samples, always the same bytes.
// Memory: a sample, and 8 bytes for each (their names' hashes).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <unordered_set>

#include "base/digest/checksum.hpp"
#include "base/files/file_io.hpp"
#include "base/files/publish.hpp"
#include "base/text/json.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/convert/input_name.hpp"
#include "shard/error.hpp"
#include "shard/image/decode.hpp"
#include "shard/keys.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/files.hpp"
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/npy.hpp"
#include "shardctl/dataset/sizes.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/picture.hpp"
#include "shardctl/draw/pixels.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTarEnd = 2 * kTarBlock;

// A ustar archive, with pax headers for names that do not fit into ustar's field.
class TarWriter {
 public:
  explicit TarWriter(PendingFile& file) : file_(file) {}

  void add(const std::string& name, std::span<const std::byte> bytes) {
    constexpr std::size_t kNameBytes = 100;
    if (name.size() > kNameBytes) {
      // "LENGTH path=NAME\n", where the length counts itself.
      std::size_t length = name.size() + 7;
      length += std::to_string(length + std::to_string(length).size()).size();
      const std::string record = fmt::format("{} path={}\n", length, name);
      member("PaxHeaders/name", 'x', std::as_bytes(std::span(record)));
    }
    member(name.substr(0, kNameBytes), '0', bytes);
  }
  void finish() { file_.append(std::string(kTarEnd, '\0')); }

 private:
  void member(const std::string& name, char type, std::span<const std::byte> bytes) {
    constexpr std::uint64_t kMostOctal = std::uint64_t{1} << 33U;
    if (bytes.size() >= kMostOctal)
      throw Error(ErrorCode::unsupported, fmt::format("{}: {} bytes, more than a member of a tar archive has",
                                                      quoted(name), bytes.size()));
    std::array<char, kTarBlock> header{};
    const auto put = [&](std::size_t at, std::string_view text) {
      std::copy(text.begin(), text.end(), header.data() + at);
    };
    put(0, name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", bytes.size()));
    put(136, "00000000000");
    put(148, "        ");  // the checksum counts as spaces
    header[156] = type;
    put(257, std::string_view("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum));
    header[154] = '\0';
    file_.append(std::string_view(header.data(), header.size()));
    file_.append(bytes);
    file_.append(std::string((kTarBlock - bytes.size() % kTarBlock) % kTarBlock, '\0'));
  }

  PendingFile& file_;
};

// The names of samples: keys without the extension of an image and without further dots, which would
// end a WebDataset's name. One that another sample has, or that no archive should have, gets the
// number of the sample.
class SampleNames {
 public:
  std::string name_of(std::string_view key, std::uint64_t index) {
    std::string name = unescape_key(key);
    const std::size_t slash = name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1;
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos && dot > slash && convert::has_image_name(name)) name.resize(dot);
    std::replace(name.begin() + static_cast<std::ptrdiff_t>(slash), name.end(), '.', '_');
    if (name.empty() || name.ends_with('/') || name.find('\0') != std::string::npos || !is_plain(name))
      name = fmt::format("sample-{}", index);
    while (!taken_.insert(xxh3(name)).second) name += fmt::format("-{}", index);
    return name;
  }

 private:
  static bool is_plain(const std::string& name) {
    if (name.front() == '/' || convert::skip_by_path(name)) return false;
    for (const fs::path& part : fs::path(name))
      if (part == "..") return false;
    return true;
  }
  std::unordered_set<std::uint64_t> taken_;
};

// A number of a column as JSON: what JSON has no number for is a string.
std::string json_number(const std::string& text) {
  return text.find_first_of("ni") != std::string::npos ? json_quote(text) : text;  // nan, inf
}

class JsonObject {
 public:
  void add(const std::string& name, const std::string& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "{" : ", ", json_quote(name), value);
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

// Nested lists: [row][...].
std::string json_rows(const Column& column, const std::vector<std::byte>& rows) {
  std::uint64_t at = 0;
  const std::uint64_t elements = rows.size() / size_bytes(column.dtype);
  const auto list = [&](const auto& self, std::size_t axis) -> std::string {
    if (axis == column.row_shape.size()) {
      const std::string text = element_text(column.dtype, rows, at++);
      return column.dtype == DType::boolean ? text : json_number(text);
    }
    std::string all = "[";
    for (std::uint64_t i = 0; i < column.row_shape[axis]; ++i)
      all += (i > 0 ? ", " : "") + self(self, axis + 1);
    return all + "]";
  };
  if (column.kind == ColumnKind::fixed) return list(list, 0);
  std::string all = "[";
  while (at < elements) all += (all.size() > 1 ? ", " : "") + list(list, 0);
  return all + "]";
}

std::string json_of(const Source& source, const ShardReader& reader, std::uint64_t sample) {
  JsonObject json;
  const auto id = class_id(reader, sample);
  if (!id) {
    if (const auto labels = reader.columns().find("labels"); labels != reader.columns().end()) {
      std::vector<std::byte> row;
      reader.read_column(labels->second, sample, row);
      json.add("labels", json_rows(labels->second, row));
    }
  } else if (!source.info().classes.empty()) {
    json.add("class", json_quote(label_name(source, reader, sample)));
  }
  std::vector<std::byte> rows;
  for (std::size_t c = 1; c < source.info().columns.size(); ++c) {
    const Column& column = reader.column(source.info().columns[c].name);
    if (column.kind == ColumnKind::text) {
      json.add(source.info().columns[c].name, json_quote(reader.text(column, sample)));
    } else {
      reader.read_column(column, sample, rows);
      json.add(source.info().columns[c].name, json_rows(column, rows));
    }
  }
  return json.text() + "\n";
}

// What shardify takes to give the columns back.
std::string column_options(const Source& source) {
  std::string text;
  for (std::size_t c = 1; c < source.info().columns.size(); ++c) {
    const ColumnSpec& column = source.info().columns[c];
    std::string type = column.kind == ColumnKind::text ? "text" : std::string(to_string(column.dtype));
    if (column.kind == ColumnKind::ragged || !column.row_shape.empty())
      type += fmt::format("[{}{}]", column.kind == ColumnKind::ragged && !column.row_shape.empty() ? "," : "",
                          fmt::join(column.row_shape, ","));
    text += " --column " + cli::shell_word(fmt::format("{}:{}", column.name, type));
  }
  return text;
}

// The command that makes the data set again, from PNG or JPEG members.
std::string way_back(const Source& source, const ExportOptions& options) {
  const DatasetInfo& info = source.info();
  const std::string size = info.spec.is_free() ? "--size original" : "--squash " + size_text(info.spec);
  std::string text = fmt::format("shardify {} OUT {} --dtype {} --layout {} --mean {} --std {}",
                                 cli::shell_word(options.folder), size, to_string(info.spec.dtype),
                                 to_string(info.spec.layout), fmt::join(info.normalization.mean, ","),
                                 fmt::join(info.normalization.std, ","));
  if (info.codec.kind != CodecSpec::Kind::none) text += " --codec " + to_string(info.codec);
  if (!info.classes.empty()) text += " --classes " + cli::shell_word(options.path);
  return text + column_options(source);
}

// What that command does not give back.
std::string lost_on_the_way(const Source& source) {
  const DatasetInfo& info = source.info();
  std::vector<std::string> lost;
  const ColumnSpec& labels = info.columns.front();
  if (labels.dtype != DType::i64)
    lost.emplace_back("the labels, which are lists of numbers in the .json members");
  for (const FieldSpec& field : info.fields) lost.push_back("the images " + quoted(field.name));
  if (info.codec.kind == CodecSpec::Kind::jpeg && !info.spec.is_free())
    lost.emplace_back("the very pixels, which are encoded once more");
  return fmt::format("{}", fmt::join(lost, ", "));
}

bool has_pixels(const SampleSpec& spec) {
  return !spec.is_tensor() && spec.channels == 3 && spec.dtype != DType::u16;
}

}  // namespace

int export_tar(const ExportOptions& options) {
  const Source source = Source::open(options.path, options.verify ? Check::digests : Check::none);
  const fs::path path = options.folder;
  if (is_present(path))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} exists: name a file that does not", quoted(path)));
  const SampleSpec& spec = source.info().spec;
  const bool jpeg = source.info().codec.kind == CodecSpec::Kind::jpeg;
  std::optional<Denormalizer> pixels;
  if (has_pixels(spec) && !jpeg) pixels.emplace(spec, source.info().normalization);

  PendingFile file(path);
  TarWriter tar(file);
  SampleNames names;
  Damage damage;
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  std::vector<std::byte> sample;
  std::vector<std::byte> jpeg_file;
  SampleSpec of;
  Picture picture;
  const std::vector<FieldSpec>& fields = source.info().fields;
  std::vector<std::byte> field;
  for (std::uint32_t i = 0; i < source.shards(); ++i) {
    const ShardReader& reader = source.shard(i);
    source.each_of(i, [&](std::uint64_t index, std::uint64_t at) {
      const std::string name = names.name_of(reader.key(at), index);
      const bool whole = damage.survives(index, [&] { of = source.read(index, sample); });
      if (progress.due()) progress.update(fmt::format("{} of {} samples", index + 1, source.size()));
      if (!whole || damage.found()) return;
      if (jpeg) {
        reader.images().read_file(at, jpeg_file);
        tar.add(name + ".jpg", jpeg_file);
      } else if (pixels) {
        picture.resize(of);
        pixels->rgb(sample, picture.rgb);
        tar.add(name + ".png", image::encode_png(picture.view()));
      } else {
        tar.add(name + ".npy", npy_sample(of, sample));
      }
      for (std::size_t f = 0; f < fields.size(); ++f) {
        const SampleSpec field_of = reader.images(f).spec_of(at);
        field.resize(static_cast<std::size_t>(field_of.size_bytes()));
        reader.images(f).read(at, field);
        tar.add(fmt::format("{}.{}.npy", name, fields[f].name), npy_sample(field_of, field));
      }
      if (const auto id = class_id(reader, at)) {
        const std::string number = fmt::to_string(*id);
        tar.add(name + ".cls", std::as_bytes(std::span(number)));
      }
      const std::string json = json_of(source, reader, at);
      if (json != "{}\n") tar.add(name + ".json", std::as_bytes(std::span(json)));
    });
    reader.check_unchanged();
  }
  progress.finish();
  if (damage.found()) {
    damage.report("nothing was written");
    return kExitDifferent;
  }
  tar.finish();
  file.publish();
  if (!options.quiet) {
    cli::out("{}: {}, each as {}\n", path_text(path), cli::counted(source.size(), "sample"),
             jpeg     ? "JPEG"
             : pixels ? "PNG"
                      : "NumPy array");
    if (pixels || jpeg) {
      cli::out("as a data set again: {}\n", way_back(source, options));
      const std::string lost = lost_on_the_way(source);
      if (!lost.empty()) cli::out("without {}\n", lost);
    }
  }
  return kExitOk;
}

}  // namespace shard::ctl
