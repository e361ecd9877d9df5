// Encodes a graph as FlatBuffers bytes: strings that recur are interned as numbered words, everything else is numbers.
// A pure function over the nodes that are there; any thread.
#include <algorithm>
#include <unordered_map>

#include "graph/function.h"
#include "tensor/text.h"
#include "wire/graph_codec.h"
#include "wire/schema/graph_generated.h"

namespace dtg {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using wire::fb::AttrValueBuilder;

constexpr uint32_t kUnsealed = 1;  // a field that is 0 would not be written at all

// The parts of one attribute value before they are written.
struct Parts {
  DType dtype = DType::invalid;
  std::vector<int64_t> ints;
  std::vector<double> reals;
  std::vector<int32_t> counts;
  std::string_view bytes;
  std::string joined;
};

using FunctionNumbers = std::unordered_map<const Function*, uint32_t>;

struct Split {
  Parts& parts;
  const FunctionNumbers& functions;

  void operator()(int64_t v) const { parts.ints = {v}; }
  void operator()(bool v) const { parts.ints = {v ? 1 : 0}; }
  void operator()(double v) const { parts.reals = {v}; }
  void operator()(DType v) const { parts.ints = {static_cast<int64_t>(v)}; }
  void operator()(const PartialShape& v) const {
    parts.counts.push_back(v.rank());
    parts.ints.insert(parts.ints.end(), v.dims().begin(), v.dims().end());
  }
  void operator()(const std::string& v) const { parts.bytes = v; }
  void operator()(const Tensor& v) const {
    parts.dtype = v.dtype();
    if (v.dtype() == DType::string) {
      parts.joined.resize(static_cast<size_t>(std::max<int64_t>(packed_bytes(texts_of(v)), 0)));
      pack_texts(texts_of(v), parts.joined.data());
      parts.ints.assign(v.shape().dims().begin(), v.shape().dims().end());
      parts.bytes = parts.joined;
      return;
    }
    parts.ints.assign(v.shape().dims().begin(), v.shape().dims().end());
    parts.bytes = {static_cast<const char*>(v.data()), static_cast<size_t>(v.bytes())};
  }
  void operator()(const std::vector<int64_t>& v) const { parts.ints = v; }
  void operator()(const std::vector<double>& v) const { parts.reals = v; }
  void operator()(const std::vector<bool>& v) const { parts.ints.assign(v.begin(), v.end()); }
  void operator()(const std::vector<DType>& v) const {
    for (DType dtype : v) parts.ints.push_back(static_cast<int64_t>(dtype));
  }
  void operator()(const std::vector<PartialShape>& v) const {
    for (const PartialShape& shape : v) (*this)(shape);
  }
  void operator()(const std::vector<std::string>& v) const {
    for (const std::string& text : v) {
      parts.counts.push_back(static_cast<int32_t>(text.size()));
      parts.joined += text;
    }
    parts.bytes = parts.joined;
  }
  void operator()(const FunctionRef& v) const { parts.ints.push_back(v ? int64_t{functions.at(v.get())} : -1); }
  void operator()(const std::vector<FunctionRef>& v) const {
    for (const FunctionRef& each : v) (*this)(each);
  }
};

class Encoder {
 public:
  Encoder(const Graph& graph, const wire::Limits& limits) : graph_(graph), limits_(limits) { word(""); }

  Result<std::string> run() {
    DTG_TRY(write_functions_of(graph_));
    DTG_ASSIGN(const auto list, nodes_of(graph_));
    const auto functions = functions_.empty() ? 0 : builder_.CreateVector(functions_);
    const auto words = builder_.CreateVector(words_);
    builder_.Finish(wire::fb::CreateGraphDef(builder_, 1, words, list, kUnsealed, functions), wire::fb::GraphDefIdentifier());
    if (builder_.GetSize() > limits_.graph_bytes) return too_large();
    std::string bytes(reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize());
    seal_graph(bytes);
    return bytes;
  }

 private:
  Status too_large() const {
    return resource_exhausted("write the graph: it takes more than %zu bytes; feed large values instead of making them constants",
                              limits_.graph_bytes);
  }

  using NodeList = Offset<flatbuffers::Vector<Offset<wire::fb::NodeDef>>>;
  Result<NodeList> nodes_of(const Graph& graph) {
    const uint32_t count = graph.node_count();
    written_ += count;
    if (written_ > limits_.graph_nodes) {
      return resource_exhausted("write a graph of %lld nodes: at most %u are possible", static_cast<long long>(written_),
                                limits_.graph_nodes);
    }
    std::vector<Offset<wire::fb::NodeDef>> nodes;
    nodes.reserve(count);
    const bool renames = graph.has_nameless();
    for (NodeId id = 0; id < count; ++id) {
      const Node& of = graph.node(id);
      auto written = renames ? node(of, graph.written_name(id)) : node(of, of.name);
      if (!written.ok()) return written.status().with_context("write node \"" + std::string(of.name) + "\"").at_node(of.name);
      nodes.push_back(written.value());
    }
    return builder_.CreateVector(nodes);
  }

  // Each once, after those that it calls. No deeper than functions may be.
  Status write_functions_of(const Graph& graph) {
    Status status;
    const uint32_t count = graph.node_count();
    for (NodeId id = 0; id < count && status.ok(); ++id) {
      for_each_function(graph.node(id), [&](const Function& called) {
        if (status.ok() && numbers_of_functions_.count(&called) == 0) status = write_function(called);
      });
    }
    return status;
  }

  Status write_function(const Function& function) {
    DTG_TRY(write_functions_of(function.graph()));
    if (functions_.size() >= limits_.functions) return resource_exhausted("write a graph of more than %u functions", limits_.functions);
    DTG_ASSIGN(const NodeList nodes, nodes_of(function.graph()));
    const auto pack = [&](std::span<const Value> values) {
      std::vector<uint64_t> packed;
      for (Value value : values) packed.push_back(static_cast<uint64_t>(value.node()) << 16 | value.output());
      return builder_.CreateVector(packed);
    };
    const auto arguments = pack(function.arguments()), results = pack(function.results());
    const auto controls = builder_.CreateVector(function.targets().data(), function.targets().size());
    numbers_of_functions_.emplace(&function, static_cast<uint32_t>(functions_.size()));
    functions_.push_back(wire::fb::CreateFunctionDef(builder_, word(function.name()), nodes, arguments, results, controls));
    return {};
  }

  uint32_t word(std::string_view text) {
    const auto [at, fresh] = numbers_.emplace(text, static_cast<uint32_t>(words_.size()));
    if (fresh) words_.push_back(builder_.CreateString(text.data(), text.size()));
    return at->second;
  }

  Result<Offset<wire::fb::NodeDef>> node(const Node& of, std::string_view called) {
    if (of.name.size() > limits_.name_bytes) {
      return invalid_argument("its name has %zu bytes; at most %zu can be written", of.name.size(), limits_.name_bytes);
    }
    if (of.device.size() > limits_.text_bytes || of.location.size() > limits_.text_bytes) {
      return invalid_argument("its device or location has more than %zu bytes", limits_.text_bytes);
    }
    if (of.attrs.size() > limits_.node_attrs) {
      return invalid_argument("it has %zu attributes; at most %u can be written", of.attrs.size(), limits_.node_attrs);
    }
    std::vector<Offset<wire::fb::AttrValue>> attrs;
    for (const Attr& attr : of.attrs) {
      DTG_ASSIGN(const auto value, attribute(attr));
      attrs.push_back(value);
    }
    std::vector<uint64_t> inputs;
    for (Value value : of.inputs) inputs.push_back(static_cast<uint64_t>(value.node()) << 16 | value.output());
    const auto name = builder_.CreateString(called.data(), called.size());
    const auto input_list = builder_.CreateVector(inputs);
    const auto controls = of.controls.empty() ? 0 : builder_.CreateVector(of.controls.data(), of.controls.size());
    const auto colocate = of.colocate.empty() ? 0 : builder_.CreateVector(of.colocate.data(), of.colocate.size());
    const auto attr_list = builder_.CreateVector(attrs);
    const uint32_t op = word(of.op->name()), device = word(of.device), location = word(of.location);
    return wire::fb::CreateNodeDef(builder_, name, op, device, location, input_list, controls, colocate, attr_list);
  }

  Result<Offset<wire::fb::AttrValue>> attribute(const Attr& attr) {
    Parts parts;
    if (const Tensor* tensor = attr.value.get<Tensor>(); tensor && tensor->valid() && cell_bytes(tensor->dtype()) == 0) {
      return unimplemented("attribute %.*s is a tensor of %s, which has no plain bytes", int(attr.name.size()), attr.name.data(),
                           dtype_name(tensor->dtype()));
    }
    std::visit(Split{parts, numbers_of_functions_}, attr.value.variant());
    // Counted before it is copied: the builder must not grow beyond what it can hold.
    if (parts.bytes.size() > limits_.graph_bytes || builder_.GetSize() + parts.bytes.size() > limits_.graph_bytes) return too_large();
    const auto ints = parts.ints.empty() ? 0 : builder_.CreateVector(parts.ints);
    const auto reals = parts.reals.empty() ? 0 : builder_.CreateVector(parts.reals);
    const auto counts = parts.counts.empty() ? 0 : builder_.CreateVector(parts.counts);
    Offset<flatbuffers::Vector<uint8_t>> bytes = 0;
    if (!parts.bytes.empty()) {
      builder_.ForceVectorAlignment(parts.bytes.size(), 1, 16);
      bytes = builder_.CreateVector(reinterpret_cast<const uint8_t*>(parts.bytes.data()), parts.bytes.size());
    }
    const uint32_t name = word(attr.name);
    AttrValueBuilder value(builder_);
    value.add_bytes(bytes);
    value.add_counts(counts);
    value.add_reals(reals);
    value.add_ints(ints);
    value.add_dtype(static_cast<int32_t>(parts.dtype));
    value.add_name(name);
    value.add_kind(static_cast<uint8_t>(attr.value.kind()));
    return value.Finish();
  }

  const Graph& graph_;
  const wire::Limits& limits_;
  FlatBufferBuilder builder_;
  std::unordered_map<std::string_view, uint32_t> numbers_;  // keys live in the graph
  std::vector<Offset<flatbuffers::String>> words_;
  std::vector<Offset<wire::fb::FunctionDef>> functions_;
  FunctionNumbers numbers_of_functions_;
  int64_t written_ = 0;  // nodes
};

}  // namespace

Result<std::string> encode_graph(const Graph& graph, const wire::Limits& limits) { return Encoder(graph, limits).run(); }

}  // namespace dtg
