// When keys are renewed, and who waits.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "remote/http/aws_keys.hpp"
#include "support/deadline.hpp"
#include "support/expect_error.hpp"

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

}  // namespace
}  // namespace shard
