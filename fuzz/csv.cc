// Parsing CSV under options that the first byte chooses.
#include "data/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  dtg::CsvOptions options;
  const uint8_t choice = data[0];
  options.delimiter = (choice & 1) != 0 ? ';' : ',';
  options.header = static_cast<dtg::CsvHeader>(choice / 2 % 3);
  options.missing = static_cast<dtg::CsvMissing>(choice / 8 % 3);
  options.doubles = (choice & 64) != 0;
  auto table = dtg::parse_csv({reinterpret_cast<const char*>(data) + 1, size - 1}, "fuzz", options);
  if (!table.ok()) return 0;
  for (const dtg::CsvColumn& column : table.value().columns) {
    if (column.values.count() != table.value().rows) __builtin_trap();
    if (column.kind != dtg::CsvKind::category) continue;
    for (const int64_t id : column.values.values<int64_t>()) {
      if (id < -1 || id >= static_cast<int64_t>(column.categories.size())) __builtin_trap();
    }
  }
  return 0;
}
