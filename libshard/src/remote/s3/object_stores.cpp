#include "remote/s3/object_stores.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "remote/http/address.hpp"
#include "remote/s3/credentials/aws_key_sources.hpp"

namespace shard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxTokenFileBytes = std::uint64_t{1} << 20U;

[[noreturn]] void refuse_address(std::string_view address, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", quoted(address), why));
}

}  // namespace

StorePlace resolve_s3(std::string_view address) {
  std::string_view path = address.substr(std::string_view("s3://").size());
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = std::min(path.find('/'), path.size());
  const std::string bucket(path.substr(0, slash));
  const std::string key = percent_encoded(path.substr(slash), true);  // begins with '/', or is empty
  if (!is_word(bucket, ".-_") || bucket.size() > 255) refuse_address(address, "expected s3://BUCKET/PREFIX");
  const AwsProfile profile = read_aws_profile();
  const std::string region = aws_region(profile);
  std::string endpoint = aws_endpoint(profile, "s3");
  const bool amazon = endpoint.empty();
  if (amazon) endpoint = fmt::format("https://s3.{}.{}", region, aws_domain(region));
  const std::string style = environment_variable("SHARD_S3_STYLE");
  const bool in_host = style.empty() ? amazon && bucket.find('.') == std::string::npos : style == "virtual";
  StorePlace place;
  if (in_host)
    place.url = std::string(endpoint).insert(endpoint.find("://") + 3, bucket + '.') + key;
  else
    place.url = endpoint + '/' + bucket + key;
  const std::string anonymous = environment_variable("SHARD_S3_ANONYMOUS");
  if (!anonymous.empty() && anonymous != "0") return place;
  place.access.sigv4 = "aws:amz:" + region + ":s3";
  try {
    place.access.keys = find_aws_keys(profile, region);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quoted(address), error.what()));
  }
  return place;
}

StorePlace resolve_hf(std::string_view address) {
  const std::string_view path = address.substr(std::string_view("hf://").size());
  const std::size_t owner = path.find('/');
  const std::size_t name = owner == std::string_view::npos ? owner : path.find('/', owner + 1);
  if (path.substr(0, std::min(owner, path.size())) != "datasets" || name == std::string_view::npos)
    refuse_address(address, "expected hf://datasets/OWNER/NAME/FOLDER");
  const std::size_t end = std::min(path.find('/', name + 1), path.size());
  std::string repository(path.substr(name + 1, end - name - 1));
  std::string revision = "main";
  if (const std::size_t at = repository.find('@'); at != std::string::npos) {
    revision = repository.substr(at + 1);
    repository.resize(at);
  }
  const std::string_view user = path.substr(owner + 1, name - owner - 1);
  if (!is_word(user, "-_.") || !is_word(repository, "-_.") || revision.empty())
    refuse_address(address, "expected hf://datasets/OWNER/NAME[@REVISION]/FOLDER");
  const std::string set = environment_variable("HF_ENDPOINT");
  StorePlace place;
  place.url =
      fmt::format("{}/datasets/{}/{}/resolve/{}{}", set.empty() ? "https://huggingface.co" : checked_url(set),
                  user, repository, percent_encoded(revision), percent_encoded(path.substr(end), true));
  while (place.url.ends_with('/')) place.url.pop_back();
  place.access.bearer = environment_variable("HF_TOKEN");
  if (place.access.bearer.empty()) {
    const std::string folder = environment_variable("HF_HOME");
    try {
      const auto bytes =
          read_file((folder.empty() ? fs::path(environment_variable("HOME")) / ".cache" / "huggingface"
                                    : fs::path(folder)) /
                        "token",
                    kMaxTokenFileBytes);
      place.access.bearer = trimmed(as_text(bytes));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
  }
  const std::string& token = place.access.bearer;
  if (!is_header_word(token))
    refuse_address(address, "the token of HF_TOKEN, or of the file with it, has bytes that no token has");
  return place;
}

}  // namespace shard
