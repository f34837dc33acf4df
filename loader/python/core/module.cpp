// The extension shardloader._core: what the Python files of the package call.
#include "common.hpp"
#include "shard/version.hpp"

NB_MODULE(_core, module) {
  using namespace shard::python;
  module.doc() = "The library behind shardloader. Private: use the names of the package.";
  module.attr("version") = SHARD_VERSION_STRING;
  nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no error
  bind_augment(module);
  bind_errors();
  bind_tensor(module);
  bind_dataset(module);
  bind_selection(module);
  bind_loader(module);
  bind_jpeg(module);
  bind_convert(module);
  bind_writer(module);
  bind_machine(module);
}
