#include "base/files/disk.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <system_error>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "base/unique_handle.hpp"

namespace shard {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kShard = std::uint64_t{1} << 30U;  // the default of shardify --shard-bytes

// "\040" in mountinfo is a blank.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// A partition has no queue of its own: its disk has.
std::optional<bool> rotational_disk(unsigned major, unsigned minor) {
  const fs::path device = fmt::format("/sys/dev/block/{}:{}", major, minor);
  for (const fs::path& file : {device / "queue/rotational", device / "../queue/rotational"}) {
    std::ifstream in(file);
    if (int value = 0; in >> value) return value != 0;
  }
  return std::nullopt;
}

std::optional<bool> rotational(dev_t device, const std::string& source) {
  if (major(device) != 0)
    if (const auto known = rotational_disk(major(device), minor(device))) return known;
  struct stat info {};  // filesystems with device numbers of their own (btrfs) name the disk
  if (source.starts_with("/dev/") && ::stat(source.c_str(), &info) == 0 && S_ISBLK(info.st_mode))
    return rotational_disk(major(info.st_rdev), minor(info.st_rdev));
  return std::nullopt;
}

// Linux 6.1 and later; older headers have no names for it.
std::uint32_t stated_alignment(int fd) {
  alignas(8) unsigned char answer[256] = {};
  std::uint32_t mask = 0;
  std::uint32_t offset = 0;
  constexpr unsigned kStatxDioAlign = 0x2000;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, kStatxDioAlign, answer) != 0) return 0;
  std::memcpy(&mask, answer, sizeof mask);
  std::memcpy(&offset, answer + 0x9c, sizeof offset);
  return (mask & kStatxDioAlign) != 0 ? offset : 0;
}

int nameless_file(const fs::path& folder, int flags) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
  std::string name = (folder / ".disk-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC | flags);
  const int error = errno;
  if (named >= 0) ::unlink(name.c_str());
  errno = error;
  return named;
}

// Filesystems on another machine.
bool on_another_machine(std::string_view type) {
  constexpr std::string_view kRemote[] = {"nfs", "nfs4", "cifs", "smb3", "ceph", "fuse.sshfs", "9p"};
  return std::find(std::begin(kRemote), std::end(kRemote), type) != std::end(kRemote);
}

void try_direct(Disk& disk, const fs::path& path, bool folder) {
  const UniqueFd file(folder ? nameless_file(path, O_DIRECT)
                             : ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!file) {
    const int error = errno;
    disk.direct = error == EINVAL ? "refused by this filesystem" : "not known: " + errno_text(error);
    return;
  }
  disk.direct_alignment = stated_alignment(file.get());
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kBlock, kBlock), &std::free);
  std::memset(memory.get(), 0x5A, kBlock);
  const bool done = folder ? ::pwrite(file.get(), memory.get(), kBlock, 0) == ssize_t{kBlock}
                           : ::pread(file.get(), memory.get(), kBlock, 0) >= 0;
  disk.direct = done ? "works" : "opens, but fails: " + errno_text(errno);
}

}  // namespace

std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view path) {
  std::optional<Mount> best;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    // 36 35 98:0 /root /mount options [optional fields] - type source super-options
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream front(line.substr(0, dash));
    std::istringstream back(line.substr(dash + 3));
    std::string id, parent, root;
    Mount mount;
    if (!(front >> id >> parent >> mount.device >> root >> mount.folder) ||
        !(back >> mount.type >> mount.source))
      continue;
    mount.folder = unescaped(mount.folder);
    mount.source = unescaped(mount.source);
    const bool above =
        mount.folder == "/" || (path.starts_with(mount.folder) &&
                                (path.size() == mount.folder.size() || path[mount.folder.size()] == '/'));
    if (above && (!best || mount.folder.size() >= best->folder.size())) best = mount;
  }
  return best;
}

Disk read_disk(const fs::path& path) {
  Disk disk;
  struct stat info {};
  struct statvfs space {};
  if (::stat(path.c_str(), &info) != 0 || ::statvfs(path.c_str(), &space) != 0) {
    disk.problem = errno_text(errno);
    return disk;
  }
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  std::ifstream in("/proc/self/mountinfo");
  const std::string mounts{std::istreambuf_iterator<char>(in), {}};
  const Mount mount =
      (error ? std::nullopt : find_mount(mounts, real.native())).value_or(Mount{{}, {}, "unknown", {}});
  disk.type = mount.type;
  disk.source = mount.source;
  disk.mount = mount.folder;
  disk.size_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
  disk.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  disk.block_bytes = space.f_frsize;
  disk.rotational = rotational(info.st_dev, mount.source);
  disk.direct = "not known: neither a folder nor a file";
  if (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)) try_direct(disk, path, S_ISDIR(info.st_mode));
  return disk;
}

std::vector<MachineCheck> check_disk(const fs::path& path, const Disk& disk) {
  MachineCheck room{
      "disk", {}, "a local disk that does not rotate, with room for a shard (" + in_gib(kShard) + ")", {}};
  const std::string name = quoted(path);
  if (!disk.problem.empty()) {
    room.is = name + ": " + disk.problem;
    room.advice = "name a folder that exists and can be read";
    return {room};
  }
  // A virtual disk says that it rotates, whatever is under it.
  const bool rotating = disk.rotational.value_or(false) && !disk.source.starts_with("/dev/vd");
  room.is = fmt::format("{}: {} on {}, {} free of {}{}", name, disk.type,
                        disk.source.empty() ? "an unnamed device" : disk.source, in_gib(disk.free_bytes),
                        in_gib(disk.size_bytes), rotating ? ", rotating" : "");
  if (disk.free_bytes < kShard) {
    room.advice = "free some space, or write to another disk";
  } else if (on_another_machine(disk.type)) {
    room.advice = "copy the data set to a local disk before training: shardctl copy";
  } else if (rotating) {
    room.advice = "keep the data set on an SSD, or read it in order: window_shards of the loader";
  }
  MachineCheck direct{"O_DIRECT", disk.direct, "works", {}};
  const bool in_memory = disk.type == "tmpfs" || disk.type == "ramfs";
  if (disk.direct != "works" && !disk.direct.starts_with("not known") && !in_memory)
    direct.advice =
        "if the data set does not fit into memory, keep it on ext4 or XFS: the loader's transport "
        "direct reads past the page cache";
  return {room, direct};
}

}  // namespace shard
