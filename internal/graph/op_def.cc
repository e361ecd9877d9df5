// Parses op specs and keeps the table of op definitions. A spec that does not parse makes its definition invalid; the
// table keeps the first such error, and a test demands that there is none. Written by the runtime that makes the table,
// then read by any thread.
#include "graph/op_def.h"

#include <algorithm>
#include <charconv>

#include "base/spelling.h"

namespace dtg {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Splits at the first `mark`; the second half is empty when there is none.
std::pair<std::string_view, std::string_view> cut(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {trim(text), {}};
  return {trim(text.substr(0, at)), trim(text.substr(at + mark.size()))};
}

bool parse_int(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const auto [first, rest] = cut(text, ",");
    items.push_back(first);
    text = rest;
  }
  return items;
}

std::string unquote(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"')) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

struct KindName {
  const char* name;
  AttrKind kind;
};
constexpr KindName kKinds[] = {
    {"int", AttrKind::integer},
    {"float", AttrKind::real},
    {"bool", AttrKind::boolean},
    {"type", AttrKind::type},
    {"shape", AttrKind::shape},
    {"string", AttrKind::string},
    {"tensor", AttrKind::tensor},
    {"list(int)", AttrKind::list_integer},
    {"list(float)", AttrKind::list_real},
    {"list(bool)", AttrKind::list_boolean},
    {"list(type)", AttrKind::list_type},
    {"list(shape)", AttrKind::list_shape},
    {"list(string)", AttrKind::list_string},
    {"func", AttrKind::function},
    {"list(func)", AttrKind::list_function},
};

// "{float32, int32}" or "{'SAME', 'VALID'}" or "list({float32})" or a plain kind.
Status parse_kind(std::string_view text, AttrDef& attr) {
  bool list = false;
  if (text.starts_with("list({") && text.ends_with("})")) {
    list = true;
    text = text.substr(5, text.size() - 6);
  }
  if (text.starts_with("{") && text.ends_with("}")) {
    const auto words = split_list(text.substr(1, text.size() - 2));
    if (!words.empty() && words[0].starts_with("'")) {
      attr.kind = list ? AttrKind::list_string : AttrKind::string;
      for (auto word : words) attr.strings.push_back(unquote(word));
      return {};
    }
    attr.kind = list ? AttrKind::list_type : AttrKind::type;
    attr.types = DTypeSet();
    for (auto word : words) {
      const DType dtype = dtype_from_name(word);
      if (dtype == DType::invalid) return internal_error("unknown type \"%.*s\"", int(word.size()), word.data());
      attr.types = attr.types | DTypeSet{dtype};
    }
    return {};
  }
  for (const KindName& row : kKinds) {
    if (text == row.name) {
      attr.kind = row.kind;
      return {};
    }
  }
  return internal_error("unknown attribute kind \"%.*s\"", int(text.size()), text.data());
}

// "[1, 2]" of ints, or "[]" of anything.
Result<AttrValue> parse_list_default(std::string_view text, AttrKind kind) {
  if (!text.starts_with("[") || !text.ends_with("]")) return internal_error("a list default needs brackets");
  const auto items = split_list(trim(text.substr(1, text.size() - 2)));
  if (kind == AttrKind::list_integer) {
    std::vector<int64_t> values(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      if (!parse_int(items[i], &values[i])) return internal_error("bad int in a list default");
    }
    return AttrValue(std::move(values));
  }
  if (!items.empty()) return internal_error("only int lists may have a non-empty default");
  switch (kind) {
    case AttrKind::list_real: return AttrValue(AttrValue::Variant(std::vector<double>()));
    case AttrKind::list_boolean: return AttrValue(AttrValue::Variant(std::vector<bool>()));
    case AttrKind::list_type: return AttrValue(std::vector<DType>());
    case AttrKind::list_shape: return AttrValue(std::vector<PartialShape>());
    case AttrKind::list_string: return AttrValue(AttrValue::Variant(std::vector<std::string>()));
    default: return internal_error("not a list kind");
  }
}

Result<AttrValue> parse_default(std::string_view text, AttrKind kind) {
  switch (kind) {
    case AttrKind::integer: {
      int64_t value = 0;
      if (!parse_int(text, &value)) return internal_error("bad int default");
      return AttrValue(value);
    }
    case AttrKind::real: {
      double value = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
        return internal_error("bad float default");
      }
      return AttrValue(value);
    }
    case AttrKind::boolean: return AttrValue(text == "true");
    case AttrKind::type: {
      const DType dtype = dtype_from_name(text);
      if (dtype == DType::invalid) return internal_error("bad type default");
      return AttrValue(dtype);
    }
    case AttrKind::shape:
      if (text == "unknown") return AttrValue(PartialShape::unknown());
      if (text == "[]") return AttrValue(PartialShape::scalar());
      return internal_error("a shape default is unknown or []");
    case AttrKind::string: return AttrValue(unquote(text));
    case AttrKind::tensor: return internal_error("a tensor attribute has no default");
    default: return parse_list_default(text, kind);
  }
}

// "name: kind [>= n] [= default]"
Result<AttrDef> parse_attr(std::string_view spec) {
  AttrDef attr;
  auto [name, rest] = cut(spec, ":");
  attr.name = name;
  std::string_view kind = rest, minimum, fallback;
  if (const size_t at = rest.find(">="); at != std::string_view::npos) {
    kind = trim(rest.substr(0, at));
    std::tie(minimum, fallback) = cut(rest.substr(at + 2), "=");
  } else {
    // A word list may itself hold '='-free text only, so the first '=' starts the default.
    std::tie(kind, fallback) = cut(rest, "=");
  }
  DTG_TRY(parse_kind(kind, attr));
  if (!minimum.empty()) {
    int64_t value = 0;
    if (!parse_int(minimum, &value)) return internal_error("bad minimum");
    attr.minimum = value;
  }
  if (!fallback.empty()) {
    DTG_ASSIGN(attr.fallback, parse_default(fallback, attr.kind));
  }
  return attr;
}

}  // namespace

OpDef OpDef::make(const char* name) {
  OpDef def;
  def.name_ = name;
  return def;
}

void OpDef::arg(std::vector<ArgDef>& list, std::string_view spec, Contract contract) {
  ArgDef arg;
  auto [name, type] = cut(spec, ":");
  arg.name = name;
  if (const auto [number, of] = cut(type, "*"); !of.empty()) {
    arg.number_attr = number;
    type = of;
  }
  arg.dtype = dtype_from_name(type);
  if (arg.dtype == DType::invalid) arg.type_attr = type;
  arg.rank_min = contract.rank >= 0 ? contract.rank : contract.rank_min;
  arg.rank_max = contract.rank >= 0 ? contract.rank : contract.rank_max;
  list.push_back(std::move(arg));
}

OpDef&& OpDef::input(const char* spec) && {
  arg(inputs_, spec, {});
  return std::move(*this);
}
OpDef&& OpDef::input(const char* spec, Contract contract) && {
  arg(inputs_, spec, contract);
  return std::move(*this);
}
OpDef&& OpDef::output(const char* spec) && {
  arg(outputs_, spec, {});
  return std::move(*this);
}

OpDef&& OpDef::attr(const char* spec) && {
  auto parsed = parse_attr(spec);
  if (parsed.ok()) {
    attrs_.push_back(parsed.take());
  } else if (status_.ok()) {
    status_ = parsed.status().with_context("op " + name_ + ", attribute \"" + spec + "\"");
  }
  return std::move(*this);
}

OpDef&& OpDef::shape(ShapeFn fn) && {
  shape_ = fn;
  return std::move(*this);
}
OpDef&& OpDef::gradient(GradFn fn) && {
  grad_ = fn;
  differentiable_ = gradient_declared_ = true;
  return std::move(*this);
}
OpDef&& OpDef::no_gradient() && {
  gradient_declared_ = true;
  return std::move(*this);
}
OpDef&& OpDef::stateful(Capability capability) && {
  stateful_ = true;
  capability_ = capability;
  return std::move(*this);
}
OpDef&& OpDef::draws() && {
  draws_ = true;
  return std::move(*this).stateful();
}
OpDef&& OpDef::access(Access access) && {
  for (ArgDef& arg : inputs_) {
    if (arg.dtype == DType::resource) arg.access = access;
  }
  return std::move(*this);
}
OpDef&& OpDef::role(Role role) && {
  role_ = role;
  return std::move(*this);
}
OpDef&& OpDef::repeats() && {
  repeats_ = true;
  return std::move(*this);
}

OpDef&& OpDef::transient() && {
  transient_ = true;
  return std::move(*this);
}

OpDef&& OpDef::judges() && {
  judges_ = true;
  return std::move(*this);
}
OpDef&& OpDef::forwards() && {
  forwarding_ = Forwarding::first;
  return std::move(*this);
}
OpDef&& OpDef::forwards_each() && {
  forwarding_ = Forwarding::each;
  return std::move(*this);
}
OpDef&& OpDef::value(ValueFn fn) && {
  value_ = fn;
  return std::move(*this);
}
OpDef&& OpDef::simplify(RewriteFn fn) && {
  simplify_ = fn;
  return std::move(*this);
}
OpDef&& OpDef::fuse(RewriteFn fn) && {
  fuse_ = fn;
  return std::move(*this);
}
OpDef&& OpDef::doc(const char* text) && {
  doc_ = text;
  return std::move(*this);
}

// -1 where no attribute has that name, or none is named.
int OpDef::place_of(std::string_view attr) const {
  const auto at = std::ranges::find(attrs_, attr, &AttrDef::name);
  return at == attrs_.end() ? -1 : static_cast<int>(at - attrs_.begin());
}

const AttrDef* OpDef::find_attr(std::string_view name) const {
  for (const AttrDef& attr : attrs_) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

Access OpDef::access_of(size_t input) const {
  // A resource argument is one value, and none comes after a list.
  return input < inputs_.size() ? inputs_[input].access : Access::undeclared;
}

bool OpDef::forwards(size_t input, size_t output) const {
  switch (forwarding_) {
    case Forwarding::none: return false;
    case Forwarding::first: return input == 0 && output == 0;
    case Forwarding::each: return input == output;
  }
  return false;
}

// An effect that nobody declared is one that no pass would keep in order.
Status OpDef::check_effects() const {
  bool list = false;
  for (const ArgDef& arg : inputs_) {
    if (arg.dtype == DType::resource && arg.access == Access::undeclared) {
      return internal_error("op %s does not say what it does with %s", name_.c_str(), arg.name.c_str());
    }
    if (arg.dtype == DType::resource && list) {
      return internal_error("op %s: the resource %s must stand before its lists", name_.c_str(), arg.name.c_str());
    }
    list |= !arg.number_attr.empty() || !arg.list_attr.empty();
  }
  return {};
}

void OpTable::add(OpDef&& def) {
  // A "name: attr" argument means one value when attr is a type and a list when it is a list(type).
  for (auto* list : {&def.inputs_, &def.outputs_}) {
    for (ArgDef& arg : *list) {
      if (arg.type_attr.empty()) continue;
      const AttrDef* attr = def.find_attr(arg.type_attr);
      if (!attr) {
        def.status_ = internal_error("op %s: \"%s\" is neither a type nor an attribute", def.name_.c_str(), arg.type_attr.c_str());
      } else if (attr->kind == AttrKind::list_type) {
        arg.list_attr = std::move(arg.type_attr);
        arg.type_attr.clear();
      }
    }
    for (ArgDef& arg : *list) {
      arg.type_at = def.place_of(arg.type_attr);
      arg.number_at = def.place_of(arg.number_attr);
      arg.list_at = def.place_of(arg.list_attr);
      if (!arg.number_attr.empty() && arg.number_at < 0) {
        def.status_ = internal_error("op %s: \"%s\" is not an attribute", def.name_.c_str(), arg.number_attr.c_str());
      }
    }
  }
  if (def.status_.ok() && !def.shape_) def.status_ = internal_error("op %s has no shape function", def.name_.c_str());
  if (def.status_.ok() && !def.gradient_declared_) {
    def.status_ = internal_error("op %s says neither gradient nor no_gradient", def.name_.c_str());
  }
  if (def.status_.ok()) def.status_ = def.check_effects();
  if (def.status_.ok() && find(def.name_)) def.status_ = internal_error("op %s is defined twice", def.name_.c_str());
  if (!def.status_.ok()) {
    if (status_.ok()) status_ = def.status_;
    return;
  }
  def.takes_functions_ = std::ranges::any_of(
      def.attrs_, [](const AttrDef& attr) { return attr.kind == AttrKind::function || attr.kind == AttrKind::list_function; });
  auto kept = std::make_unique<OpDef>(std::move(def));
  kept->number_ = static_cast<uint32_t>(ops_.size());
  const std::string_view name = kept->name();
  const OpDef*& first = by_role_[static_cast<size_t>(kept->role())];
  if (!first) first = kept.get();
  ops_.emplace(name, std::move(kept));
}

const OpDef* OpTable::find(std::string_view name) const {
  const auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : it->second.get();
}

std::vector<const OpDef*> OpTable::list() const {
  std::vector<const OpDef*> all;
  for (const auto& [name, def] : ops_) all.push_back(def.get());
  std::ranges::sort(all, {}, &OpDef::name);
  return all;
}

std::string_view OpTable::closest(std::string_view name) const {
  std::string_view best;
  size_t best_distance = alike_below(name);
  for (const auto& [candidate, def] : ops_) {
    if (candidate.starts_with("_")) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance || (distance == best_distance && !best.empty() && candidate < best)) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace dtg
