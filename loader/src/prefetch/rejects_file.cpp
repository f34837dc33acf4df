#include "prefetch/rejects_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.hpp"
#include "base/files/file_io.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard {

namespace {

constexpr std::string_view kRejectsHeader = "path,reason\n";

// Until it is destroyed. A file system without locks has one writer.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) {
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() { ::flock(fd_, LOCK_UN); }

 private:
  int fd_;
};

}  // namespace

RejectsFile::RejectsFile(const std::filesystem::path& path) : path_(path) {
  if (path.empty()) return;
  path_ = std::filesystem::absolute(path);
  file_ = open_plain(path_, O_RDWR | O_CREAT);
  if (!file_) throw_errno("cannot open", path_, errno);
  const FileLock lock(file_.get());
  if (regular_file_size(file_.get(), path_) == 0)
    pwrite_all(file_.get(), as_byte_span(kRejectsHeader), 0, path_);
}

// A line ends at a line feed outside quotes; its key at the first comma outside them.
void RejectsFile::read_new(std::uint64_t size) {
  if (size < read_bytes_) {  // somebody has emptied it
    read_bytes_ = 0;
    keys_.clear();
  }
  std::string text(static_cast<std::size_t>(size - read_bytes_), '\0');
  text.resize(pread_some(file_.get(), std::as_writable_bytes(std::span(text)), read_bytes_, path_));
  bool quoted = false;
  std::size_t begin = 0;
  std::size_t key_end = std::string::npos;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text[at] == ',' && key_end == std::string::npos) key_end = at;
    if (text[at] != '\n') continue;
    if (key_end != std::string::npos) keys_.insert(text.substr(begin, key_end - begin));
    begin = at + 1;
    key_end = std::string::npos;
  }
  read_bytes_ += begin;
}

void RejectsFile::add(std::string_view key, std::string_view reason) {
  if (!file_) return;
  const std::string name = csv_field(key);
  if (keys_.contains(name)) return;
  const FileLock lock(file_.get());
  const std::uint64_t size = regular_file_size(file_.get(), path_);
  read_new(size);
  if (keys_.contains(name)) return;
  std::string text(size == 0 ? kRejectsHeader : std::string_view());  // somebody has emptied it
  if (size != read_bytes_) text += '\n';  // the last line was not written to its end
  text += name + "," + csv_field(escape_key(reason)) + "\n";
  try {
    pwrite_all(file_.get(), as_byte_span(text), size, path_);
  } catch (const Error&) {
    static_cast<void>(!::ftruncate(file_.get(), static_cast<off_t>(size)));  // no half a line
    throw;
  }
  read_new(size + text.size());
}

}  // namespace shard
