// The protobuf wire codec: bytes as protobuf defines them, round trips, and damage at every byte.
#include "base/proto.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

TEST(Proto, BytesAreProtobufs) {
  ProtoWriter writer;
  writer.varint(1, 150);
  writer.bytes(2, "testing");
  const size_t mark = writer.open(3);
  writer.varint(1, 150);
  writer.close(mark);
  EXPECT_EQ(writer.text(), std::string("\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01", 17));
  ProtoWriter negative;
  negative.integer(1, -1);
  EXPECT_EQ(negative.text(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Proto, RoundTripOfEveryKind) {
  ProtoWriter writer;
  writer.integer(1, -5);
  writer.real32(2, 1.5f);
  writer.real64(3, -2.25);
  writer.packed(4, std::span<const int64_t>(std::vector<int64_t>{1, -1, 300}));
  writer.packed(5, std::span<const float>(std::vector<float>{0.5f, 4}));
  writer.packed(6, std::span<const double>(std::vector<double>{0.25}));
  // A nested message longer than 127 bytes has a two-byte length.
  const size_t mark = writer.open(536870911);
  writer.bytes(1, std::string(200, 'x'));
  writer.close(mark);

  ProtoReader reader(writer.text());
  ProtoField field;
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::vector<double> doubles;
  int fields = 0;
  for (;;) {
    auto more = reader.next(field);
    ASSERT_TRUE(more.ok()) << more.status().message();
    if (!more.value()) break;
    ++fields;
    if (field.number == 1) {
      EXPECT_EQ(field.integer(), -5);
    }
    if (field.number == 2) {
      EXPECT_TRUE(proto_append_reals(field, floats).ok());
    }
    if (field.number == 3) {
      EXPECT_TRUE(proto_append_reals(field, doubles).ok());
    }
    if (field.number == 4) {
      EXPECT_TRUE(proto_append_integers(field, integers).ok());
    }
    if (field.number == 5) {
      EXPECT_TRUE(proto_append_reals(field, floats).ok());
    }
    if (field.number == 6) {
      EXPECT_TRUE(proto_append_reals(field, doubles).ok());
    }
    if (field.number == 536870911) {
      EXPECT_EQ(field.bytes.size(), 203u);
    }
  }
  EXPECT_EQ(fields, 7);
  EXPECT_EQ(integers, (std::vector<int64_t>{1, -1, 300}));
  EXPECT_EQ(floats, (std::vector<float>{1.5f, 0.5f, 4}));
  EXPECT_EQ(doubles, (std::vector<double>{-2.25, 0.25}));
}

Status walk(std::string_view message) {
  ProtoReader reader(message, "a test message");
  ProtoField field;
  for (;;) {
    DTG_ASSIGN(const bool more, reader.next(field));
    if (!more) return {};
  }
}

TEST(Proto, DamageIsAnErrorThatSaysWhere) {
  for (const char* bad : {"\x08",
                          "\x12\x7f"
                          "abc",
                          "\x0d\x01\x02", "\x09\x01", "\x0b", "\x07", "\x02\x01", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}) {
    const Status status = walk(bad);
    EXPECT_EQ(status.code(), Code::data_loss) << bad;
    EXPECT_NE(status.message().find("a test message"), std::string::npos);
  }
  EXPECT_FALSE(walk(std::string("\x00\x01", 2)).ok());
  ProtoField odd;
  odd.wire = ProtoWire::bytes;
  odd.bytes = "abc";
  std::vector<float> floats;
  EXPECT_FALSE(proto_append_reals(odd, floats).ok());
  odd.bytes = "\x80";
  std::vector<int64_t> integers;
  EXPECT_FALSE(proto_append_integers(odd, integers).ok());
}

TEST(Proto, EveryTruncationIsSurvived) {
  ProtoWriter writer;
  writer.varint(1, 1u << 30);
  writer.bytes(2, "abcdef");
  writer.real64(3, 1);
  for (size_t cut = 0; cut < writer.size(); ++cut) {
    const Status status = walk(std::string_view(writer.text()).substr(0, cut));
    EXPECT_TRUE(status.ok() || status.code() == Code::data_loss);
  }
}

}  // namespace
}  // namespace dtg
