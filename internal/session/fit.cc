// Looks each variable up among what was saved, and says what is left on either side. See fit.h for threads.
#include "session/fit.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/spelling.h"

namespace dtg {
namespace {

constexpr size_t kNamed = 8;  // variables a message lists

std::string list_of(const char* what, const std::vector<Fit::Odd>& odds) {
  if (odds.empty()) return "";
  std::string text = std::string("; ") + what + ": ";
  for (size_t i = 0; i < std::min(odds.size(), kNamed); ++i) text += (i ? ", " : "") + odds[i].words;
  return odds.size() > kNamed ? text + format(" and %zu more", odds.size() - kNamed) : text;
}

}  // namespace

Result<NameMap> NameMap::parse(std::string_view json) {
  NameMap map;
  if (json.empty()) return map;
  DTG_ASSIGN(const Json rules, parse_json(json, "the map of names"));
  if (!rules.object()) {
    return invalid_argument("the map of names is %s; it is an object {\"name in the model\": \"name in the file\", ...}", rules.kind());
  }
  // The root is a scope as well, whose names have nothing before them.
  const auto is_scope = [](const std::string& name) { return name.empty() || name.ends_with('/'); };
  for (const auto& [here, value] : *rules.object()) {
    const std::string* const there = value.string();
    const bool scope = is_scope(here);
    if (!there || is_scope(*there) != scope) {
      return invalid_argument("the map of names: \"%.200s\" goes to %.200s; give a name, and on both sides a \"/\" at the end (or \"\", "
                              "which is the root) or on none",
                              here.c_str(), value.text().c_str());
    }
    if (scope) map.begins_.emplace(here, *there);
    else map.exact_.emplace(here, *there);
  }
  return map;
}

std::string NameMap::saved_name(const std::string& name) const {
  if (const auto at = exact_.find(name); at != exact_.end()) return at->second;
  const std::pair<const std::string, std::string>* longest = nullptr;
  for (const auto& rule : begins_) {
    if (name.starts_with(rule.first) && (!longest || rule.first.size() > longest->first.size())) longest = &rule;
  }
  return longest ? longest->second + name.substr(longest->first.size()) : name;
}

Status NameMap::check(const Model& model) const {
  const std::vector<WholeVariable> wholes = whole_variables(model);
  for (const auto& [name, there] : exact_) {
    if (std::ranges::find(wholes, name, &WholeVariable::name) == wholes.end())
      return not_found("the map of names: the model has no variable \"%.200s\": %s", name.c_str(),
                       names_text(name, wholes, &WholeVariable::name).c_str());
  }
  for (const auto& [of, there] : begins_) {
    const std::string& prefix = of;  // a lambda cannot take a binding along
    const auto begins = [&prefix](const WholeVariable& variable) { return variable.name.starts_with(prefix); };
    if (std::ranges::any_of(wholes, begins)) continue;
    return not_found("the map of names: no variable of the model begins with \"%.200s\": %s", prefix.c_str(),
                     names_text(prefix, wholes, &WholeVariable::name).c_str());
  }
  return {};
}

Result<Fit> Fit::of(const Model& model, const std::vector<SavedTensor>& saved, const NameMap& names) {
  DTG_TRY(names.check(model));
  std::map<std::string_view, const SavedTensor*> by_name;
  for (const SavedTensor& each : saved) by_name.emplace(each.name, &each);
  Fit fit;
  std::set<std::string> used;
  for (WholeVariable& variable : whole_variables(model)) {
    const std::string there = names.saved_name(variable.name);
    const std::string words = "\"" + variable.name + "\"" + (there == variable.name ? "" : " (\"" + there + "\" there)");
    const auto at = by_name.find(there);
    if (at == by_name.end()) {
      fit.missing.push_back({variable.name, words});
      continue;
    }
    used.insert(there);
    const SavedTensor& found = *at->second;
    if (found.dtype == variable.dtype && found.shape == variable.shape) {
      fit.both.push_back({std::move(variable), there});
    } else {
      fit.reshaped.push_back({variable.name, words + " is " + dtype_name(found.dtype) + found.shape.text() + " there and " +
                                                 dtype_name(variable.dtype) + variable.shape.text() + " here"});
    }
  }
  for (const SavedTensor& each : saved) {
    if (!used.contains(each.name)) fit.extra.push_back({each.name, "\"" + each.name + "\""});
  }
  return fit;
}

std::vector<std::string> Fit::names(const std::vector<Odd>& odds) {
  std::vector<std::string> list;
  for (const Odd& each : odds) list.push_back(each.name);
  return list;
}

bool Fit::takes(const std::string& saved) const { return std::ranges::find(both, saved, &Pair::saved) != both.end(); }

Status Fit::check(const std::string& path, bool extra_is_wrong) const {
  if (missing.empty() && reshaped.empty() && (extra.empty() || !extra_is_wrong)) return {};
  std::string why = list_of("of another type or shape", reshaped) + list_of("not in it", missing);
  if (extra_is_wrong) why += list_of("not in the model", extra);
  return failed_precondition("restore \"%s\": it is not of this model%s. Nothing was assigned; %sa partial restore takes what fits",
                             path.c_str(), why.c_str(), extra_is_wrong ? "a new training takes a directory of its own, " : "");
}

Status Fit::check_any(const std::string& path) const {
  // Every training has metrics' counts, whatever its model is. (A step is something to go on from.)
  const auto is_counter = [](const Pair& pair) {
    const NamedVariable& v = pair.variable.first();
    const bool counts = v.sync == Sync::on_read && v.aggregation == Aggregation::sum;
    return !v.trainable && counts;
  };
  const bool complete = missing.empty() && reshaped.empty() && !both.empty();
  if (complete || !std::ranges::all_of(both, is_counter)) return {};
  return failed_precondition(
      "restore \"%s\": it has none of the model's variables%s%s", path.c_str(), both.empty() ? "" : " but counts of metrics",
      (list_of("of another type or shape", reshaped) + list_of("not in it", missing) + list_of("in it alone", extra)).c_str());
}

}  // namespace dtg
