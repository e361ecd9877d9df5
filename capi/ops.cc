// The op table as JSON: what `dtg ops` shows and from what the typed op wrappers of every language are generated. Any thread.
#include <string>

#include "base/json.h"
#include "capi/guard.h"
#include "capi/objects.h"
#include "dtg/runtime.h"

namespace dtg::capi {
namespace {

void key(std::string& json, const char* name) { json += std::string(json.back() == '{' ? "\"" : ",\"") + name + "\":"; }

void text(std::string& json, const char* name, std::string_view value) {
  key(json, name);
  append_json_string(json, value);
}

void flag(std::string& json, const char* name, bool value) {
  key(json, name);
  json += value ? "true" : "false";
}

template <class List, class Each>
void list(std::string& json, const List& items, Each each) {
  json += "[";
  bool first = true;
  for (const auto& item : items) {
    if (!first) json += ",";
    first = false;
    each(item);
  }
  json += "]";
}

void args_json(std::string& json, const char* name, std::span<const ArgDef> args) {
  key(json, name);
  list(json, args, [&](const ArgDef& arg) {
    json += "{";
    text(json, "name", arg.name);
    text(json, "type", arg.dtype != DType::invalid ? dtype_name(arg.dtype) : !arg.list_attr.empty() ? arg.list_attr : arg.type_attr);
    if (!arg.number_attr.empty()) text(json, "number", arg.number_attr);
    if (!arg.list_attr.empty()) flag(json, "list", true);
    json += "}";
  });
}

// One default, in JSON's own types: an element type by its name, a shape as the list of its dimensions (-1: open), null where
// even the rank is open.
struct Fallback {
  std::string& json;

  void operator()(int64_t value) const { json += std::to_string(value); }
  void operator()(double value) const { append_json_real(json, value); }
  void operator()(bool value) const { json += value ? "true" : "false"; }
  void operator()(DType value) const { append_json_string(json, dtype_name(value)); }
  void operator()(const std::string& value) const { append_json_string(json, value); }
  void operator()(const Tensor&) const { json += "null"; }  // no op has one
  void operator()(const FunctionRef&) const { json += "null"; }
  void operator()(const PartialShape& value) const {
    if (value.rank() < 0) json += "null";
    else list(json, value.dims(), [&](int64_t dim) { json += std::to_string(dim); });
  }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    list(json, values, [&](const auto& value) { (*this)(static_cast<const T&>(value)); });
  }
};

void attrs_json(std::string& json, std::span<const AttrDef> attrs) {
  key(json, "attributes");
  std::vector<AttrDef> shown;
  for (const AttrDef& attr : attrs) {
    if (!attr.name.starts_with("_")) shown.push_back(attr);  // those are for the library
  }
  list(json, shown, [&](const AttrDef& attr) {
    json += "{";
    text(json, "name", attr.name);
    text(json, "kind", attr_kind_name(attr.kind));
    flag(json, "has_default", attr.fallback.has_value());
    if (attr.fallback) {
      key(json, "default");
      std::visit(Fallback{json}, attr.fallback->variant());
    }
    if (attr.kind == AttrKind::type || attr.kind == AttrKind::list_type) {
      std::vector<std::string_view> names;
      for (int n = 1; n < 32; ++n) {
        if (attr.types.has(static_cast<DType>(n)) && dtype_is_known(n)) names.push_back(dtype_name(static_cast<DType>(n)));
      }
      key(json, "types");
      list(json, names, [&](std::string_view name) { append_json_string(json, name); });
    }
    if (!attr.strings.empty()) {
      key(json, "strings");
      list(json, attr.strings, [&](std::string_view name) { append_json_string(json, name); });
    }
    json += "}";
  });
}

std::string ops_json(const Runtime& runtime) {
  std::string json = "[";
  for (const OpDef* op : runtime.ops().list()) {
    if (op->name().starts_with("_")) continue;  // made by the planner, not for hosts
    json += json.size() > 1 ? ",\n{" : "\n{";
    text(json, "name", op->name());
    text(json, "doc", op->doc_text());
    args_json(json, "inputs", op->inputs());
    args_json(json, "outputs", op->outputs());
    attrs_json(json, op->attrs());
    flag(json, "stateful", op->is_stateful());
    flag(json, "differentiable", op->is_differentiable() && op->grad_fn());
    text(json, "kernels", runtime.kernels().describe(op->name()));
    json += "}";
  }
  return json + "\n]\n";
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" dtg_error* dtg_ops_json(dtg_runtime* runtime, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const Ref<Runtime> held, runtime_of(runtime));
    return give(HandleType::string, make_ref<StringObject>(ops_json(*held)), out);
  });
}
