#include "remote/s3/remote_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/text/quote.hpp"
#include "remote/http/address.hpp"
#include "remote/s3/object_stores.hpp"

namespace shard {

namespace {

bool is_store(std::string_view address) {
  return address.starts_with("s3://") || address.starts_with("hf://");
}

// Names in stores are taken as they are, those of other URLs are encoded already.
std::string without_end(std::string_view address) {
  if (!is_store(address)) return checked_url(address);
  while (address.size() > 5 && address.ends_with('/')) address.remove_suffix(1);
  return std::string(address);
}

StorePlace resolve(const std::string& address) {
  if (address.starts_with("s3://")) return resolve_s3(address);
  if (address.starts_with("hf://")) return resolve_hf(address);
  return {address, {}};
}

}  // namespace

RemoteFolder::RemoteFolder(std::string address, std::string url, HttpAccess access)
    : address_(std::move(address)),
      url_(std::move(url)),
      access_(std::make_shared<const HttpAccess>(std::move(access))),
      client_(std::make_unique<HttpClient>()) {}

std::shared_ptr<RemoteFolder> RemoteFolder::open(const std::string& address) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<RemoteFolder>> opened;
  const std::string plain = without_end(address);
  const std::lock_guard lock(mutex);
  if (auto folder = opened[plain].lock()) return folder;
  StorePlace place = resolve(plain);
  std::shared_ptr<RemoteFolder> folder(
      new RemoteFolder(plain, std::move(place.url), std::move(place.access)));
  opened[plain] = folder;
  return folder;
}

std::shared_ptr<LocalArea> RemoteFolder::area() const {
  const std::lock_guard lock(mutex_);
  if (!area_ || !area_->of_this_process()) area_ = std::make_shared<LocalArea>();
  return area_;
}

std::unique_ptr<HttpObject> RemoteFolder::object(const std::string& name, std::uint64_t size_bytes) const {
  return std::make_unique<HttpObject>(url_ + '/' + percent_encoded(name), address_ + '/' + name, access_,
                                      size_bytes);
}

RemoteFolder::Bucket RemoteFolder::bucket() const {
  if (!address_.starts_with("s3://"))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} cannot be written: only s3://BUCKET/PREFIX can", quoted(address_)));
  const std::size_t slash = std::min(address_.find('/', 5), address_.size());
  const std::string prefix = address_.substr(std::min(slash + 1, address_.size()));
  const std::size_t in_url = prefix.empty() ? 0 : percent_encoded(prefix, true).size() + 1;
  return {
      std::make_unique<HttpObject>(url_.substr(0, url_.size() - in_url), address_.substr(0, slash), access_),
      prefix};
}

std::unique_ptr<HttpObject> RemoteFolder::object_below(const std::string& path) const {
  return std::make_unique<HttpObject>(url_ + '/' + (is_store(address_) ? percent_encoded(path, true) : path),
                                      address_ + '/' + path, access_);
}

std::string RemoteFolder::address_of(const std::string& name) const {
  return address_ + '/' + (is_store(address_) ? name : percent_encoded(name));
}

RemoteName split_remote(const std::string& address) {
  const std::string url = without_end(address);
  const std::size_t slash = url.rfind('/');
  if (url.find("://") + 2 == slash)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} names no file", quoted(address)));
  if (is_store(url)) return {url.substr(0, slash), url.substr(slash + 1)};
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
