// The protobuf wire format, as much of it as event files, TFRecord examples, GraphDef and ONNX need: a
// writer that appends to a string and a reader that walks one message. A second libprotobuf in the host's
// process would abort it, so there is none in here. Nested messages are bytes that get a reader of their
// own, so nothing recurses and every depth is the caller's choice. Values; one thread each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dtg {

enum class ProtoWire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

class ProtoWriter {
 public:
  // Also for enums and bools; a negative int32 or int64 takes ten bytes, as protobuf does it.
  void varint(uint32_t field, uint64_t value);
  void integer(uint32_t field, int64_t value) { varint(field, static_cast<uint64_t>(value)); }
  void fixed32(uint32_t field, uint32_t value);
  void fixed64(uint32_t field, uint64_t value);
  void real32(uint32_t field, float value);
  void real64(uint32_t field, double value);
  void bytes(uint32_t field, std::string_view value);
  void packed(uint32_t field, std::span<const int64_t> values);
  void packed(uint32_t field, std::span<const float> values);
  void packed(uint32_t field, std::span<const double> values);

  // A nested message: what is written between open() and its close() becomes the field's value. Pairs
  // may nest; close them innermost first.
  size_t open(uint32_t field);
  void close(size_t mark);

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }
  size_t size() const { return out_.size(); }

 private:
  void tag(uint32_t field, ProtoWire wire);
  void raw_varint(uint64_t value);
  std::string out_;
};

struct ProtoField {
  uint32_t number = 0;
  ProtoWire wire = ProtoWire::varint;
  uint64_t value = 0;      // varint, fixed32, fixed64: the bits
  std::string_view bytes;  // bytes: a view into the message

  int64_t integer() const { return static_cast<int64_t>(value); }
  float real32() const;
  double real64() const;
};

class ProtoReader {
 public:
  // Up to 2 GiB, protobuf's own limit. `what` names the message in errors and must outlive the reader.
  explicit ProtoReader(std::string_view message, const char* what = "protobuf message");

  // The next field, or false at the end of the message. Fields of unknown number are the caller's to
  // ignore. After an error the reader stays at its end.
  Result<bool> next(ProtoField& field);

 private:
  Status fail(const char* problem);
  bool raw_varint(uint64_t& value);
  std::string_view whole_;
  std::string_view left_;
  const char* what_;
};

// A repeated numeric field may come packed or one by one: both append to `values`.
Status proto_append_integers(const ProtoField& field, std::vector<int64_t>& values);
Status proto_append_reals(const ProtoField& field, std::vector<float>& values);
Status proto_append_reals(const ProtoField& field, std::vector<double>& values);

}  // namespace dtg
