// Reads JSON lines in one pass: a row is looked at as a whole before any of it is kept, so that a bad one leaves nothing behind; what is
// missing is decided at the end, when all columns are known. See json_lines.h.
#include "data/json_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/hash.h"
#include "base/json.h"
#include "base/reservation.h"
#include "base/spelling.h"
#include "data/exact.h"
#include "data/gzip.h"

namespace dtg {
namespace {

constexpr size_t kColumnsMax = 1 << 16;
constexpr JsonLimits kLineLimits{.bytes_max = size_t{1} << 26, .values_max = size_t{1} << 22};

long long ll(int64_t value) { return static_cast<long long>(value); }

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

// What one row has in one column.
struct Cell {
  enum class Type : uint8_t { missing, number, boolean, text } type = Type::missing;
  bool whole = true;  // all its numbers are
  std::vector<int64_t> wholes;
  std::vector<double> reals;
  std::vector<int64_t> dims;
  const std::string* text = nullptr;
};

struct Growing {
  CsvColumn column;
  const CsvRule* rule = nullptr;
  std::optional<CsvKind> kind;  // that it must have
  bool has_names = false;
  Cell::Type type = Cell::Type::missing;  // of the first value met,
  int64_t line = 0;                       // on that line
  std::vector<int64_t> dims;              // of its lists, or as the schema says
  int64_t width = 1;
  std::vector<int64_t> wholes;  // width per row: numbers while all are whole, and numbers of names
  std::vector<double> reals;    // width per row, from the first that is not whole
  std::vector<bool> present;
  std::unordered_map<std::string, int64_t, BytesHash, std::equal_to<>> ids;

  void set_dims(const std::vector<int64_t>& all) {
    dims = all;
    width = count_of(dims);
  }
  void skip_to(size_t row) {
    present.resize(row);
    if (column.kind == CsvKind::real) reals.resize(row * static_cast<size_t>(width));
    else wholes.resize(row * static_cast<size_t>(width));
  }
};

const char* name_of(Cell::Type type) {
  switch (type) {
    case Cell::Type::number: return "a number";
    case Cell::Type::boolean: return "true or false";
    case Cell::Type::text: return "a text";
    default: return "nothing";
  }
}

std::string rows_of(const std::vector<int64_t>& dims) { return dims.empty() ? "single numbers" : "lists of shape " + dims_text(dims); }

// What stands there, as it stands there.
std::string shown(const Json& value) {
  std::string text = value.text();
  if (text.size() > 100) text.replace(97, std::string::npos, "...");
  return text;
}

// What the text of a row that is no JSON may be instead; the end of a sentence.
std::string doubt_row(std::string_view row) {
  if (const size_t ill = utf8_prefix(row); ill < row.size())
    return format("; the byte 0x%02x, number %zu of the line, is no UTF-8: save the file as UTF-8, from Latin-1 or Windows-1252",
                  static_cast<unsigned>(static_cast<unsigned char>(row[ill])), ill + 1);
  if (row.starts_with("[")) return "; a file that is one list has to be written as one object per line";
  if (!row.starts_with("{"))
    return "; each line is one object, {\"column\": value, ...}; tables with commas have a reader of their own, for CSV";
  if (!row.ends_with("}")) return "; an object ends on the line on which it begins: one per line";
  if (row.find("NaN") != std::string_view::npos || row.find("Infinity") != std::string_view::npos)
    return "; JSON has no NaN and no infinity: write null for what is missing";
  if (row.find('\'') != std::string_view::npos && row.find('"') == std::string_view::npos) return "; texts stand in \"double quotes\"";
  return "";
}

// Numbers of a list, row-major. A reason, or null.
const char* read_list(const Json& json, size_t depth, Cell& cell) {
  if (const Json::Array* items = json.array()) {
    const auto count = static_cast<int64_t>(items->size());
    if (depth >= 8) return "a list of more than 8 dimensions";
    if (cell.dims.size() == depth && cell.wholes.empty()) cell.dims.push_back(count);
    else if (depth >= cell.dims.size() || cell.dims[depth] != count) return "a list whose parts differ in length";
    for (const Json& item : *items) {
      if (const char* why = read_list(item, depth + 1, cell)) return why;
    }
    return nullptr;
  }
  if (depth != cell.dims.size()) return "a list whose parts differ in length";
  if (const int64_t* whole = json.integer()) {
    cell.wholes.push_back(*whole);
    cell.reals.push_back(static_cast<double>(*whole));
  } else if (const double* real = json.real()) {
    cell.whole = false;
    cell.wholes.push_back(0);
    cell.reals.push_back(*real);
  } else {
    return depth == 0 ? "an object" : "a list of something else than numbers";
  }
  return nullptr;
}

const char* read_cell(const Json& json, Cell& cell) {
  if (json.is_null()) return nullptr;
  if (const std::string* text = json.string()) {
    cell.type = Cell::Type::text;
    cell.text = text;
    return nullptr;
  }
  if (const bool* boolean = json.boolean()) {
    cell.type = Cell::Type::boolean;
    cell.wholes = {*boolean ? 1 : 0};
    cell.reals = {*boolean ? 1.0 : 0.0};
    return nullptr;
  }
  cell.type = Cell::Type::number;
  return read_list(json, 0, cell);
}

class Reader {
 public:
  Reader(const std::string& path, const JsonLinesOptions& options, LeftOut& left_out)
      : path_(path), options_(options), left_out_(left_out), held_(options.table.budget, 0) {}

  Result<CsvTable> read(std::string_view text) {
    DTG_TRY(check_once("\"" + path_ + "\"", options_.table.columns));
    for (const std::string& name : options_.table.columns) DTG_TRY(column_named(name).status());
    DTG_TRY(check_is_text(text, path_));
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    for (int64_t line = 1; !text.empty(); ++line) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view row = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      while (!row.empty() && (row.back() == '\r' || row.back() == ' ' || row.back() == '\t')) row.remove_suffix(1);
      if (row.empty()) continue;
      const Status status = read_row(row, line);
      if (!status.ok()) DTG_TRY(judge(status));
    }
    leave_label_out();
    DTG_TRY(check_columns());
    DTG_TRY(choose_rows());
    CsvTable table;
    table.rows = static_cast<int64_t>(kept_.size());
    for (Growing& growing : columns_) {
      DTG_TRY(finish(growing));
      table.columns.push_back(std::move(growing.column));
    }
    return table;
  }

 private:
  // Passes over a bad row, where that is asked for.
  Status judge(const Status& status) {
    if (!options_.skip_bad || status.code() != Code::data_loss) return status;
    left_out_.add([&] { return status.message(); });
    return {};
  }

  Result<size_t> column_named(const std::string& name) {
    const auto found = places_.find(name);
    if (found != places_.end()) return found->second;
    if (columns_.size() == kColumnsMax) return resource_exhausted("read \"%s\": more than %zu columns", path_.c_str(), kColumnsMax);
    columns_.push_back(begin(name));
    places_.emplace(name, columns_.size() - 1);
    return columns_.size() - 1;
  }

  // Of what is not read some names are kept, for the error that says what there is.
  void note_other(const std::string& name) {
    constexpr size_t kOthers = 32;
    if (others_.size() < kOthers && std::ranges::find(others_, name) == others_.end()) others_.push_back(name);
  }

  Growing begin(const std::string& name) const {
    Growing growing;
    growing.column.name = name;
    for (const CsvRule& rule : options_.table.rules) {
      if (rule.name == name) growing.rule = &rule;
    }
    growing.column.policy = options_.table.missing_of(name, growing.rule);
    if (growing.rule && growing.rule->kind) growing.kind = growing.column.kind = *growing.rule->kind;
    // Longer lists than a line can have are in none of them.
    const bool fits = growing.rule && growing.rule->shape && count_of(*growing.rule->shape) <= static_cast<int64_t>(kLineLimits.values_max);
    if (fits) growing.set_dims(*growing.rule->shape);
    if (growing.rule && growing.rule->names) {
      growing.has_names = true;
      growing.column.categories = *growing.rule->names;
      for (const std::string& known : growing.column.categories) growing.ids.emplace(known, static_cast<int64_t>(growing.ids.size()));
    }
    return growing;
  }

  Status read_row(std::string_view text, int64_t line) {
    auto parsed = parse_json(text, "the row", kLineLimits);
    if (!parsed.ok()) {
      return data_loss("read \"%s\": line %lld: %s%s", path_.c_str(), ll(line), parsed.status().message().c_str(), doubt_row(text).c_str());
    }
    const Json::Object* const object = parsed.value().object();
    if (!object) {
      return data_loss("read \"%s\": line %lld is %s, not an object%s", path_.c_str(), ll(line), parsed.value().kind(),
                       doubt_row(text).c_str());
    }
    std::vector<std::pair<const std::string*, Cell>> cells;
    int64_t bytes = 0;
    for (const auto& [name, value] : *object) {
      const auto found = places_.find(name);
      if (found == places_.end() && !options_.table.columns.empty()) {
        note_other(name);
        continue;
      }
      Cell cell;
      const char* why = read_cell(value, cell);
      if (why) {
        return misfit(line, name, shown(value) + ", " + why + ",",
                      "; numbers, texts, true, false, null, and lists of numbers of one shape are possible");
      }
      DTG_TRY(check_cell(found != places_.end() ? columns_[found->second] : begin(name), cell, value, line));
      const size_t rows = found != places_.end() ? columns_[found->second].present.size() : 0;
      // Its own place, and those of rows before that lack it.
      bytes += 16 + 16 * static_cast<int64_t>(cell.reals.size()) * static_cast<int64_t>(1 + lines_.size() - rows);
      cells.emplace_back(&name, std::move(cell));
    }
    DTG_TRY(held_.grow(bytes, path_.c_str()));
    for (const auto& [name, cell] : cells) {
      DTG_ASSIGN(const size_t place, column_named(*name));
      keep(columns_[place], cell, line);
    }
    lines_.push_back(line);
    return {};
  }

  Status misfit(int64_t line, const std::string& name, const std::string& found, const std::string& expected) const {
    return data_loss("read \"%s\": line %lld has %s in column %s%s", path_.c_str(), ll(line), found.c_str(), quoted(name).c_str(),
                     expected.c_str());
  }

  Status check_cell(const Growing& growing, const Cell& cell, const Json& value, int64_t line) const {
    constexpr const char* kNext = "; mend the row, or pass over rows that cannot be read, which is an option";
    if (cell.type == Cell::Type::missing) return {};
    const std::string& name = growing.column.name;
    const auto says = [&](const std::string& what) {
      return misfit(line, name, shown(value), ", which the schema says is " + what + kNext);
    };
    const bool is_name = cell.type == Cell::Type::text;
    if (growing.kind && is_name != (*growing.kind == CsvKind::category)) return says(is_name ? "of numbers" : "of names, which are texts");
    if (growing.kind == CsvKind::whole && !cell.whole) return says("of whole numbers");
    if (growing.rule && growing.rule->shape && cell.dims != *growing.rule->shape) return says("of " + rows_of(*growing.rule->shape));
    if (is_name && growing.has_names && growing.ids.find(*cell.text) == growing.ids.end()) {
      const std::vector<std::string>& names = growing.column.categories;
      const std::vector<std::string_view> known(names.begin(), names.end());
      return misfit(line, name, shown(value), format(", which is none of its %zu names: ", known.size()) + names_text(*cell.text, known));
    }
    const auto beyond = [](double real) { return std::abs(real) > static_cast<double>(std::numeric_limits<float>::max()); };
    if (!cell.whole && std::ranges::any_of(cell.reals, beyond))
      return misfit(line, name, shown(value), ", which is beyond the range of float32; scale the column, or leave it out");
    if (growing.type == Cell::Type::missing) return {};
    const auto differs = [&](const std::string& what) {
      return misfit(line, name, shown(value), format(", where line %lld has ", ll(growing.line)) + what + kNext);
    };
    if (growing.type != cell.type) return differs(name_of(growing.type));
    return growing.dims == cell.dims ? Status()
                                     : differs(growing.dims.empty() ? "a single number" : "a list of shape " + dims_text(growing.dims));
  }

  void keep(Growing& growing, const Cell& cell, int64_t line) {
    if (cell.type == Cell::Type::missing) return;
    if (growing.type == Cell::Type::missing) {
      growing.type = cell.type;
      growing.line = line;
      growing.set_dims(cell.dims);
      if (cell.type == Cell::Type::text) growing.column.kind = CsvKind::category;
      growing.wholes.clear();
      growing.reals.clear();
    }
    growing.skip_to(lines_.size());
    growing.present.push_back(true);
    if (cell.type == Cell::Type::text) {
      growing.wholes.push_back(growing.ids.emplace(*cell.text, static_cast<int64_t>(growing.ids.size())).first->second);
      return;
    }
    if (!cell.whole && growing.column.kind == CsvKind::whole) {
      growing.column.kind = CsvKind::real;
      growing.reals.assign(growing.wholes.begin(), growing.wholes.end());
      growing.wholes = {};
    }
    if (growing.column.kind == CsvKind::real) growing.reals.insert(growing.reals.end(), cell.reals.begin(), cell.reals.end());
    else growing.wholes.insert(growing.wholes.end(), cell.wholes.begin(), cell.wholes.end());
    for (size_t i = 0; cell.whole && i < cell.wholes.size(); ++i) {
      if (!is_exact(cell.wholes[i])) growing.column.rounded.add(line, std::to_string(cell.wholes[i]));
    }
  }

  // Rows that are to be predicted have none.
  void leave_label_out() {
    const CsvOptions& table = options_.table;
    const auto lacks = [&](const Growing& growing) { return growing.column.name == table.label && growing.type == Cell::Type::missing; };
    if (table.label_may_lack) std::erase_if(columns_, lacks);
    places_.clear();
    for (size_t i = 0; i < columns_.size(); ++i) places_.emplace(columns_[i].column.name, i);
  }

  // Columns that are asked for, or have rules, must be there.
  Status check_columns() {
    std::vector<std::string_view> known(others_.begin(), others_.end());
    for (const Growing& growing : columns_) {
      if (growing.type != Cell::Type::missing) known.push_back(growing.column.name);
    }
    const auto missing = [&](const std::string& name) {
      return not_found("read \"%s\": no column %s in any line: %s", path_.c_str(), quoted(name).c_str(), names_text(name, known).c_str());
    };
    for (const std::string& name : options_.table.columns) {
      const auto at = places_.find(name);
      if (at != places_.end() && columns_[at->second].type == Cell::Type::missing) return missing(name);
    }
    for (const CsvRule& rule : options_.table.rules) {
      if (options_.table.columns.empty() && places_.find(rule.name) == places_.end()) return missing(rule.name);
    }
    return {};
  }

  std::string dropped(size_t row, const Growing& growing) const {
    return format("read \"%s\": line %lld has no value in column %s; it was dropped", path_.c_str(), ll(lines_[row]),
                  quoted(growing.column.name).c_str());
  }

  Status choose_rows() {
    const size_t rows = lines_.size() + static_cast<size_t>(left_out_.count);
    for (Growing& growing : columns_) {
      const auto lacking = static_cast<int64_t>(lines_.size() - growing.present.size());
      DTG_TRY(held_.grow(16 * lacking * growing.width, path_.c_str()));
      growing.skip_to(lines_.size());
    }
    for (size_t row = 0; row < lines_.size(); ++row) {
      const Growing* drops = nullptr;
      Status status;
      for (const Growing& growing : columns_) {
        if (growing.present[row]) continue;
        if (!drops && growing.column.policy == CsvMissing::drop_row) drops = &growing;
        if (growing.column.policy != CsvMissing::refuse || !status.ok()) continue;
        status = data_loss("read \"%s\": line %lld has no value in column %s; %s", path_.c_str(), ll(lines_[row]),
                           quoted(growing.column.name).c_str(), options_.table.missing_advice(growing.column.name, growing.rule).c_str());
      }
      if (!status.ok()) DTG_TRY(judge(status));
      else if (drops) left_out_.add([&] { return dropped(row, *drops); });
      else kept_.push_back(row);
    }
    if (!kept_.empty()) return {};
    return data_loss(
        "read \"%s\": none of its %zu rows is left%s%s", path_.c_str(), rows,
        left_out_.reasons.empty() ? "" : "; the first bad one: ", left_out_.reasons.empty() ? "" : left_out_.reasons[0].c_str());
  }

  Status finish(Growing& growing) {
    CsvColumn& column = growing.column;
    for (const size_t row : kept_) column.missing += !growing.present[row];
    if (column.kind == CsvKind::whole && column.missing != 0) {
      column.kind = CsvKind::real;
      growing.reals.assign(growing.wholes.begin(), growing.wholes.end());
      growing.wholes = {};
    }
    DTG_TRY(find_fill(growing));
    std::vector<int64_t> dims{static_cast<int64_t>(kept_.size())};
    dims.insert(dims.end(), growing.dims.begin(), growing.dims.end());
    DTG_ASSIGN(const Shape shape, Shape::make(dims));
    const bool is_real = column.kind == CsvKind::real;
    if (!is_real && !options_.table.is_feature(column.name)) column.rounded = {};
    DTG_TRY(held_.grow(shape.count() * (is_real ? 4 : 8), path_.c_str()));
    DTG_ASSIGN(column.values, Tensor::allocate(is_real ? DType::f32 : DType::i64, shape));
    const std::vector<int64_t> renamed = column.kind == CsvKind::category ? sort_names(growing) : std::vector<int64_t>();
    const auto width = static_cast<size_t>(growing.width);
    size_t to = 0;
    for (const size_t row : kept_) {
      for (size_t from = row * width; from < (row + 1) * width; ++from, ++to) {
        if (is_real) column.values.as<float>()[to] = static_cast<float>(growing.present[row] ? growing.reals[from] : column.fill);
        else if (column.kind == CsvKind::whole) column.values.as<int64_t>()[to] = growing.wholes[from];
        else column.values.as<int64_t>()[to] = growing.present[row] ? renamed[static_cast<size_t>(growing.wholes[from])] : -1;
      }
    }
    if (column.policy == CsvMissing::keep) column.fill = 0;
    return {};
  }

  // What stands for missing numbers; NaN where they are kept, which finish() takes back.
  Status find_fill(Growing& growing) {
    CsvColumn& column = growing.column;
    if (column.policy == CsvMissing::keep) column.fill = std::numeric_limits<double>::quiet_NaN();
    const bool by_mean = column.policy == CsvMissing::mean;
    if (!by_mean && column.policy != CsvMissing::constant) return {};
    if (column.kind == CsvKind::category) {
      if (!(growing.rule && growing.rule->missing) && column.missing == 0) {
        column.policy = CsvMissing::refuse;
        return {};
      }
      return invalid_argument("read \"%s\": missing values of column %s cannot be a number: it holds names; drop such rows or keep them",
                              path_.c_str(), quoted(column.name).c_str());
    }
    if (growing.rule && growing.rule->value) {
      column.fill = *growing.rule->value;
      return {};
    }
    if (!growing.dims.empty() && column.missing > 0) {
      return invalid_argument("read \"%s\": column %s holds lists, of which there is no mean; drop such rows, or say a constant",
                              path_.c_str(), quoted(column.name).c_str());
    }
    double sum = 0;
    int64_t count = 0;
    for (const size_t row : kept_) {
      if (!growing.present[row] || growing.width != 1) continue;
      sum += column.kind == CsvKind::real ? growing.reals[row] : static_cast<double>(growing.wholes[row]);
      ++count;
    }
    if (count > 0) column.fill = sum / static_cast<double>(count);
    if (count > 0 || !growing.dims.empty()) return {};
    return data_loss("read \"%s\": column %s has no value that a mean could be taken of", path_.c_str(), quoted(column.name).c_str());
  }

  // Numbers by name instead of by appearance, so that shuffled copies of a file agree on them; by number of appearance.
  static std::vector<int64_t> sort_names(Growing& growing) {
    std::vector<int64_t> renamed(growing.ids.size());
    std::vector<std::string>& names = growing.column.categories;
    if (!growing.has_names) {
      for (const auto& [name, id] : growing.ids) names.push_back(name);
      std::sort(names.begin(), names.end());
    }
    for (size_t i = 0; i < names.size(); ++i) renamed[static_cast<size_t>(growing.ids.find(names[i])->second)] = static_cast<int64_t>(i);
    return renamed;
  }

  const std::string& path_;
  const JsonLinesOptions& options_;
  LeftOut& left_out_;
  Reservation held_;
  std::vector<Growing> columns_;
  std::unordered_map<std::string, size_t, BytesHash, std::equal_to<>> places_;
  std::vector<std::string> others_;
  std::vector<int64_t> lines_;  // of each row
  std::vector<size_t> kept_;
};

}  // namespace

Result<CsvTable> parse_json_lines(std::string_view text, const std::string& path, const JsonLinesOptions& options, LeftOut& left_out) {
  return Reader(path, options, left_out).read(text);
}

Result<DatasetPtr> make_json_lines(Disk& disk, const std::string& path, const JsonLinesOptions& options, LeftOut& left_out,
                                   std::string* schema) {
  DTG_ASSIGN(auto file, open_plain(disk, path));
  Reservation held(options.table.budget, 0);
  DTG_ASSIGN(const std::string text, read_all(*file, path, options.table.bytes_max, held));
  JsonLinesOptions all = options;
  all.table = options.table.with_label();
  DTG_ASSIGN(CsvTable table, parse_json_lines(text, path, all, left_out));
  if (schema) *schema = csv_schema_text(table, options.table.label);
  return slices_of(table, options.table, "\"" + path + "\"", "line");
}

}  // namespace dtg
