#include "remote/s3/object_upload.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/files/file_io.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kWholeBytes = 16 * kMiB;  // sent in one request
constexpr std::uint64_t kPartBytes = 8 * kMiB;
constexpr std::uint64_t kUploadParts = 10'000;
constexpr std::uint64_t kHeadBytes = 64 * 1024;  // read back
constexpr unsigned kPartsAtOnce = 4;
constexpr const char* kAnotherWriter =
    "another process writes there; choose another prefix, or start again when it has ended";
constexpr int kUploadAttempts = 3;         // of a multipart upload that another process removes or changes
constexpr std::size_t kKnownUploads = 16;  // unfinished ones that are looked at

// Which file it is, and when it was changed last.
struct FileVersion {
  std::array<std::uint64_t, 7> values{};
  bool operator==(const FileVersion&) const = default;
};

FileVersion version_of(int fd, const fs::path& path) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) throw_errno("cannot look at", path, errno);
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {{number(now.st_dev), number(now.st_ino), number(now.st_size), number(now.st_mtim.tv_sec),
           number(now.st_mtim.tv_nsec), number(now.st_ctim.tv_sec), number(now.st_ctim.tv_nsec)}};
}

// One file on its way to one object.
class Upload {
 public:
  Upload(const S3Store& store, const std::string& name, int fd, const fs::path& path,
         UploadCounters& counters, const std::stop_token& stop)
      : store_(store),
        name_(name),
        fd_(fd),
        path_(path),
        counters_(counters),
        stop_(stop),
        before_(version_of(fd, path)),
        size_(regular_file_size(fd, path)),
        part_bytes_(upload_part_bytes(size_)) {}

  Uploaded run() {
    if (const auto there = store_.stat(name_, stop_)) return keep(*there);
    if (size_ <= kWholeBytes) return send_whole();
    for (int attempt = 1;; ++attempt) {
      if (const auto done = send_parts(attempt > 1)) return *done;
      if (const auto there = store_.stat(name_, stop_)) return keep(*there);
      if (attempt == kUploadAttempts)
        throw Error(
            ErrorCode::io,
            fmt::format("the multipart upload of {} was removed or changed {} times by another process",
                        quoted(store_.folder().address_of(name_)), attempt));
    }
  }

 private:
  std::uint64_t parts() const noexcept { return (size_ + part_bytes_ - 1) / part_bytes_; }
  std::uint64_t part_size(std::uint64_t part) const noexcept {
    return std::min(part_bytes_, size_ - part * part_bytes_);
  }
  std::vector<std::byte> bytes_at(std::uint64_t begin, std::uint64_t size) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    pread_all(fd_, bytes, begin, path_);
    return bytes;
  }
  std::vector<std::byte> part(std::uint64_t index) const {
    return bytes_at(index * part_bytes_, part_size(index));
  }

  void check_unchanged() const {
    if (version_of(fd_, path_) == before_) return;
    throw Error(ErrorCode::corrupt,
                fmt::format("{} was changed while it was uploaded: run the same command again "
                            "when nothing writes to it",
                            quoted(path_)));
  }

  Uploaded send_whole() {
    const std::vector<std::byte> bytes = bytes_at(0, size_);
    check_unchanged();
    if (!store_.put_new(name_, bytes, stop_)) return keep_existing();
    counters_.sent_bytes += size_;
    read_back(to_hex(md5(bytes)));
    return Uploaded::sent;
  }

  // An object appeared under the name.
  Uploaded keep_existing() {
    const auto there = store_.stat(name_, stop_);
    if (!there)
      throw Error(ErrorCode::io,
                  fmt::format("{} exists but cannot be read: the keys must allow to read what they write",
                              quoted(store_.folder().address_of(name_))));
    return keep(*there);
  }

  Uploaded keep(const S3Store::Object& there) {
    if (!is_same(there))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} exists and has other bytes than {}: nothing is overwritten; remove it, or choose "
                      "another prefix",
                      quoted(store_.folder().address_of(name_)), quoted(path_)));
    counters_.kept_bytes += size_;
    return Uploaded::was_there;
  }

  // The ETag tells, if it is a digest in one of the usual ways; else the bytes are read back.
  bool is_same(const S3Store::Object& there) const {
    if (there.size_bytes != size_) return false;
    if (!there.etag.empty() && there.etag == (there.etag.size() == 32 ? whole_etag() : parts_etag()))
      return true;
    const auto object = store_.folder().object(name_, size_);
    std::vector<std::byte> theirs;
    for (std::uint64_t begin = 0; begin < size_; begin += kPartBytes) {
      theirs.resize(static_cast<std::size_t>(std::min(kPartBytes, size_ - begin)));
      store_.folder().client().read(*object, begin, theirs, stop_);
      if (theirs != bytes_at(begin, theirs.size())) return false;
    }
    return true;
  }

  std::string whole_etag() const {
    Md5Stream digest;
    for (std::uint64_t i = 0; i < parts(); ++i) digest.update(part(i));
    return to_hex(digest.digest());
  }

  std::string parts_etag() const {
    std::vector<Md5Digest> digests;
    for (std::uint64_t i = 0; i < parts(); ++i) digests.push_back(md5(part(i)));
    return etag_of(digests);
  }

  // That of a multipart upload: the MD5 of the MD5s of its parts.
  static std::string etag_of(const std::vector<Md5Digest>& digests) {
    return fmt::format("{}-{}", to_hex(md5(std::as_bytes(std::span(digests)))), digests.size());
  }

  // Of the unfinished uploads the one with the most bytes, and its parts by number.
  struct Begun {
    std::string id;
    std::vector<S3Part> parts;  // by index; number 0: missing
    std::uint64_t bytes = 0;
  };
  std::optional<Begun> find_begun(const std::vector<std::string>& ids) const {
    std::optional<Begun> best;
    for (std::size_t i = 0; i < std::min(ids.size(), kKnownUploads); ++i) {
      const auto listed = store_.list_parts(name_, ids[i], stop_);
      if (!listed) continue;
      Begun begun{ids[i], std::vector<S3Part>(static_cast<std::size_t>(parts())), 0};
      for (const S3Part& part : *listed) {
        if (part.number > parts() || part.size_bytes != part_size(part.number - 1)) continue;
        begun.parts[part.number - 1] = part;
        begun.bytes += part.size_bytes;
      }
      if (!best || begun.bytes > best->bytes) best = std::move(begun);
    }
    return best;
  }

  // `alone`: in an upload of its own, not in one that was begun. Nothing: the upload has been removed
  // meanwhile, or has parts of another file.
  std::optional<Uploaded> send_parts(bool alone) {
    std::optional<Begun> begun;
    if (!alone) begun = find_begun(store_.list_uploads(name_, stop_));
    if (!begun)
      begun = Begun{store_.create_upload(name_, stop_),
                    std::vector<S3Part>(static_cast<std::size_t>(parts())), 0};
    std::vector<S3Part>& done = begun->parts;
    std::vector<Md5Digest> digests(done.size());
    std::atomic<bool> gone{false};
    parallel_for(kPartsAtOnce, parts(), [&](unsigned, std::uint64_t index) {
      if (gone) return;
      const std::vector<std::byte> bytes = part(index);
      const Md5Digest digest = digests[static_cast<std::size_t>(index)] = md5(bytes);
      S3Part& there = done[static_cast<std::size_t>(index)];
      if (there.number != 0 && plain_etag(there.etag) == to_hex(digest)) {
        counters_.kept_bytes += bytes.size();
        ++counters_.kept_parts;
        return;
      }
      const auto sent =
          store_.put_part(name_, begun->id, static_cast<std::uint32_t>(index + 1), bytes, digest, stop_);
      if (!sent) {
        gone = true;
        return;
      }
      there = *sent;
      counters_.sent_bytes += bytes.size();
      ++counters_.sent_parts;
    });
    if (gone) return std::nullopt;
    return finish(*begun, etag_of(digests));
  }

  std::optional<Uploaded> finish(const Begun& begun, const std::string& etag) {
    try {
      check_unchanged();
    } catch (const Error&) {
      store_.abort(name_, begun.id, stop_);
      throw;
    }
    switch (store_.complete(name_, begun.id, begun.parts, stop_)) {
      case S3Store::Completed::gone:
      case S3Store::Completed::changed:
        return std::nullopt;
      case S3Store::Completed::exists:
        store_.abort(name_, begun.id, stop_);
        return keep_existing();
      case S3Store::Completed::made:
        break;
    }
    read_back(etag);
    // Parts of other attempts, which would be paid for.
    for (const std::string& id : store_.list_uploads(name_, stop_)) store_.abort(name_, id, stop_);
    return Uploaded::sent;
  }

  // The object is there, with the size, the ETag and the first bytes of the file.
  // Some stores make another ETag of multipart uploads.
  void read_back(const std::string& etag) const {
    const std::string name = store_.folder().address_of(name_);
    const auto there = store_.stat(name_, stop_);
    if (!there)
      throw Error(ErrorCode::io,
                  fmt::format("{} was uploaded but cannot be read back: the keys must allow to read "
                              "what they write",
                              quoted(name)));
    const bool other = there->etag.size() == etag.size() && there->etag != etag;
    if (there->size_bytes != size_ || other)
      throw Error(
          ErrorCode::corrupt,
          fmt::format("{} has {} bytes and the ETag {} on the server, but {} bytes with {} were sent: {}",
                      quoted(name), there->size_bytes, there->etag, size_, etag, kAnotherWriter));
    if (size_ == 0) return;
    const auto object = store_.folder().object(name_, size_);
    std::vector<std::byte> head(static_cast<std::size_t>(std::min(kHeadBytes, size_)));
    store_.folder().client().read(*object, 0, head, stop_);
    if (head != bytes_at(0, head.size()))
      throw Error(ErrorCode::corrupt,
                  fmt::format("{} has other bytes than were sent: {}", quoted(name), kAnotherWriter));
  }

  const S3Store& store_;
  const std::string& name_;
  const int fd_;
  const fs::path& path_;
  UploadCounters& counters_;
  const std::stop_token& stop_;
  const FileVersion before_;
  const std::uint64_t size_;
  const std::uint64_t part_bytes_;
};

}  // namespace

std::uint64_t upload_part_bytes(std::uint64_t size_bytes) noexcept {
  return std::max(kPartBytes, round_up((size_bytes + kUploadParts - 1) / kUploadParts, kMiB));
}

Uploaded upload_file(const S3Store& store, const std::string& name, int fd, const fs::path& path,
                     UploadCounters& counters, const std::stop_token& stop,
                     const std::function<void()>& prove) {
  Upload upload(store, name, fd, path, counters, stop);
  if (prove) prove();
  return upload.run();
}

Uploaded upload_bytes(const S3Store& store, const std::string& name, std::span<const std::byte> bytes,
                      UploadCounters& counters, const std::stop_token& stop) {
  const auto object = store.folder().object(name);
  const auto is_there = [&](std::uint64_t size) {
    return size == bytes.size() &&
           std::ranges::equal(store.folder().client().read_all(*object, size, stop), bytes);
  };
  const auto there = store.stat(name, stop);
  const bool made = !there && store.put_new(name, bytes, stop);
  if (!is_there(made ? bytes.size() : there ? there->size_bytes : bytes.size()))
    throw Error(
        made ? ErrorCode::corrupt : ErrorCode::invalid_argument,
        fmt::format("{} {}", quoted(store.folder().address_of(name)),
                    made ? fmt::format("has other bytes than were sent: {}", kAnotherWriter)
                         : "exists and has other bytes: nothing is overwritten; remove it, or choose another "
                           "prefix"));
  (made ? counters.sent_bytes : counters.kept_bytes) += bytes.size();
  return made ? Uploaded::sent : Uploaded::was_there;
}

}  // namespace shard
