// Which gradients travel in which call.
#include "strategy/all_reduce.h"

#include <map>

#include "nn/clipping.h"
#include "nn/scope.h"

namespace dtg {
namespace {

constexpr double kTimeoutMost = 1e9;

class Reducer {
 public:
  Reducer(Model& model, const AllReduce& how, std::span<const NodeId> controls)
      : graph_(model.graph()), build_(graph_), how_(how), controls_(controls), instance_(how.first_instance) {}

  Result<int32_t> run(std::vector<VariableGradient>& gradients) {
    for (auto each = gradients.rbegin(); each != gradients.rend(); ++each) {
      if (each->gradient.is_rows()) rows(*each);
      else if (each->gradient.any()) dense(*each);
    }
    for (auto& [what, pack] : packs_) send(pack);
    DTG_TRY(build_.status().with_context("average gradients over a group"));
    return instance_;
  }

 private:
  struct Pack {
    std::vector<VariableGradient*> members;
    int64_t bytes = 0;
  };

  Value call(std::string_view op, Value input, bool mean) {
    const Value inputs[] = {input, build_.integer(how_.group_size), build_.integer(how_.group_key), build_.integer(instance_++)};
    std::vector<Attr> attrs = {{"timeout_seconds", how_.timeout_seconds}};
    if (mean) attrs.insert(attrs.end(), {Attr{"merge_op", "Add"}, Attr{"final_op", "Div"}});
    return build_.op(op, inputs, attrs, {}, controls_);
  }

  Value mean(Value dense) { return call("CollectiveReduceV2", dense, true); }

  // Whatever has room with others of its type on its device waits for them; the rest goes as it comes.
  void dense(VariableGradient& each) {
    const NamedVariable& variable = each.variable;
    const int64_t bytes = variable.shape.count() * dtype_size(variable.dtype);
    if (bytes > how_.pack_bytes) {
      const ColocationScope beside(graph_, variable.handle.node());
      each.gradient.dense = mean(each.gradient.dense);
      return;
    }
    Pack& pack = packs_[{variable.dtype, std::string(graph_.node(variable.handle.node()).device)}];
    if (pack.bytes + bytes > how_.pack_bytes) send(pack);
    pack.members.push_back(&each);
    pack.bytes += bytes;
  }

  void send(Pack& pack) {
    const std::vector<VariableGradient*> members = std::move(pack.members);
    pack = Pack();
    if (members.empty()) return;
    const ColocationScope beside(graph_, members[0]->variable.handle.node());
    if (members.size() == 1) {
      members[0]->gradient.dense = mean(members[0]->gradient.dense);
      return;
    }
    std::vector<Value> flat;
    std::vector<int64_t> sizes;
    for (const VariableGradient* each : members) {
      flat.push_back(build_.reshape(each->gradient.dense, build_.ints({-1})));
      sizes.push_back(each->variable.shape.count());
    }
    flat.push_back(build_.integer(0));
    const Value sum = mean(build_.op("ConcatV2", flat));
    const auto count = static_cast<int64_t>(members.size());
    const Value parts = build_.op("SplitV", {sum, build_.ints(sizes, DType::i64), build_.integer(0)}, {{"num_split", count}});
    for (size_t i = 0; i < members.size() && build_.ok(); ++i) {
      const Value shape = build_.ints(members[i]->variable.shape.dims(), DType::i64);
      members[i]->gradient.dense = build_.reshape(parts.sibling(static_cast<uint32_t>(i)), shape);
    }
  }

  // Equal indices of different members are added up by whoever applies them, in this order.
  void rows(VariableGradient& each) {
    const ColocationScope beside(graph_, each.variable.handle.node());
    Gradient& gradient = each.gradient;
    // A gather moves no bfloat16; every one of them is a float.
    const bool narrow = build_.ok() && build_.info(gradient.values).dtype == DType::bf16;
    if (narrow) gradient.values = build_.cast(gradient.values, DType::f32);
    gradient.values = call("CollectiveGatherV2", gradient.values, false);
    if (narrow) gradient.values = build_.cast(gradient.values, DType::bf16);
    gradient.indices = call("CollectiveGatherV2", build_.cast(gradient.indices, DType::i64), false);
    if (build_.ok()) gradient.values = build_.div(gradient.values, build_.like(gradient.values, static_cast<double>(how_.group_size)));
    gradient.dense_shape = build_.ints(each.variable.shape.dims(), DType::i64);
  }

  Graph& graph_;
  Build build_;
  const AllReduce& how_;
  const std::span<const NodeId> controls_;
  int32_t instance_;
  std::map<std::pair<DType, std::string>, Pack> packs_;
};

}  // namespace

Status check_all_reduce(const AllReduce& how) {
  if (how.group_size < 1) return invalid_argument("all-reduce: the group has %d members; it needs at least one", how.group_size);
  if (how.first_instance < 1) return invalid_argument("all-reduce: the first instance is %d; they count from 1", how.first_instance);
  if (how.pack_bytes < 1)
    return invalid_argument("all-reduce: packs of %lld bytes; give a positive number", static_cast<long long>(how.pack_bytes));
  if (!(how.timeout_seconds >= 0) || how.timeout_seconds > kTimeoutMost)
    return invalid_argument("all-reduce: the timeout is %g s; it must be from 0 (the group's) to %g", how.timeout_seconds, kTimeoutMost);
  return {};
}

Result<int32_t> all_reduce_gradients(Model& model, std::vector<VariableGradient>* gradients, const AllReduce& how,
                                     std::span<const NodeId> controls) {
  DTG_TRY(check_all_reduce(how));
  const NameScope scope(model.graph(), "all_reduce");
  return Reducer(model, how, controls).run(*gradients);
}

Result<Training> minimize_all_reduce(Model& model, Value loss, const Optimizer& optimizer, const AllReduce& how) {
  DTG_TRY(check_all_reduce(how));
  const auto average = [&](auto, std::span<const NodeId> checked, std::vector<VariableGradient>* gradients) {
    return all_reduce_gradients(model, gradients, how, checked).status();
  };
  return make_training(model, optimizer,
                       {.losses = {&loss, 1},
                        .what = "minimize by all-reduce",
                        .local = [&](size_t) { return contribution(model, loss, optimizer); },
                        .combine = average});
}

}  // namespace dtg
