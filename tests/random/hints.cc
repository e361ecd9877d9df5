// Looking hints up; what the name of an argument says; what these tests leave to others.
#include "random/hints.h"

#include <algorithm>
#include <unordered_map>

namespace dtg::random {

std::vector<int64_t> indices(Draw& draw, int64_t count, int64_t limit) {
  std::vector<int64_t> list;
  const bool bad = draw.chance(1);
  for (int64_t i = 0; i < count; ++i) list.push_back(bad ? draw.between(-2, limit + 1) : draw.below(limit));
  return list;
}

std::vector<int64_t> axes(Draw& draw, int rank, bool several) {
  std::vector<int64_t> list;
  for (int axis = 0; axis < rank; ++axis) {
    if (draw.chance(several ? 40 : 0)) list.push_back(draw.chance(30) ? axis - rank : axis);
  }
  if (!several) list.push_back(rank > 0 ? draw.between(-rank, rank - 1) : 0);
  return list;
}

Shape with_dims(std::vector<int64_t> dims) {
  auto made = Shape::make(dims);
  return made.ok() ? made.take() : Shape();
}

Hint hint_for(std::string_view op) {
  static const auto* const table = [] {
    auto* all = new std::unordered_map<std::string_view, Hint>;
    for (const auto rows : {shape_hints(), window_hints(), image_hints(), state_hints(), sparse_hints(), maths_hints()}) {
      for (const HintRow& row : rows) all->emplace(row.op, row.hint);
    }
    return all;
  }();
  const auto at = table->find(op);
  return at == table->end() ? nullptr : at->second;
}

bool fill_by_name(Ask& ask, const ArgDef& arg) {
  Draw& draw = ask.w.draw;
  if (arg.dtype == DType::resource) {
    const std::string_view attr = ask.op.find_attr("dtype") ? "dtype" : "T";
    ask.use(arg.name, ask.w.variable_of_rank(ask.op.find_attr(attr) ? ask.type(attr) : DType::f32, 1), true);
    return true;
  }
  const std::string& name = arg.name;
  const Tensor* first = nullptr;
  for (const ArgDef& other : ask.op.inputs()) {
    const Port port = ask.filled(other.name) ? ask.input(other.name) : Port();
    if (!first && port.node >= 0 && other.dtype != DType::resource) first = &ask.w.tensor(port);
  }
  const int rank = first ? first->shape().rank() : 1;
  const bool scalar = arg.rank_max == 0;
  if (name == "reduction_indices") {
    const bool one = draw.chance(30) && rank > 0;
    ask.numbers(name, axes(draw, rank, !one), one && draw.chance(50));
  } else if (name == "axis" || name == "dim" || name == "dimension" || name.ends_with("_dim")) {
    ask.numbers(name, axes(draw, rank, arg.rank_min == 1), arg.rank_min != 1);
  } else if (name == "perm") {
    std::vector<int64_t> order;
    for (int i = 0; i < rank; ++i) order.insert(order.begin() + draw.below(i + 1), i);
    ask.numbers(name, order);
  } else if (name == "shape" || name == "dims") {
    const Shape shape = ask.w.shape(0, 3);
    ask.numbers(name, {shape.dims().begin(), shape.dims().end()});
  } else if (kIndex.has(ask.dtype(arg)) && (name.find("indices") != std::string::npos || name.find("ids") != std::string::npos)) {
    ask.numbers(name, indices(draw, rank > 0 ? first->shape().dim(0) : 1, 3));
  } else if (kIndex.has(ask.dtype(arg)) && scalar) {
    ask.numbers(name, {draw.between(0, 4)}, true);
  } else {
    return false;
  }
  return true;
}

const char* left_out(std::string_view op) {
  if (op.starts_with("_")) return "made by the planner only";
  for (const char* text : {"String", "ReduceJoin", "Substr", "Sharded", "DecodeRaw", "DecodeBase64", "EncodeBase64", "Regex"}) {
    if (op.find(text) != std::string_view::npos) return "strings, which have no plain bytes; tests/ops/strings_test.cc";
  }
  if (op.find("HashTable") != std::string_view::npos || op.starts_with("LookupTable") || op == "InitializeTableV2") {
    return "tables; tests/session/strings_test.cc";
  }
  if (op.starts_with("Stack")) return "stacks, which live in one run; tests/session/strings_test.cc";
  if (op.starts_with("TensorArray")) return "arrays, which live in one run and keep their order; calls.cc makes them";
  if (op.find("Accumulator") != std::string_view::npos) return "waits for other runs; tests/exec/accumulator_test.cc";
  if (op == "RandomShuffleQueueV2" || op == "PriorityQueueV2" || op == "PaddingFIFOQueueV2" || op == "QueueDequeueUpToV2" ||
      op == "QueueCloseV2" || op == "QueueIsClosedV2") {
    return "waits for other runs; tests/exec/queue_test.cc";
  }
  for (const char* draws :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "RandomShuffle", "Multinomial"}) {
    if (op == draws) return "draws on a state that runs at once share; tests/ops/draws_test.cc";
  }
  if (op.ends_with("CandidateSampler")) return "draws on a state that runs at once share; tests/ops/draws_test.cc";
  if (op == "RngReadAndSkip") return "takes a variable of one shape and type only; the oracle's vectors";
  if (op.starts_with("Collective")) return "done by several members together; tests/session/collectives_test.cc";
  if (op == "Print" || op == "PrintV2") return "prints; tests/session/print_test.cc";
  if (op == "QuantizeV2" || op == "Dequantize" || op == "QuantizeAndDequantizeV3")
    return "types and ranges of its own; the oracle's vectors";
  if (op == "SetSize" || op.ends_with("SparseSetOperation")) return "sparse tensors in order; the oracle's vectors";
  if (op == "Conj") return "of complex numbers, which are not proposed; the oracle's vectors";
  if (op == "DestroyResourceOp") return "ends what the scene is made of; tests/session/state_test.cc";
  return nullptr;
}

}  // namespace dtg::random
