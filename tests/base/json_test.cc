// JSON: what is accepted, what is refused and why, and the text that leaves.
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dtg {
namespace {

std::string problem(std::string_view text, const JsonLimits& limits = {}) {
  auto json = parse_json(text, "test", limits);
  return json.ok() ? "" : json.status().message();
}

TEST(Json, ParsesEveryKindInOrder) {
  auto parsed = parse_json(R"({"b":[1,-2,3.5,true,null,"x\u00e9\n"],"a":{}})", "test");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Json& json = parsed.value();
  ASSERT_NE(json.object(), nullptr);
  EXPECT_EQ((*json.object())[0].first, "b");
  const Json::Array& items = *json.find("b")->array();
  EXPECT_EQ(*items[0].integer(), 1);
  EXPECT_EQ(*items[1].integer(), -2);
  EXPECT_EQ(*items[2].real(), 3.5);
  EXPECT_TRUE(*items[3].boolean());
  EXPECT_TRUE(items[4].is_null());
  EXPECT_EQ(*items[5].string(), "x\xc3\xa9\n");
  EXPECT_EQ(json.find("c"), nullptr);
  EXPECT_EQ(json.find("b")->find("x"), nullptr);
  EXPECT_EQ(json.text(), "{\"b\":[1,-2,3.5,true,null,\"x\xc3\xa9\\n\"],\"a\":{}}");
}

TEST(Json, IntegersKeepAll64Bits) {
  auto parsed = parse_json("[9223372036854775807,-9223372036854775808,9223372036854775808]", "test");
  ASSERT_TRUE(parsed.ok());
  const Json::Array& items = *parsed.value().array();
  EXPECT_EQ(*items[0].integer(), INT64_MAX);
  EXPECT_EQ(*items[1].integer(), INT64_MIN);
  EXPECT_EQ(items[2].integer(), nullptr);
  EXPECT_EQ(*items[2].real(), 9223372036854775808.0);
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* bad : {"", "{", "[1,]", "{\"a\":1,}", "nul", "[1] x", "'a'", "NaN", "[1e999]", "\"\xff\"", "// c\n1", "\"a\nb\"", "01",
                          "{\"a\" 1}", "{1:2}"}) {
    EXPECT_NE(problem(bad), "") << bad;
  }
  EXPECT_NE(problem("[1,,2]").find("byte"), std::string::npos);
}

TEST(Json, RefusesAKeyGivenTwice) {
  const std::string said = problem(R"({"a":1,"b":{"x":1,"y":2,"x":3}})");
  EXPECT_NE(said.find("\"x\""), std::string::npos) << said;
  EXPECT_EQ(problem(R"({"a":{"a":1}})"), "");
}

TEST(Json, KeepsItsLimits) {
  EXPECT_NE(problem(std::string(100000, '[')), "");
  EXPECT_EQ(problem(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_NE(problem(std::string(65, '[') + std::string(65, ']')).find("nested"), std::string::npos);
  EXPECT_NE(problem("[1,2,3]", {.values_max = 3}).find("more than 3 values"), std::string::npos);
  EXPECT_EQ(problem("[1,2]", {.values_max = 3}), "");
  EXPECT_NE(problem("[1,2,3]", {.bytes_max = 6}), "");
}

TEST(Json, TextIsAlwaysJson) {
  std::string out;
  append_json_string(out, std::string("a\"\\\x01\n\xff\xc3\xa9\xed\xa0\x80", 12));
  EXPECT_TRUE(parse_json(out, "test").ok()) << out;
  EXPECT_EQ(Json(NAN).text(), "null");
  EXPECT_EQ(Json(0.1).text(), "0.1");
  EXPECT_EQ(Json(Json::Array{Json(1), Json("x"), Json(false)}).text(), "[1,\"x\",false]");
  EXPECT_EQ(Json(Json::Array{}).text(), "[]");
  EXPECT_TRUE(is_utf8("\xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("\xc0\x80"));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("\xe2\x82"));
}

TEST(Json, NegativeZeroKeepsItsSign) {
  const auto parsed = parse_json("[-0e3,-0.0]", "test");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().text(), "[-0.0,-0.0]");
  EXPECT_EQ(parse_json(parsed.value().text(), "test").value().text(), "[-0.0,-0.0]");
}

}  // namespace
}  // namespace dtg
