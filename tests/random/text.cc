// The text form of a scene, one line per thing, words between single spaces:
//
//   seed 7
//   node AddV2 place=-1 in=0:0,3:1 ctl=2 T=t:float32
//   run 12
//   feed 4:0 f32tensor        fetch 5:0        target 6
//
// Tensors are type[dims]bytes, the bytes in hexadecimal; shapes are [2,-1] or ?; functions are graphs as bytes that call them.
#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/budget.h"
#include "graph/function.h"
#include "random/scene.h"
#include "wire/graph_codec.h"

namespace dtg::random {
namespace {

template <class T, class Fn>
std::string joined(const std::vector<T>& list, Fn&& text, char between = ',') {
  std::string all;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) all += between;
    all += text(list[i]);
  }
  return all;
}

std::string port_text(const Port& port) { return std::to_string(port.node) + ":" + std::to_string(port.output); }

std::string dims_text(std::span<const int64_t> dims) {
  return "[" + joined(std::vector<int64_t>(dims.begin(), dims.end()), [](int64_t dim) { return std::to_string(dim); }) + "]";
}
std::string shape_text(const PartialShape& shape) { return shape.has_rank() ? dims_text(shape.dims()) : "?"; }

std::string hex(const void* data, size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<const unsigned char*>(data)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string tensor_text(const Tensor& tensor) {
  return dtype_name(tensor.dtype()) + dims_text(tensor.shape().dims()) + hex(tensor.data(), static_cast<size_t>(tensor.bytes()));
}

// A function as the bytes of a graph that calls it.
std::string function_text(const FunctionRef& function) {
  auto graph = Graph::create(&function.get()->graph().ops());
  if (!graph.ok()) return {};
  std::vector<Value> arguments;
  for (size_t i = 0; i < function.get()->arguments().size(); ++i) {
    auto made = graph.value()->add_argument(function.get()->argument_info(i));
    if (!made.ok()) return {};
    arguments.push_back(made.value());
  }
  std::vector<DType> types;
  for (size_t r = 0; r < function.get()->results().size(); ++r) types.push_back(function.get()->result_info(r).dtype);
  const Attr attrs[] = {{"Tout", AttrValue(std::move(types))}, {"f", AttrValue(function)}};
  if (!graph.value()->add({.op = "StatefulPartitionedCall", .inputs = arguments, .attrs = attrs}).ok()) return {};
  const auto bytes = encode_graph(*graph.value());
  return bytes.ok() ? hex(bytes.value().data(), bytes.value().size()) : std::string();
}

std::string attr_text(const AttrValue& value) {
  if (const auto* v = value.get<int64_t>()) return "i:" + std::to_string(*v);
  if (const auto* v = value.get<double>()) return "r:" + hex(v, sizeof *v);
  if (const auto* v = value.get<bool>()) return *v ? "b:1" : "b:0";
  if (const auto* v = value.get<DType>()) return std::string("t:") + dtype_name(*v);
  if (const auto* v = value.get<PartialShape>()) return "s:" + shape_text(*v);
  if (const auto* v = value.get<std::string>()) return "w:" + hex(v->data(), v->size());
  if (const auto* v = value.get<Tensor>()) return "d:" + tensor_text(*v);
  if (const auto* v = value.get<std::vector<int64_t>>()) return "I:" + dims_text(*v);
  if (const auto* v = value.get<std::vector<DType>>()) return "T:" + joined(*v, [](DType one) { return std::string(dtype_name(one)); });
  if (const auto* v = value.get<std::vector<PartialShape>>()) return "S:" + joined(*v, shape_text, ';');
  if (const auto* v = value.get<FunctionRef>()) return "f:" + function_text(*v);
  if (const auto* v = value.get<std::vector<FunctionRef>>()) return "F:" + joined(*v, function_text);
  if (const auto* v = value.get<std::vector<std::string>>())
    return "W:" + joined(*v, [](const std::string& s) { return hex(s.data(), s.size()); });
  return "-";
}

Status unreadable(std::string_view what) { return invalid_argument("\"%.*s\" is not understood", int(what.size()), what.data()); }

std::vector<std::string> cut(std::string_view text, char between) {
  std::vector<std::string> list;
  if (text.empty()) return list;
  for (size_t at = 0;;) {
    const size_t end = text.find(between, at);
    list.emplace_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return list;
    at = end + 1;
  }
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Port port_from(std::string_view text) {
  const size_t colon = text.find(':');
  return {static_cast<int>(number(text.substr(0, colon))), static_cast<int>(number(text.substr(colon + 1)))};
}

std::vector<int64_t> dims_from(std::string_view text) {
  std::vector<int64_t> dims;
  for (const std::string& dim : cut(text.substr(1, text.size() - 2), ',')) dims.push_back(number(dim));
  return dims;
}

Result<PartialShape> shape_from(std::string_view text) {
  if (text == "?") return PartialShape::unknown();
  if (text.size() < 2) return unreadable(text);
  return PartialShape::make(dims_from(text));
}

std::string bytes_from(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) bytes += static_cast<char>(digit(text[i]) << 4 | digit(text[i + 1]));
  return bytes;
}

Result<Tensor> tensor_from(std::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos) return unreadable(text);
  DTG_ASSIGN(Shape shape, Shape::make(dims_from(text.substr(open, close - open + 1))));
  DTG_ASSIGN(Tensor tensor, Tensor::allocate(dtype_from_name(text.substr(0, open)), shape));
  const std::string bytes = bytes_from(text.substr(close + 1));
  if (static_cast<int64_t>(bytes.size()) != tensor.bytes()) return unreadable(text);
  if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return tensor;
}

Result<FunctionRef> function_from(std::string_view text, const OpTable& ops) {
  DTG_ASSIGN(const Ref<Graph> graph, Graph::create(&ops));
  MemoryBudget budget(int64_t{1} << 30);
  DTG_TRY(decode_graph(bytes_from(text), *graph, budget));
  if (graph->node_count() == 0) return unreadable(text);
  return graph->node(graph->node_count() - 1).attr<FunctionRef>("f");
}

Result<AttrValue> attr_from(std::string_view text, const OpTable& ops) {
  const std::string_view body = text.substr(std::min<size_t>(2, text.size()));
  const char kind = text.empty() ? '-' : text[0];
  if (kind == 'i') return AttrValue(number(body));
  if (kind == 'b') return AttrValue(body == "1");
  if (kind == 't') return AttrValue(dtype_from_name(body));
  if (kind == 'w') return AttrValue(bytes_from(body));
  if (kind == 'I') return AttrValue(dims_from(body));
  if (kind == 'r') {
    double value = 0;
    const std::string bytes = bytes_from(body);
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return AttrValue(value);
  }
  if (kind == 's') {
    DTG_ASSIGN(PartialShape shape, shape_from(body));
    return AttrValue(std::move(shape));
  }
  if (kind == 'd') {
    DTG_ASSIGN(Tensor tensor, tensor_from(body));
    return AttrValue(std::move(tensor));
  }
  if (kind == 'T') {
    std::vector<DType> list;
    for (const std::string& word : cut(body, ',')) list.push_back(dtype_from_name(word));
    return AttrValue(std::move(list));
  }
  if (kind == 'f') {
    DTG_ASSIGN(FunctionRef function, function_from(body, ops));
    return AttrValue(std::move(function));
  }
  if (kind == 'F') {
    std::vector<FunctionRef> list;
    for (const std::string& word : cut(body, ',')) {
      DTG_ASSIGN(list.emplace_back(), function_from(word, ops));
    }
    return AttrValue(std::move(list));
  }
  if (kind == 'W') return AttrValue(AttrValue::Variant(std::vector<std::string>()));
  std::vector<PartialShape> shapes;
  for (const std::string& word : cut(body, ';')) {
    DTG_ASSIGN(PartialShape shape, shape_from(word));
    shapes.push_back(std::move(shape));
  }
  if (kind != 'S') return unreadable(text);
  return AttrValue(std::move(shapes));
}

Result<NodeRecord> node_from(const std::vector<std::string>& words, const OpTable& ops) {
  NodeRecord node;
  node.op = words[1];
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return unreadable(words[i]);
    const std::string key = words[i].substr(0, equals), value = words[i].substr(equals + 1);
    if (key == "place") {
      node.place = static_cast<int>(number(value));
    } else if (key == "in") {
      for (const std::string& port : cut(value, ',')) node.inputs.push_back(port_from(port));
    } else if (key == "ctl") {
      for (const std::string& control : cut(value, ',')) node.controls.push_back(static_cast<int>(number(control)));
    } else {
      DTG_ASSIGN(AttrValue attr, attr_from(value, ops));
      node.attrs.emplace_back(key, std::move(attr));
    }
  }
  return node;
}

}  // namespace

std::string to_text(const Scene& scene) {
  std::string text = "seed " + std::to_string(scene.seed) + "\n";
  for (size_t i = 0; i < scene.nodes.size(); ++i) {
    const NodeRecord& node = scene.nodes[i];
    text += "# n" + std::to_string(i) + "\nnode " + node.op + " place=" + std::to_string(node.place);
    if (!node.inputs.empty()) text += " in=" + joined(node.inputs, port_text);
    if (!node.controls.empty()) text += " ctl=" + joined(node.controls, [](int control) { return std::to_string(control); });
    for (const auto& [name, value] : node.attrs) text += " " + name + "=" + attr_text(value);
    text += "\n";
  }
  for (const RunRecord& run : scene.runs) {
    text += "run " + std::to_string(run.nodes) + (run.times > 1 ? " " + std::to_string(run.times) : "") + "\n";
    for (const auto& [port, tensor] : run.feeds) text += "feed " + port_text(port) + " " + tensor_text(tensor) + "\n";
    for (const Port& port : run.fetches) text += "fetch " + port_text(port) + "\n";
    for (int target : run.targets) text += "target " + std::to_string(target) + "\n";
  }
  return text;
}

Result<Scene> from_text(std::string_view text, const OpTable& ops) {
  Scene scene;
  for (const std::string& line : cut(text, '\n')) {
    const std::vector<std::string> words = cut(line, ' ');
    if (words.empty() || words[0] == "#" || words[0].empty()) continue;
    if (words.size() < 2) return unreadable(line);
    if (words[0] == "seed") {
      scene.seed = static_cast<uint64_t>(number(words[1]));
    } else if (words[0] == "node") {
      DTG_ASSIGN(NodeRecord node, node_from(words, ops));
      scene.nodes.push_back(std::move(node));
    } else if (words[0] == "run") {
      scene.runs.emplace_back().nodes = static_cast<int>(number(words[1]));
      if (words.size() > 2) scene.runs.back().times = static_cast<int>(number(words[2]));
    } else if (scene.runs.empty()) {
      return unreadable(line);
    } else if (words[0] == "feed" && words.size() == 3) {
      DTG_ASSIGN(Tensor tensor, tensor_from(words[2]));
      scene.runs.back().feeds.emplace_back(port_from(words[1]), std::move(tensor));
    } else if (words[0] == "fetch") {
      scene.runs.back().fetches.push_back(port_from(words[1]));
    } else if (words[0] == "target") {
      scene.runs.back().targets.push_back(static_cast<int>(number(words[1])));
    } else {
      return unreadable(line);
    }
  }
  return scene;
}

}  // namespace dtg::random
