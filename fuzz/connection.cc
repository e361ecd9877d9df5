// A server and up to four peers that say what they like: the input is a small program of frames with a right checksum, well-formed and
// not, of registrations and runs that are begun, fed, aborted and repeated, of connections that come, break and stop reading, and of
// time that passes before or after the pool had its turn. Whatever happens, the server stops in the end, without a run left, and has
// given back all that it had reserved.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "graph/build.h"
#include "tests/solo_server.h"
#include "wire/flatbuffers_assert.h"
#include "wire/graph_codec.h"

namespace {

using namespace dtg;

constexpr const char* kCluster = "ps=unix:/nowhere/ps;worker=unix:/nowhere/w0,unix:/nowhere/w1";
constexpr const char* kTasks[] = {"", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1", "/job:ps/replica:0/task:0"};

class Script {
 public:
  Script(const uint8_t* data, size_t size) : at_(reinterpret_cast<const char*>(data)), left_(size) {}
  bool more() const { return left_ > 0; }
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return static_cast<uint8_t>(*at_++);
  }
  std::string_view bytes(size_t count) {
    count = count < left_ ? count : left_;
    const std::string_view taken(at_, count);
    at_ += count;
    left_ -= count;
    return taken;
  }

 private:
  const char* at_;
  size_t left_;
};

struct Prepared {
  std::string bytes;
  uint32_t target = 0;
};

// Parts as partitioning makes them: state, queues that make a run wait, edges from and to the session and another task.
std::vector<Prepared> make_parts(const OpTable& ops) {
  std::vector<Prepared> parts;
  const auto add = [&](auto&& fill) {
    auto graph = Graph::create(&ops).take();
    Build b(*graph);
    const NodeId target = fill(b);
    if (!b.ok()) {
      fprintf(stderr, "%s\n", b.status().message().c_str());
      __builtin_trap();
    }
    parts.push_back({encode_graph(*graph).take(), target});
  };
  const Attr f32{"dtype", DType::f32};
  const auto node = [](Build& b, const char* op, std::initializer_list<Value> inputs, std::initializer_list<Attr> attrs = {}) {
    return b.node(op, std::span(inputs.begin(), inputs.size()), std::span(attrs.begin(), attrs.size()));
  };
  const auto variable = [&](Build& b, const Shape& shape) {
    return b.op("VarHandleOp", {}, {f32, {"shape", shape}, {"shared_name", "v"}});
  };
  const auto queue = [](Build& b) {
    return b.op("FIFOQueueV2", {},
                {{"component_types", std::vector<DType>{DType::f32}},
                 {"shapes", std::vector<PartialShape>{PartialShape::scalar()}},
                 {"capacity", 2},
                 {"shared_name", "q"}});
  };
  const auto receive = [&](Build& b, const PartialShape& shape, int edge, const char* peer) {
    return b.op("_Recv", {}, {f32, {"shape", shape}, {"edge", edge}, {"peer", peer}});
  };
  const auto send = [&](Build& b, Value value, int edge, const char* peer) {
    return node(b, "_Send", {value}, {{"edge", edge}, {"peer", peer}});
  };
  add([&](Build& b) { return node(b, "AssignVariableOp", {variable(b, Shape()), b.scalar(DType::f32, 2)}); });
  add([&](Build& b) { return send(b, b.op("ReadVariableOp", {variable(b, Shape())}, {f32}), 0, ""); });
  add([&](Build& b) {
    const Value out = b.op("QueueDequeueV2", {queue(b)}, {{"component_types", std::vector<DType>{DType::f32}}});
    return send(b, out, 0, "");
  });
  add([&](Build& b) { return node(b, "QueueEnqueueV2", {queue(b), receive(b, PartialShape::scalar(), 0, "")}); });
  add([&](Build& b) { return send(b, b.neg(receive(b, PartialShape(Shape::of({4})), 1, "")), 2, ""); });
  add([&](Build& b) { return send(b, b.neg(receive(b, PartialShape(), 1, "")), 2, ""); });
  add([&](Build& b) { return node(b, "AssignAddVariableOp", {variable(b, Shape()), receive(b, PartialShape::scalar(), 0, kTasks[1])}); });
  add([&](Build& b) { return send(b, b.scalar(DType::f32, 7), 3, kTasks[1]); });
  return parts;
}

const std::vector<Prepared>& parts(const OpTable& ops) {
  static const auto* const all = new std::vector<Prepared>(make_parts(ops));
  return *all;
}

int64_t time_left(uint8_t choice) {
  constexpr int64_t kChoices[] = {0, 1'000'000, 1'000'000'000, 30'000'000'000, INT64_MAX, -5, 100'000'000, 5'000'000'000};
  return kChoices[choice % 8];
}

std::string hello(Script& program) {
  const uint8_t who = program.byte();
  wire::Hello message;
  message.role = static_cast<wire::Role>(who % 3);
  message.task = kTasks[who >> 2 & 3];
  message.session = 1 + (who >> 4 & 3);
  if (who >> 6 == 3) message.heartbeat_ns = uint64_t{program.byte()} << (program.byte() % 64);
  return wire::make_frame(message, 1);
}

std::string registration(Script& program, const std::vector<Prepared>& parts) {
  const Prepared& part = parts[program.byte() % parts.size()];
  const uint8_t how = program.byte();
  std::string bytes = part.bytes;
  if (how & 1) {
    for (int i = 0; i < 4; ++i) {
      const size_t at = (size_t{program.byte()} << 8 | program.byte()) % bytes.size();
      bytes[at] = static_cast<char>(bytes[at] ^ program.byte());
    }
    if (how & 2) seal_graph(bytes);
  }
  const wire::RegisterPart request{.targets = {how & 4 ? program.byte() : part.target}, .deadline_left_ns = time_left(how >> 3)};
  return wire::make_head(wire::Kind::register_part, how, wire::encode(request), bytes.size()) + bytes;
}

std::string data(Script& program) {
  wire::Data message;
  const uint8_t which = program.byte(), how = program.byte();
  message.sequence = which % 8;
  message.edge = which >> 3 & 3;
  message.dtype = how & 1 ? static_cast<DType>(program.byte() % 16) : DType::f32;
  message.shape = how & 2 ? Shape::of({4}) : Shape();
  message.offset = how & 4 ? program.byte() : 0;
  const std::string payload(how & 8 ? program.byte() : how & 2 ? 16 : 4, '\1');
  return wire::make_head(wire::Kind::data, 0, wire::encode(message), how & 16 ? program.byte() : payload.size()) + payload;
}

std::string words(Script& program) {
  const unsigned which = program.byte();
  switch (which % 8) {
    case 0: return wire::make_frame(wire::Credit{.sequence = which >> 3});
    case 1: return wire::make_frame(wire::Abort{.sequence = which >> 3});
    case 2: return wire::make_frame(wire::DropPart{.part = which >> 3});
    case 3: return wire::make_frame(wire::Reset{{"", std::string(which >> 3, 'c')}}, which);
    case 4: return wire::make_frame(wire::Inspect{}, which);
    case 5: return wire::make_frame(which & 64 ? wire::EndJob{} : wire::EndJob{"enough"}, which);
    case 6: return wire::make_frame(wire::Heartbeat{which});
    default: break;
  }
  if (which & 64) return wire::make_frame(wire::Goodbye{});
  const wire::Arrive arrival{.name = which & 8 ? "" : "b",
                             .end = (which & 16) != 0,
                             .ticket = which & 32,
                             .expires_left_ns = time_left(program.byte()),
                             .answer_left_ns = time_left(program.byte())};
  return wire::make_frame(arrival, which);
}

std::string run(Script& program) {
  const unsigned which = program.byte(), how = program.byte();
  const wire::RunPart request{.part = which % 8u,
                              .sequence = which >> 3u & 7u,
                              .deadline_left_ns = time_left(static_cast<uint8_t>(how)),
                              .stage = static_cast<uint8_t>(how >> 7)};
  return wire::make_frame(request);
}

std::string literal(Script& program) {
  const uint8_t kind = program.byte(), how = program.byte();
  const std::string_view header = program.bytes(program.byte() * (how & 1 ? 16u : 1u));
  const uint64_t promised = how & 2 ? uint64_t{program.byte()} << (program.byte() % 64) : 0;
  return wire::make_head(static_cast<wire::Kind>(1 + kind % wire::kKindMax), how >> 2, header, promised);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  Script program(bytes, size);
  static SoloHost* const host = new SoloHost;
  SoloServer solo(*host, kCluster, "ps");
  const auto& prepared = parts(host->runtime->ops());
  std::array<SoloServer::Peer, 4> peers;
  for (auto& peer : peers) solo.bring(peer);
  for (int i = 0; i < 100 && program.more(); ++i) {
    const uint8_t what = program.byte();
    SoloServer::Peer& peer = peers[what >> 5 & 3];
    const auto say = [&](const std::string& said) { peer.in->write(said); };
    switch (what & 15) {
      case 0: say(std::string(program.bytes(program.byte()))); break;
      case 1: say(literal(program)); break;
      case 2: say(hello(program)); break;
      case 3:
      case 4: say(registration(program, prepared)); break;
      case 5:
      case 6: say(run(program)); break;
      case 7:
      case 8: say(data(program)); break;
      case 9:
      case 10: say(words(program)); break;
      case 11: host->pass(int64_t{program.byte()} * 20'000'000); break;
      case 12: peer.in->close(); break;
      case 13:
        peer.in->close();
        peer = {};
        solo.bring(peer);
        break;
      case 14: peer.reads = !peer.reads; break;
      default: host->settle(); break;
    }
    // The loop hears it; the pool's turn may come later.
    if (what & 16) host->turn_loop();
    else host->settle();
    for (auto& each : peers) {
      if (each.reads) each.out->read_all();
    }
  }
  int64_t left_bytes = 0;
  const Status stopped = solo.stop(&left_bytes);
  if (!stopped.ok() || left_bytes != 0) {
    fprintf(stderr, "%s; %lld bytes are still reserved\n", stopped.message().c_str(), static_cast<long long>(left_bytes));
    __builtin_trap();
  }
  if (wire::failed_assertions() != 0) __builtin_trap();
  return 0;
}
