// What services that give out keys answer.
#include <gtest/gtest.h>

#include "remote/http/aws_keys.hpp"
#include "remote/s3/credentials/aws_key_sources.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

TEST(KeyAnswers, Times) {
  const auto seconds = [](const char* text) {
    return std::chrono::duration_cast<std::chrono::seconds>(time_of_text(text, "w").time_since_epoch())
        .count();
  };
  EXPECT_EQ(seconds("2026-11-23T10:05:00Z"), 1795428300);
  EXPECT_EQ(seconds("2026-11-23T10:05:00.123Z"), 1795428300);
  EXPECT_EQ(seconds("2026-11-23T10:05:00+00:00"), 1795428300);
  for (const char* text :
       {"", "soon", "2026-11-23", "2026-11-23T10:05:00", "2026-02-30T10:05:00Z", "2026-11-23T24:05:00Z",
        "2026-11-23T10:05:00+02:00", "2026-11-23 10:05:00Z", "99999-11-23T10:05:00Z", "-026-11-23T10:05:00Z",
        "2026-11-23T10:05:00.Zx", "0000-01-01T00:00:00Z"})
    EXPECT_SHARD_ERROR(static_cast<void>(time_of_text(text, "w")), ErrorCode::corrupt, "is not a time");
}

TEST(KeyAnswers, OfServicesInJson) {
  const SigningKeys keys = keys_of_json(
      R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"s/+=","Token":"t","Expiration":"2026-11-23T10:05:00Z",
          "x":{"AccessKeyId":"no"},"y":[1,"AccessKeyId"]})",
      "w");
  EXPECT_EQ(keys.id, "A");
  EXPECT_EQ(keys.secret, "s/+=");
  EXPECT_EQ(keys.session, "t");
  EXPECT_TRUE(keys.expires);
  EXPECT_FALSE(keys_of_json(R"({"AccessKeyId":"A","SecretAccessKey":"S"})", "w").expires);
}

TEST(KeyAnswers, ThatAreMalformedShowNothingOfTheKeys) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"AccessKeyId":"A"})", R"({"AccessKeyId":"A","SecretAccessKey":5})",
        R"({"AccessKeyId":"A","SecretAccessKey":"topsecret\r\nX: y"})",
        R"({"AccessKeyId":"A","SecretAccessKey":"topsecret"} topsecret)",
        R"({"AccessKeyId":"A","SecretAccessKey":"topsecret","Expiration":"later"})",
        R"({"Code":"Failed","AccessKeyId":"A","SecretAccessKey":"topsecret"})",
        R"({"x":{"AccessKeyId":"A","SecretAccessKey":"topsecret"}})"}) {
    try {
      static_cast<void>(keys_of_json(text, "the service"));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::corrupt)) << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with("the service: ")) << error.what();
      EXPECT_EQ(std::string(error.what()).find("topsecret"), std::string::npos) << error.what();
    }
  }
}

TEST(KeyAnswers, OfStsInXml) {
  const SigningKeys keys = keys_of_xml(
      "<R><A><AccessKeyId>no</AccessKeyId></A><Credentials><AccessKeyId>A</AccessKeyId>\n<SecretAccessKey> S "
      "</SecretAccessKey><SessionToken>t==</SessionToken><Expiration>2026-11-23T10:05:00Z</Expiration></"
      "Credentials></R>",
      "w");
  EXPECT_EQ(keys.id, "A");
  EXPECT_EQ(keys.secret, "S");
  EXPECT_EQ(keys.session, "t==");
  for (const char* text : {"", "<Credentials>", "</Credentials><Credentials>", "<Credentials></Credentials>",
                           "<Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S</Credentials>"})
    EXPECT_SHARD_ERROR(static_cast<void>(keys_of_xml(text, "w")), ErrorCode::corrupt, "has no keys");
}

}  // namespace
}  // namespace shard
