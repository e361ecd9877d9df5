// Collectives as ops: definitions, shapes and gradients. What a kernel does is in collective_run.cc. Members are tasks of a group that was
// joined with that key (dtg/group.h), each with a graph of its own, and of each task as many devices, which make a call together:
// group_size counts the devices of all. Under a key that no group has, they are ops of one graph on different devices of this process.
// Calls are told apart by instance_key; of one instance, the order of creation is the order of calls. timeout_seconds is a call's between
// tasks; devices of one process wait as long as their run may.
#include "ops/collective.h"

#include "graph/gradient.h"
#include "graph/infer.h"
#include "nn/scope.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

constexpr const char* kReduced = "T: {bfloat16, float, half, double, int32, int64}";
constexpr const char* kGathered = "T: {float, half, double, int32, int64}";
constexpr const char* kSent = "T: {bool, float, half, double, int32, int64}";

// ---- shapes ------------------------------------------------------------------------------------------------

// Members may bring different numbers of rows.
Status gather_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  PartialShape out = c.input(0);
  if (out.has_rank()) out.set_dim(0, -1);
  c.output(0, out);
  return {};
}

Status scatter_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  PartialShape out = c.input(0);
  if (!out.has_rank()) return {};
  const Tensor size = c.constant(1);
  const int64_t rows = out.dim(0), members = size.valid() && size.count() == 1 ? size.int_at(0) : 0;
  if (rows >= 0 && members > 0 && rows % members != 0) {
    return c.error("%lld rows cannot be cut into %lld equal shares; pad them", static_cast<long long>(rows),
                   static_cast<long long>(members));
  }
  out.set_dim(0, rows >= 0 && members > 0 ? rows / members : -1);
  c.output(0, out);
  return {};
}

Status exchange_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  return c.same_as_input();
}

Status receive_shape(InferContext& c) {
  DTG_ASSIGN(const PartialShape shape, c.shape_from_input(3));
  c.output(0, shape);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

// The same collective for gradients, on the same device, under an instance of its own: that of the call, inverted.
Value back(GradContext& c, std::string_view op, Value dy, std::span<const Attr> more) {
  Build& b = c.b();
  const ColocationScope beside(b.graph(), c.node().id);
  const Value inputs[] = {dy, c.input(1), c.input(2), b.op("Invert", {c.input(3)})};
  std::vector<Attr> attrs(more.begin(), more.end());
  attrs.push_back({"communication_hint", c.attr<std::string>("communication_hint")});
  attrs.push_back({"timeout_seconds", c.attr<double>("timeout_seconds")});
  return b.op(op, inputs, attrs);
}

Status check_sum(GradContext& c) {
  if (c.attr<std::string>("merge_op") == "Add") return {};
  return unimplemented("the gradient of %s with merge_op %s; only sums and means over members have one", c.node().op->name().c_str(),
                       c.attr<std::string>("merge_op").c_str());
}

std::vector<Attr> sum_attrs(GradContext& c) { return {{"merge_op", "Add"}, {"final_op", c.attr<std::string>("final_op")}}; }

// y_i = sum_j x_j (or their mean) for all members i: dx_i = sum_j dy_j (or their mean).
Status reduce_grad(GradContext& c) {
  DTG_TRY(check_sum(c));
  c.dx(0, back(c, "CollectiveReduceV2", c.dy(), sum_attrs(c)));
  return {};
}

// y_i = x_0 .. x_n one behind the other: dx_i = share i of sum_j dy_j. Shares are equal ones; a member with another number of rows fails.
Status gather_grad(GradContext& c) {
  const std::vector<Attr> sum = {{"merge_op", "Add"}, {"final_op", "Id"}};
  const Value share = back(c, "CollectiveReduceScatterV2", c.dy(), sum);
  c.dx(0, c.b().reshape(share, c.b().shape(c.input(0))));
  return {};
}

// y_i = share i of sum_j x_j: dx_i = dy_0 .. dy_n one behind the other, divided as the sum was.
Status scatter_grad(GradContext& c) {
  DTG_TRY(check_sum(c));
  Build& b = c.b();
  Value dx = back(c, "CollectiveGatherV2", c.dy(), {});
  if (c.attr<std::string>("final_op") == "Div" && b.ok()) dx = b.div(dx, b.cast(c.input(1), b.info(dx).dtype));
  c.dx(0, dx);
  return {};
}

// What was sent to member j comes back from it.
Status exchange_grad(GradContext& c) {
  c.dx(0, back(c, "CollectiveAllToAllV2", c.dy(), {}));
  return {};
}

// ---- the table ---------------------------------------------------------------------------------------------

OpDef&& with_keys(OpDef&& op) {
  return std::move(op)
      .input("group_size: int32", {.rank = 0})
      .input("group_key: int32", {.rank = 0})
      .input("instance_key: int32", {.rank = 0});
}

OpDef&& with_options(OpDef&& op) {
  return std::move(op).attr("communication_hint: string = 'auto'").attr("timeout_seconds: float = 0").attr("_purpose: string = ''");
}

OpDef&& with_tokens(OpDef&& op) {
  return with_options(std::move(op)
                          .input("ordering_token: Nordering_token * resource")
                          .attr("is_stateless: bool = false")
                          .attr("Nordering_token: int >= 0 = 0"));
}

OpDef&& with_reduction(OpDef&& op) {
  return std::move(op)
      .attr("merge_op: {'Min', 'Max', 'Mul', 'Add'}")
      .attr("final_op: {'Id', 'Div'}")
      .attr("max_subdivs_per_device: int = -1");
}

void add(OpTable& ops, KernelTable& kernels, const char* name, std::vector<KernelRow::TypeClause> types, OpDef&& op) {
  ops.add(std::move(op).stateful(Capability::net).access(Access::ask));
  kernels.add({.op = name, .types = std::move(types), .prepare = collective_prepare, .mode = KernelMode::blocking});
}

}  // namespace

Result<CollectivePart> collective_part(const Node& node) {
  const std::string& op = node.op->name();
  CollectivePart part;
  part.sends = op != "CollectiveBcastRecvV2" && op != "CollectiveBarrier";
  part.size_at = part.sends ? 1 : 0;
  if (op == "CollectiveReduceV2") part.kind = Collective::all_reduce;
  else if (op == "CollectiveReduceScatterV2") part.kind = Collective::reduce_scatter;
  else if (op == "CollectiveGatherV2") part.kind = Collective::all_gather;
  else if (op == "CollectiveAllToAllV2") part.kind = Collective::all_to_all;
  else if (op != "CollectiveBarrier") part.kind = Collective::broadcast;
  if (part.kind != Collective::all_reduce && part.kind != Collective::reduce_scatter) return part;
  const std::string &merge = node.attr<std::string>("merge_op"), &final = node.attr<std::string>("final_op");
  if (merge == "Min") part.reduction = Reduction::minimum;
  if (merge == "Max") part.reduction = Reduction::maximum;
  if (merge == "Mul") part.reduction = Reduction::product;
  if (final == "Id") return part;
  if (merge != "Add") return unimplemented("final_op Div with merge_op %s; divide the result by the size of the group", merge.c_str());
  part.reduction = Reduction::mean;
  return part;
}

void register_collective(OpTable& ops, KernelTable& kernels) {
  constexpr DTypeSet kGather{DType::f32, DType::f16, DType::f64, DType::i32, DType::i64};
  constexpr DTypeSet kReduce = kGather | DTypeSet{DType::bf16}, kSend = kGather | DTypeSet{DType::boolean};
  const auto reducing = [](const char* name) {
    return with_reduction(with_tokens(with_keys(OpDef::make(name).input("input: T").output("data: T").attr(kReduced))));
  };
  const auto moving = [](const char* name, const char* types) {
    return with_tokens(with_keys(OpDef::make(name).input("input: T").output("data: T").attr(types)));
  };
  add(ops, kernels, "CollectiveReduceV2", {{"T", kReduce}},
      reducing("CollectiveReduceV2")
          .shape(unchanged_shape)
          .gradient(reduce_grad)
          .doc("The members' inputs merged element by element, in the order of the members; all get the result."));
  add(ops, kernels, "CollectiveReduceScatterV2", {{"T", kReduce}},
      reducing("CollectiveReduceScatterV2")
          .shape(scatter_shape)
          .gradient(scatter_grad)
          .doc("As CollectiveReduceV2, but each member gets its share of the rows."));
  add(ops, kernels, "CollectiveGatherV2", {{"T", kGather}},
      moving("CollectiveGatherV2", kGathered)
          .shape(gather_shape)
          .gradient(gather_grad)
          .doc("The members' rows one behind the other, in the order of the members; numbers of rows may differ."));
  add(ops, kernels, "CollectiveAllToAllV2", {{"T", kReduce}},
      moving("CollectiveAllToAllV2", kReduced)
          .shape(exchange_shape)
          .gradient(exchange_grad)
          .doc("Share i of the rows goes to member i; what comes stands in the order of the members."));
  add(ops, kernels, "CollectiveBcastSendV2", {{"T", kSend}},
      with_options(with_keys(OpDef::make("CollectiveBcastSendV2").input("input: T").output("data: T").attr(kSent)))
          .shape(unchanged_shape)
          .no_gradient()
          .doc("Sends a tensor to all other members, which receive it with CollectiveBcastRecvV2."));
  add(ops, kernels, "CollectiveBcastRecvV2", {{"T", kSend}},
      with_options(with_keys(OpDef::make("CollectiveBcastRecvV2"))
                       .input("shape: Tshape")
                       .output("data: T")
                       .attr(kSent)
                       .attr("Tshape: {int32, int64} = int32"))
          .shape(receive_shape)
          .no_gradient()
          .doc("The tensor of that shape that one member sends with CollectiveBcastSendV2."));
  add(ops, kernels, "CollectiveBarrier", {},
      with_options(with_keys(OpDef::make("CollectiveBarrier")))
          .shape(no_outputs)
          .no_gradient()
          .doc("Done when all members have come to it."));
}

}  // namespace dtg::ops
