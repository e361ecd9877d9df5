// What a status says, however long the names in it are.
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/whereabouts.h"

namespace dtg {
namespace {

TEST(Status, LongNamesAreCutInTheMiddle) {
  const std::string name = "first/" + std::string(100'000, 'x') + "/last";
  const Status status = not_found("find \"%s\": no such node; see dtg_graph_find", name.c_str());
  EXPECT_LT(status.message().size(), 400u);
  for (const char* part : {"find \"first/xx", "x...(100011 bytes)...x", "xx/last\": no such node; see dtg_graph_find"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  const Status in = status.with_context("run \"" + name + "\"");
  EXPECT_LT(in.message().size(), 800u);
  EXPECT_NE(in.message().find("/last\": find \"first"), std::string::npos) << in.message();
  EXPECT_EQ(in.at_node(name).origin().node, name) << "whole, to be looked up";
}

TEST(Status, WhatIsReadableStaysWhole) {
  const std::string name(400, 'n');
  std::string words;
  for (int i = 0; i < 2000; ++i) words += "word ";
  EXPECT_EQ(not_found("%s %s", name.c_str(), words.c_str()).message(), name + " " + words);
  EXPECT_EQ(unavailable("%s\n%s", name.c_str(), name.c_str()).message(), name + "\n" + name);
}

TEST(Status, CharactersAreNotCut) {
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string name(shift, 'a');
    for (int i = 0; i < 1000; ++i) name += "\xe2\x82\xac";
    const std::string text = not_found("%s", name.c_str()).message();
    const size_t dots = text.find("..."), last = text.rfind("...");
    ASSERT_NE(dots, std::string::npos);
    EXPECT_EQ((dots - shift) % 3, 0u);
    EXPECT_EQ(text.compare(last + 3, 3, "\xe2\x82\xac"), 0);
  }
  EXPECT_LT(not_found("%s", std::string(1000, '\x80').c_str()).message().size(), 1000u) << "what is no UTF-8 at all";
}

// What is known deeper inside stays; what is the caller's own fault has no place.
TEST(Status, WhoTellsAnErrorSaysWhere) {
  const Status bare = told_by(unavailable("it is gone"), "/job:a", "meet");
  EXPECT_EQ(bare.origin().task + " " + bare.origin().phase, "/job:a meet");
  const Status known = told_by(bare, "/job:b", "run");
  EXPECT_EQ(known.origin().task + " " + known.origin().phase, "/job:a meet");
  EXPECT_EQ(told_by(not_found("no such node"), "/job:a", "run").origin().phase, "");
  EXPECT_TRUE(told_by(Status(), "/job:a", "run").ok());
  EXPECT_EQ(untold(unavailable("it is gone")), "neither task nor peer, and no phase");
  EXPECT_EQ(untold(aborted("it is gone").at_peer("/job:a")), "no phase");
  EXPECT_EQ(untold(deadline_exceeded("late").in_phase("run")), "neither task nor peer");
  EXPECT_EQ(untold(bare) + untold(not_found("no such node")) + untold({}), "");
}

}  // namespace
}  // namespace dtg
