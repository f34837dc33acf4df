// The command line of the example.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend.hpp"

namespace train {

struct Options {
  std::string dataset;
  std::string test_dataset;  // empty: none
  std::string device = "host";
  std::string checkpoint;  // empty: none
  std::uint64_t epochs = 10;
  std::uint64_t batch_size = 32;
  std::uint64_t seed = 0;
  std::uint64_t checkpoint_every = 0;  // batches; 0: at the end of each epoch only
  std::uint64_t stop_after = 0;        // batches of this run; 0: never
  std::uint64_t print_every = 10;      // batches
  std::uint32_t size = 32;             // rows and columns of what the network sees
  std::uint64_t hidden = 64;
  float rate = 0.005F;
  float momentum = 0.9F;
};

// Nothing to run (--help, wrong usage, both printed): the exit code is in `exit_code`.
bool parse_options(int argc, char** argv, Options& options, int& exit_code);

// host, cuda or cuda:N. Errors: invalid_argument; unsupported (no such device, or a build without CUDA).
std::unique_ptr<Backend> make_backend(const std::string& device);

}  // namespace train
