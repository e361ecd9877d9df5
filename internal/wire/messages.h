// The messages of the protocol as plain structs, and their way to and from verified FlatBuffers headers. A text that
// comes in is checked for its length; what it means is for the reader to judge. Values; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "wire/frame.h"

namespace dtg::wire {

enum class Role : uint8_t { client = 0, task = 1, neighbour = 2, member = 3 };

struct Hello {
  static constexpr Kind kKind = Kind::hello;
  uint16_t version_min = kVersionMin;
  uint16_t version_max = kVersion;
  uint64_t features = kFeatures;
  Role role = Role::client;
  std::string task;
  uint64_t session = 0;
  std::string wanted_task;
  uint64_t wanted_incarnation = 0;
  uint64_t heartbeat_ns = 0;
  uint64_t life = 0;
  std::string group;
  uint64_t roster = 0;
  uint64_t group_life = 0;
};
struct HelloReply {
  static constexpr Kind kKind = Kind::hello_reply;
  Status status;
  uint16_t version = kVersion;
  uint64_t features = 0;
  std::string task;
  uint64_t incarnation = 0;
  std::string cluster;
  std::vector<std::string> devices;
  uint64_t heartbeat_ns = 0;
  uint64_t group_life = 0;
};
struct Heartbeat {
  static constexpr Kind kKind = Kind::heartbeat;
  uint64_t number = 0;
};
struct Goodbye {
  static constexpr Kind kKind = Kind::goodbye;
  Status status;
};
struct RegisterPart {  // payload: the graph
  static constexpr Kind kKind = Kind::register_part;
  std::vector<uint32_t> targets;
  int64_t deadline_left_ns = 0;
};
struct RegisterReply {
  static constexpr Kind kKind = Kind::register_reply;
  Status status;
  uint64_t part = 0;
  std::vector<std::string> unreachable;
};
struct DropPart {
  static constexpr Kind kKind = Kind::drop_part;
  uint64_t part = 0;
};
struct RunPart {
  static constexpr Kind kKind = Kind::run_part;
  uint64_t part = 0;
  uint64_t sequence = 0;
  int64_t deadline_left_ns = 0;
  uint64_t trace = 0;
  uint64_t writer = 0;
  uint64_t writer_epoch = 0;
  uint64_t writer_sequence = 0;
  uint8_t stage = 0;
};
struct RunReply {
  static constexpr Kind kKind = Kind::run_reply;
  uint64_t sequence = 0;
  Status status;
  uint64_t durable = 0;
  bool refused = false;
};
struct Abort {
  static constexpr Kind kKind = Kind::abort;
  uint64_t sequence = 0;
  Status status;
};
struct Data {  // payload: bytes [offset, offset + payload) of the value
  static constexpr Kind kKind = Kind::data;
  uint64_t sequence = 0;
  uint32_t edge = 0;
  DType dtype = DType::invalid;
  Shape shape;
  uint64_t offset = 0;
};
inline constexpr uint32_t kEveryEdge = UINT32_MAX;
struct Credit {
  static constexpr Kind kKind = Kind::credit;
  uint64_t sequence = 0;
  uint32_t edge = kEveryEdge;
  uint64_t bytes = 0;
};
struct Reset {
  static constexpr Kind kKind = Kind::reset;
  std::vector<std::string> containers;
};
struct Reply {
  static constexpr Kind kKind = Kind::reply;
  Status status;
};
struct EndJob {
  static constexpr Kind kKind = Kind::end_job;
  std::string reason;
};
struct Arrive {
  static constexpr Kind kKind = Kind::arrive;
  std::string name;
  bool end = false;
  uint64_t ticket = 0;
  int64_t expires_left_ns = 0;
  int64_t answer_left_ns = 0;
  bool those_there = false;
};
struct ArriveReply {
  static constexpr Kind kKind = Kind::arrive_reply;
  Status status;
  bool released = false;
  std::vector<std::string> gone;
  std::string waits_for;
};
enum class Presence : uint8_t { there = 0, lost = 1, left = 2 };
struct Roll {
  static constexpr Kind kKind = Kind::roll;
  std::string task;
  Presence presence = Presence::there;
  std::string reason;
};
struct Inspect {
  static constexpr Kind kKind = Kind::inspect;
  uint64_t write = 0;  // not 0: only what took place of that run of the session
};
struct InspectReply {
  static constexpr Kind kKind = Kind::inspect_reply;
  Status status;
  std::string json;
};
struct GroupSet {
  uint64_t number = 0;
  std::vector<uint32_t> ranks;
};
struct GroupWord {
  static constexpr size_t kSetsMost = 256;
  static constexpr Kind kKind = Kind::group_word;
  uint8_t verb = 0;
  uint64_t epoch = 0;
  uint64_t stream = 0;
  uint64_t number = 0;
  uint8_t lane = 0;
  uint64_t value = 0;
  std::vector<uint32_t> ranks;
  Status status;
  std::vector<GroupSet> sets;
  std::vector<uint64_t> lives;
};
// Numbers as they come; who knows what they mean looks at them (cluster/group_words.h).
struct GroupTerms {
  uint8_t kind = 0;
  uint8_t reduction = 0;
  uint8_t algorithm = 0;
  bool open = false;
  DType dtype = DType::invalid;
  uint32_t root = 0;
  uint32_t bucket = 0;
  Shape shape;
  uint32_t parts = 1;
  int64_t rows = 0;
  std::string purpose;
};
struct GroupData {  // payload: bytes [offset, offset + payload) of the stream
  static constexpr Kind kKind = Kind::group_data;
  uint64_t epoch = 0;
  uint64_t stream = 0;
  uint64_t number = 0;
  uint8_t lane = 0;
  uint64_t offset = 0;
  uint64_t total = 0;
  bool has_terms = false;
  GroupTerms terms;
};

// The sender's slots of shared memory from now on; a descriptor comes with it. Without slots: it has none any more, and none comes.
struct Segment {
  static constexpr Kind kKind = Kind::segment;
  uint64_t number = 0;
  uint32_t slots = 0;
  uint64_t slot_bytes = 0;
};
// The receiver is through with these slots of that segment; the first of a segment says that it is there.
struct Release {
  static constexpr Kind kKind = Kind::release;
  static constexpr size_t kSlotsMost = 64;
  uint64_t number = 0;
  std::vector<uint32_t> slots;
};

// Header bytes.
std::string encode(const Hello& message);
std::string encode(const HelloReply& message);
std::string encode(const Heartbeat& message);
std::string encode(const Goodbye& message);
std::string encode(const RegisterPart& message);
std::string encode(const RegisterReply& message);
std::string encode(const DropPart& message);
std::string encode(const RunPart& message);
std::string encode(const RunReply& message);
std::string encode(const Abort& message);
std::string encode(const Data& message);
std::string encode(const Credit& message);
std::string encode(const Reset& message);
std::string encode(const Reply& message);
std::string encode(const EndJob& message);
std::string encode(const Inspect& message);
std::string encode(const InspectReply& message);
std::string encode(const Arrive& message);
std::string encode(const ArriveReply& message);
std::string encode(const Roll& message);
std::string encode(const GroupWord& message);
std::string encode(const GroupData& message);
std::string encode(const Segment& message);
std::string encode(const Release& message);

// From header bytes that come from anywhere.
Status decode(std::string_view header, Hello& message);
Status decode(std::string_view header, HelloReply& message);
Status decode(std::string_view header, Heartbeat& message);
Status decode(std::string_view header, Goodbye& message);
Status decode(std::string_view header, RegisterPart& message);
Status decode(std::string_view header, RegisterReply& message);
Status decode(std::string_view header, DropPart& message);
Status decode(std::string_view header, RunPart& message);
Status decode(std::string_view header, RunReply& message);
Status decode(std::string_view header, Abort& message);
Status decode(std::string_view header, Data& message);
Status decode(std::string_view header, Credit& message);
Status decode(std::string_view header, Reset& message);
Status decode(std::string_view header, Reply& message);
Status decode(std::string_view header, EndJob& message);
Status decode(std::string_view header, Inspect& message);
Status decode(std::string_view header, InspectReply& message);
Status decode(std::string_view header, Arrive& message);
Status decode(std::string_view header, ArriveReply& message);
Status decode(std::string_view header, Roll& message);
Status decode(std::string_view header, GroupWord& message);
Status decode(std::string_view header, GroupData& message);
Status decode(std::string_view header, Segment& message);
Status decode(std::string_view header, Release& message);

// Prefix and header of a message without payload.
template <class M>
std::string make_frame(const M& message, uint32_t call = 0) {
  return make_head(M::kKind, call, encode(message), 0);
}

// Reads a header of kind K from anywhere and forgets it; for tests and fuzzing.
Status check_message(Kind kind, std::string_view header);

}  // namespace dtg::wire
