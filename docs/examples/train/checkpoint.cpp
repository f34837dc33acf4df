#include "checkpoint.hpp"

#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace train {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "shard-train 1\n";
constexpr std::size_t kDigestSize = 16;

// 64-bit FNV-1a: finds a damaged file.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string to_hex(std::uint64_t value) {
  std::string digits(kDigestSize, '0');
  for (std::size_t i = kDigestSize; i-- > 0; value >>= 4U) digits[i] = "0123456789abcdef"[value & 15U];
  return digits;
}
std::string to_hex(double value) { return to_hex(std::bit_cast<std::uint64_t>(value)); }

bool from_hex(std::string_view digits, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return digits.size() == kDigestSize && error == std::errc() && end == digits.data() + digits.size();
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw shard::Error(shard::ErrorCode::corrupt, "checkpoint '" + path.string() + "' " + why +
                                                    "; restore it, or remove it to begin anew");
}

std::string take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  const Totals& totals = checkpoint.totals;
  std::string content(kMagic);
  content += checkpoint.settings + '\n' + checkpoint.loader.serialize() + '\n' + to_hex(totals.loss) + ' ' +
             to_hex(totals.correct) + ' ' + to_hex(totals.samples) + '\n' +
             std::to_string(checkpoint.values.size()) + '\n';
  content.append(reinterpret_cast<const char*>(checkpoint.values.data()),
                 checkpoint.values.size() * sizeof(float));
  content += to_hex(digest(content));
  shard::publish_file(path, content);
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const std::string& settings) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw shard::Error(shard::ErrorCode::not_found, "cannot open checkpoint '" + path.string() + "'");
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  std::string_view text = content;
  if (!text.starts_with(kMagic)) refuse(path, "is not a checkpoint of this program");
  const std::string_view body = text.substr(0, text.size() - std::min(kDigestSize, text.size()));
  std::uint64_t recorded = 0;
  if (!from_hex(text.substr(body.size()), recorded) || recorded != digest(body))
    refuse(path, "is damaged: its checksum does not match");
  text = body.substr(kMagic.size());

  Checkpoint checkpoint;
  checkpoint.settings = take_line(text);
  if (checkpoint.settings != settings)
    throw shard::Error(shard::ErrorCode::invalid_argument,
                       "checkpoint '" + path.string() + "' is of another run: it has '" +
                           checkpoint.settings + "', this run '" + settings + "'");
  checkpoint.loader = shard::LoaderState::parse(take_line(text));
  std::istringstream totals(take_line(text));
  for (double* total : {&checkpoint.totals.loss, &checkpoint.totals.correct, &checkpoint.totals.samples}) {
    std::string digits;
    totals >> digits;
    std::uint64_t bits = 0;
    if (!from_hex(digits, bits)) refuse(path, "has no totals");
    *total = std::bit_cast<double>(bits);
  }
  const std::string count = take_line(text);
  if (text.size() % sizeof(float) != 0 || std::to_string(text.size() / sizeof(float)) != count)
    refuse(path, "does not hold the " + count + " values that it states");
  checkpoint.values.resize(text.size() / sizeof(float));
  std::memcpy(checkpoint.values.data(), text.data(), text.size());
  return checkpoint;
}

}  // namespace train
