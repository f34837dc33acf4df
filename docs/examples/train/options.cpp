#include "options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

#include "shard/error.hpp"

namespace train {

bool parse_options(int argc, char** argv, Options& options, int& exit_code) {
  CLI::App app("Trains a small network on a data set made by shardify, fed by shard::loader.");
  app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("DATASET", options.dataset, "Folder made by shardify")->required();
  app.add_option("--test", options.test_dataset, "Data set of the same classes to test on after each epoch");
  app.add_option("--device", options.device, "host, cuda or cuda:N");
  app.add_option("--epochs", options.epochs, "Train until so many are done");
  app.add_option("--batch-size", options.batch_size, "Samples a batch")->check(CLI::Range(1, 65536));
  app.add_option("--seed", options.seed, "Of weights, order and augmentation");
  app.add_option("--checkpoint", options.checkpoint, "File to save to, and to go on from when it is there");
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "Save every so many batches too; 0: after each epoch only");
  app.add_option("--stop-after", options.stop_after, "Save and stop after so many batches; 0: never");
  app.add_option("--print-every", options.print_every, "Batches a line of the table")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--size", options.size, "Rows and columns of what the network sees")
      ->check(CLI::Range(1, 1024));
  app.add_option("--hidden", options.hidden, "Hidden units")->check(CLI::Range(1, 65536));
  app.add_option("--rate", options.rate, "Learning rate")->check(CLI::PositiveNumber);
  app.add_option("--momentum", options.momentum, "Of SGD")->check(CLI::Range(0.0, 1.0));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  return true;
}

std::unique_ptr<Backend> make_backend(const std::string& device) {
  if (device == "host") return make_host_backend();
  int ordinal = 0;
  bool good = device == "cuda";
  if (device.starts_with("cuda:")) {
    const char* const end = device.data() + device.size();
    const auto [last, error] = std::from_chars(device.data() + 5, end, ordinal);
    good = error == std::errc{} && last == end;
  }
  if (!good)
    throw shard::Error(shard::ErrorCode::invalid_argument,
                       "--device '" + device + "': expected host, cuda or cuda:N");
#ifdef TRAIN_WITH_CUDA
  return make_cuda_backend(ordinal);
#else
  throw shard::Error(shard::ErrorCode::unsupported,
                     "--device " + device + ": this build has no CUDA (shard::loader_cuda and cuBLAS)");
#endif
}

}  // namespace train
