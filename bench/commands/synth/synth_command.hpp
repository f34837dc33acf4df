// The arguments of `shardbench synth`.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace shard::bench {

void add_synth(CLI::App& app, std::function<int()>& command);

}  // namespace shard::bench
