// Parses CSV in two passes over the text: the first finds columns, kinds and the number of rows, the second fills
// tensors of exactly that size. So memory is the text plus the result, whatever the text holds. See csv.h for threads.
#include "data/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/hash.h"
#include "base/json.h"
#include "base/spelling.h"
#include "data/csv_numbers.h"
#include "data/csv_rows.h"
#include "data/exact.h"
#include "data/gzip.h"

namespace dtg {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

constexpr const char* kDelimiterDoubt = "; line 1 has no ";

// What most often stands in place of the delimiter where a line seems to be one field.
std::string doubt_delimiter(std::string_view line, char delimiter) {
  for (const char other : {';', '\t', '|', ','}) {
    if (other == delimiter || line.find(other) == std::string_view::npos) continue;
    const std::string name = other == '\t' ? "a tab" : std::string("'") + other + "'";
    return kDelimiterDoubt + (delimiter == '\t' ? std::string("tab") : format("'%c'", delimiter)) + " but " + name +
           ": is that the delimiter? An option names it";
  }
  return "";
}

bool is_missing(std::string_view field) {
  for (const char* word : {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"}) {
    if (field == word) return true;
  }
  return false;
}

struct Selected {
  size_t field = 0;  // position in the line
  CsvColumn column;
  const CsvRule* rule = nullptr;
  std::optional<CsvKind> kind;  // that it must have
  bool has_names = false;       // the vocabulary is given
  double sum = 0;               // of what is there, for the mean
  int64_t numbers = 0;          // of a column that nobody said the kind of: how many cells are numbers,
  int64_t commas = 0;           // how many would be with another comma,
  long long odd_line = 0;       // the first that is none,
  std::string odd;
  long long comma_line = 0;  // and the first of those with a comma
  std::string comma;
  int64_t present = 0;
  std::unordered_map<std::string, int64_t, BytesHash, std::equal_to<>> ids;  // in order of appearance
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& path, const CsvOptions& options)
      : text_(text), path_(path), options_(options), label_(options.label) {}

  Result<CsvTable> parse() {
    DTG_TRY(find_header());
    DTG_TRY(check_letters());
    DTG_TRY(select_columns());
    DTG_TRY(each_row([this](const auto& fields, int64_t line) { return look_at(fields, line); }));
    looked_ = true;
    DTG_TRY(check_rows());
    DTG_TRY(check_kinds());
    DTG_TRY(allocate());
    int64_t row = 0;
    DTG_TRY(each_row([this, &row](const auto& fields, int64_t line) { return fill(fields, row++, line); }));
    tell_doubts();
    CsvTable table;
    table.rows = rows_;
    table.left_out = std::move(left_out_);
    for (Selected& selected : selected_) {
      if (selected.column.kind == CsvKind::category && !selected.has_names) sort_categories(selected);
      table.columns.push_back(std::move(selected.column));
    }
    return table;
  }

 private:
  Status in_file(const Status& status) const { return status.with_context("read \"" + path_ + "\""); }

  // Names of the columns, from the first line or made up.
  Status find_header() {
    CsvRows rows(text_, options_.delimiter);
    std::vector<std::string_view> fields;
    DTG_TRY(check_is_text(text_, path_));
    auto first = rows.next(fields);
    if (!first.ok()) return in_file(first.status());
    if (!first.value()) return data_loss("read \"%s\": it has no line", path_.c_str());
    if (const std::string_view begin = trim(text_.substr(0, 64)); begin.starts_with("{\"") || begin.starts_with("[{"))
      return data_loss("read \"%s\": it begins as JSON does; JSON lines have a reader of their own", path_.c_str());
    if (fields.size() == 1) doubt_ = doubt_delimiter(text_.substr(0, text_.find('\n')), options_.delimiter);
    for (const std::string_view field : fields) names_.emplace_back(trim(field));
    const bool numbers = std::ranges::any_of(fields, is_number);
    has_header_ = options_.header == CsvHeader::yes || (options_.header == CsvHeader::detect && first_names(rows, fields));
    first_ = names_[0];
    for (size_t i = 0; !has_header_ && i < names_.size(); ++i) names_[i] = "c" + std::to_string(i);
    if (!doubt_.empty()) return {};
    if (!has_header_ && options_.header == CsvHeader::no) doubt_ = "; the option `header` says that its first line names nothing";
    else if (!has_header_) doubt_ = "; its first line holds values, so nothing names them; if it names them, say so by the option `header`";
    else if (numbers && options_.header == CsvHeader::yes)
      doubt_ = "; its first line, which holds numbers, was taken for names, as the option `header` says";
    return {};
  }

  static bool is_number(std::string_view field) {
    double value;
    return parse_real(trim(field), value) || is_number_with_comma(trim(field));
  }

  // Whether the first line, whose cells are `names_` and `fields`, names the columns; `rows` goes on behind it.
  bool first_names(CsvRows& rows, std::vector<std::string_view>& fields) {
    // Names that are asked for and stand there are names.
    const auto is_there = [&](const std::string& name) { return std::ranges::find(names_, name) != names_.end(); };
    const auto may_be_there = [&](const std::string& name) {
      return is_there(name) || (options_.label_may_lack && name == options_.label);
    };
    if (!options_.columns.empty() && std::ranges::all_of(options_.columns, may_be_there)) return true;
    if (!options_.label.empty() && is_there(options_.label)) return true;
    if (std::ranges::any_of(options_.rules, [&](const CsvRule& rule) { return is_there(rule.name); })) return true;
    const auto speaks = [](std::string_view field) { return !is_number(field) && !is_missing(trim(field)); };
    if (!std::ranges::all_of(fields, speaks)) return false;
    // A line of words alone is the head of a table that has no rows.
    int64_t below = 0;
    for (auto more = rows.next(fields); more.ok() && more.value(); more = rows.next(fields), ++below) {
      if (std::ranges::any_of(fields, is_number)) return true;
    }
    if (below == 0) return true;
    // Nothing but words. Who asks for a name thinks that there are some, and is told which.
    const auto is_asked = [](const std::string& name) {
      return name.size() < 2 || name[0] != 'c' || name.find_first_not_of("0123456789", 1) != name.npos;
    };
    words_alone_ = true;
    return std::ranges::any_of(options_.columns, is_asked) || (!options_.label.empty() && is_asked(options_.label));
  }

  // What was decided without a reason that could not fail.
  void tell_doubts() const {
    if (!options_.log) return;
    const auto warn = [&](const std::string& what) { options_.log->write(LogLevel::warn, "data", "read \"" + path_ + "\": " + what); };
    if (names_.size() == 1 && doubt_.starts_with(kDelimiterDoubt)) warn("its rows are one column" + doubt_);
    else if (words_alone_ && !has_header_)
      warn("no line has a number, so its first line (" + quoted(first_, 60) + (names_.size() > 1 ? ", ...)" : ")") +
           " was taken for values, and the columns are called c0, c1, ...; say by the option `header` whether it names them");
  }

  // Names that are read wrong are others, and some of them become one.
  Status check_letters() const {
    const size_t ill = utf8_prefix(text_);
    if (ill == text_.size()) return {};
    CsvRows rows(text_, options_.delimiter);
    std::vector<std::string_view> fields;
    for (bool first = true;; first = false) {
      auto more = rows.next(fields);
      if (!more.ok() || !more.value()) break;
      const auto bad = std::ranges::find_if(fields, [](std::string_view field) { return !is_utf8(field); });
      if (bad == fields.end()) continue;
      const auto place = static_cast<size_t>(bad - fields.begin());
      const bool named = has_header_ && !first && place < names_.size();
      return not_utf8(path_, text_[ill], ill,
                      format("line %lld has %s in column ", static_cast<long long>(rows.line()), quoted(*bad).c_str()) +
                          (named ? quoted(names_[place]) : std::to_string(place + 1)));
    }
    return not_utf8(
        path_, text_[ill], ill,
        format("line %lld", static_cast<long long>(1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(ill), '\n'))));
  }

  Status select_columns() {
    const bool lacks_label = !options_.label.empty() && std::ranges::find(names_, options_.label) == names_.end();
    if (lacks_label && options_.label_may_lack) options_.leave_label_out();
    else if (lacks_label) return no_label("\"" + path_ + "\"", options_, {names_.begin(), names_.end()}, doubt_);
    if (options_.columns.empty()) DTG_TRY(check_apart());
    DTG_TRY(check_once("\"" + path_ + "\"", options_.columns));
    std::vector<std::string> wanted = options_.columns.empty() ? names_ : options_.columns;
    for (size_t i = 0; i < wanted.size(); ++i) {
      Selected& selected = selected_.emplace_back();
      selected.field = i;
      if (!options_.columns.empty()) {
        DTG_ASSIGN(selected.field, field_named(wanted[i]));
      }
      selected.column.name = wanted[i];
    }
    for (const std::string& name : options_.categories) {
      DTG_TRY(field_named(name).status());
      for (Selected& selected : selected_) {
        if (selected.column.name == name) selected.kind = CsvKind::category;
      }
    }
    for (const CsvRule& rule : options_.rules) {
      DTG_TRY(field_named(rule.name).status());
      for (Selected& selected : selected_) {
        if (selected.column.name == rule.name) selected.rule = &rule;
      }
    }
    for (Selected& selected : selected_) {
      if (selected.rule && selected.rule->shape && !selected.rule->shape->empty()) {
        return invalid_argument("read \"%s\": the schema says that column %s holds lists of shape %s; a CSV file has none", path_.c_str(),
                                quoted(selected.column.name).c_str(), dims_text(*selected.rule->shape).c_str());
      }
      apply_rule(selected);
    }
    return {};
  }

  Status check_apart(const std::string* wanted = nullptr) const {
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    return check_names_apart("\"" + path_ + "\"", names, wanted);
  }

  void apply_rule(Selected& selected) const {
    CsvColumn& column = selected.column;
    column.policy = options_.missing_of(column.name, selected.rule);
    if (selected.rule && selected.rule->kind) selected.kind = selected.rule->kind;
    if (selected.kind) column.kind = *selected.kind;
    if (!selected.rule || !selected.rule->names) return;
    selected.has_names = true;
    column.categories = *selected.rule->names;
    for (const std::string& name : column.categories) selected.ids.emplace(name, static_cast<int64_t>(selected.ids.size()));
  }

  Status check_rows() const {
    if (rows_ > 0) return {};
    if (left_out_.count > 0) {
      return data_loss("read \"%s\": all its %lld rows lack values, and rows that do are dropped", path_.c_str(),
                       static_cast<long long>(left_out_.count));
    }
    return data_loss("read \"%s\": it has a line with the names of columns and no row below it", path_.c_str());
  }

  Result<size_t> field_named(const std::string& name) const {
    DTG_TRY(check_apart(&name));
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at != names_.end()) return static_cast<size_t>(at - names_.begin());
    const std::vector<std::string_view> known(names_.begin(), names_.end());
    return not_found("read \"%s\": no column %s among its %zu: %s%s", path_.c_str(), quoted(name).c_str(), names_.size(),
                     names_text(name, known).c_str(), doubt_.c_str());
  }

  // Calls what(fields, line) for each row that is to be kept.
  template <class What>
  Status each_row(What what) {
    CsvRows rows(text_, options_.delimiter);
    std::vector<std::string_view> fields;
    for (bool first = true;; first = false) {
      auto more = rows.next(fields);
      if (!more.ok()) return in_file(more.status());
      if (!more.value()) return {};
      if (first && has_header_) continue;
      const auto line = static_cast<long long>(rows.line());
      if (fields.size() != names_.size()) {
        return data_loss("read \"%s\": line %lld has %zu fields, the first line %zu; is the delimiter '%c'?%s", path_.c_str(), line,
                         fields.size(), names_.size(), options_.delimiter,
                         doubt_.starts_with(kDelimiterDoubt) ? (" " + doubt_.substr(2)).c_str() : "");
      }
      const Selected* drops = nullptr;
      for (const Selected& selected : selected_) {
        const std::string_view field = fields[selected.field] = trim(fields[selected.field]);
        if (!is_missing(field)) continue;
        if (!drops && selected.column.policy == CsvMissing::drop_row) drops = &selected;
        if (selected.column.policy == CsvMissing::refuse) {
          return data_loss("read \"%s\": line %lld has no value in column %s; %s", path_.c_str(), line,
                           quoted(selected.column.name).c_str(), options_.missing_advice(selected.column.name, selected.rule).c_str());
        }
      }
      if (drops) {
        const auto why = [&] {
          return format("read \"%s\": line %lld has no value in column %s; it was dropped", path_.c_str(), line,
                        quoted(drops->column.name).c_str());
        };
        if (!looked_) left_out_.add(why);
        continue;
      }
      DTG_TRY(what(fields, line));
    }
  }

  Status misfit(const Selected& selected, std::string_view field, int64_t line) const {
    return data_loss("read \"%s\": line %lld has %s in column %s, which the schema says is %s; mend the cell, or the schema", path_.c_str(),
                     static_cast<long long>(line), quoted(field).c_str(), quoted(selected.column.name).c_str(),
                     *selected.kind == CsvKind::whole ? "of whole numbers" : "of numbers");
  }

  // One slip of the pen would make a name of every number in its column, and features of their order. Where there are few cells, one is a
  // larger share.
  Status check_kinds() const {
    constexpr int64_t kMany = 20;
    for (const Selected& selected : selected_) {
      const int64_t cells = rows_ - selected.column.missing, numbers = selected.numbers + selected.commas;
      const bool means_numbers = cells < kMany ? numbers * 4 >= cells * 3 : numbers * 10 >= cells * 9;
      if (selected.odd_line == 0 || !means_numbers) continue;
      if (selected.commas > 0) return has_commas(selected);
      return data_loss("read \"%s\": line %lld has %s in column %s, where %lld of %lld cells are numbers; mend it, or give the column "
                       "a kind in the schema: {\"rules\": [{\"name\": ..., \"kind\": \"names\"}]}",
                       path_.c_str(), selected.odd_line, quoted(selected.odd).c_str(), quoted(selected.column.name).c_str(),
                       static_cast<long long>(selected.numbers), static_cast<long long>(cells));
    }
    return {};
  }

  Status has_commas(const Selected& selected) const {
    return data_loss(
        "read \"%s\": line %lld has %s in column %s: numbers have a point before their decimals, and nothing between "
        "thousands; write them so, or, where it is a name, give the column a kind in the schema: {\"rules\": [{\"name\": ..., \"kind\": "
        "\"names\"}]}",
        path_.c_str(), selected.comma_line, quoted(selected.comma).c_str(), quoted(selected.column.name).c_str());
  }

  // The kind of a column that no schema tells only ever widens: whole, real, category.
  Status look_at(const std::vector<std::string_view>& fields, int64_t line) {
    ++rows_;
    for (Selected& selected : selected_) {
      const std::string_view field = fields[selected.field];
      CsvColumn& column = selected.column;
      if (is_missing(field)) {
        ++column.missing;
        continue;
      }
      if (column.kind == CsvKind::category && selected.odd_line == 0) continue;
      int64_t whole;
      double real = 0;
      const bool is_number = parse_real(field, real);
      selected.numbers += is_number;
      if (!is_number && !selected.kind && is_number_with_comma(field) && selected.commas++ == 0) {
        selected.comma_line = line;
        selected.comma = field.substr(0, 100);
      }
      if (selected.odd_line != 0) continue;
      if (column.kind == CsvKind::whole && !parse_whole(field, whole)) {
        if (selected.kind) return misfit(selected, field, line);
        column.kind = CsvKind::real;
      }
      if (!is_number && selected.kind) return misfit(selected, field, line);
      if (!is_number) {
        column.kind = CsvKind::category;
        selected.odd_line = line;
        selected.odd = field.substr(0, 100);
      }
      selected.sum += real;
      ++selected.present;
    }
    return {};
  }

  Status allocate() {
    // Columns, and with a label once more, side by side.
    int64_t bytes = 0;
    if (__builtin_mul_overflow(rows_, static_cast<int64_t>(selected_.size()) * 2 * int64_t{sizeof(double)}, &bytes)) bytes = INT64_MAX;
    held_.budget = options_.budget;
    DTG_TRY(held_.grow(bytes, path_.c_str()));
    for (Selected& selected : selected_) {
      CsvColumn& column = selected.column;
      if (column.kind == CsvKind::whole && column.missing != 0) column.kind = CsvKind::real;
      DTG_TRY(find_fill(selected));
      const DType real = options_.doubles ? DType::f64 : DType::f32;
      DTG_ASSIGN(column.values, Tensor::allocate(column.kind == CsvKind::real ? real : DType::i64, Shape::of({rows_})));
    }
    return {};
  }

  // What stands for missing numbers. A mean that a schema gives is that of the data it was made of.
  Status find_fill(Selected& selected) {
    CsvColumn& column = selected.column;
    const bool by_mean = column.policy == CsvMissing::mean;
    if (!by_mean && column.policy != CsvMissing::constant) return {};
    if (column.kind == CsvKind::category) {
      // Said for all columns it is meant for numbers; said for this one it is a mistake.
      if (!(selected.rule && selected.rule->missing) && column.missing == 0) {
        column.policy = CsvMissing::refuse;
        return {};
      }
      return invalid_argument("read \"%s\": missing values of column %s cannot be a number: it holds names; drop such rows or keep them",
                              path_.c_str(), quoted(column.name).c_str());
    }
    if (selected.rule && selected.rule->value) {
      column.fill = *selected.rule->value;
    } else if (!by_mean) {
      return invalid_argument("read \"%s\": no constant is said for missing values of column %s", path_.c_str(),
                              quoted(column.name).c_str());
    } else if (selected.present > 0) {
      column.fill = selected.sum / static_cast<double>(selected.present);
    } else {
      return data_loss("read \"%s\": column %s has no value that a mean could be taken of", path_.c_str(), quoted(column.name).c_str());
    }
    return {};
  }

  Status fill(const std::vector<std::string_view>& fields, int64_t row, int64_t line) {
    for (Selected& selected : selected_) {
      const std::string_view field = fields[selected.field];
      CsvColumn& column = selected.column;
      const bool missing = is_missing(field);
      if (column.kind == CsvKind::whole) {
        int64_t value = 0;
        parse_whole(field, value);
        column.values.as<int64_t>()[row] = value;
        if (is_feature(column.name) && !is_exact(value, options_.doubles)) column.rounded.add(line, field);
      } else if (column.kind == CsvKind::category) {
        const int64_t id = missing ? -1 : id_of(selected, field);
        if (!missing && id < 0) return unknown_name(selected, field, line);
        column.values.as<int64_t>()[row] = id;
      } else {
        double value = column.policy == CsvMissing::keep ? std::numeric_limits<double>::quiet_NaN() : column.fill;
        if (!missing) parse_real(field, value);
        if (!missing && is_too_large(field, value, options_.doubles)) return too_large(selected, field, line);
        if (!missing && is_rounded(field, value, options_.doubles)) column.rounded.add(line, field);
        if (options_.doubles) column.values.as<double>()[row] = value;
        else column.values.as<float>()[row] = static_cast<float>(value);
      }
    }
    return {};
  }

  Status too_large(const Selected& selected, std::string_view field, int64_t line) const {
    return data_loss("read \"%s\": line %lld has %s in column %s, which is beyond the range of %s; scale the column, or leave it out",
                     path_.c_str(), static_cast<long long>(line), quoted(field).c_str(), quoted(selected.column.name).c_str(),
                     options_.doubles ? "float64" : "float32");
  }

  Status unknown_name(const Selected& selected, std::string_view field, int64_t line) const {
    const std::vector<std::string>& names = selected.column.categories;
    return invalid_argument("read \"%s\": line %lld has %s in column %s, which is none of its %zu names: %s", path_.c_str(),
                            static_cast<long long>(line), quoted(field).c_str(), quoted(selected.column.name).c_str(), names.size(),
                            names_text(field, std::vector<std::string_view>(names.begin(), names.end())).c_str());
  }

  // Negative for a name that a given vocabulary does not have.
  static int64_t id_of(Selected& selected, std::string_view field) {
    const auto known = selected.ids.find(field);
    if (known != selected.ids.end()) return known->second;
    if (selected.has_names) return -1;
    const auto id = static_cast<int64_t>(selected.ids.size());
    selected.ids.emplace(field, id);
    return id;
  }

  // Numbers by name instead of by appearance, so that shuffled copies of a table agree on them.
  static void sort_categories(Selected& selected) {
    CsvColumn& column = selected.column;
    for (const auto& [name, id] : selected.ids) column.categories.push_back(name);
    std::sort(column.categories.begin(), column.categories.end());
    std::vector<int64_t> renamed(column.categories.size());
    for (size_t i = 0; i < column.categories.size(); ++i) {
      renamed[static_cast<size_t>(selected.ids.find(column.categories[i])->second)] = static_cast<int64_t>(i);
    }
    int64_t* const ids = column.values.as<int64_t>();
    for (int64_t row = 0; row < column.values.count(); ++row) {
      if (ids[row] >= 0) ids[row] = renamed[static_cast<size_t>(ids[row])];
    }
  }

  const std::string_view text_;
  const std::string& path_;
  // Whether that column becomes a number of the float vector beside a label, of a file that lacks the label too.
  bool is_feature(const std::string& column) const { return !label_.empty() && column != label_; }

  CsvOptions options_;
  const std::string label_;
  std::string doubt_;  // whether this is the delimiter, or why there are no names, for an error
  std::vector<std::string> names_;
  std::string first_;         // cell of the file
  bool words_alone_ = false;  // no cell of any line is a number
  bool has_header_ = false;
  std::vector<Selected> selected_;
  int64_t rows_ = 0;
  bool looked_ = false;  // at all rows, once
  LeftOut left_out_;
  Reservation held_;
};

}  // namespace

Result<CsvTable> parse_csv(std::string_view text, const std::string& path, const CsvOptions& options) {
  if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r') {
    return invalid_argument("read \"%s\": a quote or the end of a line cannot be the delimiter", path.c_str());
  }
  return Parser(text, path, options).parse();
}

Result<CsvTable> read_csv(Disk& disk, const std::string& path, const CsvOptions& options) {
  DTG_ASSIGN(auto file, open_plain(disk, path));
  Reservation held(options.budget, 0);
  DTG_ASSIGN(const std::string text, read_all(*file, path, options.bytes_max, held));
  return parse_csv(text, path, options);
}

}  // namespace dtg
