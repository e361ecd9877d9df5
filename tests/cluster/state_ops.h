// The resources of a task as tests make and look at them, past all protocol; and a node of any op that takes one, by its definition
// alone, so that a new op is in the tests of rights as soon as it is in the table.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "exec/accumulator.h"
#include "exec/lookup_table.h"
#include "exec/queue.h"
#include "exec/step_clocks.h"
#include "exec/step_members.h"
#include "exec/variable.h"
#include "graph/build.h"

namespace dtg {

enum class Kept : uint8_t {
  variable,
  counter,
  queue,
  accumulator,
  sparse_accumulator,
  table,
  vocabulary,
  generator,
  clocks,
  members,
  tokens
};
inline constexpr int kKinds = 11;
inline constexpr const char* kKeptNames[] = {"variable",   "counter",   "queue",  "accumulator", "sparse accumulator", "table",
                                             "vocabulary", "generator", "clocks", "members",     "queue of tokens"};

inline bool takes_resource(const OpDef& op) {
  return std::ranges::any_of(op.inputs(), [](const ArgDef& arg) { return arg.dtype == DType::resource; });
}

// What the op is for; one that ends resources is for all of them.
inline Kept kind_for(const OpDef& op) {
  const auto has = [&](const char* word) { return op.name().find(word) != std::string::npos; };
  if (has("Queue")) return Kept::queue;
  if (has("Token")) return Kept::tokens;
  if (has("Rng")) return Kept::generator;
  if (has("SparseAccumulator")) return Kept::sparse_accumulator;
  if (has("Accumulator")) return Kept::accumulator;
  if (has("LookupTable")) return Kept::table;
  if (has("InitializeTable")) return Kept::vocabulary;
  if (has("Clocks")) return Kept::clocks;
  if (has("RowsContribution")) return Kept::sparse_accumulator;
  if (has("Contribution")) return Kept::accumulator;
  if (op.name().starts_with("_") && (has("Step") || has("Element"))) return Kept::members;
  return op.find_attr("limit") ? Kept::counter : Kept::variable;
}

// --- making and looking ---

// An enqueue that nobody waits for.
struct Put final : Queue::Operation {
  Put() : Operation(Queue::Verb::enqueue) {}
  void finished(Status status) override { EXPECT_TRUE(status.ok()) << status.message(); }
};

// The arrival of a worker whose step has been made meanwhile.
struct Arrived final : StepMembers::Arrival {
  void finished(Status status) override { EXPECT_TRUE(status.ok()) << status.message(); }
};

struct Keeper {
  ResourceStore& store;
  const std::string device;

  Ref<Resource> find(const std::string& name, const std::string& container = {}) const { return store.find(device, container, name); }

  void make(Kept kind, const std::string& name, bool filled, const std::string& container = {}) const {
    const auto made = [&](std::string_view of, const Ref<Resource>& resource) {
      EXPECT_TRUE(store.find_or_create(device, container, name, of, [&] { return resource; }).ok());
    };
    const std::array<float, 2> ones = {1, 2};
    switch (kind) {
      case Kept::variable:
      case Kept::counter: {
        const bool counts = kind == Kept::counter;
        const Shape shape = counts ? Shape() : Shape::of({2});
        auto variable = make_ref<Variable>(name, counts ? DType::i64 : DType::f32, shape);
        if (filled)
          set(*variable, counts ? Tensor::of<int64_t>(shape, std::array<int64_t, 1>{3}).take() : Tensor::of<float>(shape, ones).take());
        return made(Variable::kKind, variable);
      }
      case Kept::generator: {
        auto variable = make_ref<Variable>(name, DType::i64, Shape::of({3}));
        if (filled) set(*variable, Tensor::of<int64_t>(Shape::of({3}), std::array<int64_t, 3>{1, 2, 3}).take());
        return made(Variable::kKind, variable);
      }
      case Kept::queue:
      case Kept::tokens: {
        const bool tokens = kind == Kept::tokens;
        auto queue = make_ref<Queue>(name, Queue::Spec{.dtypes = {tokens ? DType::i64 : DType::f32}, .shapes = {PartialShape::scalar()}});
        for (int i = 0; filled && i < 3; ++i) {
          auto* const put = new Put;
          put->tuple = {tokens ? Tensor::scalar<int64_t>(1).take() : Tensor::of<float>(Shape(), std::array<float, 1>{1}).take()};
          queue->start(put, nullptr);
        }
        return made(Queue::kKind, queue);
      }
      case Kept::accumulator: {
        auto sum = make_ref<DenseAccumulator>(name, Accumulator::Spec{.dtype = DType::f32, .shape = Shape::of({2})});
        if (filled) {
          EXPECT_TRUE(sum->apply(0, Shape::of({2}), ones.data()).ok());
        }
        return made(DenseAccumulator::kKind, sum);
      }
      case Kept::sparse_accumulator: {
        auto sum = make_ref<SparseAccumulator>(name, Accumulator::Spec{.dtype = DType::f32, .shape = Shape::of({2})});
        const std::array<int64_t, 1> row = {0};
        if (filled) {
          EXPECT_TRUE(sum->apply(0, row, Shape::of({1}), ones.data(), {}).ok());
        }
        return made(SparseAccumulator::kKind, sum);
      }
      case Kept::table:
      case Kept::vocabulary: {
        const auto form = kind == Kept::table ? LookupTable::Form::growing : LookupTable::Form::fixed;
        auto table = make_ref<LookupTable>(name, LookupTable::Spec{.form = form, .keys = DType::i64, .values = DType::f32});
        const std::array<int64_t, 2> keys = {0, 1};
        const LookupTable::Entries entries{keys.data(), ones.data(), 2};
        if (filled) {
          EXPECT_TRUE((kind == Kept::table ? table->insert(entries) : table->initialize(entries)).ok());
        }
        return made(LookupTable::kKind, table);
      }
      case Kept::clocks: {
        auto clocks = make_ref<StepClocks>(name, 2, Presence::of(store)->roll());
        if (filled) clocks->join(0, Presence::kOwn, std::array<int64_t, 2>{StepClocks::kNobody, StepClocks::kNobody});
        return made(StepClocks::kKind, clocks);
      }
      case Kept::members: {
        auto members = make_ref<StepMembers>(name, 2, Presence::of(store)->roll(), 2);
        if (filled) {
          members->begin(1, StepMembers::Begin::first, std::array<double, 2>{0, 0});
          auto* const arrived = new Arrived;
          arrived->step = arrived->now = 1;
          arrived->element = {0, 0};
          members->start(arrived, nullptr);
          members->begin(2, StepMembers::Begin::next);
        }
        return made(StepMembers::kKind, members);
      }
    }
  }

  static void set(Variable& variable, Tensor value) {
    ASSERT_EQ(variable.begin_assign(nullptr), Variable::Writing::yes);
    EXPECT_TRUE(variable.end_assign(std::move(value)).ok());
  }

  // All that a run could have changed.
  std::string look(const std::string& name, const std::string& container = {}) const {
    const Ref<Resource> found = find(name, container);
    if (!found) return "absent";
    if (auto* const queue = resource_cast<Queue>(found.get()))
      return format("%lld%s", static_cast<long long>(queue->size()), queue->closed() ? " closed" : "");
    if (auto* const variable = resource_cast<Variable>(found.get())) return look(*variable);
    if (auto* const table = resource_cast<LookupTable>(found.get())) return format("%lld entries", static_cast<long long>(table->size()));
    if (auto* const clocks = resource_cast<StepClocks>(found.get())) {
      std::string text;
      for (const int64_t clock : clocks->clocks()) text += format("%lld ", static_cast<long long>(clock));
      return text;
    }
    if (auto* const members = resource_cast<StepMembers>(found.get())) return members->text();
    const auto& sum = static_cast<const Accumulator&>(*found);
    return format("%lld at %lld", static_cast<long long>(sum.count()), static_cast<long long>(sum.global_step()));
  }
  static std::string look(Variable& variable) {
    Variable::Version* version = nullptr;
    std::string text = variable.declared_shape().text() + format(" version %lld", static_cast<long long>(variable.version()));
    if (variable.pin(&version, nullptr) != Variable::Pinned::yes) return text + " without value";
    text += ":" + std::string(version->tensor.as<char>(), static_cast<size_t>(version->tensor.bytes()));
    variable.unpin(version);
    return text;
  }
};

// --- nodes ---

inline Value handle_op(Build& b, Kept kind, const std::string& shared, const std::string& node, const std::string& container = {}) {
  std::vector<Attr> attrs = {{"shared_name", shared}, {"container", container}};
  switch (kind) {
    case Kept::variable:
    case Kept::counter:
      attrs.push_back({"dtype", kind == Kept::counter ? DType::i64 : DType::f32});
      attrs.push_back({"shape", PartialShape(kind == Kept::counter ? Shape() : Shape::of({2}))});
      return b.op("VarHandleOp", {}, attrs, node);
    case Kept::generator:
      attrs.push_back({"dtype", DType::i64});
      attrs.push_back({"shape", PartialShape(Shape::of({3}))});
      return b.op("VarHandleOp", {}, attrs, node);
    case Kept::queue:
    case Kept::tokens:
      attrs.push_back({"component_types", std::vector<DType>{kind == Kept::tokens ? DType::i64 : DType::f32}});
      attrs.push_back({"shapes", std::vector<PartialShape>{PartialShape::scalar()}});
      return b.op("FIFOQueueV2", {}, attrs, node);
    case Kept::accumulator:
    case Kept::sparse_accumulator:
      attrs.push_back({"dtype", DType::f32});
      attrs.push_back({"shape", PartialShape(Shape::of({2}))});
      return b.op(kind == Kept::accumulator ? "ResourceConditionalAccumulator" : "SparseConditionalAccumulator", {}, attrs, node);
    case Kept::table:
    case Kept::vocabulary:
      attrs.push_back({"key_dtype", DType::i64});
      attrs.push_back({"value_dtype", DType::f32});
      return b.op(kind == Kept::table ? "MutableHashTableV2" : "HashTableV2", {}, attrs, node);
    case Kept::clocks: attrs.push_back({"workers", int64_t{2}}); return b.op("_StepClocks", {}, attrs, node);
    case Kept::members:
      attrs.insert(attrs.end(), {{"workers", int64_t{2}}, {"elements", int64_t{2}}});
      return b.op("_StepMembers", {}, attrs, node);
  }
  return {};
}

// One input that is no resource; `rank` is tried for what has none of its own.
inline Value plain_input(Build& b, const ArgDef& arg, int rank) {
  if (arg.name.find("indices") != std::string::npos) return b.ints({0}, arg.dtype == DType::invalid ? DType::i32 : arg.dtype);
  if (arg.name == "begin" || arg.name == "end" || arg.name == "strides") {
    return b.ints({arg.name == "begin" ? 0 : arg.name == "end" ? 2 : 1});  // both elements
  }
  if (arg.name == "members") return b.constant(Tensor::of<bool>(Shape::of({2}), std::array<bool, 2>{false, false}).take());
  if (arg.name == "now") return b.integer(2, DType::i64);  // the step of which is said to be 1
  if (arg.name == "element") return b.ints({0, 0}, DType::i64);
  if (arg.name == "epoch") return b.integer(0, DType::i64);
  if (arg.name == "times") return b.constant(Tensor::of<double>(Shape::of({2}), std::array<double, 2>{0, 0}).take());
  if (arg.name == "clocks") return b.ints({0, 0}, DType::i64);
  if (arg.name == "keys") return b.ints({0, 1}, DType::i64);
  if (arg.name == "gradient_shape") return b.ints({2}, DType::i64);
  if (arg.dtype == DType::i64 || arg.dtype == DType::i32 || arg.dtype == DType::u64) return b.integer(1, arg.dtype);
  if (arg.rank_max == 0 || rank == 0) return b.scalar(DType::f32, 0.5);
  const std::array<float, 2> values = {5, 6};
  return b.constant(Tensor::of<float>(Shape::of({rank}), std::span(values).first(static_cast<size_t>(rank))).take());
}

// A node of `op` on `handle`; kNoNode when its definition gives no hint how to make one. Slots are variables `slots`_1, ...
inline NodeId state_node(Graph& graph, const OpDef& op, Value handle, const std::string& slots, std::span<const NodeId> controls) {
  const bool indexed = std::ranges::any_of(op.inputs(), [](const ArgDef& arg) { return arg.name.find("indices") != std::string::npos; });
  const bool one = op.name().find("Queue") != std::string::npos && op.name().find("Many") == std::string::npos;
  for (const int rank : one ? std::array{0, 1, 2} : indexed ? std::array{1, 0, 2} : std::array{2, 1, 0}) {
    Build b(graph);
    std::vector<Value> inputs;
    for (const ArgDef& arg : op.inputs()) {
      const bool slot = arg.dtype == DType::resource && !inputs.empty();
      const std::string name = slots + "_" + std::to_string(inputs.size());
      const std::array roll = {Attr{"workers", int64_t{2}}, Attr{"shared_name", slots + "_roll"}};
      inputs.push_back(arg.name == "roll"             ? b.op("_TokenRoll", {}, roll)
                       : slot                         ? handle_op(b, Kept::variable, name, {})
                       : arg.dtype == DType::resource ? handle
                                                      : plain_input(b, arg, rank));
    }
    std::vector<Attr> attrs;
    if (op.find_attr("dtype")) attrs.push_back({"dtype", DType::f32});
    if (op.find_attr("component_types")) attrs.push_back({"component_types", std::vector<DType>{DType::f32}});
    if (op.find_attr("limit")) attrs.insert(attrs.end(), {{"limit", int64_t{100}}, {"T", DType::i64}});
    if (op.find_attr("Tkeys")) attrs.insert(attrs.end(), {{"Tkeys", DType::i64}, {"Tvalues", DType::f32}});
    if (op.find_attr("workers")) attrs.push_back({"workers", int64_t{2}});
    if (op.find_attr("shape")) attrs.push_back({"shape", PartialShape(Shape::of({2}))});
    if (op.find_attr("worker")) attrs.push_back({"worker", int64_t{0}});
    if (op.find_attr("has_known_shape")) attrs.push_back({"has_known_shape", true});
    const NodeId node = b.node(op.name(), inputs, attrs, "deed", controls);
    if (b.ok()) return node;
  }
  return kNoNode;
}

}  // namespace dtg
