// A small data set with known pixels, and shardctl run on it as a user does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/keys.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_whole(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

class Shardctl : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kHeight = 6;
  static constexpr std::uint32_t kWidth = 10;

  std::filesystem::path path(const std::string& name) const { return temp_.path() / name; }

  Ran run(const std::vector<std::string>& arguments, const std::string& redirect = {}) const {
    std::string command = shell_quoted(SHARDCTL_PROGRAM);
    for (const std::string& argument : arguments) command += " " + shell_quoted(argument);
    const auto out = path(".stdout");
    const auto err = path(".stderr");
    command += " 2>" + shell_quoted(err.string()) +
               (redirect.empty() ? " >" + shell_quoted(out.string()) : redirect);
    const int status = std::system(command.c_str());
    Ran ran;
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    if (redirect.empty()) ran.out = read_whole(out);
    ran.err = read_whole(err);
    return ran;
  }

  // The byte of sample `index` at (row, column, channel).
  static std::uint8_t pixel(std::uint64_t index, std::uint32_t y, std::uint32_t x, std::uint32_t c) {
    return static_cast<std::uint8_t>(index * 67 + y * 31 + x * 7 + c * 101);
  }

  static std::string raw_key(std::uint64_t index) {
    if (index == 0) return std::string("cat/new\nline, \"quoted\".jpg");
    if (index == 1) return std::string("d\xC3\xB6g/\xFF\xFEinvalid.jpg");
    return (index % 2 == 0 ? "cat/" : "d\xC3\xB6g/") + std::to_string(index) + ".jpg";
  }

  // 2 shards of 3 samples; classes cat and dög, alternating; 1 reject.
  struct Made {
    std::filesystem::path folder;
    DatasetInfo info;
  };
  Made make(const std::string& name, DType dtype = DType::f16, Layout layout = Layout::nchw,
            CodecSpec codec = {}) const {
    Made made;
    made.folder = path(name);
    std::filesystem::create_directory(made.folder);
    DatasetInfo& info = made.info;
    info.spec = {dtype, layout, 3, kHeight, kWidth};
    info.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
    info.provenance = {{"filter", "bilinear"}};
    info.codec = codec;
    info.fingerprint = "0123456789abcdef";
    info.source_digest = "fedcba9876543210";
    info.classes = {"cat", "d\xC3\xB6g"};
    info.rejects = 1;
    info.inputs = 7;
    for (std::uint64_t shard = 0; shard < 2; ++shard) {
      const std::string file = "shard-0000" + std::to_string(shard) + ".safetensors";
      ShardWriter writer = ShardWriter::create(made.folder / file, 3, ShardWriterOptions{info});
      for (std::uint64_t i = 0; i < 3; ++i) {
        const std::uint64_t index = shard * 3 + i;
        std::vector<std::byte> label(8);
        label[0] = static_cast<std::byte>(index % 2);
        writer.put(i, escape_key(raw_key(index)), label, sample(info, index));
      }
      info.shards.push_back(writer.publish());
    }
    write_whole(made.folder / kRejectsFile, "path,reason\n\"cat/a,\"\"b\"\".jpg\",\"cut\n here\"\n");
    publish_file(made.folder / kDatasetFile, serialize_dataset(info));
    return made;
  }

  static float normalized(const DatasetInfo& info, std::uint8_t byte, std::uint32_t c) {
    return (static_cast<float>(byte) / 255.0F - info.normalization.mean[c]) / info.normalization.std[c];
  }

  static std::vector<std::byte> sample(const DatasetInfo& info, std::uint64_t index) {
    std::vector<std::byte> bytes;
    const auto put = [&](std::uint32_t y, std::uint32_t x, std::uint32_t c) {
      const std::uint8_t byte = pixel(index, y, x, c);
      std::uint32_t bits = byte;
      const float value = normalized(info, byte, c);
      if (info.spec.dtype == DType::f16) bits = f32_to_f16(value);
      if (info.spec.dtype == DType::bf16) bits = f32_to_bf16(value);
      if (info.spec.dtype == DType::f32) std::memcpy(&bits, &value, 4);
      for (std::size_t i = 0; i < size_bytes(info.spec.dtype); ++i)
        bytes.push_back(static_cast<std::byte>(bits >> (8 * i)));
    };
    if (info.spec.layout == Layout::nchw) {
      for (std::uint32_t c = 0; c < 3; ++c)
        for (std::uint32_t y = 0; y < kHeight; ++y)
          for (std::uint32_t x = 0; x < kWidth; ++x) put(y, x, c);
    } else {
      for (std::uint32_t y = 0; y < kHeight; ++y)
        for (std::uint32_t x = 0; x < kWidth; ++x)
          for (std::uint32_t c = 0; c < 3; ++c) put(y, x, c);
    }
    return bytes;
  }

  TempDir temp_;
};

}  // namespace shard::testing
