// Build: adds nodes from C++ with a sticky error, for gradients, layers and optimizers. The first failure
// is kept and everything after it is a no-op that returns an invalid Value, so that formulas read as
// formulas and the caller checks once.
//
//   Build b(graph);
//   Value loss = b.op("Mean", {x, b.ints({0})}, {{"keep_dims", false}});
//   DTG_TRY(b.status());
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "graph/graph.h"

namespace dtg {

class Build {
 public:
  explicit Build(Graph& graph) : graph_(graph) {}

  Graph& graph() const { return graph_; }
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // First output of a new node; its siblings are value.sibling(i). Attributes that the inputs decide
  // (T, N, Tidx, ...) need not be given.
  Value op(std::string_view type, std::span<const Value> inputs, std::span<const Attr> attrs = {}, std::string_view name = {},
           std::span<const NodeId> controls = {});
  Value op(std::string_view type, std::initializer_list<Value> inputs, std::initializer_list<Attr> attrs = {}, std::string_view name = {}) {
    return op(type, std::span(inputs.begin(), inputs.size()), std::span(attrs.begin(), attrs.size()), name);
  }
  // A node without outputs (or whose outputs do not matter).
  NodeId node(std::string_view type, std::span<const Value> inputs, std::span<const Attr> attrs = {}, std::string_view name = {},
              std::span<const NodeId> controls = {});

  Value constant(const Tensor& tensor, std::string_view name = {});
  Value scalar(DType dtype, double value, std::string_view name = {});
  Value ints(std::initializer_list<int64_t> values, DType dtype = DType::i32);  // vector
  Value ints(std::span<const int64_t> values, DType dtype = DType::i32);
  Value integer(int64_t value, DType dtype = DType::i32);  // scalar

  Value add(Value a, Value b) { return op("AddV2", {a, b}); }
  Value sub(Value a, Value b) { return op("Sub", {a, b}); }
  Value mul(Value a, Value b) { return op("Mul", {a, b}); }
  Value div(Value a, Value b) { return op("RealDiv", {a, b}); }
  Value neg(Value a) { return op("Neg", {a}); }
  Value shape(Value a, DType out = DType::i32) { return op("Shape", {a}, {{"out_type", out}}); }
  Value reshape(Value a, Value shape) { return op("Reshape", {a, shape}); }
  Value sum(Value a, Value axes, bool keep_dims = false) { return op("Sum", {a, axes}, {{"keep_dims", keep_dims}}); }
  Value cast(Value a, DType to);
  Value zeros_like(Value a) { return op("ZerosLike", {a}); }
  // A float constant of a's type.
  Value like(Value a, double value) { return scalar(info(a).dtype, value); }

  const ValueInfo& info(Value value) const;

 private:
  Graph& graph_;
  Status status_;
};

}  // namespace dtg
