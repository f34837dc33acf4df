// What `python -m shardloader doctor` shares with `shardctl doctor`.
#include "base/system/machine_check.hpp"

#include <nanobind/stl/string.h>

#include <filesystem>

#include "base/files/disk.hpp"
#include "common.hpp"
#include "shard/loader/direct_reads.hpp"

namespace shard::python {

namespace {

// Why the loader cannot use io_uring; empty: it can.
std::string uring_problem() {
  try {
    make_uring_queue(1);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

// (name, is, should_be, advice) of each check.
nb::list machine_checks(const nb::bytes& folder) {
  const std::filesystem::path path(std::string(folder.c_str(), folder.size()));
  std::vector<MachineCheck> checks;
  {
    WithoutGil without_gil;
    checks = check_machine(read_machine());
    for (MachineCheck& check : check_disk(path, read_disk(path))) checks.push_back(std::move(check));
    checks.push_back(check_uring(uring_problem()));
  }
  nb::list list;
  for (const MachineCheck& check : checks)
    list.append(nb::make_tuple(text(check.name), text(check.is), text(check.should_be), text(check.advice)));
  return list;
}

}  // namespace

void bind_machine(nb::module_& module) { module.def("machine_checks", &machine_checks, nb::arg("folder")); }

}  // namespace shard::python
