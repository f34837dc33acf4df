// Scripts for shells. That shells take them: tests/programs/completion.py.
#include <gtest/gtest.h>

#include <string>

#include "cli/completion.hpp"
#include "support/expect_error.hpp"

namespace shard::cli {
namespace {

class Completion : public ::testing::Test {
 protected:
  Completion() {
    CLI::App* const look = app_.add_subcommand("look", "Look at it, isn't it [so]: yes");
    look->add_option("-m,--mode", text_, "How. In detail")->type_name("near|far[,N]|N");
    look->add_option("--out", text_, "Where to")->type_name("DIR[,KEY=VALUE...]");
    look->add_option("--list", text_, "From")->type_name("FILE.csv");
    look->add_option("--kind", text_, "Of")->type_name("NAME")->check(CLI::IsMember({"one", "two"}));
    look->add_flag("!--no-light", flag_, "In the dark");
    look->add_option("--count", number_, "How many");
  }
  void has(const std::string& shell, std::initializer_list<const char*> parts) const {
    const std::string script = completion_script(app_, shell);
    for (const char* part : parts) EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
  }
  std::string text_;
  bool flag_ = true;
  int number_ = 0;
  CLI::App app_{"Does things.", "prog"};
};

TEST_F(Completion, KnowsTheKindsOfValues) {
  has("bash", {"look:-m|look:--mode) kind=words words='near far' ;;", "look:--out) kind=folder ;;",
               "look:--list) kind=file ;;", "look:--kind) kind=words words='one two' ;;",
               "look:--count) kind=other ;;", "--no-light", "complete -F _prog prog"});
  has("zsh", {"'--mode=[How]:near|far\\[,N\\]|N:(near far)'", "'--out=[Where to]", ":_files -/'",
              "'--no-light[In the dark]'", "'--count=[How many]:N: '"});
  has("fish", {"-s m -l mode -x -a 'near far' -d 'How'", "-l list -r -F -d 'From'", "-l count -x -d",
               "-l no-light -d 'In the dark'"});
}

TEST_F(Completion, EscapesTextsForEachShell) {
  has("zsh", {"'look:Look at it, isn'\\''t it \\[so\\]\\: yes'"});
  has("fish", {"-a look -d 'Look at it, isn\\'t it [so]: yes'"});
}

TEST_F(Completion, RefusesOtherShells) {
  EXPECT_SHARD_ERROR(completion_script(app_, "tcsh"), ErrorCode::invalid_argument,
                     "--completion \"tcsh\": expected bash, zsh or fish");
}

}  // namespace
}  // namespace shard::cli
