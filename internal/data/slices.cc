// What becomes of a table of columns, whatever its format: a data set of its rows, with all columns but the label side by side; and what is
// told of them. See csv.h.
#include <algorithm>

#include "base/json.h"
#include "base/spelling.h"
#include "data/csv.h"
#include "data/exact.h"
#include "data/with_type.h"

namespace dtg {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

const CsvRule* rule_of(const CsvOptions& options, const std::string& column) {
  const auto at = std::ranges::find(options.rules, column, &CsvRule::name);
  return at != options.rules.end() ? &*at : nullptr;
}

// Of lists of whatever shape, one number after the other.
int64_t width_of(const CsvTable& table, const CsvColumn& column) { return column.values.count() / table.rows; }

template <class To>
Result<Tensor> pack_features(const CsvTable& table, size_t label) {
  int64_t width = 0, at = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) width += i == label ? 0 : width_of(table, table.columns[i]);
  const int64_t dims[] = {table.rows, width};
  DTG_ASSIGN(const Shape shape, Shape::make(dims));
  DTG_ASSIGN(Tensor features, Tensor::allocate(dtype_of<To>, shape));
  To* const to = features.as<To>();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (i == label) continue;
    const Tensor& values = table.columns[i].values;
    const int64_t here = width_of(table, table.columns[i]);
    with_type(values.dtype(), [&](auto type) {
      const auto* const from = values.as<decltype(type)>();
      for (int64_t k = 0; k < values.count(); ++k) to[k / here * width + at + k % here] = static_cast<To>(from[k]);
    });
    at += here;
  }
  return features;
}

// 2024-01-31, 31.1.2024, 1/31/24, with a time behind it or not.
bool is_date(std::string_view text) {
  size_t parts = 1, digits = 0;
  char between = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      if (++digits > 4) return false;
      continue;
    }
    if (digits == 0) return false;
    if (parts == 3) return c == ' ' || c == 'T' || c == 'Z' || c == '+';
    if ((c != '-' && c != '.' && c != '/') || (between && c != between)) return false;
    between = c;
    ++parts;
    digits = 0;
  }
  return parts == 3 && digits > 0;
}

bool holds_dates(const CsvColumn& column) {
  return !column.categories.empty() && is_date(column.categories.front()) && is_date(column.categories.back());
}

// Which texts became numbers that nobody had asked for: beside a label they are features of an order that means nothing.
void tell_ordinals(const CsvTable& table, const CsvOptions& options, const std::string& from) {
  std::string which, first, dates;
  for (const CsvColumn& column : table.columns) {
    const CsvRule* const rule = rule_of(options, column.name);
    const bool meant = (rule && rule->kind) || std::ranges::find(options.categories, column.name) != options.categories.end();
    if (column.kind != CsvKind::category || column.name == options.label || meant) continue;
    if (dates.empty() && holds_dates(column)) dates = quoted(column.name);
    if (first.empty()) first = column.name.substr(0, 100);
    if (which.size() > 400) {
      which += which.ends_with("...") ? "" : ", ...";
      continue;
    }
    which += format("%s%s (%zu)", which.empty() ? "" : ", ", quoted(column.name).c_str(), column.categories.size());
  }
  if (which.empty()) return;
  std::string told = "read " + from + ": texts became numbers, by the order of the names in their columns: " + which;
  if (!options.label.empty()) {
    told += ". As features they would be measured by that order: make them one-hot, or, where it is meant, say so in the "
            "schema: {\"rules\": [{\"name\": " +
            Json(first).text() + ", \"kind\": \"names\"}]}";
  }
  if (!dates.empty()) {
    told +=
        ". Dates such as those in " + dates +
        " have no type here: write numbers in their place before they are read, such as days since a day, or columns for year, month and "
        "weekday";
  }
  options.log->write(options.label.empty() ? LogLevel::info : LogLevel::warn, "data", told);
}

// Once for each column, and of many of them for the first ten.
void tell_rounded(const CsvTable& table, const CsvOptions& options, const std::string& from, const char* place) {
  int64_t columns = 0;
  for (const CsvColumn& column : table.columns) {
    const Rounded& rounded = column.rounded;
    if (rounded.count == 0 || ++columns > 10) continue;
    options.log->write(
        LogLevel::warn, "data",
        format(
            "read %s: column %s has whole numbers that %s rounds, %lld of them: %s %lld has %.100s. It holds all of them up to %s; write "
            "smaller ones, such as days since a first day or a difference, split the number into columns, or leave the column out; of an "
            "id make a name, by {\"rules\": [{\"name\": %s, \"kind\": \"names\"}]} in the schema",
            from.c_str(), quoted(column.name).c_str(), options.doubles ? "float64" : "float32", ll(rounded.count), place, ll(rounded.place),
            rounded.text.c_str(), options.doubles ? "9,007,199,254,740,992" : "16,777,216",
            Json(column.name.substr(0, 100)).text().c_str()));
  }
  if (columns > 10)
    options.log->write(LogLevel::warn, "data", format("read %s: and so have %lld columns more", from.c_str(), ll(columns - 10)));
}

void tell_lost_labels(const CsvColumn& label, const CsvOptions& options, const std::string& from) {
  if (label.missing == 0 || label.policy != CsvMissing::keep) return;
  options.log->write(
      LogLevel::warn, "data",
      format("read %s: %lld rows have no label, which is %s for them: no loss can take that; drop such rows where they are to "
             "be trained or tested with: {\"rules\": [{\"name\": %s, \"missing\": \"drop\"}]} in the schema",
             from.c_str(), ll(label.missing), label.kind == CsvKind::category ? "-1" : "NaN",
             Json(label.name.substr(0, 100)).text().c_str()));
}

// Files of safetensors begin with the length of a header of JSON, in 8 bytes.
const char* weights_kind(std::string_view text) {
  uint64_t length = 0;
  if (text.size() < 10) return nullptr;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(text[i]);
  if (text[8] != '{' || (text[9] != '"' && text[9] != '}') || length < 2 || length > text.size() - 8) return nullptr;
  return text.substr(8, length).find("\"dtg.graph\"") != text.npos
             ? "a model that was exported, as model.dtg is: dtg_model_load reads it"
             : "a file of safetensors, as weights are kept in: dtg_model_restore_from reads it";
}

// What a file is that is known by its first bytes, and what to do; null: not known.
const char* binary_kind(std::string_view text) {
  static constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {"\x93NUMPY", "an array of NumPy: dtg_dataset_npy reads it"},
      {"PAR1\x15", "a Parquet file: save the table as CSV, or hand it over as an Arrow stream (dtg_dataset_arrow)"},
      {std::string_view("ARROW1\0", 7), "an Arrow file: hand it over as an Arrow stream (dtg_dataset_arrow)"},
      {"\xff\xff\xff\xff", "an Arrow stream in a file: hand it over as an Arrow stream (dtg_dataset_arrow)"},
      {"\x89HDF", "an HDF5 file: save the table as CSV, or its arrays as .npy"},
      {"SQLite format 3", "a database of SQLite: save the table as CSV"},
      {"\xd0\xcf\x11\xe0", "a file of an old spreadsheet: save the table as CSV"},
      {"%PDF", "a PDF: save the table as CSV"},
      {"\x89PNG", "an image: give the file with the table"},
      {"\xff\xd8\xff", "an image: give the file with the table"},
      {"\x7f"
       "ELF",
       "a program: give the file with the table"}};
  for (const auto& [begin, what] : kKinds) {
    if (text.starts_with(begin)) return what;
  }
  return weights_kind(text);
}

// Every other byte is 0, as of ASCII in UTF-16.
bool is_wide(std::string_view text) {
  if (text.size() < 2) return false;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    if ((text[i] == '\0') == (text[i + 1] == '\0') || (text[i] == '\0') != (text[0] == '\0')) return false;
  }
  return true;
}

}  // namespace

CsvMissing CsvOptions::missing_of(const std::string& column, const CsvRule* rule) const {
  if (rule && rule->missing) return *rule->missing;
  return column == label && missing == CsvMissing::mean ? CsvMissing::refuse : missing;
}

std::string CsvOptions::missing_advice(const std::string& column, const CsvRule* rule) const {
  if (rule && rule->missing)
    return "the schema says \"missing\": \"refuse\" of that column, which goes before the option; say \"drop\", \"keep\" (NaN), \"mean\" or "
           "\"constant\" there";
  if (column == label && missing == CsvMissing::mean)
    return "the option \"missing\" makes no label up; drop such rows, or say what is meant of the label in the schema: {\"rules\": [{\"name\": " +
           Json(column.substr(0, 100)).text() + ", \"missing\": \"drop\"}]}";
  return "the option \"missing\" says what to do with such rows: drop them, keep them (NaN), or put the mean; a schema says it of one column, "
         "and a constant";
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

Status no_label(const std::string& from, const CsvOptions& options, const std::vector<std::string_view>& names, const std::string& doubt) {
  const char* const known =
      options.knows_label ? "; where these are rows to predict, leave the option `label` out: the schema knows it, and lets it be lacking"
                          : "";
  return not_found("read %s: the label %s is none of its %zu columns: %s%s%s", from.c_str(), quoted(options.label).c_str(), names.size(),
                   names_text(options.label, names).c_str(), doubt.c_str(), known);
}

Status check_once(const std::string& from, std::span<const std::string> columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (std::ranges::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), columns[i]) ==
        columns.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    return invalid_argument("read %s: the column %s is asked for twice; name each once", from.c_str(), quoted(columns[i]).c_str());
  }
  return {};
}

Status check_is_text(std::string_view text, const std::string& path) {
  if (const char* const what = binary_kind(text))
    return invalid_argument("read \"%s\": it is no text of a table, but %s", path.c_str(), what);
  const bool marked = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (marked || is_wide(text.substr(0, 4)))
    return invalid_argument("read \"%s\": it is UTF-16 by its first bytes; save it as UTF-8", path.c_str());
  if (const size_t zero = text.substr(0, 64).find('\0'); zero != text.npos)
    return invalid_argument(
        "read \"%s\": byte %zu of it is 0, so it is a binary file, and no text of a table; give the file with the table", path.c_str(),
        zero + 1);
  if (text.starts_with("PK\x03\x04"))
    return data_loss("read \"%s\": it is a zip file, as those of spreadsheets are; save the table as text", path.c_str());
  return {};
}

Status not_utf8(const std::string& path, char byte, size_t offset, const std::string& where) {
  return invalid_argument("read \"%s\": %s: the byte 0x%02x, number %zu of the text, is no UTF-8; save the file as UTF-8, from Latin-1 or "
                          "Windows-1252, as which spreadsheets write it",
                          path.c_str(), where.c_str(), static_cast<unsigned>(static_cast<unsigned char>(byte)), offset + 1);
}

Result<DatasetPtr> slices_of(const CsvTable& table, const CsvOptions& options, const std::string& from, const char* place) {
  if (options.log) {
    tell_ordinals(table, options, from);
    tell_rounded(table, options, from, place);
  }
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
    return no_label(from, options, names);
  }
  if (!lacks_label && table.columns.size() == 1) {
    return invalid_argument(
        "read %s: the label %s is the only column that is read, so there are no features; read more columns, or, for these "
        "values alone, name no label",
        from.c_str(), quoted(options.label).c_str());
  }
  if (!lacks_label && options.log) tell_lost_labels(table.columns[label], options, from);
  DTG_ASSIGN(Tensor features, options.doubles ? pack_features<double>(table, label) : pack_features<float>(table, label));
  tensors.push_back(std::move(features));
  if (!lacks_label) tensors.push_back(table.columns[label].values);
  return make_slices(tensors);
}

Result<DatasetPtr> make_csv(Disk& disk, const std::string& path, const CsvOptions& options, std::string* schema, LeftOut* left_out) {
  DTG_ASSIGN(CsvTable table, read_csv(disk, path, options.with_label()));
  if (left_out) *left_out = std::move(table.left_out);
  if (schema) *schema = csv_schema_text(table, options.label);
  return slices_of(table, options, "\"" + path + "\"", "line");
}

}  // namespace dtg
