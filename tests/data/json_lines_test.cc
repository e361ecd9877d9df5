// JSON lines: types that are found and told, what is missing, bad rows with file, line and column, and random tables against a plain
// oracle.
#include "data/json_lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "scratch.h"

namespace dtg {
namespace {

Result<CsvTable> read(const std::string& text, const JsonLinesOptions& options = {}) {
  LeftOut bad;
  return parse_json_lines(text, "f", options, bad);
}

void expect_error(const std::string& text, Code code, const std::string& words, const JsonLinesOptions& options = {}) {
  const Status status = read(text, options).status();
  EXPECT_EQ(status.code(), code) << text << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST(JsonLines, TypesAreFoundByName) {
  const CsvTable table = read("\xef\xbb\xbf{\"a\": 1, \"b\": 2, \"c\": \"x\", \"d\": [1, 2], \"e\": true}\r\n\n"
                              "{\"e\": false, \"d\": [3, 4.5], \"c\": \"a\", \"b\": 0.5, \"a\": -9007199254740993}  \n")
                             .take();
  ASSERT_EQ(table.columns.size(), 5u);
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.columns[0].values.as<int64_t>()[1], -9007199254740993);
  EXPECT_EQ(table.columns[1].values.text(), "float32[2]");
  EXPECT_EQ(table.columns[1].values.as<float>()[0], 2);
  EXPECT_EQ(table.columns[2].categories, (std::vector<std::string>{"a", "x"}));
  EXPECT_EQ(table.columns[2].values.as<int64_t>()[0], 1);
  EXPECT_EQ(table.columns[3].values.text(), "float32[2,2]");
  EXPECT_EQ(table.columns[3].values.as<float>()[3], 4.5f);
  EXPECT_EQ(table.columns[4].values.as<int64_t>()[0], 1);
  EXPECT_EQ(read("{\"a\": [[1, 2, 3], [4, 5, 6]]}").value().columns[0].values.text(), "int64[1,2,3]");
}

TEST(JsonLines, BadRowsAreNamedOrCounted) {
  expect_error("{\"a\": 1}\n{\"a\": }\n", Code::data_loss, "\"f\": line 2");
  expect_error("[1]\n", Code::data_loss, "line 1 is an array, not an object");
  expect_error("{\"a\": 1}\n\n{\"a\": \"x\"}\n", Code::data_loss, "line 3 has \"x\" in column \"a\", where line 1 has a number; mend");
  expect_error("{\"a\": 1}\n{\"b\": 2}\n", Code::data_loss, "line 1 has no value in column \"b\"");
  expect_error("{\"a\": 1}\n{\"a\": null}\n", Code::data_loss, "line 2 has no value in column \"a\"");
  expect_error("{\"a\": {\"b\": 1}}\n", Code::data_loss, "line 1 has {\"b\":1}, an object, in column \"a\"; numbers, texts");
  expect_error("{\"a\": [1, \"b\"]}\n", Code::data_loss, "a list of something else than numbers");
  expect_error("{\"a\": [[1], [1, 2]]}\n", Code::data_loss, "whose parts differ in length");
  expect_error("{\"a\": [1, [2]]}\n", Code::data_loss, "whose parts differ in length");
  expect_error("{\"a\": [[1], 2]}\n", Code::data_loss, "whose parts differ in length");
  expect_error("{\"a\": [1]}\n{\"a\": [1, 2]}\n", Code::data_loss,
               "line 2 has [1,2] in column \"a\", where line 1 has a list of shape [1]");
  expect_error("{\"a\": [1]}\n{\"a\": 1}\n", Code::data_loss, "line 2 has 1 in column \"a\", where line 1 has a list of shape [1]");
  expect_error("{\"a\": 1, \"b\": 0, \"a\": 2}\n", Code::data_loss,
               "line 1: parse the row: not acceptable JSON: the key \"a\" occurs twice in one object: its members 1 and 3");
  expect_error("", Code::data_loss, "none of its 0 rows is left");
  JsonLinesOptions options;
  options.skip_bad = true;
  LeftOut bad;
  const CsvTable table =
      parse_json_lines("{\"b\": {}, \"z\": 1}\n{\"a\": 1}\n{\"a\"\n{\"a\": \"x\"}\n{\"a\": 2}\n{\"a\": null}\n", "f", options, bad).take();
  EXPECT_EQ(table.columns.size(), 1u);  // nothing of a bad row is kept
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.columns[0].values.as<int64_t>()[1], 2);
  EXPECT_EQ(bad.count, 4);
  ASSERT_EQ(bad.reasons.size(), 4u);
  EXPECT_NE(bad.reasons[2].find("line 4 has \"x\" in column \"a\""), std::string::npos) << bad.reasons[2];
  expect_error("{\n{\n", Code::data_loss, "none of its 2 rows is left; the first bad one: read \"f\": line 1", options);
}

TEST(JsonLines, ErrorsSayWhatToDo) {
  expect_error("[{\"a\": 1},\n{\"a\": 2}]\n", Code::data_loss, "one object per line");
  expect_error("a,b\n1,2\n", Code::data_loss, "tables with commas have a reader of their own");
  expect_error("{\n  \"a\": 1\n}\n", Code::data_loss, "an object ends on the line on which it begins");
  expect_error("{\"a\": NaN}\n", Code::data_loss, "write null for what is missing");
  expect_error("{'a': 1}\n", Code::data_loss, "\"double quotes\"");
  expect_error("\xff\xfe{", Code::invalid_argument, "UTF-16");
  expect_error("{\"a\": \"M\xfcnchen\"}\n", Code::data_loss, "line 1: parse the row: not acceptable JSON");
  expect_error("{\"a\": \"M\xfcnchen\"}\n", Code::data_loss, "the byte 0xfc, number 9 of the line, is no UTF-8: save the file as UTF-8");
  expect_error("PK\x03\x04{", Code::data_loss, "zip file");
  expect_error("{\"a\": 0.5}\n{\"a\": 1e39}\n", Code::data_loss, "line 2 has 1e+39 in column \"a\", which is beyond the range of float32");
  JsonLinesOptions options;
  ASSERT_TRUE(
      read_csv_schema(R"({"rules": [{"name": "a", "kind": "whole"}, {"name": "n", "names": ["cat", "dog"]}]})", options.table).ok());
  expect_error("{\"a\": 0.5, \"n\": \"cat\"}\n", Code::data_loss,
               "line 1 has 0.5 in column \"a\", which the schema says is of whole numbers", options);
  expect_error("{\"a\": \"b\", \"n\": \"cat\"}\n", Code::data_loss, "line 1 has \"b\" in column \"a\", which the schema says is of numbers",
               options);
  expect_error("{\"a\": 1, \"n\": 2}\n", Code::data_loss, "which the schema says is of names, which are texts", options);
  expect_error("{\"a\": 1, \"n\": \"dgo\"}\n", Code::data_loss,
               "line 1 has \"dgo\" in column \"n\", which is none of its 2 names: did you mean \"dog\"? there are cat, dog", options);
}

// Those of a list are the list's, in another file too, where rows might all be longer.
TEST(JsonLines, ASchemaKeepsTheShapesOfLists) {
  const Scratch scratch;
  JsonLinesOptions options;
  options.table.label = "y";
  LeftOut bad;
  std::string schema;
  const auto write = [&](const char* name, const char* text) { return scratch.write(name, text); };
  ASSERT_TRUE(make_json_lines(system_disk(), write("a", "{\"x\": [[1, 2, 3], [4, 5, 6]], \"y\": 0}\n"), options, bad, &schema).ok());
  EXPECT_NE(schema.find(R"("name":"x","kind":"real","shape":[2,3])"), std::string::npos) << schema;
  JsonLinesOptions again;
  ASSERT_TRUE(read_csv_schema(schema, again.table).ok());
  const auto refused = [&](const char* text) { return make_json_lines(system_disk(), write("b", text), again, bad).status().message(); };
  EXPECT_NE(refused("{\"x\": [[1, 2], [3, 4]], \"y\": 0}\n")
                .find("line 1 has [[1,2],[3,4]] in column \"x\", which the schema says is of lists "
                      "of shape [2,3]"),
            std::string::npos);
  EXPECT_NE(refused("{\"x\": 3, \"y\": 0}\n").find("lists of shape [2,3]"), std::string::npos);
  // Where all of them are missing, they are still as long.
  again.table.rules[0].missing = CsvMissing::keep;
  CsvTable table = read("{\"x\": null, \"y\": 1}\n{\"x\": [[1, 2, 3], [4, 5, 6]], \"y\": 0}\n", again).take();
  EXPECT_EQ(table.columns[0].values.text(), "float32[2,2,3]");
  EXPECT_TRUE(std::isnan(table.columns[0].values.as<float>()[5]));
  std::string again_schema;
  ASSERT_TRUE(make_json_lines(system_disk(), write("c", "{\"x\": [[1, 2], [4, 5]], \"y\": 0}\n"), options, bad, &again_schema).ok());
  EXPECT_EQ(schemas_differ(schema, again_schema), "column \"x\" has lists of shape [2,2] in it, and [2,3] in");
  EXPECT_EQ(is_other_data(schema, again_schema), "column 1, \"x\", had rows of shape [2,3] and has [2,2]");
  CsvOptions csv;
  ASSERT_TRUE(read_csv_schema(schema, csv).ok());
  EXPECT_NE(parse_csv("x,y\n1,2\n", "f", csv).status().message().find("a CSV file has none"), std::string::npos);
  for (const char* const wrong : {"3", "[-1]", "[1.5]", "[1, 1, 1, 1, 1, 1, 1, 1, 1]", "[65536, 65536]", "{}"}) {
    CsvOptions into;
    const std::string text = std::string(R"({"rules": [{"name": "x", "shape": )") + wrong + "}]}";
    EXPECT_NE(read_csv_schema(text, into).message().find("it is a list of the lengths"), std::string::npos) << wrong;
  }
}

TEST(JsonLines, WhatIsMissing) {
  const std::string text = "{\"a\": 1, \"n\": \"x\"}\n{\"n\": null}\n{\"a\": 4, \"n\": \"y\", \"late\": 2}\n";
  JsonLinesOptions options;
  options.table.missing = CsvMissing::keep;
  CsvTable table = read(text, options).take();
  ASSERT_EQ(table.columns.size(), 3u);
  EXPECT_TRUE(std::isnan(table.columns[0].values.as<float>()[1]));
  EXPECT_EQ(table.columns[1].values.as<int64_t>()[1], -1);
  EXPECT_TRUE(std::isnan(table.columns[2].values.as<float>()[0]));
  options.table.missing = CsvMissing::drop_row;
  LeftOut left_out;
  EXPECT_EQ(parse_json_lines(text, "f", options, left_out).value().rows, 1);
  EXPECT_EQ(left_out.count, 2);
  EXPECT_EQ(left_out.reasons, (std::vector<std::string>{"read \"f\": line 1 has no value in column \"late\"; it was dropped",
                                                        "read \"f\": line 2 has no value in column \"a\"; it was dropped"}));
  options.table.missing = CsvMissing::mean;
  options.table.columns = {"late", "a"};
  table = read(text, options).take();
  EXPECT_EQ(table.columns[0].values.as<float>()[1], 2);
  EXPECT_EQ(table.columns[1].values.as<float>()[1], 2.5);
  options.table.columns = {"n"};
  expect_error(text, Code::invalid_argument, "it holds names", options);
  options.table.columns = {"nobody"};
  expect_error(text, Code::not_found, "no column \"nobody\" in any line: there are a, n, late", options);
}

TEST(JsonLines, ASchemaMeansTheSameElsewhere) {
  const Scratch scratch;
  JsonLinesOptions options;
  options.table.label = "y";
  LeftOut bad;
  std::string schema;
  auto data = make_json_lines(system_disk(),
                              scratch.write("a", "{\"y\": \"b\", \"x\": [1, 2], \"z\": 3}\n{\"y\": \"c\", \"x\": [4, 5], \"z\": 6.5}\n"),
                              options, bad, &schema);
  ASSERT_TRUE(data.ok()) << data.status().message();
  Element element;
  ASSERT_TRUE(data.value()->next(element).value());
  ASSERT_TRUE(data.value()->next(element).value());
  EXPECT_EQ(element[0].text(), "float32[3]");
  EXPECT_EQ(element[0].as<float>()[1], 5);
  EXPECT_EQ(element[0].as<float>()[2], 6.5f);
  EXPECT_EQ(element[1].int_at(0), 1);
  JsonLinesOptions again;
  ASSERT_TRUE(read_csv_schema(schema, again.table).ok()) << schema;
  auto other = make_json_lines(system_disk(), scratch.write("b", "{\"x\": [1, 2], \"z\": 3, \"y\": \"c\"}\n"), again, bad);
  ASSERT_TRUE(other.ok()) << other.status().message() << schema;
  ASSERT_TRUE(other.value()->next(element).value());
  EXPECT_EQ(element[1].int_at(0), 1);
  auto wrong = make_json_lines(system_disk(), scratch.write("c", "{\"x\": [1, 2], \"z\": 3, \"y\": \"d\"}\n"), again, bad);
  EXPECT_NE(wrong.status().message().find("line 1 has \"d\" in column \"y\""), std::string::npos) << wrong.status().message();
  // What is to be predicted has no label, or null.
  for (const char* const rows : {"{\"z\": 8, \"x\": [1, 2]}\n", "{\"z\": 8, \"y\": null, \"x\": [1, 2]}\n"}) {
    const auto unlabelled = make_json_lines(system_disk(), scratch.write("d", rows), again, bad);
    ASSERT_TRUE(unlabelled.ok()) << unlabelled.status().message();
    ASSERT_TRUE(unlabelled.value()->next(element).value());
    ASSERT_EQ(element.size(), 1u);
    EXPECT_EQ(element[0].text(), "float32[3]");
    EXPECT_EQ(element[0].as<float>()[2], 8);
  }
  const auto some = make_json_lines(system_disk(),
                                    scratch.write("e", "{\"x\": [1, 2], \"z\": 3, \"y\": \"c\"}\n{\"x\": [1, 2], \"z\": 3}\n"), again, bad);
  EXPECT_NE(some.status().message().find("line 2 has no value in column \"y\""), std::string::npos) << some.status().message();
  EXPECT_EQ(make_json_lines(system_disk(), scratch.write("f", "{\"z\": 8}\n"), again, bad).status().code(), Code::not_found);
  EXPECT_EQ(make_json_lines(system_disk(), scratch.write("g", "{\"z\": 8}\n"), options, bad).status().code(), Code::not_found);
}

// Tables of random types, holes and slips; the oracle keeps plain optional doubles.
TEST(JsonLines, RandomTablesAgreeWithAnOracle) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const size_t columns = 1 + random() % 4, rows = 1 + random() % 12;
    std::vector<uint32_t> types(columns);
    for (uint32_t& type : types) type = random() % 3;  // whole, real, name
    std::vector<std::vector<std::optional<double>>> expected;
    std::vector<bool> met(columns), fraction(columns), hole(columns);
    std::string text;
    int64_t slips = 0;
    for (size_t row = 0; row < rows; ++row) {
      // The first row tells all types, so that a slip is one.
      const bool slip = row > 0 && random() % 5 == 0;
      std::vector<std::optional<double>> cells(columns);
      std::vector<std::string> words(columns);
      for (size_t c = 0; c < columns; ++c) {
        if (row > 0 && random() % 4 == 0) {
          words[c] = "null";
          continue;
        }
        const auto number = static_cast<int>(random() % 7);
        cells[c] = types[c] == 1 ? number + 0.25 : number;
        words[c] = types[c] == 2   ? "\"n" + std::to_string(number) + "\""
                   : types[c] == 1 ? std::to_string(number) + ".25"
                                   : std::to_string(number);
      }
      if (slip) words[random() % columns] = "{}";
      text += "{";
      for (size_t c = 0; c < columns; ++c) text += (c ? ", \"" : "\"") + std::to_string(c) + "\": " + words[c];
      text += "}\n";
      slips += slip;
      if (slip) continue;
      expected.push_back(cells);
      for (size_t c = 0; c < columns; ++c) hole[c] = hole[c] || !cells[c];
    }
    JsonLinesOptions options;
    options.skip_bad = true;
    options.table.missing = CsvMissing::keep;
    LeftOut bad;
    auto table = parse_json_lines(text, "f", options, bad);
    ASSERT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ(bad.count, slips);
    ASSERT_EQ(table.value().rows, static_cast<int64_t>(expected.size()));
    for (size_t c = 0; c < columns; ++c) {
      const CsvColumn& column = table.value().columns[c];
      EXPECT_EQ(column.values.dtype(), types[c] == 2 || (types[c] == 0 && !hole[c]) ? DType::i64 : DType::f32) << text;
      for (size_t row = 0; row < expected.size(); ++row) {
        const auto& cell = expected[row][c];
        if (types[c] == 2) {
          const int64_t id = column.values.as<int64_t>()[row];
          if (!cell) EXPECT_EQ(id, -1);
          else EXPECT_EQ(column.categories.at(static_cast<size_t>(id)), "n" + std::to_string(static_cast<int>(*cell)));
        } else if (column.values.dtype() == DType::i64) {
          EXPECT_EQ(column.values.as<int64_t>()[row], static_cast<int64_t>(*cell));
        } else if (!cell) {
          EXPECT_TRUE(std::isnan(column.values.as<float>()[row]));
        } else {
          EXPECT_EQ(column.values.as<float>()[row], static_cast<float>(*cell));
        }
      }
    }
  }
}

}  // namespace
}  // namespace dtg
