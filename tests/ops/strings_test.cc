// Ops on strings: bytes and characters, pieces, numbers, hashes, codes. Strings hold zeros and broken UTF-8 here.
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <random>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_strings;
using one_op::as_vector;
using one_op::scalar;
using one_op::texts;
using one_op::values;
using Strings = std::vector<std::string>;

constexpr OneOp::Known kAll[] = {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing};

class StringOps : public ::testing::Test {
 protected:
  Strings run(std::string_view op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs = {}) {
    Strings first;
    for (auto known : kAll) {
      auto out = one.run(op, inputs, attrs, {.known = known});
      EXPECT_TRUE(out.ok()) << op << ": " << out.status().message();
      if (!out.ok()) return {};
      const Strings now = as_strings(out.value()[0]);
      if (known == kAll[0]) first = now;
      EXPECT_EQ(now, first) << "however much is known beforehand";
    }
    return first;
  }
  Code code(std::string_view op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs = {}) {
    return one.run(op, inputs, attrs).status().code();
  }
  OneOp one{{ops::register_binary, ops::register_compare, ops::register_gather, ops::register_concat, ops::register_slice,
             ops::register_array, ops::register_strings}};
};

const std::string_view kZeros("a\0b", 3);

TEST_F(StringOps, MoveLikeOtherElements) {
  const Tensor words = texts({2, 2}, {"one", "", kZeros, "a string that is longer than a cell"});
  EXPECT_EQ(
      run("GatherV2", {words, values<int32_t>({2}, {1, 1}), scalar<int32_t>(0)}),
      (Strings{std::string(kZeros), "a string that is longer than a cell", std::string(kZeros), "a string that is longer than a cell"}));
  EXPECT_EQ(run("Transpose", {words, values<int32_t>({2}, {1, 0})})[1], kZeros);
  EXPECT_EQ(run("ConcatV2", {words, words, scalar<int32_t>(1)})[2], "one");
  EXPECT_EQ(run("Pack", {words, words}, {{"axis", 1}})[2], "one");
  EXPECT_EQ(run("Slice", {words, values<int32_t>({2}, {1, 0}), values<int32_t>({2}, {1, 1})}), Strings{std::string(kZeros)});
  EXPECT_EQ(run("Tile", {texts({1}, {"x"}), values<int32_t>({1}, {3})}), (Strings{"x", "x", "x"}));
  EXPECT_EQ(run("Pad", {texts({1}, {"x"}), values<int32_t>({1, 2}, {1, 1})}), (Strings{"", "x", ""}));
  EXPECT_EQ(run("Fill", {values<int32_t>({1}, {2}), texts({}, {"yes"})}), (Strings{"yes", "yes"}));
  EXPECT_EQ(run("ZerosLike", {words}), (Strings{"", "", "", ""}));
  EXPECT_EQ(run("SelectV2", {values<bool>({2, 1}, {true, false}), words, texts({}, {"no"})}), (Strings{"one", "", "no", "no"}));
  EXPECT_EQ(run("Select", {values<bool>({2}, {true, false}), words, texts({2, 2}, {"", "", "", "no"})}), (Strings{"one", "", "", "no"}));
  EXPECT_EQ(run("Add", {words, texts({2}, {"!", "?"})})[1], "?");
  const auto distinct = one.run("UniqueWithCounts", {texts({4}, {"b", "", "b", kZeros})}).take();
  EXPECT_EQ(as_strings(distinct[0]), (Strings{"b", "", std::string(kZeros)}));
  EXPECT_EQ(as_vector<int32_t>(distinct[1]), (std::vector<int32_t>{0, 1, 0, 2}));
  EXPECT_EQ(as_vector<int32_t>(distinct[2]), (std::vector<int32_t>{2, 1, 1}));
  const auto equal = one.run("Equal", {words, texts({2}, {"one", ""})}).take()[0];
  EXPECT_EQ(as_vector<bool>(equal), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(as_vector<bool>(one.run("NotEqual", {words, texts({2}, {"one", ""})}).take()[0]),
            (std::vector<bool>{false, false, true, true}));
}

TEST_F(StringOps, LengthsAndCases) {
  const Tensor words = texts({4}, {"h\xc3\xa9llo", kZeros, "", "\xff\xc3"});
  EXPECT_EQ(as_vector<int32_t>(one.run("StringLength", {words}).take()[0]), (std::vector<int32_t>{6, 3, 0, 2}));
  EXPECT_EQ(as_vector<int32_t>(one.run("StringLength", {words}, {{"unit", "UTF8_CHAR"}}).take()[0]), (std::vector<int32_t>{5, 3, 0, 2}));
  EXPECT_EQ(run("StringUpper", {words}), (Strings{"H\xc3\xa9LLO", std::string("A\0B", 3), "", "\xff\xc3"}));
  EXPECT_EQ(run("StringUpper", {words}, {{"encoding", "utf-8"}}),
            (Strings{"H\xc3\x89LLO", std::string("A\0B", 3), "", "\xef\xbf\xbd\xef\xbf\xbd"}));
  // Letters that become several, the two small sigmas, a letter of four bytes, a pair that is no letter.
  EXPECT_EQ(run("StringUpper", {texts({2}, {"stra\u00dfe \ufb01", "\U00010428"})}, {{"encoding", "utf-8"}}),
            (Strings{"STRASSE FI", "\U00010400"}));
  EXPECT_EQ(run("StringLower", {texts({2}, {"\u039f\u0394\u039f\u03a3 \u03a3\u0391", "\u0130"})}, {{"encoding", "utf-8"}}),
            (Strings{"\u03bf\u03b4\u03bf\u03c2 \u03c3\u03b1", "i\u0307"}));
  EXPECT_EQ(code("StringLower", {words}, {{"encoding", "latin1"}}), Code::invalid_argument);
  EXPECT_EQ(run("StringStrip", {texts({3}, {" \t a b\v\n", "", "\r"})}), (Strings{"a b", "", ""}));
}

TEST_F(StringOps, PartsOfBytesAndCharacters) {
  const Tensor word = texts({}, {"h\xc3\xa9llo"});
  const auto part = [&](int64_t pos, int64_t length, const char* unit) {
    return one.run("Substr", {word, scalar<int64_t>(pos), scalar<int64_t>(length)}, {{"unit", unit}});
  };
  EXPECT_EQ(as_strings(part(-3, 2, "BYTE").take()[0]), Strings{"ll"});
  EXPECT_EQ(as_strings(part(1, 2, "UTF8_CHAR").take()[0]), Strings{"\xc3\xa9l"});
  EXPECT_EQ(as_strings(part(-4, 1, "UTF8_CHAR").take()[0]), Strings{"\xc3\xa9"});
  EXPECT_EQ(as_strings(part(6, INT64_MAX, "BYTE").take()[0]), Strings{""});
  for (int64_t bad : {int64_t{7}, int64_t{-7}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(part(bad, 1, "BYTE").status().code(), Code::invalid_argument);
    EXPECT_EQ(part(bad, 1, "UTF8_CHAR").status().code(), Code::invalid_argument);
  }
  EXPECT_EQ(run("Substr", {texts({2, 1}, {"abcd", "efgh"}), values<int32_t>({2}, {0, 2}), values<int32_t>({2}, {1, 9})}),
            (Strings{"a", "cd", "e", "gh"}));
  EXPECT_EQ(code("Substr", {word, values<int32_t>({2}, {0, 1}), scalar<int32_t>(1)}), Code::invalid_argument);
}

TEST_F(StringOps, JoinAndSplitAreInverse) {
  EXPECT_EQ(run("StringJoin", {texts({2}, {"a", kZeros}), texts({}, {"-"}), texts({2}, {"", "d"})}, {{"separator", ", "}}),
            (Strings{"a, -, ", std::string(kZeros) + ", -, d"}));
  EXPECT_EQ(code("StringJoin", {texts({2}, {"a", "b"}), texts({1}, {"c"})}), Code::invalid_argument);
  const Tensor square = texts({2, 2}, {"a", "b", "c", "d"});
  EXPECT_EQ(run("ReduceJoin", {square, values<int32_t>({2}, {0, 1})}), Strings{"acbd"});
  EXPECT_EQ(run("ReduceJoin", {square, values<int32_t>({2}, {1, 0})}, {{"separator", "."}}), Strings{"a.b.c.d"});
  EXPECT_EQ(run("ReduceJoin", {square, values<int32_t>({0}, {})}), (Strings{"a", "b", "c", "d"}));
  EXPECT_EQ(run("ReduceJoin", {texts({2, 0}, {}), scalar<int32_t>(1)}), (Strings{"", ""}));
  EXPECT_EQ(code("ReduceJoin", {square, values<int32_t>({2}, {1, -1})}), Code::invalid_argument);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::string joined;
    Strings pieces(1 + random() % 5);
    for (std::string& piece : pieces) {
      while (random() % 3) piece += static_cast<char>('a' + random() % 3);
      joined += (&piece == pieces.data() ? "" : "::") + piece;
    }
    auto out = one.run("StringSplitV2", {texts({1}, {joined}), texts({}, {"::"})});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(as_strings(out.value()[1]), pieces);
  }
}

TEST_F(StringOps, SplitCountsCuts) {
  const auto split = [&](std::string_view text, std::string_view separator, int64_t most) {
    return as_strings(one.run("StringSplitV2", {texts({1}, {text}), texts({}, {separator})}, {{"maxsplit", most}}).take()[1]);
  };
  EXPECT_EQ(split(" a  b c ", "", -1), (Strings{"a", "b", "c"}));
  EXPECT_EQ(split(" a  b c ", "", 1), (Strings{"a", "b c "}));
  EXPECT_EQ(split(" a  b c ", "", 0), Strings{" a  b c "});
  EXPECT_EQ(split("aXbXc", "X", 1), (Strings{"a", "bXc"}));
  EXPECT_EQ(split("", "X", -1), Strings{""});
  EXPECT_EQ(split("  ", "", -1), Strings{});
  const auto none = one.run("StringSplitV2", {texts({0}, {}), texts({}, {""})});
  EXPECT_EQ(as_vector<int64_t>(none.value()[2]), (std::vector<int64_t>{0, 0}));
}

TEST_F(StringOps, NumbersDoNotDependOnTheLocale) {
  EXPECT_EQ(run("AsString", {values<float>({3}, {1.5f, -0.0f, NAN})}, {{"precision", 2}, {"width", 6}, {"fill", "0"}})[0], "001.50");
  EXPECT_EQ(run("AsString", {values<double>({1}, {1e100})}, {{"shortest", true}}), Strings{"1e+100"});
  EXPECT_EQ(run("AsString", {values<uint64_t>({1}, {UINT64_MAX})}), Strings{"18446744073709551615"});
  EXPECT_EQ(run("AsString", {values<int8_t>({1}, {-5})}, {{"width", 4}, {"fill", "-"}}), Strings{"-5  "});
  EXPECT_EQ(code("AsString", {values<float>({1}, {1})}, {{"fill", "x"}}), Code::invalid_argument);
  EXPECT_EQ(code("AsString", {values<bool>({1}, {true})}, {{"precision", 1}}), Code::invalid_argument);
  const auto number = [&](std::string_view text) { return one.run("StringToNumber", {texts({}, {text})}, {{"out_type", DType::f64}}); };
  EXPECT_EQ(*number(" +1.5e3\n").value()[0].as<double>(), 1500);
  EXPECT_EQ(*number("-Infinity").value()[0].as<double>(), -INFINITY);
  EXPECT_TRUE(std::isnan(*number("nan").value()[0].as<double>()));
  EXPECT_EQ(*number("1e999").value()[0].as<double>(), INFINITY);
  EXPECT_EQ(*number("-0.00001e-400").value()[0].as<double>(), 0);
  EXPECT_EQ(*number("0x10").value()[0].as<double>(), 16);
  for (const char* bad : {"", " ", "+", "+-1", "1 2", "1,5", "0x", "nan(1)", "infin", "--1"})
    EXPECT_EQ(number(bad).status().code(), Code::invalid_argument) << bad;
  const auto whole = [&](std::string_view text) { return one.run("StringToNumber", {texts({}, {text})}, {{"out_type", DType::i32}}); };
  EXPECT_EQ(*whole(" -2147483648 ").value()[0].as<int32_t>(), INT32_MIN);
  for (const char* bad : {"2147483648", "1.0", "+-1", "", "0x1", "1e2"})
    EXPECT_EQ(whole(bad).status().code(), Code::invalid_argument) << bad;
}

TEST_F(StringOps, CodesThereAndBack) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    std::string text;
    for (int64_t left = random() % 20; left > 0; --left) text += static_cast<char>(random() % 256);
    const bool pad = random() % 2;
    const Strings coded = run("EncodeBase64", {texts({1}, {text})}, {{"pad", pad}});
    EXPECT_EQ(coded[0].find_first_of("+/"), std::string::npos);
    EXPECT_EQ(run("DecodeBase64", {texts({1}, {coded[0]})}), Strings{text});
    const auto packed = one.run("_PackStrings", {texts({1, 2}, {text, "tail"})});
    ASSERT_TRUE(packed.ok()) << packed.status().message();
    EXPECT_EQ(run("_UnpackStrings", {packed.value()[0]}), (Strings{text, "tail"}));
  }
  for (const char* bad : {"A", "AB=C", "====", "A+/=", "AAAAA"})
    EXPECT_EQ(code("DecodeBase64", {texts({1}, {bad})}), Code::invalid_argument) << bad;
  EXPECT_EQ(as_vector<uint16_t>(one.run("DecodeRaw", {texts({1}, {"ab"})}, {{"out_type", DType::u16}, {"little_endian", false}}).take()[0]),
            std::vector<uint16_t>{0x6162});
  EXPECT_EQ(one.run("DecodeRaw", {texts({2, 0}, {})}, {{"out_type", DType::f32}}).take()[0].text(), "float32[2,0,0]");
  EXPECT_EQ(as_vector<bool>(one.run("DecodeRaw", {texts({}, {"\x02"})}, {{"out_type", DType::boolean}}).take()[0]),
            std::vector<bool>{true});
}

// Every length and dimension is foreign: whatever is changed, an error or strings that were there.
TEST_F(StringOps, PackedBytesThatLie) {
  const Tensor packed = one.run("_PackStrings", {texts({2}, {"ab", "cde"})}).take()[0];
  std::vector<uint8_t> bytes = as_vector<uint8_t>(packed);
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> lie = bytes;
    lie[random() % lie.size()] = static_cast<uint8_t>(random());
    if (random() % 4 == 0) lie.resize(random() % lie.size());
    const auto out = one.run("_UnpackStrings", {values<uint8_t>({static_cast<int64_t>(lie.size())}, lie)});
    refused += !out.ok();
    EXPECT_TRUE(out.ok() || out.status().code() == Code::data_loss) << out.status().message();
  }
  EXPECT_GT(refused, 500);
  EXPECT_EQ(code("_UnpackStrings", {packed}, {{"shape", PartialShape::vector(3)}}), Code::data_loss);
}

TEST_F(StringOps, BucketsAreStable) {
  // The known answer of SipHash-2-4 for its test key, and one of FarmHash's fingerprints for a text longer than all its short cases.
  const std::string bytes("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e", 15);
  const auto strong = one.run("StringToHashBucketStrong", {texts({}, {bytes})},
                              {{"num_buckets", INT64_MAX}, {"key", std::vector<int64_t>{0x0706050403020100, 0x0f0e0d0c0b0a0908}}});
  ASSERT_TRUE(strong.ok()) << strong.status().message();
  EXPECT_EQ(*strong.value()[0].as<int64_t>(), static_cast<int64_t>(0xa129ca6149be45e5u % INT64_MAX));
  EXPECT_EQ(code("StringToHashBucketStrong", {texts({}, {"x"})}, {{"num_buckets", 3}, {"key", std::vector<int64_t>{1}}}),
            Code::invalid_argument);
  const auto fast = [&](const std::string& text) {
    return *one.run("StringToHashBucketFast", {texts({}, {text})}, {{"num_buckets", INT64_MAX}}).take()[0].as<int64_t>();
  };
  const auto known = [](uint64_t fingerprint) { return static_cast<int64_t>(fingerprint % INT64_MAX); };
  EXPECT_EQ(fast(std::string(65, 'q')), known(7692644312256273193u));
  EXPECT_EQ(fast(std::string(128, 'q')), known(7661176699498645130u));
  EXPECT_EQ(fast(std::string(129, 'q')), known(13989266368063786657u));
  std::string letters;
  for (int i = 0; i < 100; ++i) letters += static_cast<char>('a' + i % 26);
  EXPECT_EQ(fast(letters), known(15335908545242240226u));
  for (const char* op : {"StringToHashBucket", "StringToHashBucketFast"}) {
    for (size_t size = 0; size < 300; ++size) {
      const auto out = one.run(op, {texts({}, {std::string(size, 'q')})}, {{"num_buckets", 10}});
      ASSERT_TRUE(out.ok() && *out.value()[0].as<int64_t>() >= 0 && *out.value()[0].as<int64_t>() < 10);
    }
  }
}

}  // namespace
}  // namespace dtg
