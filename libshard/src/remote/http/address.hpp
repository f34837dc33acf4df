// Addresses of data sets that are not local: https://HOST/PATH and http://HOST/PATH.
//
// Names from a dataset.json become one percent-encoded part of the path, so they cannot add a query,
// a header or another host.
#pragma once

#include <string>
#include <string_view>

#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard {

// Every byte but letters, digits and "-._~" becomes %HH (RFC 3986, "unreserved").
// With `keep_slash` '/' stays too.
std::string percent_encoded(std::string_view text, bool keep_slash = false);

// Scheme, host and port of a URL, in lower case: "https://host:443".
// Two URLs with the same origin are on the same server.
std::string origin_of(std::string_view url);

// The URL without '/' at its end. Errors: invalid_argument, if it has no host, a user or password, a query or
// fragment, or bytes that a URL cannot have (space, quotes, control bytes, bytes beyond ASCII). Passwords do
// not appear in the message.
std::string checked_url(std::string_view url);

}  // namespace shard
