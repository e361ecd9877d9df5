// CSV: comma-separated tables as typed columns. Types are found by looking at the whole column: whole
// numbers become int64, other numbers float32 (or float64), anything else categories numbered in the
// order of their sorted names. Empty fields and the usual spellings of "not available" are missing.
// Pure functions; any thread except the network loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace dtg {

enum class CsvHeader : uint8_t { detect, yes, no };
// keep: NaN in number columns, -1 in category columns. A whole-number column that lacks some becomes real.
enum class CsvMissing : uint8_t { keep, drop_row, refuse };

struct CsvOptions {
  char delimiter = ',';
  // detect: a first line without any number, while a later line has one, names the columns. Without a header
  // they are c0, c1, ...
  CsvHeader header = CsvHeader::detect;
  CsvMissing missing = CsvMissing::keep;
  bool doubles = false;                   // real columns as float64
  std::vector<std::string> columns{};     // those to read, in this order; empty: all
  std::vector<std::string> categories{};  // columns of numbers that are names, such as postcodes
  std::string label{};                    // see make_csv
  int64_t bytes_max = int64_t{4} << 30;   // of plain text
};

enum class CsvKind : uint8_t { whole, real, category };

struct CsvColumn {
  std::string name;
  CsvKind kind = CsvKind::whole;
  Tensor values;                        // [rows]; int64, float32 or float64
  std::vector<std::string> categories;  // category i is called categories[i]
  int64_t missing = 0;
};

struct CsvTable {
  std::vector<CsvColumn> columns;
  int64_t rows = 0;
};

// The file, plain or gzip.
Result<CsvTable> read_csv(Disk& disk, const std::string& path, const CsvOptions& options = {});
// The same from text; `path` is for messages.
Result<CsvTable> parse_csv(std::string_view text, const std::string& path, const CsvOptions& options);

// A data set of its rows. With a label, elements are {features, label}: all other columns as one float
// vector, category numbers included, and the label as int64, or as real if it is one. Without, elements
// have one scalar per column.
Result<DatasetPtr> make_csv(Disk& disk, const std::string& path, const CsvOptions& options = {});

}  // namespace dtg
