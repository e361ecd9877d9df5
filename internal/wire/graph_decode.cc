// Decodes a graph from foreign bytes: verifies them, counts and reserves what they would take in memory, and only then
// copies, node by node through Graph::add. Called by the thread that builds the graph.
#include <cstring>

#include "base/crc32c.h"
#include "graph/function.h"
#include "tensor/text.h"
#include "wire/graph_codec.h"
#include "wire/schema/graph_generated.h"
#include "wire/verified.h"

namespace dtg {
namespace {

using wire::element;
using wire::size_of;
using wire::text_of;
using GraphBytes = wire::Verified<wire::fb::GraphDef>;

// What a node costs beyond its variable parts: its row, names' map entry, lists.
constexpr int64_t kNodeOverhead = 512;
constexpr int64_t kAttrOverhead = 128;
// And a function: a graph of its own.
constexpr int64_t kFunctionOverhead = int64_t{32} << 10;

// The checksum field counts as zeros.
uint32_t checksum_of(std::string_view bytes, size_t field) {
  constexpr std::string_view kZeros("\0\0\0\0", 4);
  return crc32c(bytes.substr(field + 4), crc32c(kZeros, crc32c(bytes.substr(0, field))));
}

// Where the checksum lies in the bytes, or npos.
size_t checksum_at(std::string_view bytes, const GraphBytes& graph) {
  const uint8_t* const at = graph.table().GetAddressOf(wire::fb::GraphDef::VT_CHECKSUM);
  return at ? static_cast<size_t>(at - graph.data()) : bytes.npos;
}

Result<GraphBytes> verify(std::string_view bytes, const wire::Limits& limits) {
  DTG_ASSIGN(GraphBytes graph, GraphBytes::make(bytes, wire::fb::GraphDefIdentifier(), limits.graph_bytes, "graph"));
  const size_t at = checksum_at(bytes, graph);
  if (at == bytes.npos || checksum_of(bytes, at) != graph->checksum()) {
    return data_loss("read a graph: the checksum of its %zu bytes is wrong", bytes.size());
  }
  if (graph->version() != 1) {
    return invalid_argument("read a graph: it is of version %u, this library reads version 1", graph->version());
  }
  if (size_of(graph->functions()) > limits.functions) {
    return resource_exhausted("read a graph of %u functions: at most %u are accepted", size_of(graph->functions()), limits.functions);
  }
  uint64_t nodes = size_of(graph->nodes());
  for (uint32_t f = 0; f < size_of(graph->functions()); ++f) nodes += size_of(graph->functions()->Get(f)->nodes());
  if (nodes > limits.graph_nodes) {
    return resource_exhausted("read a graph of %llu nodes: at most %u are accepted", static_cast<unsigned long long>(nodes),
                              limits.graph_nodes);
  }
  return graph;
}

Status bad_node(uint32_t node, const char* problem) { return data_loss("read a graph: node %u %s", node, problem); }

// Every use of a word counts, because every node keeps a copy.
class Measure {
 public:
  Measure(const wire::fb::GraphDef& graph, const wire::Limits& limits) : graph_(graph), limits_(limits) {}

  Result<int64_t> run() {
    DTG_ASSIGN(int64_t total, nodes(graph_.nodes()));
    for (uint32_t f = 0; f < size_of(graph_.functions()); ++f) {
      const wire::fb::FunctionDef& function = *graph_.functions()->Get(f);
      if (function.name() >= size_of(graph_.words())) return data_loss("read a graph: function %u names a word that is not there", f);
      DTG_ASSIGN(const int64_t bytes, nodes(function.nodes()));
      total += kFunctionOverhead + bytes + int64_t{16} * (size_of(function.arguments()) + int64_t{size_of(function.results())});
    }
    return total;
  }

 private:
  using NodeList = flatbuffers::Vector<flatbuffers::Offset<wire::fb::NodeDef>>;
  Result<int64_t> nodes(const NodeList* list) const {
    int64_t total = 0;
    for (uint32_t n = 0; n < size_of(list); ++n) {
      DTG_ASSIGN(const int64_t bytes, node(n, *list->Get(n)));
      total += bytes;
    }
    return total;
  }

  Status check_word(uint32_t n, uint32_t word, size_t bytes_max) const {
    if (word >= size_of(graph_.words())) return bad_node(n, "names a word that is not there");
    if (graph_.words()->Get(word)->size() > bytes_max) return bad_node(n, "has a name, device or location that is too long");
    return {};
  }
  int64_t word_bytes(uint32_t word) const { return graph_.words()->Get(word)->size(); }

  Result<int64_t> node(uint32_t n, const wire::fb::NodeDef& node) const {
    if (!node.name() || node.name()->size() == 0) return bad_node(n, "has no name");
    if (node.name()->size() > limits_.name_bytes) return bad_node(n, "has a name that is too long");
    DTG_TRY(check_word(n, node.op(), limits_.name_bytes));
    DTG_TRY(check_word(n, node.device(), limits_.text_bytes));
    DTG_TRY(check_word(n, node.location(), limits_.text_bytes));
    if (size_of(node.attrs()) > limits_.node_attrs) return bad_node(n, "has too many attributes");
    int64_t bytes = kNodeOverhead + node.name()->size() + word_bytes(node.device()) + word_bytes(node.location());
    bytes += int64_t{8} * size_of(node.inputs()) + int64_t{4} * size_of(node.controls()) + int64_t{4} * size_of(node.colocate());
    for (uint32_t i = 0; i < size_of(node.attrs()); ++i) {
      const wire::fb::AttrValue& attr = *node.attrs()->Get(i);
      DTG_TRY(check_word(n, attr.name(), limits_.name_bytes));
      bytes += kAttrOverhead + size_of(attr.bytes()) + int64_t{8} * (size_of(attr.ints()) + int64_t{size_of(attr.reals())});
      // A string of a tensor brings 8 bytes and takes 16.
      if (static_cast<DType>(attr.dtype()) == DType::string) bytes += size_of(attr.bytes());
      // A shape is 72 bytes however few numbers it has, a string 32.
      bytes += int64_t{96} * size_of(attr.counts());
    }
    return bytes;
  }

  const wire::fb::GraphDef& graph_;
  const wire::Limits& limits_;
};

class AttrReader {
 public:
  AttrReader(const wire::fb::AttrValue& from, std::span<const FunctionRef> functions) : from_(from), functions_(functions) {}

  Result<AttrValue> read() const {
    switch (static_cast<AttrKind>(from_.kind())) {
      case AttrKind::integer: return single<int64_t>();
      case AttrKind::real: return size_of(from_.reals()) == 1 ? Result<AttrValue>(AttrValue(element(from_.reals(), 0))) : wrong();
      case AttrKind::boolean: return size_of(from_.ints()) == 1 ? Result<AttrValue>(AttrValue(element(from_.ints(), 0) != 0)) : wrong();
      case AttrKind::type: return type();
      case AttrKind::shape: return shape();
      case AttrKind::string: return AttrValue(std::string(bytes()));
      case AttrKind::tensor: return tensor();
      case AttrKind::list_integer: return AttrValue(ints());
      case AttrKind::list_real: return reals();
      case AttrKind::list_boolean: return booleans();
      case AttrKind::list_type: return types();
      case AttrKind::list_shape: return shapes();
      case AttrKind::list_string: return strings();
      case AttrKind::function: return size_of(from_.ints()) == 1 ? function(0) : wrong();
      case AttrKind::list_function: return functions();
    }
    return data_loss("an attribute of kind %u, which does not exist", from_.kind());
  }

 private:
  Status wrong() const {
    return data_loss("an attribute said to be %s has other contents", attr_kind_name(static_cast<AttrKind>(from_.kind())));
  }
  std::string_view bytes() const {
    return from_.bytes() ? std::string_view(reinterpret_cast<const char*>(from_.bytes()->Data()), from_.bytes()->size())
                         : std::string_view();
  }
  // One that was read already: so none can be called before it is there, least of all by itself.
  Result<AttrValue> function(uint32_t i) const {
    const int64_t number = element(from_.ints(), i);
    if (number < 0 || static_cast<size_t>(number) >= functions_.size()) {
      return data_loss("function %lld, which does not come before the one that calls it", static_cast<long long>(number));
    }
    return AttrValue(functions_[static_cast<size_t>(number)]);
  }
  Result<AttrValue> functions() const {
    std::vector<FunctionRef> list;
    for (uint32_t i = 0; i < size_of(from_.ints()); ++i) {
      DTG_ASSIGN(const AttrValue one, function(i));
      list.push_back(*one.get<FunctionRef>());
    }
    return AttrValue(std::move(list));
  }
  std::vector<int64_t> ints() const {
    std::vector<int64_t> values;
    for (uint32_t i = 0; i < size_of(from_.ints()); ++i) values.push_back(element(from_.ints(), i));
    return values;
  }
  template <class T>
  Result<AttrValue> single() const {
    if (size_of(from_.ints()) != 1) return wrong();
    return AttrValue(static_cast<T>(element(from_.ints(), 0)));
  }
  static Result<DType> dtype(int64_t number) {
    if (number != 0 && (number < 0 || number > 1000 || !dtype_is_known(static_cast<int32_t>(number)))) {
      return data_loss("element type %lld, which does not exist", static_cast<long long>(number));
    }
    return static_cast<DType>(number);
  }
  Result<AttrValue> type() const {
    if (size_of(from_.ints()) != 1) return wrong();
    DTG_ASSIGN(const DType found, dtype(element(from_.ints(), 0)));
    return AttrValue(found);
  }
  Result<AttrValue> types() const {
    std::vector<DType> values;
    for (uint32_t i = 0; i < size_of(from_.ints()); ++i) {
      DTG_ASSIGN(const DType found, dtype(element(from_.ints(), i)));
      values.push_back(found);
    }
    return AttrValue(std::move(values));
  }
  Result<AttrValue> reals() const {
    std::vector<double> values;
    for (uint32_t i = 0; i < size_of(from_.reals()); ++i) values.push_back(element(from_.reals(), i));
    return AttrValue(AttrValue::Variant(std::move(values)));
  }
  Result<AttrValue> booleans() const {
    std::vector<bool> values;
    for (uint32_t i = 0; i < size_of(from_.ints()); ++i) values.push_back(element(from_.ints(), i) != 0);
    return AttrValue(AttrValue::Variant(std::move(values)));
  }

  // The next shape, whose dimensions begin at `at`.
  Result<PartialShape> next_shape(uint32_t i, uint32_t& at) const {
    const int32_t rank = element(from_.counts(), i);
    if (rank == -1) return PartialShape::unknown();
    if (rank < 0 || rank > kRankMax || size_of(from_.ints()) - at < static_cast<uint32_t>(rank)) return wrong();
    int64_t dims[kRankMax] = {};
    for (int d = 0; d < rank; ++d) dims[d] = element(from_.ints(), at++);
    return PartialShape::make({dims, static_cast<size_t>(rank)});
  }
  Result<AttrValue> shape() const {
    uint32_t at = 0;
    if (size_of(from_.counts()) != 1) return wrong();
    DTG_ASSIGN(PartialShape found, next_shape(0, at));
    return at == size_of(from_.ints()) ? Result<AttrValue>(AttrValue(std::move(found))) : wrong();
  }
  Result<AttrValue> shapes() const {
    std::vector<PartialShape> values;
    uint32_t at = 0;
    for (uint32_t i = 0; i < size_of(from_.counts()); ++i) {
      DTG_ASSIGN(PartialShape found, next_shape(i, at));
      values.push_back(std::move(found));
    }
    return at == size_of(from_.ints()) ? Result<AttrValue>(AttrValue(std::move(values))) : wrong();
  }
  Result<AttrValue> strings() const {
    std::vector<std::string> values;
    std::string_view left = bytes();
    for (uint32_t i = 0; i < size_of(from_.counts()); ++i) {
      const int32_t count = element(from_.counts(), i);
      if (count < 0 || static_cast<size_t>(count) > left.size()) return wrong();
      values.emplace_back(left.substr(0, static_cast<size_t>(count)));
      left.remove_prefix(static_cast<size_t>(count));
    }
    return left.empty() ? Result<AttrValue>(AttrValue(AttrValue::Variant(std::move(values)))) : wrong();
  }

  Result<AttrValue> tensor() const {
    DTG_ASSIGN(const DType type, dtype(from_.dtype()));
    if (type == DType::invalid) return AttrValue(Tensor());
    if (type == DType::string) return texts();
    if (dtype_size(type) == 0) return unimplemented("a constant of %s, which has no plain bytes", dtype_name(type));
    if (size_of(from_.ints()) > kRankMax) return wrong();
    DTG_ASSIGN(const Shape of, Shape::make(ints()));
    // Divided, not multiplied: the shape is foreign.
    const auto size = static_cast<size_t>(dtype_size(type));
    if (bytes().size() % size != 0 || static_cast<int64_t>(bytes().size() / size) != of.count()) return wrong();
    DTG_ASSIGN(Tensor value, Tensor::allocate(type, of));
    if (!bytes().empty()) std::memcpy(value.data(), bytes().data(), bytes().size());
    if (type == DType::boolean) {
      for (char byte : bytes()) {
        if (byte != 0 && byte != 1) return data_loss("a constant of bool holds a byte that is neither 0 nor 1");
      }
    }
    return AttrValue(std::move(value));
  }

  // Lengths, then the bytes of all; the count is foreign, and no memory is asked for before the lengths are there.
  Result<AttrValue> texts() const {
    if (size_of(from_.ints()) > kRankMax) return wrong();
    DTG_ASSIGN(const Shape of, Shape::make(ints()));
    if (static_cast<uint64_t>(of.count()) > bytes().size() / 8) return of.count() == 0 && bytes().empty() ? empty_texts(of) : wrong();
    std::vector<Text> cells(static_cast<size_t>(of.count()));
    DTG_TRY(unpack_texts(bytes(), cells));
    DTG_ASSIGN(Tensor value, make_texts(of, cells));
    return AttrValue(std::move(value));
  }
  static Result<AttrValue> empty_texts(const Shape& of) {
    DTG_ASSIGN(Tensor value, make_texts(of, {}));
    return AttrValue(std::move(value));
  }

  const wire::fb::AttrValue& from_;
  const std::span<const FunctionRef> functions_;
};

class Decoder {
 public:
  Decoder(const wire::fb::GraphDef& from, Graph& into) : from_(from), into_(into) {}

  Status run() {
    for (uint32_t f = 0; f < size_of(from_.functions()); ++f) {
      auto function = read_function(*from_.functions()->Get(f));
      if (!function.ok()) return function.status().with_context("read function " + std::to_string(f));
      functions_.emplace_back(function.value());
    }
    return read_nodes(from_.nodes(), into_);
  }

 private:
  using NodeList = flatbuffers::Vector<flatbuffers::Offset<wire::fb::NodeDef>>;

  Result<Ref<const Function>> read_function(const wire::fb::FunctionDef& from) {
    Function::Parts parts;
    parts.name = word(from.name());
    DTG_ASSIGN(parts.graph, Graph::create(&into_.ops()));
    DTG_TRY(read_nodes(from.nodes(), *parts.graph));
    const auto values = [&](const flatbuffers::Vector<uint64_t>* list, std::vector<Value>& out) {
      for (uint32_t i = 0; i < size_of(list); ++i) {
        const uint64_t packed = element(list, i);
        const bool there = packed >> 16 < parts.graph->node_count();
        out.push_back(there ? parts.graph->value(static_cast<NodeId>(packed >> 16), static_cast<uint32_t>(packed & 0xffff)) : Value());
      }
    };
    values(from.arguments(), parts.arguments);
    values(from.results(), parts.results);
    DTG_TRY(earlier(parts.graph->node_count(), from.controls(), parts.controls));
    return Function::make(std::move(parts));
  }

  Status read_nodes(const NodeList* from, Graph& into) {
    // Scopes of whoever builds are not part of what was written.
    into.push_name_scope("");
    into.push_device("");
    into.push_colocation(kNoNode);
    Status status;
    for (uint32_t n = 0; status.ok() && n < size_of(from); ++n) status = add(n, *from->Get(n), into);
    for (const Status& popped : {into.pop_colocation(), into.pop_device(), into.pop_name_scope()}) {
      if (status.ok()) status = popped;
    }
    return status;
  }

  std::string_view word(uint32_t number) const { return text_of(from_.words()->Get(number)); }

  Status add(uint32_t n, const wire::fb::NodeDef& node, Graph& into) {
    std::vector<Value> inputs;
    for (uint32_t i = 0; i < size_of(node.inputs()); ++i) {
      const uint64_t packed = element(node.inputs(), i);
      if (packed >> 16 >= n) return bad_node(n, "reads a node that does not come before it");
      inputs.push_back(into.value(static_cast<NodeId>(packed >> 16), static_cast<uint32_t>(packed & 0xffff)));
    }
    std::vector<NodeId> controls, colocate;
    DTG_TRY(earlier(n, node.controls(), controls));
    DTG_TRY(earlier(n, node.colocate(), colocate));
    std::vector<Attr> attrs;
    for (uint32_t i = 0; i < size_of(node.attrs()); ++i) {
      const wire::fb::AttrValue& attr = *node.attrs()->Get(i);
      auto value = AttrReader(attr, functions_).read();
      if (!value.ok()) return value.status().with_context("read node \"" + std::string(text_of(node.name())) + "\"");
      attrs.push_back({word(attr.name()), value.take()});
    }
    NodeSpec spec;
    spec.op = word(node.op());
    spec.name = text_of(node.name());
    spec.device = word(node.device());
    spec.location = word(node.location());
    spec.inputs = inputs;
    spec.controls = controls;
    spec.colocate = colocate;
    spec.attrs = attrs;
    DTG_ASSIGN(const NodeId id, into.add(spec));
    return id == n ? Status() : failed_precondition("read a graph: another thread added nodes to it meanwhile");
  }

  static Status earlier(uint32_t n, const flatbuffers::Vector<uint32_t>* from, std::vector<NodeId>& into) {
    for (uint32_t i = 0; i < size_of(from); ++i) {
      if (element(from, i) >= n) return bad_node(n, "is tied to a node that does not come before it");
      into.push_back(element(from, i));
    }
    return {};
  }

  const wire::fb::GraphDef& from_;
  Graph& into_;
  std::vector<FunctionRef> functions_;
};

}  // namespace

void seal_graph(std::string& bytes) {
  auto graph = GraphBytes::make(bytes, wire::fb::GraphDefIdentifier(), bytes.size(), "graph");
  const size_t at = graph.ok() ? checksum_at(bytes, graph.value()) : bytes.npos;
  if (at == bytes.npos) return;
  flatbuffers::WriteScalar(bytes.data() + at, checksum_of(bytes, at));
}

Result<int64_t> graph_memory(std::string_view bytes, const wire::Limits& limits) {
  DTG_ASSIGN(const GraphBytes graph, verify(bytes, limits));
  return Measure(*graph, limits).run();
}

Status decode_graph(std::string_view bytes, Graph& into, MemoryBudget& budget, const wire::Limits& limits) {
  if (into.node_count() != 0) {
    return failed_precondition("read a graph into one that has %u nodes: it must be empty, because names and numbers are kept",
                               into.node_count());
  }
  DTG_ASSIGN(const GraphBytes graph, verify(bytes, limits));
  DTG_ASSIGN(const int64_t memory, Measure(*graph, limits).run());
  DTG_TRY(budget.reserve(memory, "the nodes of a graph"));
  Status status = Decoder(*graph, into).run();
  budget.release(memory);
  return status;
}

}  // namespace dtg
