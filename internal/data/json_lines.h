// A data set source: JSON lines, one object per line, as typed columns by name. Whole numbers and bools are int64, other numbers float32,
// texts names numbered in sorted order, lists of numbers components of that shape. What is said of columns, and what is found out, is a
// schema of data/csv.h. Pure functions; any thread except the network loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv.h"

namespace dtg {

struct JsonLinesOptions {
  CsvOptions table{};     // label, columns, rules, missing, bytes_max and budget
  bool skip_bad = false;  // rows that cannot be read are passed over and counted, instead of ending the reading
};

// The columns' values are [rows, ...]: lists of numbers keep their shape. `left_out` gets the bad rows, and those that are dropped.
Result<CsvTable> parse_json_lines(std::string_view text, const std::string& path, const JsonLinesOptions& options, LeftOut& left_out);

// A data set of the rows. With a label, elements are {features, label}: all other columns as one float vector, lists flattened, and the
// label as int64, or as real if it is one. Without, one component per column. `schema` (may be null) receives what was found out.
Result<DatasetPtr> make_json_lines(Disk& disk, const std::string& path, const JsonLinesOptions& options, LeftOut& left_out,
                                   std::string* schema = nullptr);

}  // namespace dtg
