// What a request reads from an answer: its headers, which are checked before the first byte counts,
// and its bytes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/files/file_io.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "remote/http/http_answer.hpp"
#include "remote/http/http_request.hpp"

namespace shard {
namespace {

constexpr std::size_t kExcerptBytes = 2048;  // of the text of an error

}  // namespace

std::size_t HttpRequest::on_header(char* data, std::size_t, std::size_t size, void* context) {
  std::string_view line(data, size);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' '))
    line.remove_suffix(1);
  static_cast<HttpRequest*>(context)->take_header(line);
  return size;
}

void HttpRequest::take_header(std::string_view line) {
  if (line.starts_with("HTTP/")) {  // of the final answer: those of 100 Continue come before
    for (std::string* const header : {&answer_.etag, &answer_.content_range, &answer_.content_length,
                                      &answer_.encryption, &answer_.region})
      header->clear();
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  if (equals_ignoring_case(name, "etag")) answer_.etag = value.substr(0, 256);
  if (equals_ignoring_case(name, "content-range")) answer_.content_range = value.substr(0, 256);
  if (equals_ignoring_case(name, "content-length")) answer_.content_length = value.substr(0, 32);
  if (equals_ignoring_case(name, "retry-after")) answer_.retry_after = value.substr(0, 32);
  if (equals_ignoring_case(name, "x-amz-server-side-encryption")) answer_.encryption = value.substr(0, 32);
  if (equals_ignoring_case(name, "x-amz-bucket-region")) answer_.region = value.substr(0, 64);
}

// Exceptions do not pass through libcurl: they are kept, and 0 ends the request.
std::size_t HttpRequest::on_body(char* data, std::size_t, std::size_t size, void* context) {
  HttpRequest& request = *static_cast<HttpRequest*>(context);
  try {
    request.take(std::as_bytes(std::span(data, size)));
  } catch (...) {
    request.answer_.error = std::current_exception();
  }
  return request.answer_.error || !request.answer_.lie.empty() ? 0 : size;
}

void HttpRequest::take(std::span<const std::byte> bytes) {
  if (!answer_.checked) check_answer();
  if (!success()) {
    const std::size_t room = kExcerptBytes - std::min(kExcerptBytes, answer_.excerpt.size());
    answer_.excerpt.append(reinterpret_cast<const char*>(bytes.data()), std::min(room, bytes.size()));
    return;
  }
  if (!answer_.lie.empty()) return;
  if (job_.sink == HttpJob::Sink::document) {
    if (bytes.size() > job_.max_bytes - job_.document.size())
      throw Error(ErrorCode::resource,
                  fmt::format("{} has more than {} bytes", quoted(job_.object.name()), job_.max_bytes));
    job_.document.insert(job_.document.end(), bytes.begin(), bytes.end());
    count_news(job_.document.size() - std::min<std::uint64_t>(job_.document.size(), most_));
    most_ = std::max<std::uint64_t>(most_, job_.document.size());
  } else {
    if (bytes.size() > end_ - begin_) {
      answer_.lie = "the server sends more bytes than its Content-Range says";
      return;
    }
    if (job_.sink == HttpJob::Sink::memory)
      std::memcpy(job_.memory + (begin_ - job_.begin), bytes.data(), bytes.size());
    else
      pwrite_all(job_.fd, bytes, job_.offset + (begin_ - job_.begin), job_.path);
    if (job_.arrived) job_.arrived(begin_, bytes);
    begin_ += bytes.size();
    count_news(bytes.size());
  }
  answer_.received += bytes.size();
  shared_.stats.bytes += bytes.size();
}

// Patience starts again with each byte that is new.
void HttpRequest::count_news(std::uint64_t bytes) {
  if (bytes == 0) return;
  news_ += bytes;
  deadline_ = Clock::now() + shared_.patience;
}

// Status and headers, before the first byte counts.
void HttpRequest::check_answer() {
  answer_.checked = true;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &answer_.status);
  if (!success()) return;
  shared_.reached = true;
  HttpObject& object = job_.object;
  if (job_.call != nullptr) return;
  if (whole()) {
    if (answer_.status == 206) answer_.lie = "the server answers 206 (a part) to a request for the whole";
    return;
  }
  // Some servers ignore ranges: the whole object will do where it was asked for.
  // Others send the range with this status.
  if (answer_.status == 200 && answer_.content_range.empty()) {
    const auto length = number_of<std::uint64_t>(answer_.content_length);
    if (begin_ != 0 || !length || *length != end_)
      throw Error(
          ErrorCode::io,
          fmt::format("the server of {} answers a request for a range with the whole object (HTTP "
                      "200): it must support range requests; copy the data set to a folder, or serve it "
                      "by another server",
                      quoted(object.name())));
    return object.check_same(answer_.etag, *length);
  }
  const auto range = parse_content_range(answer_.content_range);
  if (!range || range->begin != begin_ || range->end != end_) {
    if (range) object.check_same(answer_.etag, range->total);
    answer_.lie = fmt::format("bytes {}-{} were requested, the answer has Content-Range {}", begin_, end_ - 1,
                              quoted_excerpt(answer_.content_range));
    return;
  }
  object.check_same(answer_.etag, range->total);
}

}  // namespace shard
