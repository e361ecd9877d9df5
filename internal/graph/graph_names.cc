// Names of nodes and scopes: what is allowed, made unique, nested. See graph.h for threads.
#include <algorithm>
#include <charconv>

#include "base/or_undo.h"
#include "graph/graph.h"

namespace dtg {
namespace {

constexpr size_t kNameMax = 4096;

bool name_char(char c, bool first) {
  const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return word || c == '.' || (!first && (c == '_' || c == '-' || c == '/' || c == '\\' || c == '>'));
}

// TensorFlow's rule for node names; names that begin with an underscore are for the library.
Status check_name(std::string_view name) {
  for (size_t i = 0; i < name.size(); ++i) {
    const bool leading = i == 0 || (i == 1 && name[0] == '_');
    if (!name_char(name[i], leading) && !(i == 0 && name[0] == '_')) {
      return invalid_argument("node name \"%.*s\": character %zu is not allowed; use letters, digits and . _ - / \\ >", int(name.size()),
                              name.data(), i);
    }
  }
  if (name.size() > kNameMax) return invalid_argument("node name of %zu bytes: at most %zu", name.size(), kNameMax);
  return {};
}

}  // namespace

// Remembered while a trial is open.
void Graph::count_up(int& counter) {
  if (trials_ > 0) name_changes_.push_back({&counter, counter});
  ++counter;
}

// The name, or the next of name_1, name_2, ... that is likely to be free; answers its hash. settle_name() goes on from there.
uint32_t Graph::suggest_name(std::string& name) {
  draft_.counted = {};
  // One that has counted says that the name is taken: it is the commonest case, and the table need not be asked.
  auto counter = name_counters_.find(std::string_view(name));
  if (counter == name_counters_.end() || counter->second == 0) {
    const uint32_t hash = NameTable::hash_of(name);
    if (names_.find(name, hash) == kNoNode) return hash;
    if (counter == name_counters_.end()) counter = name_counters_.emplace(name, 0).first;
  }
  draft_.counted = {&counter->second, counter->second};
  name += '_';
  draft_.name_base = name.size();
  const uint32_t hash = next_name(name);
  // By the time that it is asked for, its place in the table is here.
  names_.fetch(hash);
  return hash;
}

uint32_t Graph::next_name(std::string& name) {
  int& counter = *draft_.counted.counter;
  char digits[12];
  count_up(counter);
  const char* const end = std::to_chars(digits, digits + sizeof digits, counter).ptr;
  name.resize(draft_.name_base);
  name.append(digits, static_cast<size_t>(end - digits));
  return NameTable::hash_of(name);
}

uint32_t Graph::settle_name(std::string& name, uint32_t hash) {
  // What did not count was looked for.
  while (draft_.counted.counter && names_.find(name, hash) != kNoNode) hash = next_name(name);
  return hash;
}

// Nothing at the root, which an empty scope goes back to.
void Graph::append_prefix(std::string& name) const {
  if (scopes_.names.empty() || scopes_.names.back().text.empty()) return;
  name += scopes_.names.back().text;
  name += '/';
}

std::string Graph::unique_name(std::string_view base) {
  const std::lock_guard lock(mutex_);
  std::string name;
  append_prefix(name);
  name += base;
  settle_name(name, suggest_name(name));
  return name;
}

Status Graph::resolve_name(const NodeSpec& spec) {
  std::string& name = draft_.name;
  name.clear();
  append_prefix(name);
  const Status scope = scopes_.names.empty() ? Status() : scopes_.names.back().status;
  if (spec.name.empty()) {
    const std::string_view op = draft_.node.op->name();
    name += op.substr(std::min(op.find_first_not_of('_'), op.size()));
    DTG_TRY(scope);
    draft_.name_hash = suggest_name(name);
    return name.size() <= kNameMax ? Status() : check_name(name);
  }
  name += spec.name;
  DTG_TRY(scope);
  DTG_TRY(check_name(name));
  draft_.name_hash = NameTable::hash_of(name);
  if (names_.find(name, draft_.name_hash) == kNoNode) return {};
  return invalid_argument("node \"%s\" exists already; choose another name or leave it empty", name.c_str());
}

// An empty name goes back to the root.
std::string Graph::scope_text(std::string_view name) const {
  std::string full;
  if (!name.empty()) append_prefix(full);
  return full.append(name);
}

Status Graph::check_name_scope(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return check_name(scope_text(name)).with_context("open a name scope");
}

void Graph::push_name_scope(std::string_view name) {
  const std::lock_guard lock(mutex_);
  NameScope scope{scope_text(name), {}};
  scope.status = check_name(scope.text).with_context("a name scope");
  // A scope name is made unique like a node name, so that building a model twice gives two sets of names.
  // Its name is taken when there is room for the scope, so that without memory the next one of that name is not another.
  scopes_.names.push_back(std::move(scope));
  or_undo(
      [&] {
        if (!name.empty()) make_scope_free(scopes_.names.back().text);
      },
      [&] { scopes_.names.pop_back(); });
}

// The scope, or the first of scope_1, scope_2, ... that was not opened before under any name.
void Graph::make_scope_free(std::string& scope) {
  const std::string base = scope;
  int& seen = name_counters_["scope:" + base];
  while (seen > 0) {
    scope = base + "_" + std::to_string(seen);
    int& other = name_counters_["scope:" + scope];
    count_up(seen);
    if (other > 0) continue;
    count_up(other);
    return;
  }
  count_up(seen);
}

Graph::Trial Graph::begin_trial() {
  const std::lock_guard lock(mutex_);
  nameless_.reserve(nameless_.size() + 1);  // end_trial() may not ask for memory: the lack of it may be why
  ++trials_;
  return {node_count(), name_changes_.size()};
}

void Graph::end_trial(const Trial& trial, bool failed) {
  const std::lock_guard lock(mutex_);
  if (failed) {
    const auto was_named = [&](NodeId id) {
      return std::ranges::none_of(nameless_, [id](const auto& range) { return id >= range.first && id < range.second; });
    };
    for (NodeId id = trial.first; id < node_count(); ++id) {
      if (was_named(id)) names_.remove(id);
    }
    if (trial.first < node_count()) {
      while (!nameless_.empty() && nameless_.back().first >= trial.first) nameless_.pop_back();  // of trials inside of this one
      nameless_.emplace_back(trial.first, node_count());
    }
    for (; name_changes_.size() > trial.changes; name_changes_.pop_back()) *name_changes_.back().counter = name_changes_.back().before;
  }
  if (--trials_ == 0) name_changes_.clear();
}

bool Graph::has_nameless() const {
  const std::lock_guard lock(mutex_);
  return !nameless_.empty();
}

std::string Graph::written_name(NodeId id) const {
  const std::lock_guard lock(mutex_);
  std::string name(node(id).name);
  if (names_.find(name) == id) return name;
  for (const auto& [first, end] : nameless_) {
    if (id < first || id >= end) continue;
    name = "_unused/" + std::to_string(id);
    while (names_.find(name) != kNoNode) name += '_';
  }
  return name;
}

}  // namespace dtg
