// Walking protobuf messages, nested ones too, and writing back what was read.
#include "base/proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Nested messages wait in a list: each byte of the input is in at most one per level, and levels are few.
  std::vector<std::pair<std::string_view, int>> left{{{reinterpret_cast<const char*>(data), size}, 0}};
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::vector<double> doubles;
  while (!left.empty()) {
    const auto [message, depth] = left.back();
    left.pop_back();
    dtg::ProtoReader reader(message);
    dtg::ProtoWriter writer;
    dtg::ProtoField field;
    for (;;) {
      auto more = reader.next(field);
      if (!more.ok() || !more.value()) break;
      if (field.bytes.size() > message.size()) __builtin_trap();
      static_cast<void>(proto_append_integers(field, integers).ok());
      static_cast<void>(proto_append_reals(field, floats).ok());
      static_cast<void>(proto_append_reals(field, doubles).ok());
      if (field.wire == dtg::ProtoWire::varint) writer.varint(field.number, field.value);
      if (field.wire == dtg::ProtoWire::fixed32) writer.fixed32(field.number, static_cast<uint32_t>(field.value));
      if (field.wire == dtg::ProtoWire::fixed64) writer.fixed64(field.number, field.value);
      if (field.wire != dtg::ProtoWire::bytes) continue;
      writer.bytes(field.number, field.bytes);
      if (depth < 8) left.push_back({field.bytes, depth + 1});
    }
    dtg::ProtoReader again(writer.text());
    for (;;) {
      auto more = again.next(field);
      if (!more.ok()) __builtin_trap();
      if (!more.value()) break;
    }
    integers.clear();
    floats.clear();
    doubles.clear();
  }
  return 0;
}
