#include "remote/remote_folder.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

#include "base/quote.hpp"
#include "remote/address.hpp"

namespace shard {

RemoteFolder::RemoteFolder(std::string address, std::string url, HttpAccess access)
    : address_(std::move(address)),
      url_(std::move(url)),
      access_(std::make_shared<const HttpAccess>(std::move(access))),
      client_(std::make_unique<HttpClient>()) {}

std::shared_ptr<RemoteFolder> RemoteFolder::open(const std::string& address) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<RemoteFolder>> opened;
  const std::string url = checked_url(address);
  const std::lock_guard lock(mutex);
  if (auto folder = opened[url].lock()) return folder;
  if (!url.starts_with("http"))
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: this build reads https:// and http:// only", quoted(address)));
  std::shared_ptr<RemoteFolder> folder(new RemoteFolder(url, url, {}));
  opened[url] = folder;
  return folder;
}

std::shared_ptr<LocalArea> RemoteFolder::area() const {
  const std::lock_guard lock(mutex_);
  if (!area_) area_ = std::make_shared<LocalArea>();
  return area_;
}

std::unique_ptr<HttpObject> RemoteFolder::object(const std::string& name, std::uint64_t size_bytes) const {
  return std::make_unique<HttpObject>(url_ + '/' + percent_encoded(name), address_ + '/' + name, access_,
                                      size_bytes);
}

RemoteName split_remote(const std::string& address) {
  const std::string url = checked_url(address);
  const std::size_t slash = url.rfind('/');
  if (url.find("://") + 2 == slash)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} names no file", quoted(address)));
  RemoteName split{url.substr(0, slash), {}};
  for (std::size_t i = slash + 1; i < url.size(); ++i) {
    unsigned value = 0;
    const char* const digits = url.data() + i + 1;
    if (url[i] == '%' && i + 2 < url.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      split.name += static_cast<char>(value);
      i += 2;
    } else {
      split.name += url[i];
    }
  }
  return split;
}

}  // namespace shard
