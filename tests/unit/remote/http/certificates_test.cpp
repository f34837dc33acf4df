#include "remote/http/certificates.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

constexpr std::array kVariables{"SHARD_CA_BUNDLE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};

class CertificateFiles : public ::testing::Test {
 protected:
  CertificateFiles() { forget(); }
  ~CertificateFiles() override { forget(); }

  static void forget() {
    for (const char* const name : kVariables) ::unsetenv(name);
  }
  std::string made(const char* name) {
    const auto path = folder_.path() / name;
    std::ofstream(path) << "-----BEGIN CERTIFICATE-----\n";
    return path;
  }
  Certificates find(const std::string& built_in, const char* built_in_folder = nullptr) {
    const std::array system{absent_.c_str(), first_.c_str(), second_.c_str()};
    return find_certificates(built_in.empty() ? nullptr : built_in.c_str(), built_in_folder, system);
  }

  testing::TempDir folder_;
  std::string absent_ = folder_.path() / "absent";
  std::string first_ = folder_.path() / "first";
  std::string second_ = folder_.path() / "second";
};

TEST_F(CertificateFiles, TheEnvironmentIsFirstAndItsOwnOrderCounts) {
  const std::string built_in = made("built_in");
  made("first");
  for (auto name = kVariables.rbegin(); name != kVariables.rend(); ++name) {
    const std::string path = "/nowhere/" + std::string(*name);  // libcurl says that it is not there
    ::setenv(*name, path.c_str(), 1);
    EXPECT_EQ(find(built_in).file, path);
    EXPECT_FALSE(find(built_in).missing);
  }
  forget();
  ::setenv("SHARD_CA_BUNDLE", "", 1);
  EXPECT_EQ(find(built_in).file, "");
}

TEST_F(CertificateFiles, LibcurlsOwnFileIsNextIfItExists) {
  made("first");
  const std::string built_in = made("built_in");
  EXPECT_EQ(find(built_in).file, "");
  EXPECT_FALSE(find(built_in).missing);
  std::filesystem::remove(built_in);
  EXPECT_EQ(find(built_in).file, first_);
}

TEST_F(CertificateFiles, ThenTheFirstOfTheSystemsFilesThatExists) {
  made("second");
  EXPECT_EQ(find("", "/etc").file, second_);
  std::filesystem::create_symlink("second", first_);
  EXPECT_EQ(find("", "/etc").file, first_);
  std::filesystem::remove(second_);  // `first` leads nowhere now
  std::filesystem::create_directory(second_);
  EXPECT_EQ(find("", "/etc").file, "");
}

TEST_F(CertificateFiles, ThenLibcurlsOwnFolder) {
  EXPECT_FALSE(find("", "/etc/ssl/certs").missing);
  EXPECT_TRUE(find("").missing);
  EXPECT_TRUE(find(absent_).missing);
}

TEST_F(CertificateFiles, WithoutAnyHttpsIsAnErrorThatSaysWhatToDo) {
  const Certificates none = find("");
  for (const char* const part :
       {"https://host:443", "ca-certificates", "SHARD_CA_BUNDLE", "/etc/ssl/cert.pem"})
    EXPECT_SHARD_ERROR(require_certificates(none, "https://host/a?secret"), ErrorCode::io, part);
  EXPECT_NO_THROW(require_certificates(none, "http://host/a"));
  EXPECT_NO_THROW(require_certificates(find("", "/etc/ssl/certs"), "https://host/a"));
}

TEST_F(CertificateFiles, OfDebianFedoraAndSuseAreKnownInThisOrder) {
  const auto known = system_certificates();
  ASSERT_GE(known.size(), 5U);
  EXPECT_STREQ(known[0], "/etc/ssl/certs/ca-certificates.crt");
  EXPECT_STREQ(known[1], "/etc/pki/tls/certs/ca-bundle.crt");
  EXPECT_STREQ(known[2], "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
  EXPECT_STREQ(known[3], "/etc/ssl/ca-bundle.pem");
  EXPECT_STREQ(known[4], "/etc/ssl/cert.pem");
}

}  // namespace
}  // namespace shard
