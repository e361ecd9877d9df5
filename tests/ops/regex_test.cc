// Regular expressions against Go's, which are RE2's (regex/cases.jsonl, made by regex/make.go): what is a pattern, what matches, what
// becomes of the matches. And the ops around them.
#include "ops/regex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg::ops {
namespace {

using one_op::as_strings;
using one_op::as_vector;
using one_op::scalar;
using one_op::texts;
using Answers = nlohmann::json;

void check(const Answers& given) {
  const std::string pattern = given["pattern"];
  auto compiled = Regex::compile(pattern);
  if (!given["good"].get<bool>()) {
    EXPECT_FALSE(compiled.ok()) << pattern;
    return;
  }
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const Regex regex = compiled.take();
  RegexMatcher matcher(regex);
  auto rewrite = Rewrite::parse(given["rewrite"].get<std::string>(), regex.groups());
  ASSERT_TRUE(rewrite.ok()) << rewrite.status().message();
  for (size_t i = 0; i < given["texts"].size(); ++i) {
    const std::string text = given["texts"][i];
    EXPECT_EQ(matcher.matches_all(text), given["whole"][i].get<bool>()) << pattern << " on " << text;
    EXPECT_EQ(replaced(matcher, text, rewrite.value(), false), given["first"][i].get<std::string>()) << pattern << " on " << text;
    EXPECT_EQ(replaced(matcher, text, rewrite.value(), true), given["all"][i].get<std::string>()) << pattern << " on " << text;
  }
}

TEST(Regex, AnswersAsRE2) {
  const char* const source = std::getenv("DTG_SOURCE_DIR");
  ASSERT_TRUE(source) << "DTG_SOURCE_DIR says where the cases are";
  std::ifstream file(std::string(source) + "/tests/ops/regex/cases.jsonl");
  std::string line;
  int cases = 0;
  for (; std::getline(file, line); ++cases) check(Answers::parse(line));
  EXPECT_GE(cases, 700);
}

TEST(Regex, NoPatternIsSlow) {
  // A backtracking matcher takes 2^40 steps for the first, and 2^60 for the second.
  auto regex = Regex::compile("(a*)*(a*)*b|((a?){40}a{40})x");
  ASSERT_TRUE(regex.ok()) << regex.status().message();
  const Regex made = regex.take();
  RegexMatcher matcher(made);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(matcher.matches_all(std::string(2000, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Regex, SizesAndDepthsAreBounded) {
  EXPECT_EQ(Regex::compile("((a{30}){30}|b){100}").status().code(), Code::invalid_argument);
  EXPECT_EQ(Regex::compile("(abcdefghijklmnopqrstuvwxyz){1000}.{1000}" + std::string(5000, '.') +
                           "(abcdefghijklmnopqrstuvwxyz|[a-z]+){1000}"
                           "(abcdefghijklmnopqrstuvwxyz|[a-z]+){1000}(abcdefghijklmnopqrstuvwxyz|[a-z]+){1000}")
                .status()
                .code(),
            Code::resource_exhausted);
  EXPECT_EQ(Regex::compile(std::string(100000, '(')).status().code(), Code::invalid_argument);
  EXPECT_EQ(Regex::compile("a\xff").status().code(), Code::invalid_argument);
  EXPECT_EQ(Regex::compile("\\pL").status().code(), Code::unimplemented);
  EXPECT_EQ(Regex::compile("[\\pL]").status().code(), Code::unimplemented);
}

class RegexOps : public ::testing::Test {
 protected:
  OneOp one{{register_strings}};
};

TEST_F(RegexOps, ReplaceAndMatch) {
  const Tensor words = texts({2, 2}, {"a1b22", "", "no", std::string_view("\0x7\xff", 4)});
  const std::vector<std::string> all = {"a<1>b<22>", "", "no", std::string("\0x<7>\xff", 6)};
  EXPECT_EQ(as_strings(one.run("RegexReplace", {words, texts({}, {"(\\d+)"}), texts({}, {"<\\1>"})}).take()[0]), all);
  EXPECT_EQ(as_strings(one.run("StaticRegexReplace", {words}, {{"pattern", "(\\d+)"}, {"rewrite", "<\\1>"}}).take()[0]), all);
  EXPECT_EQ(
      as_strings(one.run("StaticRegexReplace", {words}, {{"pattern", "\\d"}, {"rewrite", ""}, {"replace_global", false}}).take()[0])[0],
      "ab22");
  EXPECT_EQ(as_vector<bool>(one.run("RegexFullMatch", {words, texts({}, {"[a-z0-9]*"})}).take()[0]),
            (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(as_vector<bool>(one.run("StaticRegexFullMatch", {words}, {{"pattern", "n."}}).take()[0]),
            (std::vector<bool>{false, false, true, false}));
}

TEST_F(RegexOps, BadPatternsAndRewritesAreTold) {
  const Tensor words = texts({1}, {"a"});
  const auto code = [&](const char* pattern, const char* rewrite) {
    const Code fixed = one.run("StaticRegexReplace", {words}, {{"pattern", pattern}, {"rewrite", rewrite}}).status().code();
    EXPECT_EQ(one.run("RegexReplace", {words, texts({}, {pattern}), texts({}, {rewrite})}).status().code(), fixed);
    return fixed;
  };
  EXPECT_EQ(code("(", ""), Code::invalid_argument);
  EXPECT_EQ(code("a", "\\1"), Code::invalid_argument);
  EXPECT_EQ(code("a", "\\"), Code::invalid_argument);
  EXPECT_EQ(code("(a)", "\\1\\0\\\\"), Code::ok);
  EXPECT_EQ(one.run("RegexFullMatch", {words, texts({2}, {"a", "b"})}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg::ops
