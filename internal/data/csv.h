// CSV: comma-separated tables as typed columns. Types are found by looking at the whole column: whole
// numbers become int64, other numbers float32 (or float64), anything else categories numbered in the
// order of their sorted names. Empty fields and the usual spellings of "not available" are missing.
// What was found out in one file, a schema, can be given to the reading of another, so that both mean the same by a number.
// Pure functions; any thread except the network loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "data/dataset.h"

namespace dtg {

enum class CsvHeader : uint8_t { detect, yes, no };
// keep: NaN in number columns, -1 in category columns; mean: of what the column has; constant: a number of the host's. A whole-number
// column that lacks some becomes real.
enum class CsvMissing : uint8_t { refuse, drop_row, keep, mean, constant };
enum class CsvKind : uint8_t { whole, real, category };

// What is known of a column before its file is read; what is not said is found out.
struct CsvRule {
  std::string name{};
  std::optional<CsvKind> kind{};
  std::optional<CsvMissing> missing{};
  std::optional<double> value{};  // what stands for missing numbers: the constant, or the mean of another file
  // The names of a category column: the number of a name is its place. A name that is not among them is an error.
  std::optional<std::vector<std::string>> names{};
  std::optional<std::vector<int64_t>> shape{};  // of the lists of numbers in it, where the format has such; none: no lists
};

struct CsvOptions {
  char delimiter = ',';
  // detect: a first line without any number, while a later line has one, names the columns. Without a header
  // they are c0, c1, ...
  CsvHeader header = CsvHeader::detect;
  CsvMissing missing = CsvMissing::refuse;  // where no rule says otherwise
  bool doubles = false;                     // real columns as float64
  std::vector<std::string> columns{};       // those to read, in this order; empty: all
  std::vector<std::string> categories{};    // columns of numbers that are names, such as postcodes
  std::vector<CsvRule> rules{};             // of some columns
  std::string label{};                      // see make_csv
  bool knows_label = false;                 // the schema names the same label, among its columns
  bool label_may_lack = false;              // as what is to be predicted has none: then elements are the features alone
  int64_t bytes_max = int64_t{4} << 30;     // of plain text
  MemoryBudget* budget = nullptr;           // of text and columns while they are read; who keeps the columns keeps the books
  LogSink* log = nullptr;                   // is told what became of texts; may be null

  // What is done where that column lacks a value. A mean that is said for all is not meant for what is to be predicted.
  CsvMissing missing_of(const std::string& column, const CsvRule* rule) const;
  // What may be done there, for an error.
  std::string missing_advice(const std::string& column, const CsvRule* rule) const;
  // Whether that column becomes a number of the float vector beside a label.
  bool is_feature(const std::string& column) const { return !label.empty() && column != label; }
  // Where columns are chosen, the label is one of them.
  CsvOptions with_label() const;
  // As of a file that has no such column.
  void leave_label_out();
};

// Whole numbers of a column that are rounded, as they become float32: how many, and the first of them.
struct Rounded {
  int64_t count = 0;
  int64_t place = 0;  // its line, or row
  std::string text;

  void add(int64_t at, std::string_view number) {
    if (count++ == 0) place = at, text = number;
  }
};

struct CsvColumn {
  std::string name;
  CsvKind kind = CsvKind::whole;
  Tensor values;                        // [rows], of Arrow also [rows, width]; int64, float32 or float64
  std::vector<std::string> categories;  // category i is called categories[i]
  int64_t missing = 0;
  CsvMissing policy = CsvMissing::refuse;
  double fill = 0;  // what was put for missing numbers, by a mean or a constant
  Rounded rounded;
};

// Rows of a source that are in none of its elements, and why, of the first of them.
struct LeftOut {
  static constexpr size_t kReasonsMax = 10;
  int64_t count = 0;
  std::vector<std::string> reasons;

  template <class Why>
  void add(Why why) {
    ++count;
    if (reasons.size() < kReasonsMax) reasons.push_back(why());
  }
  // Of a second source of the same elements.
  void join(const LeftOut& other) {
    count += other.count;
    for (const std::string& reason : other.reasons) {
      if (reasons.size() < kReasonsMax) reasons.push_back(reason);
    }
  }
};

struct CsvTable {
  std::vector<CsvColumn> columns;
  int64_t rows = 0;
  LeftOut left_out;  // as they lack values
};

// The file, plain or gzip.
Result<CsvTable> read_csv(Disk& disk, const std::string& path, const CsvOptions& options = {});
// The same from text; `path` is for messages.
Result<CsvTable> parse_csv(std::string_view text, const std::string& path, const CsvOptions& options);

// A data set of the rows of a table that was read from `from` (for messages); see make_csv. Tells the log what a user would not expect of
// them; `place` is what its rows are counted by, "line" or "row".
Result<DatasetPtr> slices_of(const CsvTable& table, const CsvOptions& options, const std::string& from, const char* place);
// A data set of its rows. With a label, elements are {features, label}: all other columns as one float
// vector, category numbers included, and the label as int64, or as real if it is one. Without, elements
// have one scalar per column. `schema` (may be null) receives what was found out, as text for read_csv_schema; `left_out` (too) the rows
// that were dropped.
Result<DatasetPtr> make_csv(Disk& disk, const std::string& path, const CsvOptions& options = {}, std::string* schema = nullptr,
                            LeftOut* left_out = nullptr);

// Reads a schema into options: {"label": NAME, "columns": [RULE...], "rules": [RULE...]}. Columns are those to read, in that order; rules
// are of columns that are read anyway. A rule is {"name", "kind": "whole" | "real" | "names", "shape": [...], "names": [...], "missing":
// "refuse" | "drop" | "keep" | "mean" | "constant", "value"}, all but the name optional. What the options say already stays.
Status read_csv_schema(std::string_view json, CsvOptions& options);
std::string csv_schema_text(const CsvTable& table, const std::string& label);

// What the label's numbers mean by a schema; empty: it has no names, or the text is no schema.
std::vector<std::string> label_names(std::string_view schema);
// The columns that are features beside it; empty: none are told.
std::vector<std::string> feature_names(std::string_view schema);
// The columns of a table that was read without a label, each a component of its own; empty: it has one, or the text is no schema.
std::vector<std::string> columns_apart(std::string_view schema);
// How another schema means something else by the same numbers, as the end of a sentence; empty: it does not, or one is no schema. Data of
// another number of features may have become the same by a function, and are not looked at. `with_label`: another label is another meaning.
std::string schemas_differ(std::string_view known, std::string_view other, bool with_label = false);
// Whether data of the schema `now` are other data than those of `before`: columns, their order, kinds, shapes and names. As the end of a
// sentence; empty: they are the same as far as schemas tell, or one is no schema.
std::string is_other_data(std::string_view before, std::string_view now);

// INVALID_ARGUMENT where two columns have one name: any, or `wanted` where that is not null. `from` is for messages, with its quotes.
Status check_names_apart(const std::string& from, std::span<const std::string_view> names, const std::string* wanted = nullptr);
// INVALID_ARGUMENT where one column is asked for twice.
Status check_once(const std::string& from, std::span<const std::string> columns);
// NOT_FOUND for a label that is none of these names; `doubt` is what may be the cause, from "; " on.
Status no_label(const std::string& from, const CsvOptions& options, const std::vector<std::string_view>& names,
                const std::string& doubt = "");
// An error for text that is none, by its first bytes.
Status check_is_text(std::string_view text, const std::string& path);
// INVALID_ARGUMENT for text with that byte there; `where` tells of its row.
Status not_utf8(const std::string& path, char byte, size_t offset, const std::string& where);
// "[2,3]"
std::string dims_text(std::span<const int64_t> dims);

}  // namespace dtg
