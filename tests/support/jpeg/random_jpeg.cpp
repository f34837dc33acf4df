#include "support/jpeg/random_jpeg.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace shard::testing {
namespace {

struct Code {
  std::uint32_t bits = 0;
  std::uint32_t length = 0;
};

struct Codes {
  std::vector<std::uint8_t> segment;  // counts and symbols, as in DHT
  std::array<Code, 256> of{};
};

struct Part {
  std::uint8_t id = 0;
  std::uint32_t h = 1;
  std::uint32_t v = 1;
  std::uint32_t quantization = 0;
  std::uint32_t dc = 0;
  std::uint32_t ac = 0;
};

class Writer {
 public:
  Writer(std::mt19937_64& random, const RandomJpegOptions& options) : random_(random), options_(options) {}
  std::vector<std::byte> write();

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  Codes random_codes(std::uint32_t symbols);
  void choose_parts();
  void segment(std::uint32_t marker, const std::vector<std::uint8_t>& data);
  void write_quantization();
  void write_frame();
  void write_huffman();
  void write_scan();
  void write_data();
  void write_block(const Part& part);
  std::int32_t random_value(std::uint32_t most_bits);
  void value(std::int32_t value, std::uint32_t size);
  void put(std::uint32_t bits, std::uint32_t length);
  void put(const Code& code) { put(code.bits, code.length); }
  void flush();
  void byte(std::uint32_t value) { file_.push_back(static_cast<std::byte>(value & 0xFF)); }

  std::mt19937_64& random_;
  RandomJpegOptions options_;
  std::vector<std::byte> file_;
  std::vector<Part> parts_;
  std::array<Codes, 4> dc_;
  std::array<Codes, 4> ac_;
  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
  std::uint32_t restart_ = 0;
  std::uint64_t window_ = 0;
  std::uint32_t count_ = 0;
};

// Leaves of a tree that is split at random; the deepest one is left out, because no code may be all 1s.
Codes Writer::random_codes(std::uint32_t symbols) {
  std::vector<std::uint32_t> depths{0};
  while (depths.size() <= symbols) {
    const std::uint32_t i = below(static_cast<std::uint32_t>(depths.size()));
    const bool deep = depths[i] >= 16 || (depths[i] >= 10 && below(4) != 0);
    if (deep) continue;
    ++depths[i];
    depths.push_back(depths[i]);
  }
  std::sort(depths.begin(), depths.end());
  depths.pop_back();
  std::vector<std::uint8_t> names(symbols);
  for (std::uint32_t i = 0; i < symbols; ++i) names[i] = static_cast<std::uint8_t>(i);
  std::shuffle(names.begin(), names.end(), random_);
  Codes codes;
  codes.segment.resize(16);
  std::uint32_t code = 0;
  for (std::uint32_t i = 0; i < symbols; ++i) {
    if (i > 0) code = (code + 1) << (depths[i] - depths[i - 1]);
    ++codes.segment[depths[i] - 1];
    codes.of[names[i]] = {code, depths[i]};
  }
  codes.segment.insert(codes.segment.end(), names.begin(), names.end());
  return codes;
}

void Writer::choose_parts() {
  constexpr std::array<std::uint32_t, 3> kCounts = {1, 3, 4};
  const std::uint32_t count = kCounts[below(3)];
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 7> kFactors = {
      {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}}};
  for (;;) {
    parts_.clear();
    std::uint32_t blocks = 0;
    const bool luma = below(2) == 0;  // all but the first have one block
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto [h, v] = luma && i > 0 ? kFactors[0] : kFactors[below(7)];
      parts_.push_back({static_cast<std::uint8_t>(i + 1), h, v, below(4), below(4), below(4)});
      blocks += h * v;
    }
    if (blocks <= 10 || count == 1) return;
  }
}

void Writer::segment(std::uint32_t marker, const std::vector<std::uint8_t>& data) {
  for (std::uint32_t i = below(8) == 0 ? below(3) : 0; i > 0; --i) byte(0xFF);  // fill bytes
  byte(0xFF);
  byte(marker);
  byte(static_cast<std::uint32_t>(data.size() + 2) >> 8);
  byte(static_cast<std::uint32_t>(data.size() + 2));
  for (const std::uint8_t value : data) byte(value);
}

void Writer::write_quantization() {
  for (std::uint32_t table = 0; table < 4; ++table) {
    const bool wide = options_.coefficients == Coefficients::extreme || below(3) == 0;
    std::vector<std::uint8_t> data{static_cast<std::uint8_t>((wide ? 0x10 : 0) | table)};
    for (int k = 0; k < 64; ++k) {
      std::uint32_t value = 1 + below(4);
      if (options_.coefficients == Coefficients::large) value = 1 + below(255);
      if (options_.coefficients == Coefficients::extreme) value = below(2) == 0 ? 1 + below(4) : below(65536);
      if (wide) data.push_back(static_cast<std::uint8_t>(value >> 8));
      data.push_back(static_cast<std::uint8_t>(value));
    }
    segment(0xDB, data);
  }
}

void Writer::write_frame() {
  width_ = 1 + below(options_.most_pixels);
  height_ = 1 + below(options_.most_pixels);
  std::vector<std::uint8_t> data{8,
                                 static_cast<std::uint8_t>(height_ >> 8),
                                 static_cast<std::uint8_t>(height_),
                                 static_cast<std::uint8_t>(width_ >> 8),
                                 static_cast<std::uint8_t>(width_),
                                 static_cast<std::uint8_t>(parts_.size())};
  for (const Part& part : parts_) {
    data.push_back(part.id);
    data.push_back(static_cast<std::uint8_t>(part.h << 4 | part.v));
    data.push_back(static_cast<std::uint8_t>(part.quantization));
  }
  segment(0xC1, data);
}

void Writer::write_huffman() {
  for (std::uint32_t table = 0; table < 4; ++table) {
    dc_[table] = random_codes(16);
    ac_[table] = random_codes(256);
    std::vector<std::uint8_t> data{static_cast<std::uint8_t>(table)};
    data.insert(data.end(), dc_[table].segment.begin(), dc_[table].segment.end());
    data.push_back(static_cast<std::uint8_t>(0x10 | table));
    data.insert(data.end(), ac_[table].segment.begin(), ac_[table].segment.end());
    segment(0xC4, data);
  }
}

void Writer::write_scan() {
  std::vector<std::uint8_t> data{static_cast<std::uint8_t>(parts_.size())};
  for (const Part& part : parts_) {
    data.push_back(part.id);
    data.push_back(static_cast<std::uint8_t>(part.dc << 4 | part.ac));
  }
  data.insert(data.end(), {0, 63, 0});
  segment(0xDA, data);
}

void Writer::put(std::uint32_t bits, std::uint32_t length) {
  window_ = window_ << length | bits;
  count_ += length;
  for (; count_ >= 8; count_ -= 8) {
    const auto value = static_cast<std::uint32_t>(window_ >> (count_ - 8)) & 0xFF;
    byte(value);
    if (value == 0xFF) byte(0);
  }
}

void Writer::flush() {
  const std::uint32_t missing = (8 - count_ % 8) % 8;
  put((1U << missing) - 1, missing);
}

std::int32_t Writer::random_value(std::uint32_t most_bits) {
  const std::uint32_t size = below(most_bits + 1);
  if (size == 0) return 0;
  const auto value = static_cast<std::int32_t>((1U << (size - 1)) + below(1U << (size - 1)));
  return below(2) == 0 ? value : -value;
}

void Writer::value(std::int32_t value, std::uint32_t size) {
  if (size == 0) return;
  put(static_cast<std::uint32_t>(value < 0 ? value - 1 : value) & ((1U << size) - 1), size);
}

void Writer::write_block(const Part& part) {
  const bool extreme = options_.coefficients == Coefficients::extreme;
  const bool large = options_.coefficients == Coefficients::large;
  const auto size_of = [](std::int32_t v) {
    return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint32_t>(v < 0 ? -v : v)));
  };
  const std::int32_t difference = random_value(extreme && below(4) == 0 ? 15 : large ? 10 : 8);
  put(dc_[part.dc].of[size_of(difference)]);
  value(difference, size_of(difference));
  const Codes& codes = ac_[part.ac];
  // Many blocks have a few coefficients, or none, or all.
  const std::uint32_t density = below(4);
  for (std::uint32_t k = 1; k < 64;) {
    const std::uint32_t run = density == 3 ? 0 : below(density == 2 ? 4 : 16);
    if (density == 0 || below(12) == 0) {
      // The end of the block: 15 names are read alike.
      put(codes.of[below(15) << 4]);
      return;
    }
    std::int32_t number = 0;
    while (number == 0 && run != 15) number = random_value(extreme ? 15 : large ? 10 : 5);
    if (k + run > 63 && below(4) != 0) continue;
    const std::uint32_t size = size_of(number);
    put(codes.of[run << 4 | size]);
    value(number, size);
    k += run + 1;
  }
}

void Writer::write_data() {
  std::uint32_t h_max = 1;
  std::uint32_t v_max = 1;
  if (parts_.size() == 1) parts_[0].h = parts_[0].v = 1;
  for (const Part& part : parts_) {
    h_max = std::max(h_max, part.h);
    v_max = std::max(v_max, part.v);
  }
  const std::uint32_t mcus =
      ((width_ + 8 * h_max - 1) / (8 * h_max)) * ((height_ + 8 * v_max - 1) / (8 * v_max));
  for (std::uint32_t mcu = 0; mcu < mcus; ++mcu) {
    if (restart_ != 0 && mcu != 0 && mcu % restart_ == 0) {
      flush();
      for (std::uint32_t i = below(4) == 0 ? below(4) : 0; i > 0; --i) byte(0xFF);
      byte(0xFF);
      byte(0xD0 + (mcu / restart_ - 1) % 8);
    }
    for (const Part& part : parts_)
      for (std::uint32_t i = 0; i < part.h * part.v; ++i) write_block(part);
  }
  flush();
}

std::vector<std::byte> Writer::write() {
  byte(0xFF);
  byte(0xD8);
  choose_parts();
  if (below(2) == 0 || parts_.size() == 4) {
    std::vector<std::uint8_t> adobe{'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0};
    adobe[11] = static_cast<std::uint8_t>(below(2) * (parts_.size() == 4 ? 2 : 1));
    segment(0xEE, adobe);
  }
  write_quantization();
  write_frame();
  write_huffman();
  if (below(3) == 0) {
    restart_ = 1 + below(20);
    segment(0xDD, {static_cast<std::uint8_t>(restart_ >> 8), static_cast<std::uint8_t>(restart_)});
  }
  write_scan();
  write_data();
  byte(0xFF);
  byte(0xD9);
  return std::move(file_);
}

}  // namespace

std::vector<std::byte> random_jpeg(std::mt19937_64& random, const RandomJpegOptions& options) {
  return Writer(random, options).write();
}

}  // namespace shard::testing
