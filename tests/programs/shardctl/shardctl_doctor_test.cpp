// shardctl doctor, run as a user does, under the limits that a shell can set.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "support/programs/shardctl_fixture.hpp"

namespace shard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class ShardctlDoctor : public Shardctl {
 protected:
  Json lines(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"doctor", "--json"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = run(all);
    EXPECT_LE(ran.code, 1) << ran.err;
    const Json json = Json::parse(ran.out);
    bool look = false;
    for (const Json& line : json) {
      EXPECT_EQ(line.at("ok"), line.at("advice") == "") << line;
      EXPECT_NE(line.at("is"), "") << line;
      EXPECT_NE(line.at("should_be"), "") << line;
      look = look || !line.at("ok");
    }
    EXPECT_EQ(ran.code, look ? 1 : 0);
    return json;
  }
  static Json line(const Json& json, const std::string& name) {
    for (const Json& one : json)
      if (one.at("name") == name) return one;
    ADD_FAILURE() << "no line " << name << " in " << json;
    return {};
  }
};

TEST_F(ShardctlDoctor, HasALineForEachThingItLooksAt) {
  const Json json = lines({path("").string()});
  for (const char* name : {"CPUs", "memory", "open files", "disk", "O_DIRECT", "io_uring"})
    EXPECT_EQ(line(json, name).at("name"), name);
  EXPECT_THAT(line(json, "disk").at("is").get<std::string>(), HasSubstr(path("").string()));
}

TEST_F(ShardctlDoctor, PrintsWhatIsWhatShouldBeAndWhatToDo) {
  const Ran ran = run({"doctor", path("nowhere").string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("LOOK disk: \"" + path("nowhere").string() + "\": No such file"));
  EXPECT_THAT(ran.out, HasSubstr("       should be: a local disk"));
  EXPECT_THAT(ran.out, HasSubstr("       to do: name a folder that exists"));
  EXPECT_THAT(ran.out, HasSubstr("should be looked at\n"));
  EXPECT_THAT(ran.out, Not(HasSubstr("O_DIRECT")));
}

TEST_F(ShardctlDoctor, SeesTheLimitOfOpenFilesAndTheAffinityOfItsProcess) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const Ran alone = run({"doctor", "--json"});
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  const Json json = Json::parse(alone.out);
  EXPECT_THAT(line(json, "CPUs").at("is").get<std::string>(), HasSubstr("1 of "));
  EXPECT_NE(line(json, "CPUs").at("advice"), "");
  // shardctl raises its own soft limit to the hard one.
  if (files.rlim_max != RLIM_INFINITY) {
    EXPECT_THAT(line(json, "open files").at("is").get<std::string>(),
                HasSubstr(std::to_string(files.rlim_max) + " at most"));
  }
}

}  // namespace
}  // namespace shard::testing
