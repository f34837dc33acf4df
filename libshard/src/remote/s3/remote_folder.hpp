// RemoteFolder: the address of a data set on a server, resolved: which URL its files have,
// and how requests are allowed.
//
// Thread safe. All files of a folder share one client, so one thread and its connections, and one local area.
// Folders with the same address that are open at the same time are one object.
#pragma once

#include <memory>
#include <string>

#include "remote/cache/local_area.hpp"
#include "remote/http/http_client.hpp"
#include "shard/error.hpp"

namespace shard {

class RemoteFolder {
 public:
  // `address` as in is_remote(). Sends no request. Errors: invalid_argument (not an address),
  // unsupported (a scheme that this build does not have).
  static std::shared_ptr<RemoteFolder> open(const std::string& address);

  // As it was given, without '/' at its end: for messages.
  const std::string& address() const noexcept { return address_; }
  // A file in the folder. `name` is one part of a path, whatever its bytes. `size_bytes` 0: not known.
  std::unique_ptr<HttpObject> object(const std::string& name, std::uint64_t size_bytes = 0) const;
  // A file below the folder, by what follows its address: of URLs as it is (percent-encoded),
  // else names between '/'.
  std::unique_ptr<HttpObject> object_below(const std::string& path) const;
  // The address of a file in the folder, which split_remote() takes apart again.
  std::string address_of(const std::string& name) const;
  // Of s3://BUCKET/PREFIX: what requests about the bucket are sent to, and the prefix without '/' at its end.
  // Errors: invalid_argument (another scheme).
  struct Bucket {
    std::unique_ptr<HttpObject> object;
    std::string prefix;
  };
  Bucket bucket() const;
  HttpClient& client() const noexcept { return *client_; }
  // Made at the first call. Errors: io.
  std::shared_ptr<LocalArea> area() const;

 private:
  RemoteFolder(std::string address, std::string url, HttpAccess access);

  std::string address_;
  std::string url_;
  std::shared_ptr<const HttpAccess> access_;
  std::unique_ptr<HttpClient> client_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<LocalArea> area_;
};

// The folder and the name of a file, from its address: ("https://host/a", "b c") of "https://host/a/b%20c".
// Errors: invalid_argument.
struct RemoteName {
  std::string folder;
  std::string name;
};
RemoteName split_remote(const std::string& address);

}  // namespace shard
