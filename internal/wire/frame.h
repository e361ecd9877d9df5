// Frame layout: a fixed prefix of 32 bytes, a FlatBuffers header, a raw payload.
//
//   0  magic 'D' 'T' 'G' 0x01      8  header length, 32 bit      24  CRC-32C of the prefix up to here and the header
//   4  layout, 8 bit              12  call number, 32 bit        28  CRC-32C of the payload where both ends agreed on it, or 0
//   5  kind, 8 bit                16  payload length, 64 bit
//   6  lane, 8 bit
//   7  flags, 8 bit: 1 where the payload lies in a slot of shared memory and not behind the header; its number is at 28 then
//
// All numbers are little-endian. A unix socket loses nothing, and TLS brings a checksum of its own; payloads in the clear
// have one here. Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "wire/limits.h"

namespace dtg::wire {

inline constexpr uint8_t kLayout = 1;  // of the prefix; every version can read the hello of every other
// Of the protocol. Hello compares what both ends can: the newest common version is spoken, and without one nothing is.
inline constexpr uint16_t kVersion = 2;
inline constexpr uint16_t kVersionMin = 2;  // release 0.1 spoke 1
// What both ends must have said to be used.
inline constexpr uint64_t kPayloadChecksums = 1;  // on channels that do not bring their own
inline constexpr uint64_t kWriteIds = 2;          // a run that is repeated under its first number writes once
inline constexpr uint64_t kKeepsState = 4;        // said by a task: what its variables hold outlives its process
inline constexpr uint64_t kAttendance = 8;        // barriers of the workers, and news of who of them is gone
inline constexpr uint64_t kSharedMemory = 16;     // between processes of one host and user: large payloads lie in slots
inline constexpr uint64_t kFeatures = kPayloadChecksums | kWriteIds | kAttendance | kSharedMemory;
inline constexpr size_t kPrefixBytes = 32;
inline constexpr uint64_t kChunkBytes = uint64_t{1} << 20;  // payload of one data frame
// Payload that a step may send to a part before the part's run grants more. A part whose known inputs are not larger, and
// that has no others, never grants: its peer never waits.
inline constexpr uint64_t kEagerBytes = uint64_t{4} << 20;

enum class Kind : uint8_t {
  hello = 1,
  hello_reply = 2,
  heartbeat = 3,
  goodbye = 4,
  register_part = 5,
  register_reply = 6,
  drop_part = 7,
  run_part = 8,
  run_reply = 9,
  abort = 10,
  data = 11,
  credit = 12,
  reset = 13,
  reply = 14,
  end_job = 15,
  inspect = 16,
  inspect_reply = 17,
  group_word = 18,
  group_data = 19,
  arrive = 20,
  arrive_reply = 21,
  roll = 22,
  segment = 23,
  release = 24,
};
inline constexpr uint8_t kKindMax = 24;
const char* kind_name(Kind kind);

// Control is always read and goes ahead of data that waits to be written.
enum class Lane : uint8_t { control = 0, data = 1 };

struct Prefix {
  Kind kind = Kind::heartbeat;
  Lane lane = Lane::control;
  uint32_t header_bytes = 0;
  uint32_t call = 0;  // 0: not part of a call
  uint64_t payload_bytes = 0;
  uint32_t crc = 0;
  uint32_t payload_crc = 0;
  bool in_slot = false;  // the payload lies in shared memory
  uint32_t slot = 0;
};

// Prefix and header as they go out.
std::string make_head(Kind kind, uint32_t call, std::string_view header, uint64_t payload_bytes);

// Reads 32 bytes and holds the lengths against the limits of the kind. The header's checksum comes after.
Result<Prefix> read_prefix(std::string_view bytes, const Limits& limits);
// `prefix_bytes` are the 32 that read_prefix took.
Status check_header(std::string_view prefix_bytes, std::string_view header);

// What stands behind the header in a head that brings its payload with it.
std::string_view payload_in(std::string_view head);
// Writes the checksum of its payload into a head.
void stamp_payload(std::string& head, std::string_view payload);
// Says in a head that its payload lies in that slot.
void place_in_slot(std::string& head, uint32_t slot);
Status check_payload(const Prefix& prefix, std::string_view payload);

}  // namespace dtg::wire
