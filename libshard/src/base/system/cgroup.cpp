#include "base/system/cgroup.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace shard {

namespace {

namespace fs = std::filesystem;

bool in_list(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// /proc/self/cgroup: "0::/a/b" (version 2) or "4:cpu,cpuacct:/a/b" (version 1).
std::optional<std::string> group_of(int version, std::string_view controller, const fs::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool wanted =
        version == 2 ? line.starts_with("0:") && controllers.empty() : in_list(controllers, controller);
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string root;  // of the group that is mounted
  fs::path point;
};

// /proc/self/mountinfo: "36 35 98:0 /root /point rw,... - cgroup2 source options".
std::optional<Mount> mount_of(int version, std::string_view controller, const fs::path& root) {
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string skipped, group, point, type, source, options;
    before >> skipped >> skipped >> skipped >> group >> point;
    after >> type >> source >> options;
    const bool wanted = version == 2 ? type == "cgroup2" : type == "cgroup" && in_list(options, controller);
    if (wanted && point.starts_with('/')) return Mount{group, root / point.substr(1)};
  }
  return std::nullopt;
}

void add_folders(int version, std::string_view controller, const fs::path& root,
                 std::vector<CgroupFolder>& folders) {
  const std::optional<std::string> group = group_of(version, controller, root);
  const std::optional<Mount> mount = mount_of(version, controller, root);
  if (!group || !mount) return;
  // Below the mount. A container may see its own group mounted as the root, and be told the path outside.
  std::string below = *group;
  if (mount->root != "/") {
    const bool inside = below == mount->root || below.starts_with(mount->root + '/');
    below = inside ? below.substr(mount->root.size()) : std::string();
  }
  if (below.find("..") != std::string::npos) below.clear();  // outside of this namespace
  for (;;) {
    const fs::path folder = below.empty() || below == "/" ? mount->point : mount->point / below.substr(1);
    std::error_code error;
    if (fs::is_directory(folder, error)) folders.push_back({folder, version});
    if (below.empty() || below == "/") return;
    below.resize(below.rfind('/'));
  }
}

}  // namespace

std::vector<CgroupFolder> cgroup_folders(std::string_view controller, const fs::path& root) {
  std::vector<CgroupFolder> folders;
  for (const int version : {2, 1}) add_folders(version, controller, root, folders);
  return folders;
}

std::optional<std::uint64_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word) || word.find_first_not_of("0123456789") != std::string::npos || word.size() > 20)
    return std::nullopt;
  std::uint64_t value = 0;
  return std::istringstream(word) >> value ? std::optional(value) : std::nullopt;
}

}  // namespace shard
