// Looks through what changes shapes alone, to the op that made the numbers. See scale.h for threads.
#include "capi/scale.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace dtg::capi {
namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) { return std::ranges::find(ops, op) != ops.end(); }

// The op that made the numbers of a value; its node is left in it.
std::string_view maker(const Graph& graph, Value& value) {
  for (int looks = 0; looks < 16; ++looks) {
    const Node& node = graph.node(value.node());
    if (!is_one_of(node.op->name(), {"Identity", "Reshape", "Squeeze", "ExpandDims", "Cast", "StopGradient"})) return node.op->name();
    value = node.inputs[0];
  }
  return {};
}

}  // namespace

bool is_of_probabilities(Loss::Kind kind) {
  using Kind = Loss::Kind;
  return kind == Kind::kl_divergence || kind == Kind::dice || kind == Kind::tversky ||
         (kind >= Kind::binary_crossentropy && kind <= Kind::sparse_categorical_crossentropy);
}

void tell_scale(const ModelObject& model, Value predictions, Scale taken_for, const char* what) {
  LogSink* const log = model.graph->runtime->seams().log;
  const Graph& graph = model.model->graph();
  if (!log || !graph.check(predictions).ok()) return;
  const std::string_view op = maker(graph, predictions);
  const std::string from = std::string(what) + ": \"" + graph.value_name(predictions) + "\" ";
  if (taken_for == Scale::logits && is_one_of(op, {"Softmax", "Sigmoid"})) {
    log->write(
        LogLevel::warn, "model",
        from + "is what " + (op == "Softmax" ? "softmax" : "sigmoid") + " made, and is taken for logits; give what goes into that instead");
  } else if (taken_for == Scale::probabilities && op == "BiasAdd") {
    log->write(LogLevel::warn, "model",
               from + "is what a layer without an activation made, and is taken for probabilities; give what sigmoid "
                      "or softmax makes of it, or say that it is logits, or which threshold of them decides");
  }
}

}  // namespace dtg::capi
