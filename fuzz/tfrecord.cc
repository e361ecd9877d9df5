// Records and tf.Example: the input as one message, and as a file of records.
#include "data/tfrecord.h"

#include "base/record.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string where = "fuzz";
  const dtg::ExampleFeature features[] = {{"a", dtg::DType::f32, dtg::Shape::of({2}), 1},
                                          {"b", dtg::DType::i64, dtg::Shape(), 1},
                                          {"c", dtg::DType::u8, dtg::Shape::of({2, 2}), 1}};
  auto element = dtg::parse_example(bytes, features, where);
  if (element.ok() && element.value().size() != 3) __builtin_trap();
  dtg::MemoryFile file(bytes);
  dtg::RecordReader reader(file, where, uint64_t{1} << 20);
  std::string payload;
  for (;;) {
    auto more = reader.next(payload);
    if (!more.ok() || !more.value()) break;
    static_cast<void>(dtg::parse_example(payload, features, where).ok());
  }
  return 0;
}
