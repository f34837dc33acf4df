// HttpClient and call_http() of a build without libcurl: says so.
#include "remote/http/http_call.hpp"
#include "remote/http/http_client.hpp"
#include "shard/remote.hpp"

namespace shard {
namespace {

[[noreturn]] void refuse_remote(const HttpObject& object) {
  throw Error(ErrorCode::unsupported,
              object.name() +
                  " is on a server, and this build was made without libcurl: install libcurl4-openssl-dev "
                  "(Debian) and build again, or copy the data set to a folder");
}

}  // namespace

std::string remote_library() { return "none"; }

class HttpEngine {};

std::size_t HttpClient::threads() { return 1; }
HttpClient::HttpClient() = default;
HttpClient::~HttpClient() = default;

std::vector<std::byte> HttpClient::read_all(HttpObject& object, std::uint64_t, const std::stop_token&) {
  refuse_remote(object);
}
void HttpClient::read(HttpObject& object, std::uint64_t, std::span<std::byte>, const std::stop_token&) {
  refuse_remote(object);
}
void HttpClient::copy_to(HttpObject& object, std::uint64_t, std::uint64_t, int, std::uint64_t,
                         const std::stop_token&, const Arrived&) {
  refuse_remote(object);
}

HttpReply call_http(const HttpCall&) {
  throw Error(ErrorCode::unsupported, "this build was made without libcurl");
}

ObjectReply HttpClient::call(HttpObject& object, const ObjectCall&, const std::stop_token&) {
  refuse_remote(object);
}

}  // namespace shard
