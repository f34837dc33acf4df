#include "format/codec/codecs.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

#include "base/text/number.hpp"
#include "jpeg/frame.hpp"
#include "shard/error.hpp"
#include "shard/packed_format.hpp"

namespace shard {
namespace {

bool can_hold_all(const SampleSpec& /*spec*/) noexcept { return true; }

// kind, name, last_level, levels, framed, lossy, frame_alignment, can_hold, held, make
constexpr std::array kCodecs{
    CodecRow{CodecSpec::Kind::none, "none", 0, "", false, false, 1, can_hold_all, "all samples",
             make_raw_coder},
    CodecRow{CodecSpec::Kind::packed, "packed", 0, "", true, false, packed::kAlignment, packed_can_hold,
             "images of 8 bits and up to 4 channels", make_packed_coder},
    CodecRow{CodecSpec::Kind::zstd, "zstd", 19, "level", true, false, 1, can_hold_all, "all samples",
             make_zstd_coder},
    CodecRow{CodecSpec::Kind::jpeg, "jpeg", 100, "quality", true, true, jpeg::kFrameAlignment, jpeg_can_hold,
             "images of u8 nhwc with 1 or 3 channels", make_jpeg_coder},
};

std::string upper(std::string_view word) {
  std::string text;
  for (const char letter : word) text += static_cast<char>(letter - 'a' + 'A');
  return text;
}

// "none, packed, zstd, jpeg, zstd:LEVEL with a level from 1 to 19 or jpeg:QUALITY with a quality ..."
std::string known_codecs() {
  std::string names;
  std::string levels;
  for (const CodecRow& row : kCodecs) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    if (row.last_level != 0)
      levels += fmt::format("{} {}:{} with a {} from 1 to {}", levels.empty() ? "," : " or", row.name,
                            upper(row.levels), row.levels, row.last_level);
  }
  return names + levels;
}

// The part of `text` behind "NAME:" as a level of the codec.
std::optional<int> level_of(const CodecRow& row, std::string_view text) {
  const auto level = number_of<int>(text);
  return level && *level >= 1 && *level <= row.last_level ? level : std::nullopt;
}

}  // namespace

std::span<const CodecRow> codecs() noexcept { return kCodecs; }

const CodecRow& codec_row(CodecSpec::Kind kind) {
  for (const CodecRow& row : kCodecs)
    if (row.kind == kind) return row;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("codec number {} is not known: use {}", static_cast<int>(kind), known_codecs()));
}

bool CodecSpec::framed(const SampleSpec& spec) const { return codec_row(kind).framed || spec.is_free(); }
bool CodecSpec::can_hold(const SampleSpec& spec) const { return codec_row(kind).can_hold(spec); }

std::string to_string(const CodecSpec& codec) {
  const CodecRow& row = codec_row(codec.kind);
  return row.last_level == 0 ? std::string(row.name) : fmt::format("{}:{}", row.name, codec.level);
}

CodecSpec codec_spec_from_string(const std::string& s) {
  const std::string_view text = s;
  for (const CodecRow& row : kCodecs) {
    if (!text.starts_with(row.name)) continue;
    const std::string_view rest = text.substr(row.name.size());
    if (rest.empty()) return CodecSpec(row.kind);
    if (rest.front() != ':') continue;
    if (const auto level = level_of(row, rest.substr(1))) return CodecSpec(row.kind, *level);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("codec \"{}\" is not known: use {}", s, known_codecs()));
}

}  // namespace shard
