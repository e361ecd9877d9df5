// Schemas of CSV files as JSON: what a column is, which names it has, what stands for missing values; and what tables of all formats are
// held to. See csv.h for threads.
#include <algorithm>
#include <unordered_map>

#include "base/json.h"
#include "data/csv.h"

namespace dtg {
namespace {

constexpr const char* kKinds[] = {"whole", "real", "names"};
constexpr const char* kPolicies[] = {"refuse", "drop", "keep", "mean", "constant"};

// The place of a word in a list of words; the first message says what there is.
template <class E, size_t N>
Result<E> read_word(const Json& json, const char* const (&words)[N], const std::string& column, const char* key) {
  const std::string* const word = json.string();
  for (size_t i = 0; word && i < N; ++i) {
    if (*word == words[i]) return static_cast<E>(i);
  }
  std::string all;
  for (const char* known : words) all += (all.empty() ? "\"" : "\", \"") + std::string(known);
  return invalid_argument("schema: \"%s\" of column \"%.100s\" is %s; it is one of %s\"", key, column.c_str(),
                          word ? ("\"" + word->substr(0, 100) + "\"").c_str() : json.kind(), all.c_str());
}

Result<std::vector<std::string>> read_names(const Json& json, const std::string& column) {
  const Json::Array* const items = json.array();
  if (!items) return invalid_argument("schema: \"names\" of column \"%.100s\" is %s; it is a list of texts", column.c_str(), json.kind());
  std::vector<std::string> names;
  for (const Json& item : *items) {
    if (!item.string()) return invalid_argument("schema: a name of column \"%.100s\" is %s, not a text", column.c_str(), item.kind());
    names.push_back(*item.string());
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return invalid_argument("schema: column \"%.100s\" has the name \"%.100s\" twice", column.c_str(), twice->c_str());
  return names;
}

// Of one row: a batch of them has one dimension more.
Result<std::vector<int64_t>> read_shape(const Json& json, const std::string& column) {
  const Json::Array* const items = json.array();
  std::vector<int64_t> dims;
  int64_t count = 1;
  bool good = items && items->size() < static_cast<size_t>(kRankMax);
  for (size_t i = 0; good && i < items->size(); ++i) {
    const int64_t* const dim = (*items)[i].integer();
    good =
        dim && *dim >= 0 && *dim <= INT32_MAX && !__builtin_mul_overflow(count, std::max<int64_t>(*dim, 1), &count) && count <= INT32_MAX;
    if (good) dims.push_back(*dim);
  }
  if (good) return dims;
  return invalid_argument("schema: \"shape\" of column \"%.100s\" is %.100s; it is a list of the lengths of its lists, such as [3]",
                          column.c_str(), json.text().c_str());
}

Result<CsvRule> read_rule(const Json& json) {
  const Json* const name = json.find("name");
  if (!name || !name->string()) return invalid_argument("schema: a rule is %s without a \"name\"; it tells the column", json.kind());
  CsvRule rule;
  rule.name = *name->string();
  for (const auto& [key, value] : *json.object()) {
    if (key == "kind") {
      DTG_ASSIGN(rule.kind, read_word<CsvKind>(value, kKinds, rule.name, "kind"));
    } else if (key == "missing") {
      DTG_ASSIGN(rule.missing, read_word<CsvMissing>(value, kPolicies, rule.name, "missing"));
    } else if (key == "names") {
      DTG_ASSIGN(rule.names, read_names(value, rule.name));
    } else if (key == "shape") {
      DTG_ASSIGN(rule.shape, read_shape(value, rule.name));
    } else if (key == "value") {
      if (!value.real() && !value.integer()) {
        return invalid_argument("schema: \"value\" of column \"%.100s\" is %s, not a number", rule.name.c_str(), value.kind());
      }
      rule.value = value.real() ? *value.real() : static_cast<double>(*value.integer());
    } else if (key != "name") {
      return invalid_argument("schema: column \"%.100s\" has a \"%.100s\", which is none of name, kind, shape, names, missing, value",
                              rule.name.c_str(), key.c_str());
    }
  }
  if (rule.names && rule.kind.value_or(CsvKind::category) != CsvKind::category) {
    return invalid_argument("schema: column \"%.100s\" has names, but its kind is %s", rule.name.c_str(),
                            kKinds[static_cast<int>(*rule.kind)]);
  }
  if (rule.names) rule.kind = CsvKind::category;
  if (rule.kind == CsvKind::category && rule.shape && !rule.shape->empty())
    return invalid_argument("schema: column \"%.100s\" is of names and has a shape; lists are of numbers", rule.name.c_str());
  if (rule.missing == CsvMissing::constant && !rule.value) {
    return invalid_argument("schema: missing values of column \"%.100s\" are a constant, but \"value\" does not say which",
                            rule.name.c_str());
  }
  return rule;
}

Status read_rules(const Json& json, const char* what, bool are_columns, CsvOptions& options) {
  const Json::Array* const items = json.array();
  if (!items) return invalid_argument("schema: \"%s\" is %s, not a list", what, json.kind());
  const bool choose = are_columns && options.columns.empty();
  for (const Json& item : *items) {
    DTG_ASSIGN(CsvRule rule, read_rule(item));
    if (choose) options.columns.push_back(rule.name);
    options.rules.push_back(std::move(rule));
  }
  return {};
}

const CsvRule* rule_of(const CsvOptions& schema, const std::string& column) {
  const auto at = std::ranges::find(schema.rules, column, &CsvRule::name);
  return at != schema.rules.end() ? &*at : nullptr;
}

// Of one column that has names in both.
std::string names_differ(const CsvRule& known, const CsvRule& other) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < known.names->size(); ++i) places.emplace((*known.names)[i], i);
  for (size_t i = 0; i < other.names->size(); ++i) {
    const std::string& name = (*other.names)[i];
    const auto at = places.find(name);
    if (at != places.end() && at->second == i) continue;
    const std::string there = at != places.end() ? "is " + std::to_string(at->second) : std::string("is none of the names");
    return format("\"%.100s\" of column \"%.100s\" is %zu in it, and %s in", name.c_str(), known.name.c_str(), i, there.c_str());
  }
  return "";
}

// Nothing is said of a column without lists: those of older days say nothing of any.
std::string shape_differs(const CsvRule& known, const CsvRule& other) {
  if (!known.shape || !other.shape || *known.shape == *other.shape) return "";
  return format("column \"%.100s\" has lists of shape %s in it, and %s in", known.name.c_str(), dims_text(*other.shape).c_str(),
                dims_text(*known.shape).c_str());
}

// Of one column that has names in one of the two: its numbers are places among them there, and themselves here.
std::string kind_differs(const CsvRule& known, const CsvRule& other) {
  if (!known.kind || !other.kind || *known.kind == *other.kind) return "";
  if (*known.kind != CsvKind::category && *other.kind != CsvKind::category) return "";
  const auto held = [](CsvKind kind) { return kind == CsvKind::category ? "names" : "numbers"; };
  return format("column %s holds %s (kind \"%s\") in it, and %s (kind \"%s\") in", quoted(known.name).c_str(), held(*other.kind),
                kKinds[static_cast<int>(*other.kind)], held(*known.kind), kKinds[static_cast<int>(*known.kind)]);
}

// What one column was in other data, and is now; empty: the same.
std::string column_differs(const CsvRule& before, const CsvRule& now, size_t place) {
  const auto column = [&](const char* what) { return format("column %zu, \"%.100s\", %s", place + 1, now.name.c_str(), what); };
  if (before.name != now.name)
    return format("column %zu was \"%.100s\" and is \"%.100s\"", place + 1, before.name.c_str(), now.name.c_str());
  if (before.kind != now.kind && before.kind && now.kind) {
    return column("was") +
           format(" of kind %s and is of kind %s", kKinds[static_cast<int>(*before.kind)], kKinds[static_cast<int>(*now.kind)]);
  }
  if (const std::vector<int64_t> none, &a = before.shape ? *before.shape : none, &b = now.shape ? *now.shape : none; a != b)
    return column("had") + " rows of shape " + dims_text(a) + " and has " + dims_text(b);
  if (!before.names || !now.names || *before.names == *now.names) return "";
  const auto [a, b] = std::ranges::mismatch(*before.names, *now.names);
  const auto name = [](auto at, auto end) { return at == end ? std::string("none") : "\"" + at->substr(0, 100) + "\""; };
  return column("had") + format(" %zu names and has %zu; the first that differs has the number %zu and was %s, and is %s",
                                before.names->size(), now.names->size(), static_cast<size_t>(a - before.names->begin()),
                                name(a, before.names->end()).c_str(), name(b, now.names->end()).c_str());
}

// The columns of one schema that become features. Without a label of its own it has that of the other, if at all.
std::vector<std::string> features_of(const CsvOptions& schema, const std::string& label) {
  std::vector<std::string> features = schema.columns;
  std::erase(features, schema.label.empty() ? label : schema.label);
  return features;
}

// As many features, which are others, or the same in another order.
std::string features_differ(const CsvOptions& known, const CsvOptions& other) {
  std::vector<std::string> ours = features_of(known, other.label), theirs = features_of(other, known.label);
  const auto [a, b] = std::ranges::mismatch(ours, theirs);
  if (ours.size() != theirs.size() || a == ours.end()) return "";
  const std::string place = format("column %s stands in it where %s stands in", quoted(*b).c_str(), quoted(*a).c_str());
  const auto is_new = [&](const std::string& name) { return std::ranges::find(ours, name) == ours.end(); };
  const auto at = std::ranges::find_if(theirs, is_new);
  if (at == theirs.end()) return place;
  return format("column %s of it, where %s stands, is no feature of", quoted(*at).c_str(),
                quoted(ours[static_cast<size_t>(at - theirs.begin())]).c_str());
}

}  // namespace

std::vector<std::string> label_names(std::string_view schema) {
  CsvOptions read;
  if (!read_csv_schema(schema, read).ok() || read.label.empty()) return {};
  const CsvRule* const rule = rule_of(read, read.label);
  return rule && rule->names ? *rule->names : std::vector<std::string>();
}

std::vector<std::string> feature_names(std::string_view schema) {
  CsvOptions read;
  if (!read_csv_schema(schema, read).ok()) return {};
  return features_of(read, "");
}

std::vector<std::string> columns_apart(std::string_view schema) {
  CsvOptions read;
  if (!read_csv_schema(schema, read).ok() || !read.label.empty()) return {};
  return read.columns;
}

std::string schemas_differ(std::string_view known, std::string_view other, bool with_label) {
  CsvOptions ours, theirs;
  if (known == other || known.empty() || other.empty()) return "";
  if (!read_csv_schema(known, ours).ok() || !read_csv_schema(other, theirs).ok()) return "";
  for (const CsvRule& rule : theirs.rules) {
    const CsvRule* const same = rule_of(ours, rule.name);
    if (!same) continue;
    if (std::string why = shape_differs(*same, rule); !why.empty()) return why;
    if (std::string why = kind_differs(*same, rule); !why.empty()) return why;
    if (!same->names || !rule.names) continue;
    if (std::string why = names_differ(*same, rule); !why.empty()) return why;
  }
  if (with_label && !ours.label.empty() && !theirs.label.empty() && ours.label != theirs.label)
    return format("its label is %s, and %s in", quoted(theirs.label).c_str(), quoted(ours.label).c_str());
  return features_differ(ours, theirs);
}

std::string is_other_data(std::string_view before, std::string_view now) {
  CsvOptions old, here;
  if (before == now || before.empty() || now.empty()) return "";
  if (!read_csv_schema(before, old).ok() || !read_csv_schema(now, here).ok()) return "";
  if (old.label != here.label) return format("its label was \"%.100s\" and is \"%.100s\"", old.label.c_str(), here.label.c_str());
  if (old.rules.size() != here.rules.size()) {
    std::string why = format("it had %zu columns and has %zu", old.rules.size(), here.rules.size());
    const auto only = [&why](const CsvOptions& in, const CsvOptions& out, const char* what) {
      const auto at = std::ranges::find_if(in.rules, [&](const CsvRule& rule) { return !rule_of(out, rule.name); });
      if (at != in.rules.end()) why += format("%s \"%.100s\"", what, at->name.c_str());
    };
    only(old, here, "; it lacks");
    only(here, old, "; new is");
    return why;
  }
  for (size_t i = 0; i < old.rules.size(); ++i) {
    if (std::string why = column_differs(old.rules[i], here.rules[i], i); !why.empty()) return why;
  }
  return "";
}

Status check_names_apart(const std::string& from, std::span<const std::string_view> names, const std::string* wanted) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) {
    if (wanted && names[i] != *wanted) continue;
    const auto [first, is_new] = places.emplace(names[i], i);
    if (is_new) continue;
    const std::string called = names[i].empty() ? "have no name" : "are both called \"" + std::string(names[i].substr(0, 100)) + "\"";
    return invalid_argument("read %s: columns %zu and %zu (the first is 1) %s; name them apart%s", from.c_str(), first->second + 1, i + 1,
                            called.c_str(), wanted ? "" : ", or say which columns to read, without those");
  }
  return {};
}

std::string dims_text(std::span<const int64_t> dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

Status read_csv_schema(std::string_view json, CsvOptions& options) {
  // Vocabularies may be long; the memory that they take is the host's own choice.
  DTG_ASSIGN(const Json schema, parse_json(json, "schema", {.bytes_max = size_t{1} << 28, .values_max = size_t{1} << 24}));
  if (!schema.object()) return invalid_argument("schema: it is %s, not an object", schema.kind());
  bool is_label_ours = true;
  std::string label;
  for (const auto& [key, value] : *schema.object()) {
    if (key == "columns" || key == "rules") {
      DTG_TRY(read_rules(value, key.c_str(), key == "columns", options));
    } else if (key == "label") {
      if (!value.string() && !value.is_null()) return invalid_argument("schema: \"label\" is %s, not a text", value.kind());
      if (value.string()) label = *value.string();
      if (value.string() && options.label.empty()) options.label = *value.string(), is_label_ours = false;
    } else {
      return invalid_argument("schema: \"%.100s\" is none of label, columns, rules", key.c_str());
    }
  }
  options.knows_label = !label.empty() && options.label == label && rule_of(options, label);
  // As a whole schema has it, of a file that had all its columns.
  if (!is_label_ours) options.label_may_lack = std::ranges::find(options.columns, options.label) != options.columns.end();
  return {};
}

std::string csv_schema_text(const CsvTable& table, const std::string& label) {
  Json::Array columns;
  for (const CsvColumn& column : table.columns) {
    Json::Object rule;
    rule.emplace_back("name", column.name);
    // Beside a label they are one float vector: whole numbers here need not be whole elsewhere.
    const bool is_feature = !label.empty() && column.name != label && column.kind == CsvKind::whole;
    rule.emplace_back("kind", kKinds[static_cast<int>(is_feature ? CsvKind::real : column.kind)]);
    if (const auto dims = column.values.shape().dims(); dims.size() > 1)
      rule.emplace_back("shape", Json::Array(dims.begin() + 1, dims.end()));
    if (column.kind == CsvKind::category) rule.emplace_back("names", Json::Array(column.categories.begin(), column.categories.end()));
    rule.emplace_back("missing", kPolicies[static_cast<int>(column.policy)]);
    const bool has_fill = column.policy == CsvMissing::mean || column.policy == CsvMissing::constant;
    if (has_fill) rule.emplace_back("value", column.fill);
    columns.emplace_back(std::move(rule));
  }
  Json::Object schema;
  if (!label.empty()) schema.emplace_back("label", label);
  schema.emplace_back("columns", std::move(columns));
  return Json(std::move(schema)).text();
}

}  // namespace dtg
