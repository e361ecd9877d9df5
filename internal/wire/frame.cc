// Writes and checks the fixed prefix of frames; the layout is in frame.h. Pure functions; any thread.
#include "wire/frame.h"

#include <bit>
#include <cstring>

#include "base/crc32c.h"

namespace dtg::wire {
namespace {

constexpr char kMagic[4] = {'D', 'T', 'G', 1};
constexpr size_t kFlagsAt = 7;
constexpr uint8_t kInSlot = 1;
constexpr size_t kCrcAt = 24;
constexpr size_t kPayloadCrcAt = 28;

template <class T>
void put(char* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<char>(value >> (8 * i));
}
template <class T>
T get(const char* at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | static_cast<T>(static_cast<unsigned char>(at[i])) << (8 * i));
  return value;
}

Lane lane_of(Kind kind) { return kind == Kind::data || kind == Kind::group_data ? Lane::data : Lane::control; }

uint64_t payload_max(Kind kind, const Limits& limits) {
  if (lane_of(kind) == Lane::data) return kChunkBytes;
  return kind == Kind::register_part ? limits.graph_bytes : 0;
}

uint32_t checksum(std::string_view prefix, std::string_view header) { return crc32c(header, crc32c(prefix.substr(0, kCrcAt))); }

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::hello: return "hello";
    case Kind::hello_reply: return "hello reply";
    case Kind::heartbeat: return "heartbeat";
    case Kind::goodbye: return "goodbye";
    case Kind::register_part: return "register part";
    case Kind::register_reply: return "register reply";
    case Kind::drop_part: return "drop part";
    case Kind::run_part: return "run part";
    case Kind::run_reply: return "run reply";
    case Kind::abort: return "abort";
    case Kind::data: return "data";
    case Kind::credit: return "credit";
    case Kind::reset: return "reset";
    case Kind::reply: return "reply";
    case Kind::end_job: return "end of job";
    case Kind::inspect: return "question for its state";
    case Kind::inspect_reply: return "state";
    case Kind::group_word: return "word of a group";
    case Kind::group_data: return "piece of a collective";
    case Kind::arrive: return "arrival at a barrier";
    case Kind::arrive_reply: return "answer of a barrier";
    case Kind::roll: return "word of who is there";
    case Kind::segment: return "segment of shared memory";
    case Kind::release: return "return of slots";
  }
  return "unknown";
}

std::string make_head(Kind kind, uint32_t call, std::string_view header, uint64_t payload_bytes) {
  std::string head(kPrefixBytes + header.size(), '\0');
  char* at = head.data();
  std::memcpy(at, kMagic, 4);
  put<uint8_t>(at + 4, kLayout);
  put<uint8_t>(at + 5, static_cast<uint8_t>(kind));
  put<uint8_t>(at + 6, static_cast<uint8_t>(lane_of(kind)));
  put<uint32_t>(at + 8, static_cast<uint32_t>(header.size()));
  put<uint32_t>(at + 12, call);
  put<uint64_t>(at + 16, payload_bytes);
  if (!header.empty()) std::memcpy(at + kPrefixBytes, header.data(), header.size());
  put<uint32_t>(at + kCrcAt, checksum(head, header));
  return head;
}

Result<Prefix> read_prefix(std::string_view bytes, const Limits& limits) {
  const char* const at = bytes.data();
  if (bytes.size() < kPrefixBytes || std::memcmp(at, kMagic, 4) != 0) {
    return data_loss("read a frame: it does not begin like one; is the other end a dtg task?");
  }
  if (get<uint8_t>(at + 4) != kLayout) {
    return failed_precondition("read a frame: it has layout version %u, this library reads %u", get<uint8_t>(at + 4), kLayout);
  }
  const auto kind = get<uint8_t>(at + 5);
  if (kind == 0 || kind > kKindMax) return unimplemented("read a frame: kind %u is not known here", kind);
  Prefix prefix;
  prefix.kind = static_cast<Kind>(kind);
  prefix.lane = static_cast<Lane>(get<uint8_t>(at + 6));
  prefix.header_bytes = get<uint32_t>(at + 8);
  prefix.call = get<uint32_t>(at + 12);
  prefix.payload_bytes = get<uint64_t>(at + 16);
  prefix.crc = get<uint32_t>(at + kCrcAt);
  const auto flags = get<uint8_t>(at + kFlagsAt);
  prefix.in_slot = flags == kInSlot;
  (prefix.in_slot ? prefix.slot : prefix.payload_crc) = get<uint32_t>(at + kPayloadCrcAt);
  const bool nowhere = prefix.payload_bytes == 0 && (prefix.payload_crc != 0 || prefix.in_slot);
  const bool no_data = prefix.in_slot && prefix.lane != Lane::data;
  if (prefix.lane != lane_of(prefix.kind) || flags > kInSlot || nowhere || no_data) {
    return data_loss("read a %s frame: its prefix contradicts itself", kind_name(prefix.kind));
  }
  if (prefix.header_bytes > limits.control_bytes || prefix.payload_bytes > payload_max(prefix.kind, limits)) {
    return resource_exhausted("read a %s frame: a header of %u and a payload of %llu bytes are more than is accepted",
                              kind_name(prefix.kind), prefix.header_bytes, static_cast<unsigned long long>(prefix.payload_bytes));
  }
  return prefix;
}

Status check_header(std::string_view prefix_bytes, std::string_view header) {
  if (checksum(prefix_bytes, header) == get<uint32_t>(prefix_bytes.data() + kCrcAt)) return {};
  return data_loss("read a frame: its checksum is wrong");
}

std::string_view payload_in(std::string_view head) { return head.substr(kPrefixBytes + get<uint32_t>(head.data() + 8)); }

void stamp_payload(std::string& head, std::string_view payload) { put<uint32_t>(head.data() + kPayloadCrcAt, crc32c(payload)); }

void place_in_slot(std::string& head, uint32_t slot) {
  put<uint8_t>(head.data() + kFlagsAt, kInSlot);
  put<uint32_t>(head.data() + kCrcAt, checksum(head, std::string_view(head).substr(kPrefixBytes, get<uint32_t>(head.data() + 8))));
  put<uint32_t>(head.data() + kPayloadCrcAt, slot);
}

Status check_payload(const Prefix& prefix, std::string_view payload) {
  if (crc32c(payload) == prefix.payload_crc) return {};
  return data_loss("read a %s frame: the checksum of its payload is wrong", kind_name(prefix.kind));
}

}  // namespace dtg::wire
