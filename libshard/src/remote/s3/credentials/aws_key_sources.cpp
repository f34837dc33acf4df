#include "remote/s3/credentials/aws_key_sources.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "remote/http/address.hpp"
#include "remote/http/http_answer.hpp"
#include "remote/http/http_call.hpp"

namespace shard {
namespace {

constexpr std::uint64_t kMaxTokenBytes = std::uint64_t{64} << 10U;

[[noreturn]] void refuse_keys(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

std::string token_file(const std::string& path, const char* variable) {
  try {
    const auto bytes = read_file(path, kMaxTokenBytes);
    return std::string(trimmed(as_text(bytes)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: the file of {}", error.what(), variable));
  }
}

// The answer's body, if its status is 200.
std::string body_of(const HttpCall& call, const std::string& who) {
  HttpReply reply;
  try {
    reply = call_http(call);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", who, error.what()));
  }
  if (reply.status == 200) return std::move(reply.body);
  const std::string code = error_code_of(reply.body);
  throw Error(ErrorCode::io,
              fmt::format("{}: it answers HTTP {}{}{}", who, reply.status, code.empty() ? "" : ", ", code));
}

// They become a header and part of one: no line of their own.
SigningKeys own_keys(SigningKeys keys) {
  for (const std::string* text : {&keys.id, &keys.secret, &keys.session})
    if (!is_header_word(*text))
      refuse_keys("the keys have bytes that no key has: check the variables AWS_... and the shared profile");
  return keys;
}

// The shared files: another program may have renewed what they say.
class ProfileKeys : public KeySource {
 public:
  SigningKeys fetch() override {
    const AwsProfile profile = read_aws_profile();
    return own_keys({profile.value("aws_access_key_id"), profile.value("aws_secret_access_key"),
                     profile.value("aws_session_token")});
  }
};

// AssumeRoleWithWebIdentity. The token file is read each time: Kubernetes writes new ones.
class WebIdentityKeys : public KeySource {
 public:
  WebIdentityKeys(std::string file, std::string role, std::string session, std::string endpoint)
      : file_(std::move(file)),
        role_(std::move(role)),
        session_(std::move(session)),
        endpoint_(std::move(endpoint)) {}

  SigningKeys fetch() override {
    const std::string who = fmt::format("cannot get keys for the web identity of {} from STS",
                                        quoted(std::filesystem::path(file_)));
    const std::string token = token_file(file_, "AWS_WEB_IDENTITY_TOKEN_FILE");
    if (token.empty()) throw Error(ErrorCode::io, who + ": the file is empty");
    HttpCall call;
    call.method = "POST";
    call.url = endpoint_ + '/';
    call.headers = {"Content-Type: application/x-www-form-urlencoded"};
    call.body = fmt::format(
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&WebIdentityToken={"
        "}",
        percent_encoded(role_), percent_encoded(session_), percent_encoded(token));
    call.connect_time = std::chrono::seconds(3);
    call.whole_time = std::chrono::seconds(5);
    call.again_if_silent = true;
    return keys_of_xml(body_of(call, who), who);
  }

 private:
  std::string file_, role_, session_, endpoint_;
};

// The service of ECS and of EKS pod identities.
class ContainerKeys : public KeySource {
 public:
  explicit ContainerKeys(std::string url) : url_(std::move(url)) {}

  SigningKeys fetch() override {
    const std::string who = "cannot get keys from the container's service";
    HttpCall call;
    call.url = url_;
    call.proxy = false;
    call.again_if_silent = true;
    std::string token = environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const std::string file = environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        !file.empty())
      token = token_file(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    for (const char c : token)
      if (c < ' ' || c == 0x7f) refuse_keys(who + ": its token has bytes that no token has");
    if (!token.empty()) call.headers = {"Authorization: " + token};
    return keys_of_json(body_of(call, who), who);
  }

 private:
  std::string url_;
};

// IMDSv2: a token by PUT, the name of the role, its keys.
class InstanceKeys : public KeySource {
 public:
  explicit InstanceKeys(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  SigningKeys fetch() override {
    const std::string who = "cannot get keys from the metadata service of the instance";
    HttpCall call;
    call.method = "PUT";
    call.url = endpoint_ + "/latest/api/token";
    call.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"};
    call.proxy = false;
    const std::string token = body_of(call, who);
    if (token.empty() || !is_header_word(token))
      throw Error(ErrorCode::corrupt, who + ": its token has bytes that no token has");
    call.method = "GET";
    call.headers = {"X-aws-ec2-metadata-token: " + token};
    call.url = endpoint_ + "/latest/meta-data/iam/security-credentials/";
    const std::string roles = body_of(call, who);
    const std::string_view role = trimmed(std::string_view(roles).substr(0, roles.find('\n')));
    if (!is_word(role, "+=,.@-_") || role.size() > 128)
      throw Error(ErrorCode::corrupt, who + ": the instance has no role, or one whose name is not valid");
    call.url += percent_encoded(role);
    return keys_of_json(body_of(call, who), who);
  }

 private:
  std::string endpoint_;
};

// One object for all who ask for the same source while it is in use.
std::shared_ptr<AwsKeys> shared_keys(const std::string& source,
                                     const std::function<std::unique_ptr<KeySource>()>& make) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<AwsKeys>> known;
  {
    const std::lock_guard lock(mutex);
    if (auto keys = known[source].lock()) return keys;
  }
  auto keys = std::make_shared<AwsKeys>(make());  // may wait for a server
  const std::lock_guard lock(mutex);
  known[source] = keys;
  return keys;
}

std::shared_ptr<AwsKeys> web_identity(const AwsProfile& profile, const std::string& region) {
  const auto setting = [&](const char* variable, const char* name) {
    const std::string set = environment_variable(variable);
    return set.empty() ? profile.value(name) : set;
  };
  const std::string file = setting("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
  if (file.empty()) return nullptr;
  const std::string role = setting("AWS_ROLE_ARN", "role_arn");
  if (role.empty()) refuse_keys("AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not: set both");
  std::string session = setting("AWS_ROLE_SESSION_NAME", "role_session_name");
  if (session.empty()) session = "shardify";
  std::string endpoint = aws_endpoint(profile, "sts");
  if (endpoint.empty()) endpoint = fmt::format("https://sts.{}.{}", region, aws_domain(region));
  return shared_keys(fmt::format("web identity\n{}\n{}\n{}\n{}", file, role, session, endpoint),
                     [&] { return std::make_unique<WebIdentityKeys>(file, role, session, endpoint); });
}

// Where the profile has one of these.
void refuse_other_ways(const AwsProfile& profile, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (!profile.value(name).empty())
      refuse_keys(fmt::format(
          "the profile {} gets its keys by {}, which is left to the AWS tools: export temporary keys with "
          "`aws "
          "configure export-credentials --profile NAME --format env`, or give a profile with keys",
          quoted(profile.name), name));
}

// A role, for which keys are exchanged. Those in the same profile are somebody else's.
void refuse_role(const AwsProfile& profile) {
  if (profile.value("role_arn").empty() || !profile.value("web_identity_token_file").empty()) return;
  refuse_other_ways(profile, {"source_profile", "credential_source"});
  if (environment_variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty()) refuse_other_ways(profile, {"role_arn"});
}

std::shared_ptr<AwsKeys> keys_of_profile(const AwsProfile& profile) {
  refuse_other_ways(profile, {"sso_account_id", "sso_role_name"});
  if (!profile.own_keys) refuse_other_ways(profile, {"credential_process"});
  const bool id = !profile.value("aws_access_key_id").empty();
  const bool secret = !profile.value("aws_secret_access_key").empty();
  if (id && secret) return std::make_shared<AwsKeys>(std::make_unique<ProfileKeys>());
  if (id || secret)
    refuse_keys(fmt::format(
        "the profile {} has only one of aws_access_key_id and aws_secret_access_key: it needs both",
        quoted(profile.name)));
  refuse_other_ways(
      profile, {"credential_process", "sso_session", "sso_start_url", "source_profile", "credential_source"});
  if (!profile.found && !first_variable({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}).empty())
    refuse_keys(
        fmt::format("there is no profile {} in the shared files: check AWS_PROFILE, "
                    "AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE",
                    quoted(profile.name)));
  return nullptr;
}

// As the AWS tools: by http only to this machine and to the addresses of ECS and EKS.
std::string container_url() {
  if (const std::string path = environment_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
      !path.empty()) {
    if (!path.starts_with('/') || !is_header_word(path))
      refuse_keys("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not the path of a URL: it begins with '/'");
    return "http://169.254.170.2" + path;
  }
  std::string url = environment_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (url.empty()) return url;
  static_cast<void>(checked_url(url.substr(0, url.find('?'))));
  const std::string origin = origin_of(url);
  const std::string host = origin.substr(0, origin.rfind(':'));
  bool allowed = origin.starts_with("https://");
  for (const char* own : {"http://localhost", "http://127.0.0.1", "http://[::1]", "http://169.254.170.2",
                          "http://169.254.170.23", "http://[fd00:ec2::23]"})
    allowed = allowed || host == own;
  if (!allowed || !is_header_word(url))
    refuse_keys(
        fmt::format("AWS_CONTAINER_CREDENTIALS_FULL_URI names {}: only https, this machine, and the services "
                    "of ECS and EKS are asked",
                    quoted(origin)));
  return url;
}

std::string instance_endpoint() {
  const std::string set = environment_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (!set.empty()) return checked_url(set);
  const std::string mode = environment_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
  return equals_ignoring_case(mode, "ipv6") ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
}

std::shared_ptr<AwsKeys> keys_of_instance() {
  const std::string hint =
      "no keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile with "
      "keys; "
      "SHARD_S3_ANONYMOUS=1 reads public buckets without keys";
  if (equals_ignoring_case(environment_variable("AWS_EC2_METADATA_DISABLED"), "true")) refuse_keys(hint);
  const std::string endpoint = instance_endpoint();
  try {
    return shared_keys("instance\n" + endpoint, [&] { return std::make_unique<InstanceKeys>(endpoint); });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) refuse_keys(hint);
    throw Error(ErrorCode::invalid_argument, fmt::format("{} ({})", hint, error.what()));
  }
}

}  // namespace

std::shared_ptr<AwsKeys> find_aws_keys(const AwsProfile& profile, const std::string& region) {
  SigningKeys keys{environment_variable("AWS_ACCESS_KEY_ID"), environment_variable("AWS_SECRET_ACCESS_KEY"),
                   environment_variable("AWS_SESSION_TOKEN")};
  if (!keys.id.empty() && !keys.secret.empty()) return std::make_shared<AwsKeys>(own_keys(std::move(keys)));
  if (keys.id.empty() != keys.secret.empty())
    refuse_keys("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set: set both or none");
  refuse_role(profile);
  if (auto found = web_identity(profile, region)) return found;
  if (auto found = keys_of_profile(profile)) return found;
  if (const std::string url = container_url(); !url.empty())
    return shared_keys("container\n" + url, [&] { return std::make_unique<ContainerKeys>(url); });
  return keys_of_instance();
}

}  // namespace shard
