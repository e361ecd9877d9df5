// Parsing JSON lines under options that the first byte chooses.
#include "data/json_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  dtg::JsonLinesOptions options;
  const uint8_t choice = data[0];
  options.skip_bad = (choice & 1) != 0;
  options.table.missing = static_cast<dtg::CsvMissing>(choice / 2 % 4);
  if ((choice & 16) != 0) options.table.columns = {"a", "b"};
  if ((choice & 32) != 0) options.table.rules = {{.name = "a", .kind = static_cast<dtg::CsvKind>(choice / 64 % 3)}};
  if ((choice & 96) == 96) options.table.rules[0].shape = std::vector<int64_t>{2, 1};
  dtg::LeftOut left_out;
  auto table = dtg::parse_json_lines({reinterpret_cast<const char*>(data) + 1, size - 1}, "fuzz", options, left_out);
  if (!table.ok()) return 0;
  const bool may_drop = options.skip_bad || options.table.missing == dtg::CsvMissing::drop_row;
  if (left_out.count != 0 && !may_drop) __builtin_trap();
  for (const dtg::CsvColumn& column : table.value().columns) {
    if (column.values.shape().dim(0) != table.value().rows) __builtin_trap();
    if (column.kind != dtg::CsvKind::category) continue;
    for (const int64_t id : column.values.values<int64_t>()) {
      if (id < -1 || id >= static_cast<int64_t>(column.categories.size())) __builtin_trap();
    }
  }
  return 0;
}
