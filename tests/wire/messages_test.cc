// Every message there and back, and what damaged ones do.
#include "wire/messages.h"

#include <gtest/gtest.h>

#include "wire/flatbuffers_assert.h"

namespace dtg::wire {
namespace {

template <class M>
M back(const M& message) {
  M read;
  const Status status = decode(encode(message), read);
  EXPECT_TRUE(status.ok()) << status.message();
  return read;
}

Status sample_status() { return aborted("something %s", "happened").at_node("n").at_task("/job:ps/task:0").at_peer("p").in_phase("run"); }

std::vector<std::pair<Kind, std::string>> samples() {
  Hello hello;
  hello.task = "/job:worker/replica:0/task:1";
  hello.session = 99;
  HelloReply reply;
  reply.cluster = "ps=unix:/a";
  reply.devices = {"/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:1"};
  reply.incarnation = 5;
  RegisterPart part;
  part.targets = {1, 2, 3};
  RegisterReply registered;
  registered.part = 7;
  registered.unreachable = {"/job:ps/replica:0/task:1", "/job:ps/replica:0/task:2"};
  RunReply ran;
  ran.status = sample_status();
  Data data{.sequence = 3, .edge = 1, .dtype = DType::f32, .shape = Shape::of({2, 3}), .offset = 8};
  return {{Kind::hello, encode(hello)},
          {Kind::hello_reply, encode(reply)},
          {Kind::heartbeat, encode(Heartbeat{3})},
          {Kind::goodbye, encode(Goodbye{sample_status()})},
          {Kind::register_part, encode(part)},
          {Kind::register_reply, encode(registered)},
          {Kind::segment, encode(Segment{4, 8, kChunkBytes})},
          {Kind::release, encode(Release{4, {0, 7, 3}})},
          {Kind::drop_part, encode(DropPart{1})},
          {Kind::run_part, encode(RunPart{.part = 1, .sequence = 2})},
          {Kind::run_reply, encode(ran)},
          {Kind::abort, encode(Abort{1, sample_status()})},
          {Kind::data, encode(data)},
          {Kind::credit, encode(Credit{.sequence = 1})},
          {Kind::reset, encode(Reset{{"a", "b"}})},
          {Kind::reply, encode(Reply{sample_status()})},
          {Kind::arrive, encode(Arrive{.name = "b", .ticket = 4, .expires_left_ns = 5, .answer_left_ns = 6, .those_there = true})},
          {Kind::arrive_reply, encode(ArriveReply{.status = sample_status(), .gone = {"a"}, .waits_for = "b"})},
          {Kind::roll, encode(Roll{"/job:worker/replica:0/task:1", Presence::lost, "cut"})}};
}

TEST(Messages, ThereAndBack) {
  Data data{.sequence = 3, .edge = 1, .dtype = DType::f32, .shape = Shape::of({2, 3}), .offset = 8};
  EXPECT_EQ(back(data).shape, data.shape);
  EXPECT_EQ(back(data).offset, 8u);
  const Abort abort = back(Abort{77, sample_status()});
  EXPECT_EQ(abort.sequence, 77u);
  EXPECT_EQ(abort.status.code(), Code::aborted);
  EXPECT_EQ(abort.status.message(), "something happened");
  EXPECT_EQ(abort.status.origin().node, "n");
  EXPECT_EQ(abort.status.origin().phase, "run");
  EXPECT_TRUE(back(Reply{}).status.ok());
  EXPECT_EQ(back(Reset{{"a", "b"}}).containers, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(back(RunPart{.deadline_left_ns = -5}).deadline_left_ns, 0);
  Hello hello;
  EXPECT_EQ(back(hello).group_life, 0u);
  hello.group_life = 6;
  EXPECT_EQ(back(hello).group_life, 6u);
  GroupWord word;
  EXPECT_TRUE(back(word).lives.empty());
  word.ranks = {0, 2};
  word.lives = {3, 4};
  EXPECT_EQ(back(word).lives, word.lives);
  HelloReply reply;
  EXPECT_EQ(back(reply).group_life, 0u);
  reply.group_life = 7;
  EXPECT_EQ(back(reply).group_life, 7u);
  reply.devices = {"x", "y"};
  EXPECT_EQ(back(reply).devices, reply.devices);
  RegisterReply registered;
  registered.part = 7;
  registered.unreachable = {"a", "b"};
  EXPECT_EQ(back(registered).part, 7u);
  EXPECT_EQ(back(registered).unreachable, registered.unreachable);
  const Credit credit = back(Credit{.sequence = 1, .edge = 2, .bytes = 3});
  EXPECT_EQ(credit.sequence + credit.edge * 10 + credit.bytes * 100, 321u);
}

TEST(Messages, ArrivalsThereAndBack) {
  const Arrive arrive = back(Arrive{.name = "b", .end = true, .ticket = 4, .expires_left_ns = -1, .answer_left_ns = 6});
  EXPECT_EQ(arrive.name, "b");
  EXPECT_TRUE(arrive.end);
  EXPECT_EQ(arrive.ticket, 4u);
  EXPECT_EQ(arrive.expires_left_ns, 0);
  EXPECT_EQ(arrive.answer_left_ns, 6);
  EXPECT_FALSE(arrive.those_there);
  EXPECT_TRUE(back(Arrive{.those_there = true}).those_there);
  const ArriveReply reply = back(ArriveReply{.released = true, .gone = {"a", "b"}, .waits_for = "c"});
  EXPECT_TRUE(reply.status.ok() && reply.released);
  EXPECT_EQ(reply.gone, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reply.waits_for, "c");
  EXPECT_EQ(back(ArriveReply{.status = sample_status()}).status.code(), Code::aborted);
  const Roll roll = back(Roll{"t", Presence::left, "why"});
  EXPECT_EQ(roll.task + roll.reason, "twhy");
  EXPECT_EQ(roll.presence, Presence::left);
  Roll read;
  EXPECT_EQ(decode(encode(Roll{"t", static_cast<Presence>(3), ""}), read).code(), Code::data_loss);
  Arrive long_name;
  EXPECT_EQ(decode(encode(Arrive{.name = std::string(257, 'n')}), long_name).code(), Code::data_loss);
}

TEST(Messages, OfSharedMemory) {
  const Segment segment = back(Segment{4, 8, kChunkBytes});
  EXPECT_EQ(segment.number, 4u);
  EXPECT_EQ(segment.slots, 8u);
  EXPECT_EQ(segment.slot_bytes, kChunkBytes);
  const Release release = back(Release{5, {0, 7, 3}});
  EXPECT_EQ(release.number, 5u);
  EXPECT_EQ(release.slots, (std::vector<uint32_t>{0, 7, 3}));
  EXPECT_TRUE(back(Release{5, {}}).slots.empty());
  Release read;
  EXPECT_TRUE(decode(encode(Release{5, std::vector<uint32_t>(Release::kSlotsMost)}), read).ok());
  EXPECT_EQ(decode(encode(Release{5, std::vector<uint32_t>(Release::kSlotsMost + 1)}), read).code(), Code::data_loss);
}

TEST(Messages, LiesAboutSizes) {
  Data data{.dtype = DType::f32, .shape = Shape::of({4}), .offset = 17};
  Data read;
  EXPECT_EQ(decode(encode(data), read).code(), Code::data_loss);
  data = {.dtype = DType::string};
  EXPECT_FALSE(decode(encode(data), read).ok());
}

TEST(Messages, CutAndFlipped) {
  for (const auto& [kind, bytes] : samples()) {
    ASSERT_TRUE(check_message(kind, bytes).ok()) << kind_name(kind);
    for (size_t length = 0; length < bytes.size(); ++length) (void)check_message(kind, bytes.substr(0, length)).ok();
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string bad = bytes;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
      (void)check_message(kind, bad).ok();
      // Taken for every other kind too.
      for (uint8_t other = 1; other <= kKindMax; ++other) (void)check_message(static_cast<Kind>(other), bad).ok();
    }
  }
  EXPECT_EQ(failed_assertions(), 0);
}

TEST(Frames, PrefixIsChecked) {
  const std::string frame = make_frame(Heartbeat{3}, 42);
  const auto prefix = read_prefix(frame, {});
  ASSERT_TRUE(prefix.ok());
  EXPECT_EQ(prefix.value().call, 42u);
  EXPECT_EQ(prefix.value().header_bytes, frame.size() - kPrefixBytes);
  EXPECT_TRUE(check_header(frame, std::string_view(frame).substr(kPrefixBytes)).ok());
  for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
    std::string bad = frame;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(read_prefix(bad, {}).ok() && check_header(bad, std::string_view(bad).substr(kPrefixBytes)).ok()) << bit;
  }
}

// The payload of a data frame, and of no other, may lie in a slot, whose number says where.
TEST(Frames, PayloadsInSlots) {
  std::string head = make_head(Kind::data, 0, encode(Data{.dtype = DType::u8, .shape = Shape::of({9})}), 9);
  EXPECT_FALSE(read_prefix(head, {}).value().in_slot);
  place_in_slot(head, 0xfedcba98);
  const auto prefix = read_prefix(head, {});
  ASSERT_TRUE(prefix.ok()) << prefix.status().message();
  EXPECT_TRUE(prefix.value().in_slot);
  EXPECT_EQ(prefix.value().slot, 0xfedcba98);
  EXPECT_EQ(prefix.value().payload_crc, 0u);
  EXPECT_TRUE(check_header(head, std::string_view(head).substr(kPrefixBytes)).ok());
  std::string unknown = head;
  unknown[7] = 2;
  EXPECT_EQ(read_prefix(unknown, {}).status().code(), Code::data_loss);
  for (std::string other :
       {make_head(Kind::register_part, 0, "part", 9), make_head(Kind::data, 0, "nothing", 0), make_frame(Heartbeat{1})}) {
    place_in_slot(other, 0);
    EXPECT_EQ(read_prefix(other, {}).status().code(), Code::data_loss);
  }
}

}  // namespace
}  // namespace dtg::wire
