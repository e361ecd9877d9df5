// Which gradients travel in which call.
#include "strategy/all_reduce.h"

#include <map>
#include <tuple>

#include "base/crc32c.h"
#include "nn/clipping.h"
#include "nn/scope.h"

namespace dtg {
namespace {

constexpr double kTimeoutMost = 1e9;
constexpr size_t kPurposeMost = 256;  // letters that the ops take

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
    if (calls_.size() > 1) hold_back(gradients);
    DTG_TRY(build_.status().with_context("average gradients over a group"));
    return instance_;
  }

 private:
  struct Pack {
    std::vector<VariableGradient*> members;
    int64_t bytes = 0;
  };

  // Members whose packs, means or numbers of replicas differ would add up what does not belong together.
  Attr purpose() const {
    std::string text = over_replicas(mean_ ? Reduce::mean : Reduce::sum, how_.shares, how_.stacked) + " of the gradients of";
    for (const NamedVariable* variable : about_) text += " " + variable->shape.text();
    return purpose_attr(std::move(text));
  }

  Value call(std::string_view op, Value input, const char* last = nullptr) {
    const Value inputs[] = {input, build_.integer(how_.group_size), build_.integer(how_.group_key), build_.integer(instance_++)};
    std::vector<Attr> attrs = {{"timeout_seconds", how_.timeout_seconds}, {"communication_hint", how_.hint}, purpose()};
    if (last) attrs.insert(attrs.end(), {Attr{"merge_op", "Add"}, Attr{"final_op", last}});
    const Value result = build_.op(op, inputs, attrs, {}, controls_);
    if (build_.ok()) calls_.push_back(result.node());
    return result;
  }

  // Until every call of the step has ended well: where a member is lost between two of them, the variables of the first would have made the
  // step and the others not.
  void hold_back(std::vector<VariableGradient>& gradients) {
    const NodeId all = build_.node("NoOp", std::span<const Value>(), {}, "all_here", calls_);
    for (VariableGradient& each : gradients) {
      const ColocationScope beside(graph_, each.variable.handle.node());
      for (Value* const value : {&each.gradient.dense, &each.gradient.values}) {
        const Value before[] = {*value};
        if (value->valid()) *value = build_.op("Identity", before, {}, {}, {&all, 1});
      }
    }
  }

  // A gather moves no bfloat16; every one of them is a float.
  Value gathered(Value x) {
    const bool narrow = build_.ok() && build_.info(x).dtype == DType::bf16;
    const Value all = call("CollectiveGatherV2", narrow ? build_.cast(x, DType::f32) : x);
    return narrow ? build_.cast(all, DType::bf16) : all;
  }

  bool to_mean(const VariableGradient& each) const { return how_.reduce == Reduce::mean || each.share != 0; }
  Value shared_out(Value sum) {
    return build_.ok() ? build_.div(sum, build_.like(sum, static_cast<double>(how_.group_size) * how_.shares)) : Value();
  }

  // What the members bring, as one value; of stacked ones, which are [shares, elements], as a vector.
  Value reduced(Value x, bool mean) {
    mean_ = mean;
    if (!how_.stacked) {
      const Value sum = call("CollectiveReduceV2", x, mean && how_.shares == 1 ? "Div" : "Id");
      return mean && how_.shares > 1 ? shared_out(sum) : sum;
    }
    const int64_t parts = int64_t{how_.group_size} * how_.shares;
    const Value rows = build_.op("Split", {build_.integer(0), gathered(x)}, {{"num_split", parts}});
    std::vector<Value> all;
    for (int64_t i = 0; i < parts && build_.ok(); ++i) all.push_back(rows.sibling(static_cast<uint32_t>(i)));
    const Value sum = build_.reshape(build_.op("AddN", all), build_.ints({-1}));
    return mean ? shared_out(sum) : sum;
  }

  Value flat(Value x) { return build_.reshape(x, how_.stacked ? build_.ints({how_.shares, -1}) : build_.ints({-1})); }

  void alone(VariableGradient& each) {
    about_ = {&each.variable};
    Value& dense = each.gradient.dense;
    if (!how_.stacked) dense = reduced(dense, to_mean(each));
    else dense = build_.reshape(reduced(flat(dense), to_mean(each)), build_.ints(each.variable.shape.dims(), DType::i64));
  }

  // Whatever has room with others of its type on its device waits for them; the rest goes as it comes.
  void dense(VariableGradient& each) {
    const NamedVariable& variable = each.variable;
    const int64_t bytes = variable.shape.count() * dtype_size(variable.dtype);
    if (bytes > how_.pack_bytes) {
      const ColocationScope beside(graph_, variable.handle.node());
      return alone(each);
    }
    Pack& pack = packs_[{variable.dtype, to_mean(each), std::string(graph_.node(variable.handle.node()).device)}];
    if (pack.bytes + bytes > how_.pack_bytes) send(pack);
    pack.members.push_back(&each);
    pack.bytes += bytes;
  }

  void send(Pack& pack) {
    const std::vector<VariableGradient*> members = std::move(pack.members);
    pack = Pack();
    if (members.empty()) return;
    const ColocationScope beside(graph_, members[0]->variable.handle.node());
    if (members.size() == 1) return alone(*members[0]);
    std::vector<Value> parts;
    std::vector<int64_t> sizes;
    for (const VariableGradient* each : members) {
      parts.push_back(flat(each->gradient.dense));
      sizes.push_back(each->variable.shape.count());
    }
    about_.clear();
    for (const VariableGradient* each : members) about_.push_back(&each->variable);
    parts.push_back(build_.integer(how_.stacked ? 1 : 0));
    const Value sum = reduced(build_.op("ConcatV2", parts), to_mean(*members[0]));
    const auto count = static_cast<int64_t>(members.size());
    const Value cut = build_.op("SplitV", {sum, build_.ints(sizes, DType::i64), build_.integer(0)}, {{"num_split", count}});
    for (size_t i = 0; i < members.size() && build_.ok(); ++i) {
      const Value shape = build_.ints(members[i]->variable.shape.dims(), DType::i64);
      members[i]->gradient.dense = build_.reshape(cut.sibling(static_cast<uint32_t>(i)), shape);
    }
  }

  // Equal indices of different members are added up by whoever applies them, in this order.
  void rows(VariableGradient& each) {
    const ColocationScope beside(graph_, each.variable.handle.node());
    Gradient& gradient = each.gradient;
    about_ = {&each.variable};
    mean_ = to_mean(each);
    gradient.values = gathered(gradient.values);
    gradient.indices = call("CollectiveGatherV2", build_.cast(gradient.indices, DType::i64));
    if (to_mean(each)) gradient.values = shared_out(gradient.values);
    gradient.dense_shape = build_.ints(each.variable.shape.dims(), DType::i64);
  }

  Graph& graph_;
  Build build_;
  const AllReduce& how_;
  const std::span<const NodeId> controls_;
  int32_t instance_;
  std::vector<NodeId> calls_;
  std::vector<const NamedVariable*> about_;  // whose gradients the next calls move, and whether to their mean
  bool mean_ = false;
  std::map<std::tuple<DType, bool, std::string>, Pack> packs_;  // by type, whether to the mean, device
};

}  // namespace

std::string over_replicas(Reduce reduce, int64_t shares, bool in_order) {
  std::string text = reduce == Reduce::mean ? "mean" : "sum";
  text += " over " + std::to_string(shares) + (shares == 1 ? " replica" : " replicas") + " of each worker";
  return in_order ? text + ", in their order," : text;
}

Attr purpose_attr(std::string purpose) {
  if (purpose.size() > kPurposeMost) {
    const std::string number = ".. #" + std::to_string(crc32c(purpose));
    purpose.resize(kPurposeMost - number.size());
    purpose += number;
  }
  return {"_purpose", std::move(purpose)};
}

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
  const auto average = [&](auto, const std::vector<NodeId>* checked, std::vector<VariableGradient>* gradients) {
    return all_reduce_gradients(model, gradients, how, *checked).status();
  };
  return make_training(model, optimizer,
                       {.losses = {&loss, 1},
                        .what = "minimize by all-reduce",
                        .local = [&](size_t) { return contribution(model, loss, optimizer); },
                        .combine = average});
}

}  // namespace dtg
