// Hashing and lookup layers: against Keras (keras/categories.json.gz, made by keras/make_categories.py), in a training, and misused.
#include "nn/categories.h"

#include <numeric>

#include "golden.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizer.h"
#include "tensor/text.h"

namespace dtg {
namespace {

Tensor texts(const std::vector<std::string>& given, const Shape& shape) {
  std::vector<Text> cells(given.begin(), given.end());
  return good(make_texts(shape, cells));
}
Tensor texts(const std::vector<std::string>& given) { return texts(given, Shape::of({static_cast<int64_t>(given.size())})); }
Tensor integers(const std::vector<int64_t>& given) {
  return good(Tensor::of<int64_t>(Shape::of({static_cast<int64_t>(given.size())}), std::span<const int64_t>(given)));
}

// ---- against Keras ----

Tensor given(const Answers& a) {
  const Shape shape = good(Shape::make(a["shape"].get<std::vector<int64_t>>()));
  if (a.contains("texts")) return texts(a["texts"], shape);
  const std::vector<int64_t> values = a["values"];
  return good(Tensor::of<int64_t>(shape, std::span<const int64_t>(values)));
}
// A setting that is one text or integer.
Tensor token(const Answers& a) { return a.is_string() ? texts({a.get<std::string>()}, Shape()) : Tensor::scalar<int64_t>(a).take(); }
Tensor tokens(const Answers& a) {
  return a[a.size() - 1].is_string() ? texts(a.get<std::vector<std::string>>()) : integers(a.get<std::vector<int64_t>>());
}

CategoryOutput mode_of(const Answers& settings) {
  const std::string mode = settings.value("output_mode", "int");
  return mode == "int"         ? CategoryOutput::number
         : mode == "one_hot"   ? CategoryOutput::one_hot
         : mode == "multi_hot" ? CategoryOutput::multi_hot
                               : CategoryOutput::count;
}

Result<Value> layer_of(Model& model, Value x, const Answers& a) {
  const Answers& s = a["settings"];
  const auto optional = [&](const char* name) { return s.contains(name) ? token(s[name]) : Tensor(); };
  const auto here = [](const Tensor& tensor) { return tensor.valid() ? &tensor : nullptr; };
  if (a["layer"] == "hashing") {
    const Tensor mask = optional("mask_value");
    HashingLayer layer{.bins = s["num_bins"], .mask = here(mask), .salted = s.contains("salt"), .output = mode_of(s)};
    if (layer.salted) layer.salt[0] = s["salt"][0], layer.salt[1] = s["salt"][1];
    return hashing(model, x, layer);
  }
  const Tensor vocabulary = tokens(s["vocabulary"]), mask = optional("mask_token"), unknown = optional("oov_token");
  return lookup(model, x,
                {.vocabulary = &vocabulary,
                 .mask = here(mask),
                 .unknown = here(unknown),
                 .oov = s["num_oov_indices"],
                 .invert = s.value("invert", false),
                 .output = mode_of(s)});
}

std::vector<std::string> words(const Tensor& found) {
  std::vector<std::string> all;
  for (const Text& text : texts_of(found)) all.emplace_back(text.view());
  return all;
}

void expect_answer(const Tensor& found, const Answers& expected) {
  ASSERT_TRUE(found.valid());
  ASSERT_EQ(std::vector<int64_t>(expected["shape"]), std::vector<int64_t>(found.shape().dims().begin(), found.shape().dims().end()));
  if (expected.contains("texts")) {
    EXPECT_EQ(words(found), expected["texts"].get<std::vector<std::string>>());
    return;
  }
  const std::vector<int64_t> wanted = expected["values"];
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found.dtype() == DType::f32 ? static_cast<int64_t>(found.values<float>()[i]) : found.values<int64_t>()[i], wanted[i]) << i;
  }
}

TEST(Categories, AreThoseOfKeras) {
  const Answers all = golden("categories.json.gz");
  if (!all.is_object()) GTEST_SKIP() << "DTG_SOURCE_DIR is not set";
  ASSERT_GT(all["cases"].size(), 100u);
  for (const Answers& a : all["cases"]) {
    for (const bool open : {false, true}) {
      SCOPED_TRACE(a.dump() + (open ? " open" : ""));
      SmallModel small;
      const Tensor x = given(a["x"]);
      std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
      if (open && !dims.empty()) dims[0] = -1;
      const Value in = small.placeholder("x", x.dtype(), dims);
      const Result<Value> out = layer_of(small.model(), in, a);
      ASSERT_TRUE(out.ok()) << out.status().message();
      expect_answer(small.fetch(out.value(), {in}, {x}), a["output"]);
      if (HasFailure()) return;
      EXPECT_EQ(small.graph().info(out.value()).shape.rank(), static_cast<int>(a["output"]["shape"].size()));
    }
  }
}

// ---- beyond Keras' cases ----

TEST(Categories, AVocabularyOfManyFindsEachOfThem) {
  SmallModel small;
  std::vector<std::string> all;
  for (int i = 0; i < 30000; ++i) all.push_back("token " + std::to_string(i * 7919LL % 30011));
  const Tensor vocabulary = texts(all);
  const Value in = small.placeholder("x", DType::string, {-1});
  const Value number = good(lookup(small.model(), in, {.vocabulary = &vocabulary}));
  const Value back = good(lookup(small.model(), number, {.vocabulary = &vocabulary, .invert = true}));
  const Tensor found = small.fetch(number, {in}, {vocabulary});
  for (int64_t i = 0; i < 30000; ++i) ASSERT_EQ(found.values<int64_t>()[static_cast<size_t>(i)], i + 1);
  EXPECT_EQ(words(small.fetch(back, {in}, {vocabulary})), all);
}

TEST(Categories, AnyBytesAndNoElementsAreFine) {
  SmallModel small;
  const Tensor vocabulary = texts({std::string("a\0b", 3), std::string("a\0", 2), "a", "", "\xff"});
  const Value in = small.placeholder("x", DType::string, {-1});
  const Value number = good(lookup(small.model(), in, {.vocabulary = &vocabulary}));
  const Tensor found = small.fetch(number, {in}, {vocabulary});
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(found.values<int64_t>()[static_cast<size_t>(i)], i + 1);
  EXPECT_EQ(small.fetch(number, {in}, {texts({})}).shape().text(), "[0]");
}

TEST(Categories, NarrowIntegersAreLookedUpAsWideOnes) {
  SmallModel small;
  const Tensor vocabulary = integers({7, -7, 300});
  const Value in = small.placeholder("x", DType::i8, {-1});
  const int8_t values[] = {7, -7, 44, 0};
  const Tensor x = good(Tensor::of<int8_t>(Shape::of({4}), std::span<const int8_t>(values)));
  const Tensor found = small.fetch(good(lookup(small.model(), in, {.vocabulary = &vocabulary})), {in}, {x});
  EXPECT_EQ(std::vector<int64_t>(found.values<int64_t>().begin(), found.values<int64_t>().end()), (std::vector<int64_t>{1, 2, 0, 0}));
}

// The error of a run.
std::string run_error(SmallModel& small, Value fetch, Value in, const Tensor& x) {
  const Tensor* const feeds[] = {&x};
  Tensor result;
  const Status status =
      small.session().run({.feeds = {&in, 1}, .feed_tensors = feeds, .fetches = {&fetch, 1}, .targets = {}}, {&result, 1});
  EXPECT_EQ(status.code(), Code::invalid_argument);
  return status.message();
}

TEST(Categories, WithoutNumbersForTheUnknownARunNamesThem) {
  SmallModel small;
  const Tensor vocabulary = texts({"a", "b"}), mask = texts({""}, Shape()), numbers = integers({1, 2});
  const Value in = small.placeholder("x", DType::string, {-1, 2}), ints = small.placeholder("i", DType::i32, {});
  const Value y = good(lookup(small.model(), in, {.vocabulary = &vocabulary, .mask = &mask, .oov = 0}));
  const Tensor known = small.fetch(y, {in}, {texts({"b", "", "a", "a"}, Shape::of({2, 2}))});
  EXPECT_EQ(std::vector<int64_t>(known.values<int64_t>().begin(), known.values<int64_t>().end()), (std::vector<int64_t>{2, 0, 1, 1}));
  const std::string message = run_error(small, y, in, texts({"a", "Ä\n", "c\xff", "b"}, Shape::of({2, 2})));
  EXPECT_NE(message.find("string_lookup: not in the vocabulary"), message.npos) << message;
  EXPECT_NE(message.find("\"Ä\\n\" \"c\xef\xbf\xbd\""), message.npos) << message;
  const Value z = good(lookup(small.model(), ints, {.vocabulary = &numbers, .oov = 0}));
  EXPECT_NE(run_error(small, z, ints, Tensor::scalar<int32_t>(-3).take()).find("[-3]"), std::string::npos);
}

// ---- misuse ----

void expect_refused(const Result<Value>& made, const std::string& part) {
  ASSERT_FALSE(made.ok()) << part;
  EXPECT_EQ(made.status().code(), Code::invalid_argument);
  EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().message();
}

TEST(Categories, VocabulariesThatAreNoneAreRefused) {
  SmallModel small;
  Model& m = small.model();
  const Value in = small.placeholder("x", DType::string, {-1});
  const Tensor twice = texts({"x", "b", "c", "b"}), none = texts({}), matrix = texts({"a"}, Shape::of({1, 1})), fine = texts({"a", "b"});
  const Tensor floats = Tensor::scalar<float>(1).take(), a = texts({"a"}, Shape()), one = Tensor::scalar<int64_t>(1).take();
  const Tensor special = texts({"[UNK]"}), numbers = integers({4, 4});
  expect_refused(lookup(m, in, {}), "no vocabulary");
  expect_refused(lookup(m, in, {.vocabulary = &twice}), "the token \"b\" is in the vocabulary twice, as number 1 and as number 3");
  expect_refused(lookup(m, small.placeholder("i", DType::i64, {}), {.vocabulary = &numbers}), "the token 4 is in the vocabulary twice");
  expect_refused(lookup(m, in, {.vocabulary = &none}), "string[0]");
  expect_refused(lookup(m, in, {.vocabulary = &matrix}), "string[1,1]");
  expect_refused(lookup(m, in, {.vocabulary = &floats}), "float32[]");
  expect_refused(lookup(m, in, {.vocabulary = &special}), "nothing but");
  expect_refused(lookup(m, in, {.vocabulary = &fine, .mask = &a}), "the mask token \"a\" is number 0");
  expect_refused(lookup(m, in, {.vocabulary = &fine, .mask = &one}), "the mask token is int64[]");
  expect_refused(lookup(m, in, {.vocabulary = &fine, .unknown = &fine}), "is string[2]");
  expect_refused(lookup(m, in, {.vocabulary = &fine, .oov = -1}), "num_oov_indices is -1");
}

TEST(Categories, InputsThatDoNotFitAreRefused) {
  SmallModel small;
  Model& m = small.model();
  const Tensor fine = texts({"a", "b"}), a = texts({"a"}, Shape()), b = texts({"b"}, Shape());
  const Value in = small.placeholder("x", DType::string, {-1}), numbers = small.placeholder("n", DType::i32, {2, 2, 2});
  const Value reals = small.placeholder("r", DType::f32, {2}), wide = small.placeholder("w", DType::u64, {2});
  expect_refused(lookup(m, numbers, {.vocabulary = &fine}), "\"n:0\" of int32[2,2,2]; string is needed");
  expect_refused(lookup(m, in, {.vocabulary = &fine, .invert = true}), "an integer type up to int64 is needed");
  expect_refused(lookup(m, numbers, {.vocabulary = &fine, .unknown = &b, .invert = true}), "\"b\" is number 1");
  expect_refused(lookup(m, numbers, {.vocabulary = &fine, .invert = true, .output = CategoryOutput::count}), "gives tokens");
  expect_refused(lookup(m, Value(), {.vocabulary = &fine}), "string_lookup");
  expect_refused(hashing(m, in, {.bins = 0}), "0 bins");
  expect_refused(hashing(m, reals, {.bins = 3}), "\"r:0\" of float32[2]");
  expect_refused(hashing(m, wide, {.bins = 3}), "\"w:0\" of uint64[2]");
  expect_refused(hashing(m, numbers, {.bins = 3, .mask = &a}), "the mask value is string[]; a scalar of int64");
  expect_refused(hashing(m, numbers, {.bins = 3, .output = CategoryOutput::multi_hot}), "[places] or [batch, places]");
  expect_refused(hashing(m, in, {.bins = int64_t{1} << 40, .output = CategoryOutput::one_hot}), "1099511627776 places");
}

}  // namespace
}  // namespace dtg
