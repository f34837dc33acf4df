// libcurl as a whole: what it was built with.
#pragma once

#include "remote/http/certificates.hpp"

namespace shard {

// For CURLOPT_CAINFO.
Certificates curl_certificates();

}  // namespace shard
