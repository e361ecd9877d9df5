// Calls between workers, and the nodes that level their variables. See workers.h for threads.
#include "strategy/workers.h"

#include <numeric>
#include <string_view>

#include "nn/scope.h"

namespace dtg {
namespace {

// So many variables travel at a time.
constexpr size_t kAtOnce = 16;

// The same bytes as whole numbers that can be added: all but one worker add zero, which changes nothing in them, not even in -0 or in a
// NaN.
Value as_bits(Build& build, Value x) {
  if (!build.ok()) return {};
  const DType dtype = build.info(x).dtype;
  switch (dtype_size(dtype)) {
    case 8: return dtype == DType::i64 ? x : build.op("Bitcast", {x}, {{"type", DType::i64}});
    case 4: return dtype == DType::i32 ? x : build.op("Bitcast", {x}, {{"type", DType::i32}});
    case 2: return build.cast(build.op("Bitcast", {x}, {{"type", DType::i16}}), DType::i32);
    case 1: return build.cast(x, DType::i32);
    default: break;
  }
  build.fail(unimplemented("values of %s do not travel between the workers of a strategy; keep them out of the model", dtype_name(dtype)));
  return {};
}

Value of_bits(Build& build, Value bits, DType dtype) {
  if (!build.ok()) return {};
  if (dtype_size(dtype) == 1) return build.cast(bits, dtype);
  if (dtype_size(dtype) == 2) bits = build.cast(bits, DType::i16);
  if (!build.ok() || build.info(bits).dtype == dtype) return bits;
  return build.op("Bitcast", {bits}, {{"type", dtype}});
}

class Levelling {
 public:
  Levelling(Model& model, const Workers& workers, std::span<const NodeId> after)
      : model_(model), workers_(workers), after_(after.begin(), after.end()), build_(model.graph()) {}

  Result<NodeId> run() {
    const NameScope scope(model_.graph(), "level");
    find_root();
    int32_t number = 3;
    for (const NamedVariable& variable : model_.variables()) {
      // The count of steps says who is ahead, so it comes last; each has its number whatever the others are.
      if (variable.sync == Sync::on_write && !is_step(variable)) take(variable, number);
      ++number;
    }
    const std::vector<NodeId> others = done_;
    if (const NamedVariable* const step = model_.step_if_any()) take(*step, number, others);
    const NodeId all = build_.node("NoOp", {}, {}, "levelled", done_);
    DTG_TRY(build_.status().with_context("level the workers of a strategy"));
    return all;
  }

 private:
  bool is_step(const NamedVariable& variable) const {
    const NamedVariable* const step = model_.step_if_any();
    return step && step->handle == variable.handle;
  }

  int32_t instance(int32_t number) const { return workers_.how.first_instance + kWorkersInstances / 2 + number; }
  Value reduce(Value x, const char* merge, int32_t number, std::string_view purpose) {
    int32_t first = instance(number);
    return WorkerCalls(build_, workers_, &first, purpose).reduce(x, merge);
  }

  Value read(const NamedVariable& variable, std::span<const NodeId> controls) {
    const Value handle[] = {variable.handle};
    const Attr dtype{"dtype", variable.dtype};
    return build_.op("ReadVariableOp", handle, {&dtype, 1}, {}, controls);
  }

  void find_root() {
    const NamedVariable* const step = model_.step_if_any();
    const Value steps = step ? read(*step, after_) : build_.integer(0, DType::i64);
    const Value is_ahead = build_.op("Equal", {steps, reduce(steps, "Max", 0, "most steps of a worker")});
    int32_t third = instance(2);
    const Value rank = WorkerCalls(build_, workers_, &third, "place of each worker").rank();
    const Value candidate = build_.op("SelectV2", {is_ahead, rank, build_.integer(workers_.how.group_size)});
    is_root_ = build_.op("Equal", {rank, reduce(candidate, "Min", 1, "first worker with the most steps")});
  }

  void take(const NamedVariable& variable, int32_t number, std::span<const NodeId> behind = {}) {
    std::vector<NodeId> controls = after_;
    controls.insert(controls.end(), behind.begin(), behind.end());
    if (done_.size() >= kAtOnce) controls.push_back(done_[done_.size() - kAtOnce]);
    const ColocationScope beside(model_.graph(), variable.handle.node());
    const Value bits = as_bits(build_, read(variable, controls));
    const Value mine = build_.ok() ? build_.op("SelectV2", {is_root_, bits, build_.zeros_like(bits)}) : Value();
    const Value value = of_bits(build_, reduce(mine, "Add", number, "value that all workers begin with"), variable.dtype);
    std::vector<NodeId> written;
    for (size_t i = 0; i == 0 || i < variable.copies.size(); ++i) {
      const Value handle = variable.at_replica(i).handle;
      const ColocationScope there(model_.graph(), handle.node());
      written.push_back(build_.node("AssignVariableOp", std::array{handle, value}));
    }
    done_.push_back(written.size() == 1 ? written[0] : build_.node("NoOp", {}, {}, {}, written));
  }

  Model& model_;
  const Workers& workers_;
  const std::vector<NodeId> after_;
  Build build_;
  Value is_root_;
  std::vector<NodeId> done_;
};

}  // namespace

Value WorkerCalls::call(std::string_view op, std::span<const Value> inputs, size_t keys_at, const char* merge,
                        std::span<const NodeId> controls) {
  std::vector<Value> all(inputs.begin(), inputs.end());
  const AllReduce& how = workers_.how;
  const Value keys[] = {build_.integer(how.group_size), build_.integer(how.group_key), build_.integer(instance_++)};
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(keys_at), std::begin(keys), std::end(keys));
  std::vector<Attr> attrs = {
      {"timeout_seconds", how.timeout_seconds}, {"communication_hint", how.hint}, purpose_attr(std::string(purpose_))};
  if (merge) attrs.insert(attrs.end(), {Attr{"merge_op", merge}, Attr{"final_op", "Id"}});
  return build_.op(op, all, attrs, {}, controls);
}

Value WorkerCalls::reduce(Value x, const char* merge, std::span<const NodeId> controls) {
  if (!build_.ok()) return {};
  const DType dtype = build_.info(x).dtype;
  constexpr DTypeSet kSameSums{DType::i8, DType::u8, DType::i16, DType::u16, DType::u32, DType::u64};
  // Sums of whole numbers are the same bits with a sign and without, and in more of them.
  const bool as_others = std::string_view(merge) == "Add" && kSameSums.has(dtype);
  if (as_others) x = as_bits(build_, x);
  const Value all = call("CollectiveReduceV2", {&x, 1}, 1, merge, controls);
  return as_others ? of_bits(build_, all, dtype) : all;
}

// What the op does not know travels as whole numbers of the same bits.
Value WorkerCalls::gather(Value x) {
  if (!build_.ok()) return {};
  const DType dtype = build_.info(x).dtype;
  constexpr DTypeSet kKnown{DType::f32, DType::f16, DType::f64, DType::i32, DType::i64};
  const bool known = kKnown.has(dtype);
  if (!known) x = as_bits(build_, x);
  const Value all = call("CollectiveGatherV2", {&x, 1}, 1, nullptr);
  return known ? all : of_bits(build_, all, dtype);
}

// The graph is the same at all of them: which one is first is found when it runs.
Value WorkerCalls::from_first(Value x) {
  const Value all = gather(build_.ok() ? build_.op("ExpandDims", {x, build_.integer(0)}) : Value());
  return build_.ok() ? build_.op("GatherV2", {all, build_.integer(0), build_.integer(0)}) : Value();
}

// Everybody brings 0, 1, 2.. and gets the share of its own place.
Value WorkerCalls::rank() {
  std::vector<int64_t> ranks(static_cast<size_t>(workers_.how.group_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const Value all = build_.ints(ranks);
  const Value mine = call("CollectiveReduceScatterV2", {&all, 1}, 1, "Min");
  return build_.ok() ? build_.op("GatherV2", {mine, build_.integer(0), build_.integer(0)}) : Value();
}

Result<NodeId> level(Model& model, const Workers& workers, std::span<const NodeId> after) { return Levelling(model, workers, after).run(); }

}  // namespace dtg
