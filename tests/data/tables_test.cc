// What is said of a table that is read, whatever its format: digits that float32 has no room for, letters that are no UTF-8, headers and
// delimiters that nobody can be sure of, labels without features, rows without a label, dates, and what to do about cells that lack a
// value.
#include <gtest/gtest.h>

#include "base/log.h"
#include "data/csv.h"
#include "data/exact.h"
#include "data/json_lines.h"
#include "scratch.h"

namespace dtg {
namespace {

struct Lines final : LogSink {
  std::vector<std::string> all;
  void write(LogLevel level, std::string_view, std::string_view message) override {
    all.push_back((level == LogLevel::warn ? "W " : "I ") + std::string(message));
  }
  int64_t count(const std::string& words) const {
    return std::count_if(all.begin(), all.end(), [&](const std::string& line) { return line.find(words) != line.npos; });
  }
  std::string text() const {
    std::string joined;
    for (const std::string& line : all) joined += line + "\n";
    return joined;
  }
};

class Tables : public testing::Test {
 protected:
  Status csv(const std::string& text, CsvOptions options = {}) {
    options.log = &lines_;
    return make_csv(system_disk(), scratch_.write("t.csv", text), options).status();
  }
  Status json(const std::string& text, JsonLinesOptions options = {}) {
    options.table.log = &lines_;
    LeftOut left_out;
    return make_json_lines(system_disk(), scratch_.write("t.jsonl", text), options, left_out).status();
  }
  void says(const Status& status, Code code, const std::string& words) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
  const Scratch scratch_;
  Lines lines_;
};

TEST(Exact, WhatAFloatHolds) {
  for (const int64_t value : {int64_t{0}, int64_t{1} << 24, int64_t{20240100}, int64_t{1} << 40, INT64_MIN, -(int64_t{1} << 24)})
    EXPECT_TRUE(is_exact(value)) << value;
  for (const int64_t value : {(int64_t{1} << 24) + 1, int64_t{20240101}, INT64_MAX, INT64_MIN + 1, int64_t{-1700000001}})
    EXPECT_FALSE(is_exact(value)) << value;
  EXPECT_TRUE(is_exact(int64_t{1700000001}, true));
  EXPECT_FALSE(is_exact(INT64_MAX, true));
  EXPECT_TRUE(is_exact(uint64_t{1} << 63));
  EXPECT_TRUE(is_exact(0.1));
  EXPECT_FALSE(is_exact(20240101.0));
  EXPECT_TRUE(is_exact(20240101.5)) << "no whole number";
  EXPECT_TRUE(is_rounded("-123456789012345678901", -123456789012345678901.0, false));
  EXPECT_FALSE(is_rounded("1e10", 1e10, false));
}

TEST_F(Tables, DigitsThatAreLostAreTold) {
  const CsvOptions labelled{.label = "y"};
  ASSERT_TRUE(csv("day,id,size,y\n20240100,7,1.5,0\n20240101,8,16777217,1\n20240103,9,3,99999999\n", labelled).ok());
  EXPECT_EQ(lines_.count("W "), 2) << lines_.text();
  EXPECT_EQ(
      lines_.count("column \"day\" has whole numbers that float32 rounds, 2 of them: line 3 has 20240101. It holds all of them up to"), 1)
      << lines_.text();
  EXPECT_EQ(lines_.count("column \"size\" has whole numbers that float32 rounds, 1 of them: line 3 has 16777217"), 1) << lines_.text();
  lines_.all.clear();
  ASSERT_TRUE(csv("day,y\n20240101,1\n20240103,99999999\n").ok());
  EXPECT_EQ(lines_.count("W "), 0) << "as int64 they are what they are: " << lines_.text();
  // By the schema of other data, and where some are missing, they are float32 anyway.
  CsvOptions by_schema;
  ASSERT_TRUE(read_csv_schema(R"({"label": "y", "columns": [{"name": "day", "kind": "real"}, {"name": "y"}]})", by_schema).ok());
  ASSERT_TRUE(csv("day\n20240101\n", by_schema).ok());
  EXPECT_EQ(lines_.count("line 2 has 20240101"), 1) << lines_.text();
  lines_.all.clear();
  ASSERT_TRUE(csv("day,z\n1,2\n,3\n20240101,4\n", {.missing = CsvMissing::keep}).ok());
  EXPECT_EQ(lines_.count("line 4 has 20240101"), 1) << lines_.text();
  lines_.all.clear();
  JsonLinesOptions options;
  options.table.label = "y";
  ASSERT_TRUE(json("{\"day\": 1, \"y\": 99999999, \"l\": [1, 33554433]}\n{\"day\": 20240101, \"y\": 1, \"l\": [1, 2]}\n", options).ok());
  EXPECT_EQ(lines_.count("W "), 2) << lines_.text();
  EXPECT_EQ(lines_.count("column \"day\" has whole numbers that float32 rounds, 1 of them: line 2 has 20240101"), 1) << lines_.text();
  EXPECT_EQ(lines_.count("column \"l\" has whole numbers that float32 rounds, 1 of them: line 1 has 33554433"), 1) << lines_.text();
  // Of many columns some.
  lines_.all.clear();
  std::string names, row;
  for (int i = 0; i < 12; ++i) names += "f" + std::to_string(i) + ",", row += "33554433,";
  ASSERT_TRUE(csv(names + "y\n" + row + "1\n", labelled).ok());
  EXPECT_EQ(lines_.count("float32 rounds"), 10);
  EXPECT_EQ(lines_.count("and so have 2 columns more"), 1) << lines_.text();
}

TEST_F(Tables, WhatIsNoTextIsToldByName) {
  says(csv("\x93NUMPY\x01"), Code::invalid_argument, "it is no text of a table, but an array of NumPy: dtg_dataset_npy reads it");
  says(csv("PAR1\x15\x04"), Code::invalid_argument, "but a Parquet file: save the table as CSV");
  says(csv("\x89PNG\r\n"), Code::invalid_argument, "but an image");
  says(csv(std::string("\0\0\x08\x03\0\0\0\x01", 8)), Code::invalid_argument, "byte 1 of it is 0, so it is a binary file");
  says(csv(std::string("a,b\n1,2\0\n", 9)), Code::invalid_argument, "byte 8 of it is 0, so it is a binary file");
  says(csv(std::string("\0y\0,\0z", 6)), Code::invalid_argument, "it is UTF-16 by its first bytes");
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string weights(8, '\0');
  weights[0] = static_cast<char>(header.size());
  says(csv(weights + header + "abcd"), Code::invalid_argument, "but a file of safetensors");
  EXPECT_TRUE(csv("PAR1,PAR2\n1,2\n").ok()) << "a name like any other";
}

TEST_F(Tables, LettersAreUtf8) {
  says(csv("city,n\nBonn,1\nK\xf6ln,2\n"), Code::invalid_argument,
       "line 3 has \"K\xef\xbf\xbdln\" in column \"city\": the byte 0xf6, number 16 of the text, is no UTF-8; save the file as UTF-8");
  says(csv("n,stra\xdf"
           "e\n1,2\n"),
       Code::invalid_argument,
       "line 1 has \"stra\xef\xbf\xbd"
       "e\" in column 2: the byte 0xdf");
  says(csv("1,\"K\xf6ln\"\n"), Code::invalid_argument, "in column 2: the byte 0xf6");
  says(csv("a,b\n1,\"K\xf6ln\n"), Code::invalid_argument, "line 2: the byte 0xf6");
  says(csv("a,b\n1,\xc3"), Code::invalid_argument, "the byte 0xc3");
  says(csv(std::string("\xff\xfey\0", 4)), Code::invalid_argument, "it is UTF-16 by its first bytes; save it as UTF-8");
  says(csv(std::string("y\0,\0z\0\n\0", 8)), Code::invalid_argument, "it is UTF-16 by its first bytes");
  EXPECT_TRUE(csv("\xef\xbb\xbf"
                  "city,n\nK\xc3\xb6ln,2\n\xf0\x9f\x98\x80,3\n",
                  {.label = "n"})
                  .ok())
      << "a mark of UTF-8 is passed over";
}

// A header above words alone cannot be told from a row of them.
TEST_F(Tables, AHeaderOfWordsIsNotTakenForOneInSilence) {
  ASSERT_TRUE(csv("name,city\nanna,bonn\nbert,ulm\n").ok());
  EXPECT_EQ(lines_.count("W read \""), 1) << lines_.text();
  EXPECT_EQ(
      lines_.count("no line has a number, so its first line (\"name\", ...) was taken for values, and the columns are called c0, c1, ...; "
                   "say by the option `header` whether it names them"),
      1)
      << lines_.text();
  for (const CsvHeader said : {CsvHeader::yes, CsvHeader::no}) ASSERT_TRUE(csv("name,city\nanna,bonn\nbert,ulm\n", {.header = said}).ok());
  EXPECT_EQ(lines_.count("W "), 1) << lines_.text();
  says(csv("name,city\nanna,bonn\nbert,ulm\n", {.label = "citi"}), Code::not_found, "did you mean \"city\"? there are name, city");
  says(csv("name,city\nanna,bonn\nbert,ulm\n", {.columns = {"nam"}}), Code::not_found, "did you mean \"name\"?");
  EXPECT_TRUE(csv("name,city\nanna,bonn\nbert,ulm\n", {.label = "c1"}).ok());
  CsvOptions rules;
  ASSERT_TRUE(read_csv_schema(R"({"rules": [{"name": "city", "kind": "names"}]})", rules).ok());
  EXPECT_TRUE(csv("name,city\nanna,bonn\nbert,ulm\n", rules).ok());
  // A number in any line will do.
  EXPECT_EQ(parse_csv("name,n\nanna,\nbert,2\n", "f", {.missing = CsvMissing::keep}).value().rows, 2);
  says(csv("1,2\n3,4\n", {.label = "y"}), Code::not_found, "if it names them, say so by the option `header`");
  says(csv("1,2\n3,4\n", {.header = CsvHeader::yes, .label = "y"}), Code::not_found,
       "its first line, which holds numbers, was taken for names, as the option `header` says");
}

TEST_F(Tables, AnotherDelimiterIsAskedFor) {
  ASSERT_TRUE(csv("a;b\n1;2\n3;4\n").ok());
  EXPECT_EQ(lines_.count("its rows are one column; line 1 has no ',' but ';': is that the delimiter? An option names it"), 1)
      << lines_.text();
  says(csv("a;b\n1,5;2\n"), Code::data_loss, "line 1 has no ',' but ';'");
  ASSERT_TRUE(csv("a\n1\n").ok());
  EXPECT_EQ(lines_.count("one column"), 1);
}

TEST_F(Tables, ALabelHasFeatures) {
  const CsvOptions labelled{.label = "y"}, chosen{.columns = {"y"}, .label = "y"};
  says(csv("y\n1\n2\n", labelled), Code::invalid_argument, "the label \"y\" is the only column that is read, so there are no features");
  says(csv("y,x\n1,2\n2,3\n", chosen), Code::invalid_argument, "read more columns");
  JsonLinesOptions options;
  options.table.label = "y";
  says(json("{\"y\": 1}\n", options), Code::invalid_argument, "there are no features");
}

TEST_F(Tables, AColumnIsAskedForOnce) {
  says(csv("a,b\n1,2\n", {.columns = {"a", "b", "a"}}), Code::invalid_argument, "the column \"a\" is asked for twice; name each once");
  JsonLinesOptions options;
  options.table.columns = {"a", "a"};
  says(json("{\"a\": 1}\n", options), Code::invalid_argument, "the column \"a\" is asked for twice");
}

TEST_F(Tables, RowsWithoutALabelAreTold) {
  ASSERT_TRUE(csv("x,y\n1,cat\n2,\n3,dog\n", {.missing = CsvMissing::keep, .label = "y"}).ok());
  EXPECT_EQ(lines_.count("1 rows have no label, which is -1 for them: no loss can take that; drop such rows"), 1) << lines_.text();
  ASSERT_TRUE(csv("x,y\n,cat\n2,dog\n", {.missing = CsvMissing::keep, .label = "y"}).ok());
  EXPECT_EQ(lines_.count("have no label"), 1) << lines_.text();
}

TEST_F(Tables, DatesAreToldWhatToDo) {
  ASSERT_TRUE(csv("day,x,y\n2024-01-31,1,0\n2024-02-01,2,1\n", {.label = "y"}).ok());
  EXPECT_EQ(lines_.count("Dates such as those in \"day\" have no type here: write numbers in their place"), 1) << lines_.text();
  ASSERT_TRUE(csv("x,when\n1,31.1.2024 10:30\n2,1.2.2024 11:00\n").ok());
  EXPECT_EQ(lines_.count("Dates such as those in \"when\""), 1) << lines_.text();
  ASSERT_TRUE(csv("x,kind\n1,1-2\n2,a-b-c\n").ok());
  EXPECT_EQ(lines_.count("Dates"), 2) << lines_.text();
}

// Advice that can be followed: where the schema decides, where a mean is asked for already.
TEST_F(Tables, WhatIsMissingIsToldWhereItIsDecided) {
  CsvOptions schema;
  ASSERT_TRUE(read_csv_schema(R"({"columns": [{"name": "a", "missing": "refuse"}, {"name": "b"}]})", schema).ok());
  schema.missing = CsvMissing::drop_row;
  says(csv("a,b\n,2\n", schema), Code::data_loss,
       "line 2 has no value in column \"a\"; the schema says \"missing\": \"refuse\" of that column");
  JsonLinesOptions lines;
  lines.table = schema;
  says(json("{\"a\": 1, \"b\": 1}\n{\"a\": null, \"b\": 1}\n", lines), Code::data_loss, "the schema says \"missing\": \"refuse\"");
  const Status label = csv("a,y\n1,\n", {.missing = CsvMissing::mean, .label = "y"});
  says(label, Code::data_loss, "the option \"missing\" makes no label up; drop such rows");
  EXPECT_EQ(label.message().find("put the mean"), std::string::npos) << label.message();
  says(csv("a\n1\nNA\n"), Code::data_loss, "the option \"missing\" says what to do");
}

TEST_F(Tables, RowsToPredictNameNoLabel) {
  const std::string schema = R"({"label": "y", "columns": [{"name": "x"}, {"name": "y"}]})";
  CsvOptions both{.label = "y"}, alone;
  ASSERT_TRUE(read_csv_schema(schema, both).ok());
  ASSERT_TRUE(read_csv_schema(schema, alone).ok());
  says(csv("x\n1\n", both), Code::not_found, "where these are rows to predict, leave the option `label` out");
  EXPECT_TRUE(csv("x\n1\n", alone).ok());
}

TEST_F(Tables, MessagesAreOneLine) {
  for (const Status& status : {csv("\"a\nb\",c\n1,2\n", {.label = "d"}), csv("a,b\n1,2\n3,4\n5,\"x\ny\"\n7,8\n"),
                               json("{\"a\\nb\": 1}\n{\"a\\nb\": \"x\\ny\"}\n")}) {
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("\\n"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace dtg
