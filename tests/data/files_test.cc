// IDX, gzip and CSV: what is read, what is refused, and the digits data set that ships with the tests.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>

#include "data/csv.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "scratch.h"

namespace dtg {
namespace {

std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string idx(int code, std::vector<uint32_t> dims, const std::string& data) {
  std::string bytes{'\0', '\0', static_cast<char>(code), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(dim >> shift & 0xffu);
  }
  return bytes + data;
}

TEST(Gzip, PlainAndPackedReadAlike) {
  const Scratch scratch;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919 % 1000) + ",";
  const auto read = [&](const std::string& bytes, int64_t max = int64_t{1} << 30) -> Result<std::string> {
    DTG_ASSIGN(auto file, open_plain(system_disk(), scratch.write("f", bytes)));
    Reservation nothing;
    return read_all(*file, "f", max, nothing);
  };
  EXPECT_EQ(read(text).value(), text);
  EXPECT_EQ(read(gzip(text)).value(), text);
  EXPECT_EQ(read(gzip(text) + gzip("more")).value(), text + "more");
  EXPECT_EQ(read("").value(), "");
  EXPECT_EQ(read("\x1f").value(), "\x1f");
  EXPECT_EQ(read(gzip("")).value(), "");
  EXPECT_EQ(read(gzip(text), 1000).status().code(), Code::resource_exhausted);
  const std::string packed = gzip(text);
  for (size_t cut = 2; cut < packed.size(); cut += packed.size() / 50) {
    EXPECT_EQ(read(packed.substr(0, cut)).status().code(), Code::data_loss) << cut;
  }
  EXPECT_EQ(read(packed + "garbage").status().code(), Code::data_loss);
  std::string damaged = packed;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);
  EXPECT_EQ(read(damaged).status().code(), Code::data_loss);
}

TEST(Idx, EveryTypeInHostOrder) {
  const Scratch scratch;
  const auto read = [&](const std::string& bytes) { return read_idx(system_disk(), scratch.write("f", bytes)); };
  EXPECT_EQ(read(idx(0x08, {2, 2}, "\x01\x02\x03\xff")).value().text(), "uint8[2,2]");
  EXPECT_EQ(read(idx(0x09, {2}, "\x01\xff")).value().as<int8_t>()[1], -1);
  EXPECT_EQ(read(idx(0x0b, {1}, "\x01\x02")).value().as<int16_t>()[0], 0x0102);
  EXPECT_EQ(read(idx(0x0c, {1}, "\xff\xff\xff\xfe")).value().as<int32_t>()[0], -2);
  EXPECT_EQ(read(idx(0x0d, {1}, std::string("\x3f\x80\x00\x00", 4))).value().as<float>()[0], 1.0f);
  EXPECT_EQ(read(gzip(idx(0x0e, {1}, std::string("\xc0\x00\x00\x00\x00\x00\x00\x00", 8)))).value().as<double>()[0], -2.0);
  EXPECT_EQ(read(idx(0x08, {0, 28, 28}, "")).value().text(), "uint8[0,28,28]");
}

TEST(Idx, DamageIsRefused) {
  const Scratch scratch;
  const auto code = [&](const std::string& bytes) { return read_idx(system_disk(), scratch.write("f", bytes)).status().code(); };
  const std::string good = idx(0x08, {2, 3}, "abcdef");
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_EQ(code(good.substr(0, cut)), Code::data_loss) << cut;
  EXPECT_EQ(code(good + "x"), Code::data_loss);
  EXPECT_EQ(code(idx(0x0a, {1}, "a")), Code::data_loss);
  EXPECT_EQ(code("PNG, not IDX"), Code::data_loss);
  EXPECT_EQ(code(idx(0x08, std::vector<uint32_t>(9, 1), "a")), Code::data_loss);
  EXPECT_EQ(code(idx(0x08, {0xffffffff, 0xffffffff, 0xffffffff}, "a")), Code::data_loss);
  EXPECT_EQ(code(idx(0x08, {0xffffffff, 0xffff}, "a")), Code::resource_exhausted);
  EXPECT_EQ(code(idx(0x0e, {0x1000000, 16}, "a")), Code::data_loss);  // 2 GiB announced, one byte sent
  EXPECT_EQ(read_idx(system_disk(), scratch / "none").status().code(), Code::not_found);
}

TEST(Idx, FilesBecomeOneDataset) {
  const Scratch scratch;
  const std::string paths[] = {scratch.write("images", gzip(idx(0x08, {3, 1, 2}, std::string("\x00\xff\x33\x01\x02\x03", 6)))),
                               scratch.write("labels", idx(0x08, {3}, "\x05\x06\x07"))};
  auto data = make_idx(system_disk(), paths);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data.value()->cardinality(), 3);
  EXPECT_EQ(data.value()->spec()[0].shape.text(), "[1,2]");
  const std::string uneven[] = {paths[0], scratch.write("few", idx(0x08, {2}, "ab"))};
  EXPECT_EQ(make_idx(system_disk(), uneven).status().code(), Code::invalid_argument);
}

CsvTable csv(std::string_view text, const CsvOptions& options = {}) {
  auto table = parse_csv(text, "test.csv", options);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? table.take() : CsvTable{};
}

Status csv_problem(std::string_view text, const CsvOptions& options = {}) { return parse_csv(text, "test.csv", options).status(); }

TEST(Csv, KindsAreFoundByColumn) {
  const CsvTable table = csv("id,weight,species,empty\n1,2.5,cat,\n-2,1e3,\"dog, big\",NA\n+3,,cat,\r\n4,-.5,\"a \"\"b\"\"\",\n",
                             {.missing = CsvMissing::keep});
  ASSERT_EQ(table.rows, 4);
  ASSERT_EQ(table.columns.size(), 4u);
  EXPECT_EQ(table.columns[0].kind, CsvKind::whole);
  EXPECT_EQ(table.columns[0].values.int_at(2), 3);
  EXPECT_EQ(table.columns[1].values.dtype(), DType::f32);
  EXPECT_EQ(table.columns[1].values.as<float>()[1], 1000.0f);
  EXPECT_TRUE(std::isnan(table.columns[1].values.as<float>()[2]));
  EXPECT_EQ(table.columns[1].missing, 1);
  EXPECT_EQ(table.columns[2].categories, (std::vector<std::string>{"a \"b\"", "cat", "dog, big"}));
  EXPECT_EQ(table.columns[2].values.int_at(0), 1);
  EXPECT_EQ(table.columns[2].values.int_at(1), 2);
  EXPECT_EQ(table.columns[2].values.int_at(3), 0);
  EXPECT_EQ(table.columns[3].missing, 4);
  EXPECT_TRUE(std::isnan(table.columns[3].values.as<float>()[0]));
}

TEST(Csv, HeadersAreDetected) {
  EXPECT_EQ(csv("1,2\n3,4\n").columns[1].name, "c1");
  EXPECT_EQ(csv("1,2\n3,4\n").rows, 2);
  EXPECT_EQ(csv("a,b\n3,4\n").columns[1].name, "b");
  EXPECT_EQ(csv("a,b\nc,d\n").rows, 2);
  EXPECT_EQ(csv("a,b\nc,d\n", {.header = CsvHeader::yes}).rows, 1);
  EXPECT_EQ(csv("1,2\n3,4\n", {.header = CsvHeader::yes}).columns[0].name, "1");
  EXPECT_EQ(csv("\xef\xbb\xbf"
                "a;b\n3;4",
                {.delimiter = ';'})
                .columns[0]
                .name,
            "a");
  EXPECT_EQ(csv("\n\na,b\n\n3,4\n\n").rows, 1);
}

TEST(Csv, TwoColumnsOfOneNameAreRefused) {
  CsvOptions options;
  const auto why = [&](const char* text) {
    const Status status = parse_csv(text, "f", options).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << text;
    return status.message();
  };
  EXPECT_EQ(
      why("a,b, a \n1,2,3\n"),
      "read \"f\": columns 1 and 3 (the first is 1) are both called \"a\"; name them apart, or say which columns to read, without those");
  options.header = CsvHeader::yes;
  EXPECT_NE(why("a,,\n1,2,3\n").find("columns 2 and 3 (the first is 1) have no name"), std::string::npos);
  options.columns = {"b", "a"};
  EXPECT_EQ(why("a,b,a\n1,2,3\n"), "read \"f\": columns 1 and 3 (the first is 1) are both called \"a\"; name them apart");
  // Nobody asks for them.
  options.columns = {"b"};
  EXPECT_TRUE(parse_csv("a,b,a\n1,2,3\n", "f", options).ok());
  options.columns = {};
  options.header = CsvHeader::detect;
  EXPECT_TRUE(parse_csv("1,1\n1,2\n", "f", options).ok()) << "these are no names";
}

TEST(Csv, MissingValuesByPolicy) {
  const char* text = "a,b\n1,x\n,y\n3,\n4,x\n";
  EXPECT_EQ(csv(text, {.missing = CsvMissing::keep}).columns[0].kind, CsvKind::real);
  EXPECT_EQ(csv(text, {.missing = CsvMissing::keep}).columns[1].values.int_at(2), -1);
  const CsvTable dropped = csv(text, {.missing = CsvMissing::drop_row});
  EXPECT_EQ(dropped.rows, 2);
  EXPECT_EQ(dropped.left_out.count, 2);
  EXPECT_EQ(dropped.left_out.reasons, (std::vector<std::string>{"read \"test.csv\": line 3 has no value in column \"a\"; it was dropped",
                                                                "read \"test.csv\": line 4 has no value in column \"b\"; it was dropped"}));
  EXPECT_EQ(dropped.columns[0].kind, CsvKind::whole);
  EXPECT_EQ(dropped.columns[1].categories, (std::vector<std::string>{"x"}));
  const Status refused = csv_problem(text);
  EXPECT_EQ(refused.code(), Code::data_loss);
  EXPECT_NE(refused.message().find("line 3"), std::string::npos) << refused.message();
}

// A mean for all columns is for what is predicted from, and never for what is to be predicted.
TEST(Csv, LabelsAreNotMadeUp) {
  const char* text = "f,y\n1,2\n,3\n4,\n";
  const Status refused = csv_problem(text, {.missing = CsvMissing::mean, .label = "y"});
  EXPECT_EQ(refused.code(), Code::data_loss);
  EXPECT_NE(refused.message().find("line 4 has no value in column \"y\""), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find("makes no label up; drop such rows"), std::string::npos) << refused.message();
  CsvOptions told;
  ASSERT_TRUE(read_csv_schema(R"({"label": "y", "rules": [{"name": "y", "missing": "drop"}]})", told).ok());
  told.missing = CsvMissing::mean;
  const CsvTable table = csv(text, told);
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.columns[0].values.as<float>()[1], 1) << "the mean of the rows that are kept";
  EXPECT_EQ(table.columns[1].kind, CsvKind::whole);
  ASSERT_TRUE(read_csv_schema(R"({"rules": [{"name": "y", "missing": "mean"}]})", told).ok());
  EXPECT_EQ(csv(text, told).columns[1].values.as<float>()[2], 2.5f);
}

// Who names a label reads it, and hears first of one that is not there.
TEST(Csv, TheLabelIsRead) {
  const Scratch scratch;
  const std::string path = scratch.write("rows.csv", "y,f,g\n7,1,2\n8,3,4\n");
  std::string schema;
  auto made = make_csv(system_disk(), path, {.columns = {"g", "f"}, .label = "y"}, &schema);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(schema.find("\"label\":\"y\""), std::string::npos) << schema;
  EXPECT_EQ(csv_problem("y,f\n1,\n", {.label = "z"}).code(), Code::not_found);
  // What is to be predicted has no label.
  const CsvTable known = csv("a,kind,b\n1,x,2\n3,y,4\n");
  CsvOptions as_before;
  ASSERT_TRUE(read_csv_schema(csv_schema_text(known, "kind"), as_before).ok());
  const auto unlabelled = make_csv(system_disk(), scratch.write("new.csv", "b,a\n20,10\n"), as_before);
  ASSERT_TRUE(unlabelled.ok()) << unlabelled.status().message();
  ASSERT_EQ(unlabelled.value()->spec().size(), 1u);
  Element row;
  ASSERT_TRUE(unlabelled.value()->next(row).value());
  EXPECT_EQ(row[0].values<float>()[0], 10);
  EXPECT_EQ(row[0].values<float>()[1], 20);
  EXPECT_EQ(make_csv(system_disk(), scratch.write("less.csv", "a\n10\n"), as_before).status().code(), Code::not_found);
  CsvOptions of_words;
  ASSERT_TRUE(read_csv_schema(csv_schema_text(csv("size,kind\nbig,x\nsmall,y\n", {.header = CsvHeader::yes}), "kind"), of_words).ok());
  const auto words = make_csv(system_disk(), scratch.write("words.csv", "size\nsmall\n"), of_words);
  ASSERT_TRUE(words.ok()) << words.status().message();
  EXPECT_EQ(words.value()->cardinality(), 1) << "a header of words alone is one where it has all columns but the label";
  CsvOptions slip;
  ASSERT_TRUE(read_csv_schema(R"({"label": "kinds"})", slip).ok());
  EXPECT_EQ(make_csv(system_disk(), scratch.write("slip.csv", "b,a\n20,10\n"), slip).status().code(), Code::not_found);
  for (const std::string wrong : {"{\"y\": 1, \"f\": 2}\n{\"y\": 2, \"f\": 2}\n", " [{\"y\": 1}]"}) {
    EXPECT_NE(csv_problem(wrong, {}).message().find("it begins as JSON does"), std::string::npos);
  }
  EXPECT_NE(csv_problem("1,2\n3,4\n", {.label = "y"}).message().find("its first line holds values"), std::string::npos);
  EXPECT_NE(csv_problem("PK\x03\x04zipped", {}).message().find("it is a zip file"), std::string::npos);
  for (const std::string wrong : {"y;f\n1;2\n", "y\tf\n1\t2\n"}) {
    const Status doubt = csv_problem(wrong, {.label = "y"});
    EXPECT_NE(doubt.message().find("is that the delimiter"), std::string::npos) << doubt.message();
    EXPECT_NE(csv_problem(wrong, {.columns = {"y"}}).message().find("is that the delimiter"), std::string::npos);
  }
  EXPECT_NE(csv_problem(std::string_view("\xff\xfey\0", 4)).message().find("UTF-16"), std::string::npos);
  EXPECT_EQ(csv_problem("f,y,f\n1,2,3\n", {.columns = {"f"}, .label = "y"}).code(), Code::invalid_argument) << "which of them?";
}

CsvOptions with_schema(std::string_view schema) {
  CsvOptions options;
  const Status status = read_csv_schema(schema, options);
  EXPECT_TRUE(status.ok()) << status.message();
  return options;
}

TEST(Csv, WhatIsMissingIsSaidPerColumn) {
  const char* text = "a,b,c,d\n1,,x,\n,4,y,2\n3,6,,3\n";
  const CsvTable table =
      csv(text, with_schema(R"({"rules": [{"name": "a", "missing": "mean"}, {"name": "b", "missing": "constant", "value": -1},
                                                              {"name": "c", "missing": "keep"}, {"name": "d", "missing": "mean", "value": 7.5}]})"));
  ASSERT_EQ(table.rows, 3);
  EXPECT_EQ(table.columns[0].values.as<float>()[1], 2.0f);
  EXPECT_EQ(table.columns[1].values.as<float>()[0], -1.0f);
  EXPECT_EQ(table.columns[2].values.int_at(2), -1);
  EXPECT_EQ(table.columns[3].values.as<float>()[0], 7.5f);
  const CsvTable dropped = csv(text, with_schema(R"({"rules": [{"name": "a", "missing": "drop"}, {"name": "b", "missing": "mean"},
                                                                {"name": "c", "missing": "keep"}, {"name": "d", "missing": "drop"}]})"));
  EXPECT_EQ(dropped.rows, 1);  // the one that is left lacks a name only
}

TEST(Csv, ASchemaGivesNamesTheSameNumbersElsewhere) {
  const Scratch scratch;
  std::string schema, again;
  const std::string train = scratch.write("train.csv", "size,kind\n1,cat\n2,dog\n,owl\n3,cat\n");
  ASSERT_TRUE(make_csv(system_disk(), train, {.missing = CsvMissing::mean, .label = "kind"}, &schema).ok());
  EXPECT_EQ(schema, R"({"label":"kind","columns":[{"name":"size","kind":"real","missing":"mean","value":2},)"
                    R"({"name":"kind","kind":"names","names":["cat","dog","owl"],"missing":"refuse"}]})");
  // Other columns, another order, other classes, other means.
  const std::string test = scratch.write("test.csv", "kind,extra,size\nowl,9,\ndog,9,50.5\n");
  auto data = make_csv(system_disk(), test, with_schema(schema), &again);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(again, schema);
  Element element;
  ASSERT_TRUE(data.value()->next(element).value());
  EXPECT_EQ(element[0].values<float>()[0], 2.0f);
  EXPECT_EQ(element[1].int_at(0), 2);
  ASSERT_TRUE(data.value()->next(element).value());
  EXPECT_EQ(element[1].int_at(0), 1);

  const std::string strange = scratch.write("strange.csv", "size,kind\n1,cat\n2,emu\n");
  const Status unknown = make_csv(system_disk(), strange, with_schema(schema)).status();
  EXPECT_EQ(unknown.code(), Code::invalid_argument);
  for (const char* part : {"line 3", "\"emu\"", "\"kind\"", "cat, dog, owl"})
    EXPECT_NE(unknown.message().find(part), std::string::npos) << unknown.message();
  const std::string words = scratch.write("words.csv", "size,kind\nbig,cat\n");
  EXPECT_EQ(make_csv(system_disk(), words, with_schema(schema)).status().code(), Code::data_loss);
}

TEST(Csv, SchemasAreReadWithCare) {
  for (const char* schema :
       {"", "[]", "{\"columns\": 1}", "{\"colums\": []}", "{\"rules\": [{}]}", "{\"rules\": [{\"name\": \"a\", \"kind\": \"x\"}]}",
        "{\"rules\": [{\"name\": \"a\", \"names\": [\"x\", \"x\"]}]}", "{\"rules\": [{\"name\": \"a\", \"missing\": \"constant\"}]}",
        "{\"rules\": [{\"name\": \"a\", \"kind\": \"real\", \"names\": []}]}", "{\"rules\": [{\"name\": \"a\", \"vale\": 1}]}"}) {
    CsvOptions options;
    EXPECT_EQ(read_csv_schema(schema, options).code(), Code::invalid_argument) << schema;
  }
  EXPECT_EQ(csv_problem("a\n1\n", with_schema(R"({"rules": [{"name": "b"}]})")).code(), Code::not_found);
  EXPECT_EQ(csv_problem("a,b\nx,1\n,2\n", with_schema(R"({"rules": [{"name": "a", "missing": "mean"}]})")).code(), Code::invalid_argument);
}

TEST(Csv, ATableWithoutRowsIsAnError) {
  for (const char* text : {"a,b\n", "a,b", "size,kind\n\n"}) {
    const Status status = csv_problem(text);
    EXPECT_EQ(status.code(), Code::data_loss) << text;
    EXPECT_NE(status.message().find("no row"), std::string::npos) << status.message();
  }
  EXPECT_EQ(csv_problem("1,2\n", {.header = CsvHeader::yes}).code(), Code::data_loss);
  EXPECT_NE(csv_problem("a,b\n1,\n,2\n", {.missing = CsvMissing::drop_row}).message().find("all its 2 rows"), std::string::npos);
}

// A slip in one cell must not make names of all the numbers of its column; who means names says so.
TEST(Csv, AColumnOfNumbersWithASlipIsRefused) {
  std::string text = "weight,kind\n";
  for (int i = 0; i < 40; ++i) text += (i == 7 ? "oops" : std::to_string(i) + ".5") + (i % 2 ? ",a\n" : ",b\n");
  const Status status = csv_problem(text);
  EXPECT_EQ(status.code(), Code::data_loss);
  for (const char* part : {"line 9", "\"oops\"", "\"weight\"", "39 of 40"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  CsvOptions named;
  ASSERT_TRUE(read_csv_schema(R"({"rules": [{"name": "weight", "kind": "names"}]})", named).ok());
  EXPECT_EQ(csv(text, named).columns[0].categories.size(), 40u);
  // Where many are none, or there are few of either, it is a column of names.
  std::string mixed = "cabin\n", few = "id\n";
  for (int i = 0; i < 40; ++i) mixed += (i % 5 == 0 ? "C" : "") + std::to_string(i) + "\n";
  for (int i = 0; i < 10; ++i) few += i % 3 == 1 ? "x\n" : std::to_string(i) + "\n";
  EXPECT_EQ(csv(mixed).columns[0].kind, CsvKind::category);
  EXPECT_EQ(csv(few).columns[0].kind, CsvKind::category);
  // Also in a table of a few rows.
  const Status small = csv_problem("size,price\n1,2\n3,4\n5,l6\n7,8\n");
  EXPECT_EQ(small.code(), Code::data_loss);
  for (const char* part : {"line 4", "\"l6\"", "\"price\"", "3 of 4", "\"kind\""})
    EXPECT_NE(small.message().find(part), std::string::npos) << small.message();
}

TEST(Csv, NumbersWithACommaAreNoNames) {
  const CsvOptions semicolons{.delimiter = ';'};
  for (const char* text : {"a;b\n1,5;2\n2,25;3\n", "a;b\n1,5;2\n-2,25;3\n7;4\n", "a;b\n1.234,5;2\n7;3\n", "a;b\n1,234,567;2\n7;3\n",
                           "a;b\n1,5;2,5\n2,25;3,5\n"}) {
    const Status status = csv_problem(text, semicolons);
    EXPECT_EQ(status.code(), Code::data_loss) << text;
    for (const char* part : {"line 2", "\"a\"", "\"1", "have a point", "\"kind\""})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  CsvOptions named = semicolons;
  ASSERT_TRUE(read_csv_schema(R"({"rules": [{"name": "a", "kind": "names"}]})", named).ok());
  EXPECT_EQ(csv("a;b\n1,5;2\n2,25;3\n", named).columns[0].categories.size(), 2u);
  // Lists, and what has other letters, are no such numbers.
  EXPECT_EQ(csv("a;b\n1,2,3;2\n4,5,6;3\n", semicolons).columns[0].kind, CsvKind::category);
  EXPECT_EQ(csv("a;b\nx,5;2\ny,25;3\n", semicolons).columns[0].kind, CsvKind::category);
}

TEST(Csv, NumbersThatAFloatDoesNotHoldAreRefused) {
  const auto refused = [](const char* text, bool doubles, const char* type) {
    const Status status = csv_problem(text, {.doubles = doubles});
    EXPECT_EQ(status.code(), Code::data_loss);
    for (const char* part : {"line 3", "\"size\"", type}) EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused("size,kind\n1.5,a\n1e300,b\n", false, "float32");
  refused("size,kind\n1.5,a\n-3.5e38,b\n", false, "float32");
  refused("size,kind\n1.5,a\n1e999,b\n", false, "float32");
  refused("size,kind\n1.5,a\n-1e400,b\n", true, "float64");
  EXPECT_EQ(csv("3.4e38\n1e-300\ninf\n").columns[0].values.values<float>()[2], std::numeric_limits<float>::infinity());
}

TEST(Csv, TinyNumbersAreZero) {
  const std::string zeros(400, '0');
  const CsvTable table = csv("0." + zeros + "1\n-0." + zeros + "1\n000." + zeros + "1e2\n1" + zeros + "e-99\n", {.doubles = true});
  const double* const values = table.columns[0].values.as<double>();
  EXPECT_EQ(values[0], 0.0);
  EXPECT_EQ(values[1], 0.0);
  EXPECT_EQ(values[2], 0.0);
  EXPECT_GT(values[3], 1e300);
  for (const std::string& large : {"1" + zeros, "-1" + zeros + "e-1"})
    EXPECT_EQ(csv_problem(large + "\n", {.doubles = true}).code(), Code::data_loss);
}

TEST(Files, KeepToTheMemoryLimit) {
  const Scratch scratch;
  MemoryBudget small(1000), large(int64_t{64} << 20);
  std::string rows;
  for (int i = 0; i < 100'000; ++i) rows += "1,2,3\n";
  const std::string table = scratch.write("t.csv.gz", gzip(rows));
  const std::string image = scratch.write("i.gz", gzip(idx(0x08, {1000, 1000}, std::string(1'000'000, 'x'))));
  CsvOptions options;
  options.budget = &small;
  EXPECT_EQ(read_csv(system_disk(), table, options).status().code(), Code::resource_exhausted);
  EXPECT_EQ(make_idx(system_disk(), std::span(&image, 1), &small).status().code(), Code::resource_exhausted);
  options.budget = &large;
  EXPECT_TRUE(read_csv(system_disk(), table, options).ok());
  EXPECT_TRUE(make_idx(system_disk(), std::span(&image, 1), &large).ok());
  EXPECT_EQ(small.used(), 0);
  EXPECT_EQ(large.used(), 0);
}

TEST(Csv, ColumnsAreChosen) {
  const char* text = "a,b,c\n1,2,3\n4,5,6\n";
  const CsvTable table = csv(text, {.columns = {"c", "a"}, .categories = {"a"}});
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[0].values.int_at(1), 6);
  EXPECT_EQ(table.columns[1].categories, (std::vector<std::string>{"1", "4"}));
  const Status unknown = csv_problem(text, {.columns = {"d"}});
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_NE(unknown.message().find("a, b, c"), std::string::npos) << unknown.message();
  EXPECT_EQ(csv_problem(text, {.categories = {"z"}}).code(), Code::not_found);
}

TEST(Csv, OddNumbers) {
  const CsvTable table = csv("-inf,9223372036854775807\n1e-400,9223372036854775808\n-1e-400,0\ninf,1\n", {.doubles = true});
  const double* const values = table.columns[0].values.as<double>();
  EXPECT_EQ(values[0], -INFINITY);
  EXPECT_EQ(values[1], 0.0);
  EXPECT_EQ(values[2], 0.0);
  EXPECT_EQ(values[3], INFINITY);
  EXPECT_EQ(table.columns[1].values.dtype(), DType::f64);
}

TEST(Csv, DamageIsRefusedWithItsLine) {
  const auto says = [](const Status& status, const char* text) {
    EXPECT_EQ(status.code(), Code::data_loss) << status.message();
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  };
  says(csv_problem("1,2\n3\n"), "line 2 has 1 fields");
  says(csv_problem("1,2\n\n\n3,4,5\n"), "line 4");
  says(csv_problem("1,\"2\n3,4\n"), "line 1: a quoted field never ends");
  says(csv_problem("1,2\n\"a\"b,4\n"), "line 2: text follows");
  says(csv_problem(""), "no line");
  EXPECT_EQ(csv_problem("1", {.delimiter = '"'}).code(), Code::invalid_argument);
  EXPECT_EQ(csv_problem(std::string(70000, ',')).code(), Code::resource_exhausted);
}

TEST(Csv, DigitsAreReady) {
  const char* source = std::getenv("DTG_SOURCE_DIR");
  if (!source) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  const std::string path = std::string(source) + "/tests/data/digits.csv.gz";
  auto data = make_csv(system_disk(), path, {.label = "c64"});
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data.value()->cardinality(), 1797);
  EXPECT_EQ(data.value()->spec()[0].shape.text(), "[64]");
  EXPECT_EQ(data.value()->spec()[1].dtype, DType::i64);
  Element element;
  int64_t labels = 0;
  double pixels = 0;
  while (data.value()->next(element).value()) {
    labels += element[1].int_at(0);
    for (const float pixel : element[0].values<float>()) pixels += pixel;
  }
  EXPECT_EQ(labels, 8070);
  EXPECT_EQ(pixels, 561718.0);
  const Status wrong = make_csv(system_disk(), path, {.label = "digit"}).status();
  EXPECT_EQ(wrong.code(), Code::not_found);
  EXPECT_NE(wrong.message().find("none of its 65 columns: there are c0, c1, c2,"), std::string::npos) << wrong.message();
  const Status near = make_csv(system_disk(), path, {.label = "c64 "}).status();
  EXPECT_NE(near.message().find("did you mean \"c64\"?"), std::string::npos) << near.message();
}

}  // namespace
}  // namespace dtg
