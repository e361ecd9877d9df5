// Parses CSV in two passes over the text: the first finds columns, kinds and the number of rows, the second fills
// tensors of exactly that size. So memory is the text plus the result, whatever the text holds. See csv.h for threads.
#include "data/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/hash.h"
#include "base/spelling.h"
#include "data/csv_numbers.h"
#include "data/csv_rows.h"
#include "data/gzip.h"
#include "data/with_type.h"

namespace dtg {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Status no_label(const std::string& from, const std::string& label, const std::vector<std::string_view>& names,
                const std::string& doubt = "") {
  return not_found("read %s: the label \"%.100s\" is none of its %zu columns: %s%s", from.c_str(), label.c_str(), names.size(),
                   names_text(label, names).c_str(), doubt.c_str());
}

// What most often stands in place of the delimiter where a line seems to be one field.
std::string doubt_delimiter(std::string_view line, char delimiter) {
  for (const char other : {';', '\t', '|', ','}) {
    if (other == delimiter || line.find(other) == std::string_view::npos) continue;
    const std::string name = other == '\t' ? "a tab" : std::string("'") + other + "'";
    return format("; line 1 has no '%c' but %s: is that the delimiter? An option names it", delimiter, name.c_str());
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
  Parser(std::string_view text, const std::string& path, const CsvOptions& options) : text_(text), path_(path), options_(options) {}

  Result<CsvTable> parse() {
    DTG_TRY(find_header());
    DTG_TRY(select_columns());
    DTG_TRY(each_row([this](const auto& fields, int64_t line) { return look_at(fields, line); }));
    looked_ = true;
    DTG_TRY(check_rows());
    DTG_TRY(check_kinds());
    DTG_TRY(allocate());
    int64_t row = 0;
    DTG_TRY(each_row([this, &row](const auto& fields, int64_t line) { return fill(fields, row++, line); }));
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
    auto first = rows.next(fields);
    if (!first.ok()) return in_file(first.status());
    if (!first.value()) return data_loss("read \"%s\": it has no line", path_.c_str());
    DTG_TRY(check_is_text(text_, path_));
    if (const std::string_view begin = trim(text_.substr(0, 64)); begin.starts_with("{\"") || begin.starts_with("[{"))
      return data_loss("read \"%s\": it begins as JSON does; JSON lines have a reader of their own", path_.c_str());
    if (fields.size() == 1) doubt_ = doubt_delimiter(text_.substr(0, text_.find('\n')), options_.delimiter);
    for (const std::string_view field : fields) names_.emplace_back(trim(field));
    const auto is_number = [](std::string_view field) {
      double value;
      return parse_real(trim(field), value) || is_number_with_comma(trim(field));
    };
    const auto speaks = [&](std::string_view field) { return !is_number(field) && !is_missing(trim(field)); };
    has_header_ = options_.header == CsvHeader::yes;
    // Names that are asked for and stand there are names.
    const auto is_there = [&](const std::string& name) { return std::find(names_.begin(), names_.end(), name) != names_.end(); };
    const auto may_be_there = [&](const std::string& name) {
      return is_there(name) || (options_.label_may_lack && name == options_.label);
    };
    const bool known = (!options_.columns.empty() && std::all_of(options_.columns.begin(), options_.columns.end(), may_be_there)) ||
                       (!options_.label.empty() && is_there(options_.label));
    if (options_.header == CsvHeader::detect && known) {
      has_header_ = true;
    } else if (options_.header == CsvHeader::detect && std::all_of(fields.begin(), fields.end(), speaks)) {
      auto second = rows.next(fields);
      // A line of words alone is the head of a table that has no rows.
      has_header_ = second.ok() && (!second.value() || std::any_of(fields.begin(), fields.end(), is_number));
    }
    for (size_t i = 0; !has_header_ && i < names_.size(); ++i) names_[i] = "c" + std::to_string(i);
    if (!has_header_ && doubt_.empty()) doubt_ = "; its first line holds values, so nothing names them";
    return {};
  }

  Status select_columns() {
    const bool lacks_label = !options_.label.empty() && std::ranges::find(names_, options_.label) == names_.end();
    if (lacks_label && options_.label_may_lack) options_.leave_label_out();
    else if (lacks_label) return no_label("\"" + path_ + "\"", options_.label, {names_.begin(), names_.end()}, doubt_);
    if (options_.columns.empty()) DTG_TRY(check_apart());
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
        return invalid_argument("read \"%s\": the schema says that column \"%.100s\" holds lists of shape %s; a CSV file has none",
                                path_.c_str(), selected.column.name.c_str(), dims_text(*selected.rule->shape).c_str());
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
    std::string known;
    for (size_t i = 0; i < names_.size() && i < 12; ++i) known += (i ? ", " : "") + names_[i];
    return not_found("read \"%s\": no column \"%.100s\"; its %zu columns are %.400s%s%s", path_.c_str(), name.c_str(), names_.size(),
                     known.c_str(), names_.size() > 12 ? ", ..." : "", doubt_.c_str());
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
        return data_loss("read \"%s\": line %lld has %zu fields, the first line %zu; is the delimiter '%c'?", path_.c_str(), line,
                         fields.size(), names_.size(), options_.delimiter);
      }
      const Selected* drops = nullptr;
      for (const Selected& selected : selected_) {
        const std::string_view field = fields[selected.field] = trim(fields[selected.field]);
        if (!is_missing(field)) continue;
        if (!drops && selected.column.policy == CsvMissing::drop_row) drops = &selected;
        if (selected.column.policy == CsvMissing::refuse) {
          return data_loss(
              "read \"%s\": line %lld lacks column \"%.100s\"; the option \"missing\" says what to do with such rows: drop them, keep them "
              "(NaN), or put the mean or a constant%s",
              path_.c_str(), line, selected.column.name.c_str(), options_.missing_note(selected.column.name));
        }
      }
      if (drops) {
        const auto why = [&] {
          return format("read \"%s\": line %lld lacks column \"%.100s\"; it was dropped", path_.c_str(), line, drops->column.name.c_str());
        };
        if (!looked_) left_out_.add(why);
        continue;
      }
      DTG_TRY(what(fields, line));
    }
  }

  Status misfit(const Selected& selected, std::string_view field, int64_t line) const {
    return data_loss("read \"%s\": line %lld has \"%.*s\" in column \"%.100s\", which the schema says is %s", path_.c_str(),
                     static_cast<long long>(line), static_cast<int>(std::min<size_t>(field.size(), 100)), field.data(),
                     selected.column.name.c_str(), *selected.kind == CsvKind::whole ? "of whole numbers" : "of numbers");
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
      return data_loss(
          "read \"%s\": line %lld has \"%s\" in column \"%.100s\", where %lld of %lld cells are numbers; mend it, or give the column "
          "a kind in the schema: {\"rules\": [{\"name\": ..., \"kind\": \"names\"}]}",
          path_.c_str(), selected.odd_line, selected.odd.c_str(), selected.column.name.c_str(), static_cast<long long>(selected.numbers),
          static_cast<long long>(cells));
    }
    return {};
  }

  Status has_commas(const Selected& selected) const {
    return data_loss(
        "read \"%s\": line %lld has \"%s\" in column \"%.100s\": numbers have a point before their decimals, and nothing between "
        "thousands; write them so, or, where it is a name, give the column a kind in the schema: {\"rules\": [{\"name\": ..., \"kind\": "
        "\"names\"}]}",
        path_.c_str(), selected.comma_line, selected.comma.c_str(), selected.column.name.c_str());
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
      return invalid_argument(
          "read \"%s\": missing values of column \"%.100s\" cannot be a number: it holds names; drop such rows or keep them", path_.c_str(),
          column.name.c_str());
    }
    if (selected.rule && selected.rule->value) {
      column.fill = *selected.rule->value;
    } else if (!by_mean) {
      return invalid_argument("read \"%s\": no constant is said for missing values of column \"%.100s\"", path_.c_str(),
                              column.name.c_str());
    } else if (selected.present > 0) {
      column.fill = selected.sum / static_cast<double>(selected.present);
    } else {
      return data_loss("read \"%s\": column \"%.100s\" has no value that a mean could be taken of", path_.c_str(), column.name.c_str());
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
      } else if (column.kind == CsvKind::category) {
        const int64_t id = missing ? -1 : id_of(selected, field);
        if (!missing && id < 0) return unknown_name(selected, field, line);
        column.values.as<int64_t>()[row] = id;
      } else {
        double value = column.policy == CsvMissing::keep ? std::numeric_limits<double>::quiet_NaN() : column.fill;
        if (!missing) parse_real(field, value);
        if (!missing && is_too_large(field, value, options_.doubles)) return too_large(selected, field, line);
        if (options_.doubles) column.values.as<double>()[row] = value;
        else column.values.as<float>()[row] = static_cast<float>(value);
      }
    }
    return {};
  }

  Status too_large(const Selected& selected, std::string_view field, int64_t line) const {
    return data_loss("read \"%s\": line %lld has \"%.*s\" in column \"%.100s\", which is beyond the range of %s; scale the column, or "
                     "leave it out",
                     path_.c_str(), static_cast<long long>(line), static_cast<int>(std::min<size_t>(field.size(), 100)), field.data(),
                     selected.column.name.c_str(), options_.doubles ? "float64" : "float32");
  }

  Status unknown_name(const Selected& selected, std::string_view field, int64_t line) const {
    const std::vector<std::string>& names = selected.column.categories;
    std::string known;
    for (size_t i = 0; i < names.size() && i < 12; ++i) known += (i ? ", " : "") + names[i];
    return invalid_argument("read \"%s\": line %lld has \"%.*s\" in column \"%.100s\", which is none of its %zu names: %.400s%s",
                            path_.c_str(), static_cast<long long>(line), static_cast<int>(std::min<size_t>(field.size(), 100)),
                            field.data(), selected.column.name.c_str(), names.size(), known.c_str(), names.size() > 12 ? ", ..." : "");
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
  CsvOptions options_;
  std::string doubt_;  // whether this is the delimiter, or why there are no names, for an error
  std::vector<std::string> names_;
  bool has_header_ = false;
  std::vector<Selected> selected_;
  int64_t rows_ = 0;
  bool looked_ = false;  // at all rows, once
  LeftOut left_out_;
  Reservation held_;
};

// All columns but the label, side by side.
template <class To>
Result<Tensor> pack_features(const CsvTable& table, size_t label) {
  int64_t width = 0, at = 0;
  const auto width_of = [](const CsvColumn& column) { return column.values.shape().rank() > 1 ? column.values.shape().dim(1) : 1; };
  for (size_t i = 0; i < table.columns.size(); ++i) width += i == label ? 0 : width_of(table.columns[i]);
  const int64_t dims[] = {table.rows, width};
  DTG_ASSIGN(const Shape shape, Shape::make(dims));
  DTG_ASSIGN(Tensor features, Tensor::allocate(dtype_of<To>, shape));
  To* const to = features.as<To>();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (i == label) continue;
    const Tensor& values = table.columns[i].values;
    const int64_t here = width_of(table.columns[i]);
    with_type(values.dtype(), [&](auto type) {
      const auto* const from = values.as<decltype(type)>();
      for (int64_t k = 0; k < values.count(); ++k) to[k / here * width + at + k % here] = static_cast<To>(from[k]);
    });
    at += here;
  }
  return features;
}

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

CsvMissing CsvOptions::missing_of(const std::string& column, const CsvRule* rule) const {
  if (rule && rule->missing) return *rule->missing;
  return column == label && missing == CsvMissing::mean ? CsvMissing::refuse : missing;
}

const char* CsvOptions::missing_note(const std::string& column) const {
  return column == label && missing == CsvMissing::mean ? "; for the label only where the schema says so of that column" : "";
}

CsvOptions CsvOptions::with_label() const {
  CsvOptions all = *this;
  if (!label.empty() && !columns.empty() && std::ranges::find(columns, label) == columns.end()) all.columns.push_back(label);
  return all;
}

void CsvOptions::leave_label_out() {
  std::erase(columns, label);
  std::erase_if(rules, [this](const CsvRule& rule) { return rule.name == label; });
  label.clear();
}

Result<DatasetPtr> slices_of(const CsvTable& table, const CsvOptions& options, const std::string& from) {
  std::vector<Tensor> tensors;
  if (options.label.empty()) {
    for (const CsvColumn& column : table.columns) tensors.push_back(column.values);
    return make_slices(tensors);
  }
  size_t label = 0;
  while (label < table.columns.size() && table.columns[label].name != options.label) ++label;
  const bool lacks_label = label == table.columns.size();
  if (lacks_label && !options.label_may_lack) {
    std::vector<std::string_view> names;
    for (const CsvColumn& column : table.columns) names.push_back(column.name);
    return no_label(from, options.label, names);
  }
  DTG_ASSIGN(Tensor features, options.doubles ? pack_features<double>(table, label) : pack_features<float>(table, label));
  tensors.push_back(std::move(features));
  if (!lacks_label) tensors.push_back(table.columns[label].values);
  return make_slices(tensors);
}

Result<DatasetPtr> make_csv(Disk& disk, const std::string& path, const CsvOptions& options, std::string* schema, LeftOut* left_out) {
  DTG_ASSIGN(CsvTable table, read_csv(disk, path, options.with_label()));
  if (left_out) *left_out = std::move(table.left_out);
  if (schema) *schema = csv_schema_text(table, options.label);
  tell_ordinals(table, options, "\"" + path + "\"");
  return slices_of(table, options, "\"" + path + "\"");
}

}  // namespace dtg
