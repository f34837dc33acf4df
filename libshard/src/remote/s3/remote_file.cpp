#include "remote/s3/remote_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/files/file_io.hpp"

namespace shard {
namespace {

constexpr unsigned kFollowed = 2;  // in a random order one read may follow the other by chance

// What a thread has read ahead, of the file that it reads.
struct ReadAhead {
  std::uint64_t file = 0;  // RemoteFile's id; 0: none
  std::uint64_t begin = 0;
  std::uint64_t last = 0;  // where the thread's last read began,
  std::uint64_t next = 0;  // and where it ended
  unsigned followed = 0;   // reads in a row that began there; the same bytes once more do not count
  std::vector<std::byte> bytes;
};
ReadAhead& read_ahead_of_thread() {
  thread_local ReadAhead ahead;
  return ahead;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

RemoteFile::RemoteFile(std::shared_ptr<const RemoteFolder> folder, const std::string& name,
                       std::uint64_t size_bytes, std::uint64_t likely_head_bytes)
    : folder_(std::move(folder)),
      area_(folder_->area()),
      object_(folder_->object(name, size_bytes)),
      likely_head_bytes_(likely_head_bytes),
      id_(next_id()) {
  if (size_bytes == 0) {
    std::array<std::byte, 1> first{};
    read(0, first);  // the answer says how many there are
  }
}

RemoteFile::~RemoteFile() { give_back_head(); }

void RemoteFile::give_back_head() const noexcept {
  if (head_bytes_ == 0) return;
  try {
    area_->release(head_offset_, std::exchange(head_bytes_, 0));
  } catch (const Error&) {  // the file system cannot: the space comes back with the area
  }
}

void RemoteFile::read(std::uint64_t begin, std::span<std::byte> out) const {
  folder_->client().read(*object_, begin, out);
}

void RemoteFile::read_ahead(std::uint64_t begin, std::span<std::byte> out, std::uint64_t end) const {
  ReadAhead& ahead = read_ahead_of_thread();
  const bool follows = ahead.file == id_ && ahead.next == begin;
  const bool there =
      ahead.file == id_ && begin >= ahead.begin && begin + out.size() <= ahead.begin + ahead.bytes.size();
  const bool again = ahead.file == id_ && ahead.last == begin && ahead.next == begin + out.size();
  if (!again) ahead.followed = follows ? ahead.followed + 1 : 0;
  ahead.last = begin;
  if (!there) {
    if (ahead.file != id_) ahead.bytes.clear();
    ahead.file = id_;
    ahead.next = begin + out.size();
    if (ahead.followed < kFollowed || out.size() >= kAheadBytes) return read(begin, out);
    ahead.bytes.resize(static_cast<std::size_t>(std::min(end - begin, kAheadBytes)));
    ahead.begin = begin;
    try {
      read(begin, ahead.bytes);
    } catch (...) {
      ahead.file = 0;
      throw;
    }
  }
  ahead.next = begin + out.size();
  std::memcpy(out.data(), ahead.bytes.data() + (begin - ahead.begin), out.size());
}

void RemoteFile::forget_ahead() const noexcept { read_ahead_of_thread().file = 0; }

std::uint64_t RemoteFile::keep_head(std::span<const std::byte> bytes) const {
  give_back_head();
  head_offset_ = area_->take(bytes.size());
  head_bytes_ = bytes.size();
  pwrite_all(area_->fd(), bytes, head_offset_, area_->folder());
  return head_offset_;
}

}  // namespace shard
