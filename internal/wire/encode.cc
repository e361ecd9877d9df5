// Encodes messages as FlatBuffers headers. Pure functions; any thread.
#include <algorithm>

#include "wire/messages.h"
#include "wire/schema/messages_generated.h"

namespace dtg::wire {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

// An error text is for people; a peer's limit on control frames must not turn it into another error.
constexpr size_t kTextMax = 16384;

template <class T>
std::string finish(Builder& b, flatbuffers::Offset<T> root) {
  b.Finish(root);
  return std::string(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
}

flatbuffers::Offset<flatbuffers::String> text(Builder& b, std::string_view of) {
  of = of.substr(0, std::min(of.size(), kTextMax));
  return of.empty() ? 0 : b.CreateString(of.data(), of.size());
}

flatbuffers::Offset<fb::StatusValue> status(Builder& b, const Status& of) {
  if (of.ok()) return 0;
  const auto message = text(b, of.message()), task = text(b, of.origin().task), peer = text(b, of.origin().peer);
  const auto node = text(b, of.origin().node), phase = text(b, of.origin().phase);
  return fb::CreateStatusValue(b, static_cast<int32_t>(of.code()), message, task, peer, node, phase);
}

std::string lines(const std::vector<std::string>& of) {
  std::string all;
  for (const std::string& line : of) all += line + "\n";
  return all;
}

uint64_t nanoseconds(int64_t of) { return static_cast<uint64_t>(std::max<int64_t>(of, 0)); }

}  // namespace

std::string encode(const Hello& m) {
  Builder b(256);
  const auto task = text(b, m.task), wanted = text(b, m.wanted_task), group = text(b, m.group);
  return finish(b, fb::CreateHello(b, m.version_min, m.version_max, m.features, static_cast<uint8_t>(m.role), task, m.session, wanted,
                                   m.wanted_incarnation, m.heartbeat_ns, 0, m.life, group, m.roster, m.group_life));
}

std::string encode(const HelloReply& m) {
  Builder b(512);
  const auto problem = status(b, m.status);
  const auto task = text(b, m.task);
  const auto cluster = m.cluster.empty() ? 0 : b.CreateString(m.cluster);
  const std::string list = lines(m.devices);
  const auto devices = list.empty() ? 0 : b.CreateString(list);
  return finish(
      b, fb::CreateHelloReply(b, problem, m.version, m.features, task, m.incarnation, cluster, devices, m.heartbeat_ns, m.group_life));
}

std::string encode(const Heartbeat& m) {
  Builder b(64);
  return finish(b, fb::CreateHeartbeat(b, m.number));
}

std::string encode(const Goodbye& m) {
  Builder b(256);
  return finish(b, fb::CreateGoodbye(b, status(b, m.status)));
}

std::string encode(const RegisterPart& m) {
  Builder b(256);
  const auto targets = b.CreateVector(m.targets);
  return finish(b, fb::CreateRegisterPart(b, targets, nanoseconds(m.deadline_left_ns)));
}

std::string encode(const RegisterReply& m) {
  Builder b(256);
  const auto problem = status(b, m.status);
  const std::string list = lines(m.unreachable);
  const auto unreachable = list.empty() ? 0 : b.CreateString(list);
  return finish(b, fb::CreateRegisterReply(b, problem, m.part, unreachable));
}

std::string encode(const DropPart& m) {
  Builder b(64);
  return finish(b, fb::CreateDropPart(b, m.part));
}

std::string encode(const RunPart& m) {
  Builder b(128);
  return finish(b, fb::CreateRunPart(b, m.part, m.sequence, nanoseconds(m.deadline_left_ns), m.trace, m.writer, m.writer_epoch,
                                     m.writer_sequence, m.stage));
}

std::string encode(const RunReply& m) {
  Builder b(128);
  return finish(b, fb::CreateRunReply(b, status(b, m.status), m.durable, m.sequence, m.refused));
}

std::string encode(const Abort& m) {
  Builder b(256);
  return finish(b, fb::CreateAbort(b, m.sequence, status(b, m.status)));
}

std::string encode(const Data& m) {
  Builder b(128);
  const auto dims = b.CreateVector(m.shape.dims().data(), m.shape.dims().size());
  const int64_t total = m.shape.count() * dtype_size(m.dtype);
  return finish(b, fb::CreateData(b, m.sequence, m.edge, static_cast<int32_t>(m.dtype), dims, static_cast<uint64_t>(total), m.offset));
}

std::string encode(const Credit& m) {
  Builder b(64);
  return finish(b, fb::CreateCredit(b, m.sequence, m.edge, m.bytes));
}

std::string encode(const Reset& m) {
  Builder b(128);
  const std::string list = lines(m.containers);
  return finish(b, fb::CreateReset(b, list.empty() ? 0 : b.CreateString(list)));
}

std::string encode(const Reply& m) {
  Builder b(128);
  return finish(b, fb::CreateReply(b, status(b, m.status)));
}

std::string encode(const EndJob& m) {
  Builder b(128);
  return finish(b, fb::CreateEndJob(b, text(b, m.reason)));
}

std::string encode(const Arrive& m) {
  Builder b(128);
  const auto name = text(b, m.name);
  return finish(b,
                fb::CreateArrive(b, name, m.end, m.ticket, nanoseconds(m.expires_left_ns), nanoseconds(m.answer_left_ns), m.those_there));
}

std::string encode(const ArriveReply& m) {
  Builder b(256);
  const auto problem = status(b, m.status);
  const std::string list = lines(m.gone);
  const auto gone = list.empty() ? 0 : b.CreateString(list);
  return finish(b, fb::CreateArriveReply(b, problem, m.released, gone, text(b, m.waits_for)));
}

std::string encode(const Roll& m) {
  Builder b(128);
  const auto task = text(b, m.task), reason = text(b, m.reason);
  return finish(b, fb::CreateRoll(b, task, static_cast<uint8_t>(m.presence), reason));
}

std::string encode(const Inspect& m) {
  Builder b(64);
  return finish(b, fb::CreateInspect(b, 0, m.write));
}

std::string encode(const InspectReply& m) {
  Builder b(1024);
  const auto problem = status(b, m.status);
  return finish(b, fb::CreateInspectReply(b, problem, m.json.empty() ? 0 : b.CreateString(m.json)));
}

std::string encode(const GroupWord& m) {
  Builder b(256);
  const auto ranks = m.ranks.empty() ? 0 : b.CreateVector(m.ranks);
  const auto problem = status(b, m.status);
  std::vector<flatbuffers::Offset<fb::GroupSet>> sets;
  for (const GroupSet& set : m.sets) sets.push_back(fb::CreateGroupSet(b, set.number, b.CreateVector(set.ranks)));
  const auto all = sets.empty() ? 0 : b.CreateVector(sets);
  const auto lives = m.lives.empty() ? 0 : b.CreateVector(m.lives);
  return finish(b, fb::CreateGroupWord(b, m.verb, m.epoch, m.stream, m.number, m.lane, m.value, ranks, problem, all, lives));
}

std::string encode(const GroupData& m) {
  Builder b(256);
  flatbuffers::Offset<fb::GroupTerms> terms = 0;
  if (m.has_terms) {
    flatbuffers::Offset<flatbuffers::String> purpose = 0;
    if (!m.terms.purpose.empty()) purpose = b.CreateString(m.terms.purpose);
    const auto dims = b.CreateVector(m.terms.shape.dims().data(), m.terms.shape.dims().size());
    terms = fb::CreateGroupTerms(b, m.terms.kind, m.terms.reduction, m.terms.algorithm, m.terms.open, static_cast<int32_t>(m.terms.dtype),
                                 m.terms.root, m.terms.bucket, dims, m.terms.parts, m.terms.rows, purpose);
  }
  return finish(b, fb::CreateGroupData(b, m.epoch, m.stream, m.number, m.lane, m.offset, m.total, terms));
}

std::string encode(const Segment& m) {
  Builder b(64);
  return finish(b, fb::CreateSegment(b, m.number, m.slots, m.slot_bytes));
}

std::string encode(const Release& m) {
  Builder b(128);
  const auto slots = b.CreateVector(m.slots);
  return finish(b, fb::CreateRelease(b, m.number, slots));
}

}  // namespace dtg::wire
