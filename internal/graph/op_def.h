// Op definitions: what an op is called, what it takes and gives, its contract, shape function, gradient
// and rights. Names, attributes and results are TensorFlow's registry's.
//
// The runtime builds one OpTable by calling the register functions of the op families and then freezes
// it; after that any thread may read. There is no global registry.
//
//   table.add(OpDef::make("MatMul")
//                 .input("a: T", {.rank = 2}).input("b: T", {.rank = 2}).output("product: T")
//                 .attr("transpose_a: bool = false").attr("T: {float, double, int32}")
//                 .shape(matmul_shape).gradient(matmul_grad)
//                 .doc("Product of two matrices."));
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attr.h"

namespace dtg {

class InferContext;
class GradContext;
using ShapeFn = Status (*)(InferContext&);
using GradFn = Status (*)(GradContext&);

// What an op may touch; remote graphs may hold pure and state ops only.
enum class Capability : uint8_t { pure, state, file, net };

struct ArgDef {
  std::string name;
  DType dtype = DType::invalid;  // fixed type, or
  std::string type_attr;         // the attribute that holds it
  std::string number_attr;       // "N * T": that many values of one type
  std::string list_attr;         // a list(type) attribute: one value per entry
  int rank_min = 0;              // contract, checked at build and at prepare
  int rank_max = kRankMax;
};

struct AttrDef {
  std::string name;
  AttrKind kind = AttrKind::integer;
  std::optional<AttrValue> fallback;  // used when the node does not say
  DTypeSet types = kAnyType;          // kinds type and list(type)
  std::vector<std::string> strings;   // kind string: the allowed words; empty = any
  std::optional<int64_t> minimum;     // kind int: smallest value; list(...): shortest length
};

class OpDef {
 public:
  struct Contract {
    int rank = -1;     // exact rank, or
    int rank_min = 0;  // a range
    int rank_max = kRankMax;
  };

  static OpDef make(const char* name);
  OpDef&& input(const char* spec) &&;
  OpDef&& input(const char* spec, Contract contract) &&;
  OpDef&& output(const char* spec) &&;
  OpDef&& attr(const char* spec) &&;
  OpDef&& shape(ShapeFn fn) &&;
  // Exactly one of these two says whether the op is differentiable; a test walks the table.
  OpDef&& gradient(GradFn fn) &&;
  OpDef&& no_gradient() &&;
  OpDef&& stateful(Capability capability = Capability::state) &&;
  OpDef&& doc(const char* text) &&;

  const std::string& name() const { return name_; }
  std::span<const ArgDef> inputs() const { return inputs_; }
  std::span<const ArgDef> outputs() const { return outputs_; }
  std::span<const AttrDef> attrs() const { return attrs_; }
  const AttrDef* find_attr(std::string_view name) const;
  ShapeFn shape_fn() const { return shape_; }
  GradFn grad_fn() const { return grad_; }
  bool is_differentiable() const { return differentiable_; }
  bool is_stateful() const { return stateful_; }
  Capability capability() const { return capability_; }
  const std::string& doc_text() const { return doc_; }
  // Problems in the definition itself; the table refuses such an op.
  const Status& status() const { return status_; }

 private:
  void arg(std::vector<ArgDef>& list, std::string_view spec, Contract contract);
  std::string name_;
  std::string doc_;
  std::vector<ArgDef> inputs_;
  std::vector<ArgDef> outputs_;
  std::vector<AttrDef> attrs_;
  ShapeFn shape_ = nullptr;
  GradFn grad_ = nullptr;
  Status status_;
  Capability capability_ = Capability::pure;
  bool stateful_ = false;
  bool differentiable_ = false;
  bool gradient_declared_ = false;
  friend class OpTable;
};

class OpTable {
 public:
  OpTable() = default;
  OpTable(const OpTable&) = delete;
  OpTable& operator=(const OpTable&) = delete;

  // A definition that is wrong in itself is remembered in status(), not added.
  void add(OpDef&& def);
  // The definition, or null. Pointers stay valid for the life of the table.
  const OpDef* find(std::string_view name) const;
  // All definitions, sorted by name.
  std::vector<const OpDef*> list() const;
  const Status& status() const { return status_; }
  // The closest known name, for "did you mean"; empty if nothing is close.
  std::string_view closest(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, std::unique_ptr<OpDef>> ops_;
  Status status_;
};

}  // namespace dtg
