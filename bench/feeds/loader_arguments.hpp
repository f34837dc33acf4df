// Options of a loader as the subcommands take them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shard/loader/loader.hpp"

namespace CLI {
class App;
}

namespace shard::bench {

[[noreturn]] void refuse_value(const char* option, const std::string& value, const char* expected);

// "host", "cuda", "cuda:N,M,..." or "auto": CUDA where there is a device. Errors: invalid_argument,
// unsupported.
std::vector<std::shared_ptr<Device>> devices_of(const std::string& name, unsigned host_threads);
TransportKind transport_of(const std::string& name);  // throws invalid_argument

// "AREA:STEP:ASPECT" (make_buckets()); empty: none. Throws invalid_argument.
std::vector<Bucket> buckets_of(const std::string& text);

struct TransformArguments {
  std::string crop = "none", resize = "none", patch, filter = "bilinear", dtype, layout;
  std::uint32_t padded = 0;
  bool flip = false;
  // The options of these names. The object must live until the parser has run.
  void add_to(CLI::App& app);
  TransformOptions options() const;  // throws invalid_argument
};

}  // namespace shard::bench
