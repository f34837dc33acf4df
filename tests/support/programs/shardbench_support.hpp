// Runs shardbench as a user does.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace shard::testing {

struct ProgramResult {
  int exit_code = -1;
  std::string output;  // both streams
};

// `seconds`: it is killed after that. 0: never.
inline ProgramResult shardbench(const std::string& arguments, int seconds = 0) {
  const std::string before = seconds > 0 ? "timeout " + std::to_string(seconds) + " " : "";
  const std::string command = before + SHARDBENCH_PROGRAM + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  ProgramResult result;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace shard::testing
