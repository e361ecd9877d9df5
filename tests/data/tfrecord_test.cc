// TFRecord files: framing, tf.Example in all its spellings, damage.
#include "data/tfrecord.h"

#include <gtest/gtest.h>

#include "base/proto.h"
#include "base/record.h"
#include "scratch.h"

namespace dtg {
namespace {

// One entry of the map: a list of the given kind whose values were written by `write`.
template <class Write>
void add_feature(ProtoWriter& features, std::string_view name, uint32_t kind, Write write) {
  const size_t entry = features.open(1);
  features.bytes(1, name);
  const size_t feature = features.open(2);
  const size_t list = features.open(kind);
  write(features);
  features.close(list);
  features.close(feature);
  features.close(entry);
}

std::string example(int64_t label, bool packed) {
  ProtoWriter out;
  const size_t features = out.open(1);
  add_feature(out, "image", 1, [](ProtoWriter& list) { list.bytes(1, "\x01\x02\x03\x04"); });
  add_feature(out, "unused", 3, [](ProtoWriter& list) { list.integer(1, 9); });
  add_feature(out, "x", 2, [packed](ProtoWriter& list) {
    const float values[] = {0.5f, -2.0f, 4.0f};
    if (packed) list.packed(1, std::span<const float>(values));
    for (int i = 0; i < 3 && !packed; ++i) list.real32(1, values[i]);
  });
  add_feature(out, "label", 3, [packed, label](ProtoWriter& list) {
    if (packed) list.packed(1, std::span<const int64_t>(&label, 1));
    else list.integer(1, label);
  });
  out.close(features);
  return out.take();
}

std::vector<ExampleFeature> wanted() {
  return {{"label", DType::i64, Shape()}, {"x", DType::f32, Shape::of({3})}, {"image", DType::u8, Shape::of({2, 2})}};
}

TEST(TfRecord, PackedAndSingleValuesParseAlike) {
  for (const bool packed : {true, false}) {
    auto element = parse_example(example(-7, packed), wanted(), "test");
    ASSERT_TRUE(element.ok()) << element.status().message();
    EXPECT_EQ(element.value()[0].int_at(0), -7);
    EXPECT_EQ(element.value()[1].as<float>()[2], 4.0f);
    EXPECT_EQ(element.value()[2].text(), "uint8[2,2]");
    EXPECT_EQ(element.value()[2].as<uint8_t>()[3], 4);
  }
}

TEST(TfRecord, WrongFeaturesAreNamed) {
  const std::string bytes = example(1, true);
  const auto says = [&](ExampleFeature feature, const char* text) {
    const Status status = parse_example(bytes, std::span(&feature, 1), "file, record 3").status();
    EXPECT_EQ(status.code(), Code::data_loss);
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("record 3"), std::string::npos) << status.message();
  };
  says({"y", DType::f32, Shape()}, "lacks the feature \"y\"");
  says({"x", DType::f32, Shape::of({4})}, "3 values");
  says({"x", DType::i64, Shape::of({3})}, "a float_list");
  says({"image", DType::u8, Shape::of({5})}, "4 values");
  const ExampleFeature absent{"y", DType::i64, Shape::of({2}), -1};
  EXPECT_EQ(parse_example(bytes, std::span(&absent, 1), "test").value()[0].int_at(1), -1);
  // A list without any string is not an image of garbage.
  ProtoWriter out;
  const size_t features = out.open(1);
  add_feature(out, "image", 1, [](ProtoWriter&) {});
  out.close(features);
  const ExampleFeature image{"image", DType::u8, Shape::of({4})};
  EXPECT_EQ(parse_example(out.text(), std::span(&image, 1), "test").status().code(), Code::data_loss);
}

TEST(TfRecord, VariableLengthHasWhatIsThere) {
  const auto features =
      read_features(R"([{"name": "x", "dtype": "float32", "variable": true}, {"name": "none", "dtype": "int64", "shape": [2],
      "variable": true}, {"name": "image", "dtype": "uint8", "variable": true, "shape": [2]}, {"name": "label", "dtype": "int64"},
      {"name": "lost", "dtype": "float32", "default": 0.5, "shape": [2]}])");
  ASSERT_TRUE(features.ok()) << features.status().message();
  auto element = parse_example(example(3, false), features.value(), "test");
  ASSERT_TRUE(element.ok()) << element.status().message();
  EXPECT_EQ(element.value()[0].text(), "float32[3]");
  EXPECT_EQ(element.value()[0].as<float>()[1], -2);
  EXPECT_EQ(element.value()[1].text(), "int64[0,2]");
  EXPECT_EQ(element.value()[2].text(), "uint8[2,2]");
  EXPECT_EQ(element.value()[2].as<uint8_t>()[2], 3);
  EXPECT_EQ(element.value()[3].int_at(0), 3);
  EXPECT_EQ(element.value()[4].as<float>()[1], 0.5f);
  const ExampleFeature pairs{.name = "x", .dtype = DType::f32, .shape = Shape::of({2}), .variable = true};
  const Status odd = parse_example(example(3, true), std::span(&pairs, 1), "test").status();
  EXPECT_NE(odd.message().find("3 values, which are no whole number of float32[2]"), std::string::npos) << odd.message();
  for (const char* bad : {"", "{}", "[1]", "[{}]", R"([{"name": "x"}])", R"([{"name": "x", "dtype": "floaty"}])", R"([{"name": 1}])",
                          R"([{"name": "x", "dtype": "float32", "shape": 3}])", R"([{"name": "x", "dtype": "float32", "shape": [-1]}])",
                          R"([{"name": "x", "dtype": "float32", "default": "0"}])", R"([{"name": "x", "dtype": "float32", "more": 1}])",
                          R"([{"name": "x", "dtype": "float32", "variable": 1}])"}) {
    EXPECT_EQ(read_features(bad).status().code(), Code::invalid_argument) << bad;
  }
}

TEST(TfRecord, FilesAreOneStream) {
  const Scratch scratch;
  std::string first, second;
  for (int i = 0; i < 5; ++i) append_record(i < 3 ? first : second, example(i, i % 2 == 0));
  const std::string paths[] = {scratch.write("data-00000-of-00002", first), scratch.write("data-00001-of-00002", second)};
  auto made = make_tfrecord(system_disk(), paths, wanted());
  ASSERT_TRUE(made.ok());
  auto data = make_batch(make_shuffle(made.take(), 0, 1).take(), 2, false).take();
  for (int epoch = 0; epoch < 2; ++epoch) {
    int64_t sum = 0, count = 0;
    Element element;
    while (data->next(element).value()) {
      for (const int64_t label : element[0].values<int64_t>()) sum += label;
      count += element[0].count();
    }
    EXPECT_EQ(sum, 10);
    EXPECT_EQ(count, 5);
    ASSERT_TRUE(data->restart().ok());
  }
  EXPECT_EQ(make_tfrecord(system_disk(), paths, {}).status().code(), Code::invalid_argument);
  const ExampleFeature odd{"x", DType::f64, Shape()};
  EXPECT_EQ(make_tfrecord(system_disk(), paths, std::span(&odd, 1)).status().code(), Code::invalid_argument);
  const ExampleFeature far{"x", DType::u8, Shape(), 256};
  EXPECT_EQ(make_tfrecord(system_disk(), paths, std::span(&far, 1)).status().code(), Code::invalid_argument);
}

TEST(TfRecord, EveryChangedByteIsNoticed) {
  const Scratch scratch;
  std::string good;
  append_record(good, example(1, true));
  append_record(good, example(2, true));
  const auto read = [&](const std::string& bytes) -> Status {
    const std::string paths[] = {scratch.write("f", bytes)};
    DTG_ASSIGN(auto data, make_tfrecord(system_disk(), paths, wanted()));
    Element element;
    for (;;) {
      DTG_ASSIGN(const bool more, data->next(element));
      if (!more) return {};
    }
  };
  ASSERT_TRUE(read(good).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    EXPECT_EQ(read(bad).code(), Code::data_loss) << i;
    if (i != 0 && i != good.size() / 2) {
      EXPECT_EQ(read(good.substr(0, i)).code(), Code::data_loss) << i;
    }
  }
}

}  // namespace
}  // namespace dtg
