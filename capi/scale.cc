// Looks through what changes shapes alone, to the op that made the numbers. See scale.h for threads.
#include "capi/scale.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "nn/layer.h"

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

// Whether somebody listens, and the dimension is known to be 1.
bool is_one(const ModelObject& model, Value x, int64_t axis) {
  const Graph& graph = model.model->graph();
  if (!model.graph->runtime->seams().log || !graph.check(x).ok()) return false;
  const PartialShape& shape = graph.info(x).shape;
  if (axis < 0) axis += shape.rank();
  return shape.has_rank() && axis >= 0 && axis < shape.rank() && shape.dim(static_cast<int>(axis)) == 1;
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

bool is_over_classes(Loss::Kind kind) {
  using Kind = Loss::Kind;
  return kind == Kind::categorical_crossentropy || kind == Kind::categorical_focal_crossentropy ||
         kind == Kind::sparse_categorical_crossentropy;
}

void tell_one_class(const ModelObject& model, Value predictions, int64_t axis, const char* what) {
  if (!is_one(model, predictions, axis)) return;
  const Graph& graph = model.model->graph();
  model.graph->runtime->seams().log->write(
      LogLevel::warn, "model",
      std::string(what) + ": " + described(graph, predictions) +
          " has one class, of which the loss is always 0 and nothing is trained; for two classes told by one number take "
          "binary_crossentropy or the sigmoid cross entropy, else one unit for each class");
}

void tell_one_unit(const ModelObject& model, Value y, const char* what) {
  if (!is_one(model, y, -1) || model.model->graph().node(y.node()).op->name() != "Softmax") return;
  model.graph->runtime->seams().log->write(
      LogLevel::warn, "model",
      std::string(what) + ": " + described(model.model->graph(), y) +
          " is softmax over one unit, which is always 1 whatever the weights; take sigmoid for two classes told by one number, else one "
          "unit for each class");
}

}  // namespace dtg::capi
