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

#include <array>
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
class ValueContext;
class Rewriter;
using ShapeFn = Status (*)(InferContext&);
using GradFn = Status (*)(GradContext&);
// What the outputs are, where constants and shapes alone decide it (graph/known.h). Serves building, inference and folding.
using ValueFn = void (*)(ValueContext&);
// A rule that replaces node `node` of a plan in the making by something cheaper (graph/rewriter.h); true when it did.
using RewriteFn = bool (*)(Rewriter&, uint32_t node);

// What an op may touch; remote graphs may hold pure and state ops only.
enum class Capability : uint8_t { pure, state, file, net };

// What an op does with the resource behind an input. Where neither data nor control edges order two effects on one resource
// in a run, the order in which their nodes were made does.
enum class Access : uint8_t {
  undeclared,  // the table refuses such an op
  read,        // takes its value, which stays what it was when it was read
  peek,        // looks at it while it runs
  write,       // changes it
  assign,      // a write that replaces it, whatever it was
  destroy,     // a write that ends it
  produce,     // adds to something that others take from, and may wait: ordered among its like only
  fence,       // decides what is still taken; ordered among what is produced
  consume,     // takes, and may wait: ordered among its like only
  ask,         // looks at it; the resource itself keeps order
  attend,      // says who takes part in it; the resource itself keeps order
  close,       // ends it for those who produce; the resource itself keeps order
};

// What an op is to the planner, beyond computing.
enum class Role : uint8_t {
  compute,
  constant,   // its attribute "value" is its value
  feed,       // has no value but what a run feeds
  argument,   // has no value but what a call of its function gives
  nothing,    // a point for control edges
  handle,     // names a resource by container and shared_name (or the node's name)
  send,       // a value leaves for another task
  receive,    // a value arrives
  pack,       // strings become plain bytes that can travel
  unpack,     // and strings again
  join,       // ends when the part on another task has ended
  commit,     // from here on the writes of a phase take place
  committed,  // they have
  chain,      // element-wise ops in one pass, as its attributes list them
  reduction,  // its rule may take the chain before it along
  copy,       // the same value in another memory space
};
inline constexpr size_t kRoles = 16;
inline bool is_given(Role role) { return role == Role::feed || role == Role::argument; }

struct ArgDef {
  std::string name;
  DType dtype = DType::invalid;  // fixed type, or
  std::string type_attr;         // the attribute that holds it
  std::string number_attr;       // "N * T": that many values of one type
  std::string list_attr;         // a list(type) attribute: one value per entry
  int type_at = -1;              // which of the op's attributes these are, once it is in a table; -1: none
  int number_at = -1;
  int list_at = -1;
  int rank_min = 0;  // contract, checked at build and at prepare
  int rank_max = kRankMax;
  Access access = Access::undeclared;  // of a resource
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
  // Stateful in no other way than that its stream of random numbers goes on: a run that ends in its midst leaves nothing half done.
  OpDef&& draws() &&;
  // The op's effect on the resources it takes, all of them.
  OpDef&& access(Access access) &&;
  OpDef&& role(Role role) &&;
  // A handle of something that no log of commits keeps: what writes to it is refused where a task keeps one.
  OpDef&& transient() &&;
  // Looks whether its first input is a finite number, or tells of one that is not: where it fails, its run is worth a search for what
  // made it so.
  OpDef&& judges() &&;
  // Calls its functions again and again: what they write is never one unit, so they have units of their own. A call that the planner
  // treats so has the attribute kCommitAttr.
  OpDef&& repeats() &&;
  static constexpr const char* kCommitAttr = "_commit";
  // Output 0 may be the memory of input 0 (or each output that of its input): no copy is made. Kernels may do so for declared
  // pairs only.
  OpDef&& forwards() &&;
  OpDef&& forwards_each() &&;
  OpDef&& value(ValueFn fn) &&;
  // A cheaper form with the same bits; and one that does the work of several nodes in one pass.
  OpDef&& simplify(RewriteFn fn) &&;
  OpDef&& fuse(RewriteFn fn) &&;
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
  bool is_draw() const { return draws_; }
  Capability capability() const { return capability_; }
  Role role() const { return role_; }
  bool is_transient() const { return transient_; }
  bool is_judge() const { return judges_; }
  bool is_repeating() const { return repeats_; }
  // Has an attribute that is a function, or a list of them.
  bool takes_functions() const { return takes_functions_; }
  // Of the k-th value that a node takes, which is a resource; list arguments take none with an effect.
  Access access_of(size_t input) const;
  bool forwards(size_t input, size_t output) const;
  bool forwards_any() const { return forwarding_ != Forwarding::none; }
  ValueFn value_fn() const { return value_; }
  RewriteFn simplify_fn() const { return simplify_; }
  RewriteFn fuse_fn() const { return fuse_; }
  // Counts the definitions of a table from 0.
  uint32_t number() const { return number_; }
  const std::string& doc_text() const { return doc_; }
  // Problems in the definition itself; the table refuses such an op.
  const Status& status() const { return status_; }

 private:
  void arg(std::vector<ArgDef>& list, std::string_view spec, Contract contract);
  Status check_effects() const;
  int place_of(std::string_view attr) const;
  std::string name_;
  std::string doc_;
  std::vector<ArgDef> inputs_;
  std::vector<ArgDef> outputs_;
  std::vector<AttrDef> attrs_;
  enum class Forwarding : uint8_t { none, first, each };
  ShapeFn shape_ = nullptr;
  GradFn grad_ = nullptr;
  ValueFn value_ = nullptr;
  RewriteFn simplify_ = nullptr;
  RewriteFn fuse_ = nullptr;
  Status status_;
  uint32_t number_ = 0;
  Role role_ = Role::compute;
  Forwarding forwarding_ = Forwarding::none;
  Capability capability_ = Capability::pure;
  bool stateful_ = false;
  bool draws_ = false;
  bool transient_ = false;
  bool judges_ = false;
  bool repeats_ = false;
  bool takes_functions_ = false;
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
  // The one definition with that role (the first added, where there are several), or null.
  const OpDef* with_role(Role role) const { return by_role_[static_cast<size_t>(role)]; }
  size_t count() const { return ops_.size(); }
  // All definitions, sorted by name.
  std::vector<const OpDef*> list() const;
  const Status& status() const { return status_; }
  // The closest known name, for "did you mean"; empty if nothing is close.
  std::string_view closest(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, std::unique_ptr<OpDef>> ops_;
  std::array<const OpDef*, kRoles> by_role_{};
  Status status_;
};

}  // namespace dtg
