// A section as text.
#include <gtest/gtest.h>

#include "report/section.hpp"

namespace shard::bench {
namespace {

TEST(SectionText, HasTheProblemsTheTablesAndTheNotesAndNamesWhatWasLeftOut) {
  PageSection section;
  section.says = "One sentence.";
  section.problems = {"A problem."};
  PageTable table{"Caption", {"name", "of the limit"}};
  table.add({"first", percent(0.5)});
  table.leave_out({"second"}, "no memory");
  section.tables = {table};
  section.notes = {"A note."};
  EXPECT_EQ(to_text(section),
            "A problem.\nCaption\n  name    of the limit\n  first           50 %\n  second      left out\n"
            "second was left out: no memory\n\nOne sentence.\nA note.\n");
}

}  // namespace
}  // namespace shard::bench
