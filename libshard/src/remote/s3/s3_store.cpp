#include "remote/s3/s3_store.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.hpp"
#include "base/text/quote.hpp"
#include "base/text/xml.hpp"
#include "remote/http/address.hpp"

namespace shard {
namespace {

constexpr std::size_t kMaxNames = 10'000;  // of uploads, and of parts
constexpr unsigned kEmptyPages = 1000;     // of a list, in a row
constexpr long kBadRequest = 400;
constexpr long kForbidden = 403;
constexpr long kNotFound = 404;
constexpr long kNoRange = 416;         // of an empty object
constexpr long kExists = 412;          // If-None-Match: *
constexpr long kNotImplemented = 501;  // stores that do not know that condition

const std::string kIfNew = "If-None-Match: *";

std::string upload_query(const std::string& id) { return "uploadId=" + percent_encoded(id); }

// An ETag that is the MD5 of other bytes. Some stores answer with ETags that are no digests.
void check_etag(const ObjectReply& reply, const Md5Digest& digest, const std::string& name) {
  const std::string etag = plain_etag(reply.etag);
  if (reply.encrypted || etag.size() != 32 || etag == to_hex(digest)) return;
  throw Error(ErrorCode::corrupt,
              fmt::format("the server stored other bytes of {} than were sent: its ETag is {}, the MD5 is {}",
                          quoted(name), etag, to_hex(digest)));
}

// A list in an answer about `name`.
template <class List>
List read_list(List (*parse)(std::string_view), const ObjectReply& reply, const std::string& name) {
  try {
    return parse(as_text(reply.body));
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("the server's list of {} cannot be read: {}", quoted(name), error.what()));
  }
}

}  // namespace

S3Store::S3Store(const std::string& address)
    : folder_(RemoteFolder::open(address)), bucket_(folder_->bucket()) {}

ObjectReply S3Store::send(const std::string& name, const ObjectCall& call,
                          const std::stop_token& stop) const {
  return folder_->client().call(*folder_->object(name), call, stop);
}

std::string S3Store::key_of(const std::string& name) const {
  return bucket_.prefix.empty() ? name : bucket_.prefix + '/' + name;
}

// AccessDenied may be about an object that is not there.
void S3Store::refuse_keys(const ObjectReply& reply) const {
  if (reply.status != kForbidden || reply.error_code.empty() || reply.error_code == "AccessDenied") return;
  throw Error(ErrorCode::io,
              fmt::format("access to {} is refused (HTTP {}, {}): check the credentials and the region",
                          quoted(address()), reply.status, reply.error_code));
}

ObjectReply S3Store::ask(const std::string& name, const std::stop_token& stop) const {
  ObjectCall call{"GET", {}, {"Range: bytes=0-0"}};
  call.expected = {kForbidden, kNotFound, kNoRange};
  ObjectReply reply = send(name, call, stop);
  refuse_keys(reply);
  return reply;
}

void S3Store::check_access(const std::string& name, const std::stop_token& stop) const {
  const ObjectReply reply = ask(name, stop);
  if (reply.error_code != "NoSuchBucket") return;
  throw Error(ErrorCode::not_found,
              fmt::format("{} cannot be written (HTTP {}, {}): check the name of the bucket and the endpoint",
                          quoted(address()), reply.status, reply.error_code));
}

std::optional<S3Store::Object> S3Store::stat(const std::string& name, const std::stop_token& stop) const {
  ObjectCall call{"HEAD"};
  call.expected = {kBadRequest, kForbidden, kNotFound};
  ObjectReply reply = send(name, call, stop);
  // An answer to HEAD has no document that says why: that the keys have expired, or are wrong.
  // With a GET, keys are renewed as always.
  if (reply.status == kBadRequest || reply.status == kForbidden) reply = ask(name, stop);
  if (reply.status == kNoRange) return Object{};
  if (reply.status >= 300)
    return std::nullopt;  // without leave to list a bucket, what is not there is forbidden
  return Object{reply.size_bytes, reply.encrypted ? std::string() : plain_etag(reply.etag)};
}

void S3Store::refuse_list(const std::string& why) const {
  throw HttpRefused(ErrorCode::corrupt,
                    fmt::format("the list of {} is not complete: {}", quoted(address()), why));
}

std::vector<std::string> S3Store::names(const std::string& ending, const std::stop_token& stop) const {
  std::vector<std::string> names;
  const std::string folder = bucket_.prefix.empty() ? std::string() : bucket_.prefix + '/';
  const std::string rest = "delimiter=%2F&list-type=2&prefix=" + percent_encoded(folder);
  ObjectCall call{"GET", rest};
  S3KeyList page;
  unsigned empty = 0;
  do {
    const std::string token = page.next;
    page = read_list(parse_keys, folder_->client().call(*bucket_.object, call, stop), address());
    for (const std::string& key : page.keys)
      if (key.starts_with(folder) && key.ends_with(ending) &&
          key.find('/', folder.size()) == std::string::npos)
        names.push_back(key.substr(folder.size()));
    empty = page.keys.empty() ? empty + 1 : 0;
    if (page.truncated && page.next.empty())
      refuse_list("a page of it says that there is another, and not which");
    if (page.truncated && (page.next == token || empty > kEmptyPages)) refuse_list("its pages do not end");
    call.query = "continuation-token=" + percent_encoded(page.next) + '&' + rest;
  } while (page.truncated);
  return names;
}

bool S3Store::put_new(const std::string& name, std::span<const std::byte> bytes,
                      const std::stop_token& stop) const {
  const Md5Digest digest = md5(bytes);
  ObjectCall call{
      "PUT", {}, {"Content-MD5: " + to_base64(digest), kIfNew}, bytes, {kExists, kNotImplemented}};
  ObjectReply reply = send(name, call, stop);
  if (reply.status == kNotImplemented) {
    if (stat(name, stop)) return false;
    call.headers.pop_back();
    call.expected.clear();
    reply = send(name, call, stop);
  }
  if (reply.status == kExists) return false;
  check_etag(reply, digest, folder_->address_of(name));
  return true;
}

std::string S3Store::create_upload(const std::string& name, const std::stop_token& stop) const {
  const ObjectReply reply = send(name, {"POST", "uploads="}, stop);
  std::string id = xml_text(as_text(reply.body), "UploadId");
  if (id.empty())
    throw Error(ErrorCode::io,
                fmt::format("the server starts no multipart upload of {}: its answer has no UploadId",
                            quoted(folder_->address_of(name))));
  return id;
}

std::vector<std::string> S3Store::list_uploads(const std::string& name, const std::stop_token& stop) const {
  std::vector<std::string> ids;
  const std::string key = key_of(name);
  const std::string prefix = "prefix=" + percent_encoded(key);
  std::string query = prefix + "&uploads=";
  while (ids.size() < kMaxNames) {
    ObjectCall call{"GET", query};
    call.expected = {kForbidden, kNotFound, 405, kNotImplemented};
    const ObjectReply reply = folder_->client().call(*bucket_.object, call, stop);
    if (reply.status >= 300) break;
    const S3UploadList page = read_list(parse_uploads, reply, folder_->address_of(name));
    for (const S3UploadList::Upload& upload : page.uploads)
      if (upload.key == key) ids.push_back(upload.id);
    if (page.next_key != key || page.uploads.empty())
      break;  // uploads of longer keys follow those of this one
    query = fmt::format("key-marker={}&{}&upload-id-marker={}&uploads=", percent_encoded(page.next_key),
                        prefix, percent_encoded(page.next_id));
  }
  return ids;
}

std::optional<std::vector<S3Part>> S3Store::list_parts(const std::string& name, const std::string& id,
                                                       const std::stop_token& stop) const {
  std::vector<S3Part> parts;
  std::string marker;
  for (;;) {
    ObjectCall call{"GET", marker.empty()
                               ? upload_query(id)
                               : "part-number-marker=" + percent_encoded(marker) + '&' + upload_query(id)};
    call.expected = {kNotFound};
    const ObjectReply reply = send(name, call, stop);
    if (reply.status == kNotFound) return std::nullopt;
    S3PartList page = read_list(parse_parts, reply, folder_->address_of(name));
    parts.insert(parts.end(), page.parts.begin(), page.parts.end());
    if (page.next.empty() || page.next == marker || parts.size() >= kMaxNames) return parts;
    marker = std::move(page.next);
  }
}

std::optional<S3Part> S3Store::put_part(const std::string& name, const std::string& id, std::uint32_t number,
                                        std::span<const std::byte> bytes, const Md5Digest& digest,
                                        const std::stop_token& stop) const {
  ObjectCall call{"PUT",
                  fmt::format("partNumber={}&{}", number, upload_query(id)),
                  {"Content-MD5: " + to_base64(digest)},
                  bytes,
                  {kNotFound}};
  const ObjectReply reply = send(name, call, stop);
  if (reply.status == kNotFound && reply.error_code == "NoSuchUpload") return std::nullopt;
  if (reply.status == kNotFound)
    throw Error(ErrorCode::not_found,
                fmt::format("{} cannot be written (HTTP 404, {}): check the name of the bucket",
                            quoted(folder_->address_of(name)), reply.error_code));
  check_etag(reply, digest, folder_->address_of(name));
  return S3Part{number, reply.etag, bytes.size()};
}

S3Store::Completed S3Store::complete(const std::string& name, const std::string& id,
                                     const std::vector<S3Part>& parts, const std::stop_token& stop) const {
  const std::string xml = parts_to_xml(parts);
  ObjectCall call{"POST",
                  upload_query(id),
                  {kIfNew},
                  as_byte_span(xml),
                  {kNotFound, kExists, kNotImplemented},
                  {"InvalidPart", "EntityTooSmall"}};
  ObjectReply reply = send(name, call, stop);
  if (reply.status == kNotImplemented) {
    if (stat(name, stop)) return Completed::exists;
    call.headers.clear();
    call.expected = {kNotFound};
    reply = send(name, call, stop);
  }
  if (reply.error_code == "InvalidPart" || reply.error_code == "EntityTooSmall") return Completed::changed;
  if (reply.status == kNotFound) return Completed::gone;
  return reply.status == kExists ? Completed::exists : Completed::made;
}

void S3Store::abort(const std::string& name, const std::string& id, const std::stop_token& stop) const {
  ObjectCall call{"DELETE", upload_query(id)};
  call.expected = {kNotFound};
  send(name, call, stop);
}

}  // namespace shard
