// Channels on a loop and a clock that the test moves: what arrives whole, what is refused, and whose memory is
// touched when.
#include <gtest/gtest.h>

#include <cstring>

#include "data_frame.h"
#include "manual_loop.h"
#include "net/memory_channel.h"
#include "wire/messages.h"

namespace dtg {
namespace {

// Keeps what it receives; payloads land in memory of its own, or nowhere.
class Keeper final : public Channel::Sink {
 public:
  Result<Channel::Landing> begin(const wire::Prefix& prefix, std::string_view) override {
    if (refuse) return Channel::Landing{};
    landed.assign(prefix.payload_bytes, '?');
    return Channel::Landing{landed.data(), this};
  }
  Status receive(const wire::Prefix& prefix, std::string_view) override {
    kinds.push_back(prefix.kind);
    payloads.push_back(prefix.payload_bytes > 0 ? landed : std::string());
    return {};
  }
  void closed(const Status& why) override {
    ++closes;
    reason = why;
  }
  bool refuse = false;
  std::string landed;
  std::vector<wire::Kind> kinds;
  std::vector<std::string> payloads;
  int closes = 0;
  Status reason;
};

class ChannelTest : public ::testing::Test {
 protected:
  static std::string dialogue() {
    std::string bytes = wire::make_frame(wire::Heartbeat{7});
    const auto frame = data_frame("some payload that is not checked");
    bytes += frame->head;
    bytes.append(static_cast<const char*>(frame->payload), frame->payload_bytes);
    return bytes + wire::make_frame(wire::Goodbye{unavailable("that was all")});
  }
  // Gives these bytes to a fresh channel, in pieces of that many.
  Keeper hear(const std::string& bytes, size_t piece) {
    Keeper keeper;
    auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
    const Ref<Channel> channel = memory_channel(loop_, limits_, in, out);
    channel->open(&keeper);
    channel->trust();
    for (size_t at = 0; at < bytes.size(); at += piece) {
      in->write(std::string_view(bytes).substr(at, piece));
      loop_.run();
    }
    channel->close();
    loop_.run();
    return keeper;
  }

  SteppedClock clock_;
  ManualLoop loop_{clock_};
  wire::Limits limits_;
};

TEST_F(ChannelTest, FramesArriveWhole) {
  for (size_t piece : {1, 7, 31, 32, 33, 100000}) {
    const Keeper keeper = hear(dialogue(), piece);
    EXPECT_EQ(keeper.kinds, (std::vector{wire::Kind::heartbeat, wire::Kind::data, wire::Kind::goodbye})) << piece;
    EXPECT_EQ(keeper.payloads[1], "some payload that is not checked");
    EXPECT_EQ(keeper.closes, 0);
  }
}

TEST_F(ChannelTest, LongHeadersAndChunks) {
  const std::string text(16000, 'x');
  std::string bytes;
  for (int i = 0; i < 40; ++i) bytes += wire::make_frame(wire::Goodbye{unavailable("%s", text.c_str())});
  EXPECT_EQ(hear(bytes, 1 << 20).kinds.size(), 40u);
  wire::RegisterPart wide;
  wide.targets.resize(180000);
  EXPECT_EQ(hear(wire::make_frame(wide), 5000).kinds.size(), 1u);
}

TEST_F(ChannelTest, CutAtEveryByte) {
  const std::string bytes = dialogue();
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_LT(hear(bytes.substr(0, length), 64).kinds.size(), 3u) << length;
}

TEST_F(ChannelTest, EveryBitFlipped) {
  const std::string bytes = dialogue();
  const size_t payload_at = bytes.find("some payload"), payload_end = payload_at + 32;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string bad = bytes;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const Keeper keeper = hear(bad, 4096);
    if (bit / 8 >= payload_at && bit / 8 < payload_end) continue;
    // Refused, or still waiting for bytes that a longer length promised.
    EXPECT_LT(keeper.kinds.size(), 3u) << bit;
  }
}

// Where both ends agreed on it, not a bit of a payload can change either.
TEST_F(ChannelTest, EveryBitOfACheckedPayloadFlipped) {
  for (const bool in_head : {false, true}) {
    auto there = make_ref<MemoryStream>(), back = make_ref<MemoryStream>();
    Keeper nobody;
    const Ref<Channel> sender = memory_channel(loop_, limits_, back, there);
    sender->open(&nobody);
    sender->check_payloads();
    auto frame = data_frame("some payload that is checked");
    if (in_head) {
      frame->head.append(static_cast<const char*>(frame->payload), frame->payload_bytes);
      frame->payload = nullptr;
      frame->payload_bytes = 0;
    }
    sender->send(std::move(frame));
    loop_.run();
    const std::string bytes = there->read_all();
    for (size_t bit = 0; bit <= bytes.size() * 8; ++bit) {
      std::string bad = bytes;
      if (bit < bytes.size() * 8) bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
      Keeper keeper;
      auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
      const Ref<Channel> channel = memory_channel(loop_, limits_, in, out);
      channel->open(&keeper);
      channel->trust();
      channel->check_payloads();
      in->write(bad);
      loop_.run();
      EXPECT_EQ(keeper.kinds.size(), bit == bytes.size() * 8 ? 1u : 0u) << bit << keeper.reason.message();
      channel->close();
    }
    sender->close();
    loop_.run();
  }
}

TEST_F(ChannelTest, ImpossibleLengthsAreRefusedAtOnce) {
  for (uint64_t length : {uint64_t{1} << 60, UINT64_MAX, wire::kChunkBytes + 1}) {
    const Keeper keeper = hear(wire::make_head(wire::Kind::data, 0, wire::encode(wire::Data{.dtype = DType::u8}), length), 4096);
    EXPECT_EQ(keeper.reason.code(), Code::resource_exhausted);
    EXPECT_EQ(keeper.closes, 1);
  }
  const Keeper keeper = hear(std::string(100, 'G'), 10);
  EXPECT_EQ(keeper.reason.code(), Code::data_loss);
}

TEST_F(ChannelTest, StrangersMaySayLittle) {
  Keeper keeper;
  auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
  const Ref<Channel> channel = memory_channel(loop_, limits_, in, out);
  channel->open(&keeper);
  for (int i = 0; i < 1000 && channel->is_open(); ++i) {
    in->write(wire::make_frame(wire::Heartbeat{1}));
    loop_.run();
  }
  EXPECT_EQ(keeper.reason.code(), Code::resource_exhausted);
  EXPECT_LE(keeper.kinds.size() * wire::make_frame(wire::Heartbeat{1}).size(), limits_.pre_auth_bytes);
}

TEST_F(ChannelTest, ControlOvertakesData) {
  auto [one, other] = memory_channels(loop_, limits_);
  Keeper here, there;
  one->open(&here);
  other->open(&there);
  other->trust();
  const std::string payload(1000, 'p');
  for (int i = 0; i < 3; ++i) one->send(data_frame(payload));
  one->send(wire::make_frame(wire::Heartbeat{1}));
  loop_.run();
  ASSERT_EQ(there.kinds.size(), 4u);
  EXPECT_EQ(there.kinds[0], wire::Kind::heartbeat);
  one->close();
  loop_.run();
  EXPECT_EQ(there.reason.code(), Code::unavailable);
  EXPECT_EQ(here.closes, 0);
}

// The peer reads nothing; the sender's memory is free as soon as it is let go, and the stream stays in frames.
TEST_F(ChannelTest, MemoryIsGivenBackWhateverThePeerDoes) {
  auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>(5000);
  const Ref<Channel> channel = memory_channel(loop_, limits_, in, out);
  Keeper keeper;
  channel->open(&keeper);
  std::string payload(4000, 'a');
  int owner = 0, taken = 0;
  for (int i = 0; i < 3; ++i) {
    auto frame = data_frame(payload, &owner);
    frame->taken = [&taken] { ++taken; };
    channel->send(std::move(frame));
  }
  loop_.run();
  EXPECT_EQ(taken, 1);  // the second is begun, the third waits
  channel->let_go(&owner);
  EXPECT_EQ(taken, 3);
  payload.assign(4000, 'b');
  std::string sent;
  for (std::string piece = out->read_all(); !piece.empty(); piece = out->read_all()) {
    sent += piece;
    out->write(std::string_view());  // room again
    channel->push();
    loop_.run();
  }
  const Keeper heard = hear(sent, 4096);
  EXPECT_EQ(heard.payloads, (std::vector<std::string>(2, std::string(4000, 'a'))));
}

TEST_F(ChannelTest, PayloadOfALetGoOwnerIsForgotten) {
  auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
  const Ref<Channel> channel = memory_channel(loop_, limits_, in, out);
  Keeper keeper;
  channel->open(&keeper);
  channel->trust();
  const auto frame = data_frame("0123456789");
  in->write(frame->head + "01234");
  loop_.run();
  EXPECT_EQ(keeper.landed, "01234?????");
  channel->let_go(&keeper);
  keeper.landed.assign(10, '-');
  in->write("56789" + wire::make_frame(wire::Heartbeat{2}));
  loop_.run();
  EXPECT_EQ(keeper.landed, "----------");
  EXPECT_EQ(keeper.kinds, (std::vector{wire::Kind::heartbeat}));
}

TEST_F(ChannelTest, AlarmsRingInOrder) {
  std::string rung;
  AlarmCall a([&] { rung += 'a'; }), b([&] { rung += 'b'; }), c([&] { rung += 'c'; });
  loop_.set(a, 30);
  loop_.set(b, 10);
  loop_.set(c, 20);
  loop_.cancel(c);
  loop_.run_for(15);
  EXPECT_EQ(rung, "b");
  loop_.set(a, 100);
  loop_.run_for(50);
  EXPECT_EQ(rung, "b");
  loop_.run_for(50);
  EXPECT_EQ(rung, "ba");
}

}  // namespace
}  // namespace dtg
