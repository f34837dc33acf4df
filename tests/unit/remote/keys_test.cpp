#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "deadline.hpp"
#include "expect_error.hpp"
#include "remote/http/aws_keys.hpp"
#include "remote/s3/credentials/aws_key_sources.hpp"

namespace shard {
namespace {

using namespace std::chrono_literals;
using testing::comes_true;

// A clock that the test sets, and a service that counts how often it was asked; it gives keys K1, K2, ...
// that live for `life`, or fails.
struct Script {
  std::atomic<std::chrono::milliseconds> now{0ms};
  std::atomic<int> asked{0};
  std::atomic<bool> fails{false};
  std::atomic<bool> same{false};
  std::chrono::milliseconds life{};
  std::function<void()> meanwhile = [] {};  // what happens while it is asked

  WallTime time() const { return WallTime(std::chrono::hours(24)) + now.load(); }
};
class ScriptedKeys : public KeySource {
 public:
  explicit ScriptedKeys(Script& script) : script_(script) {}
  SigningKeys fetch() override {
    const int number = script_.same ? 1 : script_.asked + 1;
    ++script_.asked;
    script_.meanwhile();
    if (script_.fails) throw Error(ErrorCode::io, "the service is down");
    SigningKeys keys{"K" + std::to_string(number), "secret"};
    if (script_.life > 0ms) keys.expires = script_.time() + script_.life;
    return keys;
  }

 private:
  Script& script_;
};

std::unique_ptr<AwsKeys> make_keys(Script& script) {
  return std::make_unique<AwsKeys>(std::make_unique<ScriptedKeys>(script),
                                   [&script] { return script.time(); });
}

TEST(Keys, AreRenewedBeforeTheyExpireAndNotEarlier) {
  Script script;
  script.life = 1200ms;
  const auto keys = make_keys(script);
  script.now = 899ms;
  keys->prepare();
  EXPECT_EQ(script.asked, 1);
  script.now = 900ms;  // a quarter is left: due, and still valid
  keys->prepare();
  EXPECT_EQ(script.asked, 2);
  EXPECT_EQ(keys->current().id, "K2");
}

TEST(Keys, OneThreadRenewsThemAndTheOthersGoOn) {
  Script script;
  script.life = 1200ms;
  const auto keys = make_keys(script);
  script.now = 950ms;
  std::atomic<int> went_on{0};
  script.meanwhile = [&] { EXPECT_TRUE(comes_true([&] { return went_on == 15; })); };
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      keys->prepare();
      ++went_on;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(script.asked, 2);
}

TEST(Keys, AServiceThatIsDownIsNoErrorWhileTheyAreValid) {
  Script script;
  script.life = 1500ms;
  const auto keys = make_keys(script);
  script.fails = true;
  script.now = 1200ms;
  keys->prepare();
  EXPECT_EQ(script.asked, 2);
  script.now = 1499ms;
  keys->prepare();  // not again at once
  EXPECT_EQ(script.asked, 2);
  script.now = 2200ms;
  EXPECT_SHARD_ERROR(keys->prepare(), ErrorCode::io, "the service is down");
  script.fails = false;
  keys->prepare();
  EXPECT_EQ(keys->current().id, "K4");
}

TEST(Keys, ThreadsThatWaitForAFailureDoNotTryOneAfterTheOther) {
  Script script;
  script.life = 300ms;
  const auto keys = make_keys(script);
  script.now = 400ms;
  script.fails = true;
  std::atomic<int> started{0};
  script.meanwhile = [&] {
    EXPECT_TRUE(comes_true([&] { return started == 16; }));
    std::this_thread::sleep_for(100ms);  // until most of them wait
  };
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      ++started;
      try {
        keys->prepare();
      } catch (const Error&) {
        ++failed;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 16);
  EXPECT_LE(script.asked, 8);
}

TEST(Keys, ThatTheServerCallsExpiredAreReplacedOnce) {
  Script script;
  const auto keys = make_keys(script);
  const std::uint64_t version = keys->current().version;
  EXPECT_TRUE(keys->replace(version));
  EXPECT_EQ(keys->current().id, "K2");
  EXPECT_TRUE(keys->replace(version));  // another thread was told the same
  EXPECT_EQ(script.asked, 2);
  script.same = true;
  EXPECT_TRUE(keys->replace(keys->current().version));
  EXPECT_FALSE(keys->replace(keys->current().version));
  EXPECT_FALSE(AwsKeys(SigningKeys{"K", "S"}).replace(0));
}

TEST(Keys, ThatHaveExpiredAlreadyAreAnError) {
  class Old : public KeySource {
    SigningKeys fetch() override { return {"K", "S", "", std::chrono::system_clock::now() - 1s}; }
  };
  EXPECT_SHARD_ERROR(AwsKeys(std::make_unique<Old>()), ErrorCode::io, "have expired already");
}

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
