// S3Store: a folder of an object store with the interface of S3, for writing.
// Each function is a request, or the pages of one list.
//
//   put_new:        one object in one request
//   multipart:      create_upload -> put_part ... -> complete;  list_uploads and list_parts find what a
//                                                               killed process left
//
// Nothing is ever overwritten: the last request of each object has `If-None-Match: *`. The bytes are compared
// with digests on the way (Content-MD5, the digest in the signature) and again with the ETag of the answer.
// Thread safe. Errors of all: those of HttpClient; corrupt (the ETag is not that of the bytes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/digest/digests.hpp"
#include "remote/s3/remote_folder.hpp"
#include "remote/s3/s3_answer.hpp"

namespace shard {

class S3Store {
 public:
  // `address`: s3://BUCKET[/PREFIX]. Sends no request. Errors: invalid_argument (another scheme, no keys),
  // unsupported.
  explicit S3Store(const std::string& address);

  const std::string& address() const noexcept { return folder_->address(); }
  const RemoteFolder& folder() const noexcept { return *folder_; }

  // Throws if a request shows that nothing can be written: there is no such bucket, or the keys are wrong.
  // Before work that takes long. `name`: of any object, there or not.
  void check_access(const std::string& name, const std::stop_token& stop = {}) const;

  struct Object {
    std::uint64_t size_bytes = 0;
    std::string etag;  // plain_etag(); empty if it is no digest of the bytes
  };
  // Nothing: there is no such object, or the keys do not allow to see it.
  std::optional<Object> stat(const std::string& name, const std::stop_token& stop = {}) const;
  // The names of all objects in the folder that end with `ending`. Not those in folders below.
  // Errors: HttpRefused (the keys do not allow to list the bucket; the list is not complete), not_found.
  std::vector<std::string> names(const std::string& ending, const std::stop_token& stop = {}) const;

  // False: there is an object with this name, which has not changed.
  bool put_new(const std::string& name, std::span<const std::byte> bytes,
               const std::stop_token& stop = {}) const;

  // The id of a new multipart upload.
  std::string create_upload(const std::string& name, const std::stop_token& stop = {}) const;
  // The ids of unfinished uploads of the object. None if the keys do not allow to list them.
  std::vector<std::string> list_uploads(const std::string& name, const std::stop_token& stop = {}) const;
  // Nothing: there is no such upload (any more).
  std::optional<std::vector<S3Part>> list_parts(const std::string& name, const std::string& id,
                                                const std::stop_token& stop = {}) const;
  // The part as it must be given to complete(). Nothing: there is no such upload.
  std::optional<S3Part> put_part(const std::string& name, const std::string& id, std::uint32_t number,
                                 std::span<const std::byte> bytes, const Md5Digest& digest,
                                 const std::stop_token& stop = {}) const;
  // gone: there is no such upload. exists: there is an object with this name.
  // changed: its parts are others, because somebody else sent them.
  enum class Completed : std::uint8_t { made, gone, exists, changed };
  Completed complete(const std::string& name, const std::string& id, const std::vector<S3Part>& parts,
                     const std::stop_token& stop = {}) const;
  // Removes the parts of an upload. None there is no error.
  void abort(const std::string& name, const std::string& id, const std::stop_token& stop = {}) const;

 private:
  ObjectReply send(const std::string& name, const ObjectCall& call, const std::stop_token& stop) const;
  // For the first byte of an object: 206, 200, 403 (AccessDenied), 404 or 416.
  // Errors: io (the keys are wrong).
  ObjectReply ask(const std::string& name, const std::stop_token& stop) const;
  void refuse_keys(const ObjectReply& reply) const;
  [[noreturn]] void refuse_list(const std::string& why) const;
  std::string key_of(const std::string& name) const;

  std::shared_ptr<RemoteFolder> folder_;
  RemoteFolder::Bucket bucket_;
};

}  // namespace shard
