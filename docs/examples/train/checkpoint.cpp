#include "checkpoint.hpp"

#include <bit>
#include <cstring>
#include <sstream>
#include <string_view>

#include "shard/checksum.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/file.hpp"

namespace train {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "shard-train 1\n";
constexpr std::size_t kDigestSize = 16;
constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30U;

std::string to_hex(double value) { return shard::to_hex(std::bit_cast<std::uint64_t>(value)); }

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
  content += shard::to_hex(shard::xxh3(content));
  shard::publish_file(path, content);
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const std::string& settings) {
  const std::vector<std::byte> bytes = shard::read_file(path, kMaxBytes);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) refuse(path, "is not a checkpoint of this program");
  const std::string_view body = text.substr(0, text.size() - std::min(kDigestSize, text.size()));
  if (shard::from_hex(text.substr(body.size())) != shard::xxh3(body))
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
    const auto bits = shard::from_hex(digits);
    if (!bits) refuse(path, "has no totals");
    *total = std::bit_cast<double>(*bits);
  }
  const std::string count = take_line(text);
  if (text.size() % sizeof(float) != 0 || std::to_string(text.size() / sizeof(float)) != count)
    refuse(path, "does not hold the " + count + " values that it states");
  checkpoint.values.resize(text.size() / sizeof(float));
  std::memcpy(checkpoint.values.data(), text.data(), text.size());
  return checkpoint;
}

}  // namespace train
