// The private ops that the partitioner puts at both ends of an edge between tasks. They hold no thread: the step's
// edges end the instruction.
#include "exec/edges.h"
#include "exec/step.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

struct EdgeArgs {
  Shape shape;
  DType dtype = DType::invalid;
  uint32_t edge = 0;
  bool dynamic = false;
};

Status recv_shape(InferContext& c) {
  c.output(0, c.attr<PartialShape>("shape"));
  return {};
}

// A part can also be run by a session that knows no other task; then there is nobody to talk to.
bool has_edges(RunContext& c, Completion& done) {
  if (c.step().edges()) return true;
  done.dismiss();
  c.set_status(c.error("this run has no other tasks to exchange values with"));
  return false;
}

bool send_run(RunContext& c, Completion done) {
  if (!has_edges(c, done)) return true;
  const auto& a = c.args<EdgeArgs>();
  c.step().edges()->put(a.edge, a.dtype, a.shape, c.in<void>(0), std::move(done));
  return false;
}

bool recv_run(RunContext& c, Completion done) {
  if (!has_edges(c, done)) return true;
  const auto& a = c.args<EdgeArgs>();
  c.step().edges()->take(a.edge, a.dynamic ? nullptr : c.out<void>(0), std::move(done));
  return false;
}

bool join_run(RunContext& c, Completion done) {
  if (!has_edges(c, done)) return true;
  c.step().edges()->join(c.args<EdgeArgs>().edge, std::move(done));
  return false;
}

Status send_prepare(PrepareContext& c) {
  auto* const a = c.args<EdgeArgs>();
  a->edge = static_cast<uint32_t>(c.integer("edge"));
  a->dtype = c.input(0).dtype;
  a->shape = c.input(0).shape;
  return c.async_in_place(send_run);
}

Status recv_prepare(PrepareContext& c) {
  auto* const a = c.args<EdgeArgs>();
  a->edge = static_cast<uint32_t>(c.integer("edge"));
  a->dtype = c.output(0).dtype;
  a->dynamic = c.output(0).dynamic;
  if (!a->dynamic) a->shape = c.output(0).shape;
  return c.async_in_place(recv_run);
}

Status join_prepare(PrepareContext& c) {
  c.args<EdgeArgs>()->edge = static_cast<uint32_t>(c.integer("task"));
  return c.async_in_place(join_run);
}

}  // namespace

void register_sendrecv(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_Send")
              .input("tensor: T")
              .attr("T: type")
              .attr("edge: int >= 0")
              .attr("peer: string = ''")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .role(Role::send)
              .doc("Private: a value leaves for another task (the session itself when peer is empty)."));
  ops.add(OpDef::make("_Recv")
              .output("tensor: dtype")
              .attr("dtype: type")
              .attr("shape: shape = unknown")
              .attr("edge: int >= 0")
              .attr("phase: int >= 0 = 0")
              .attr("peer: string = ''")
              .shape(recv_shape)
              .no_gradient()
              .stateful()
              .role(Role::receive)
              .doc("Private: a value arrives from another task (the session itself when peer is empty)."));
  ops.add(OpDef::make("_Join")
              .attr("task: int >= 0")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .role(Role::join)
              .doc("Private: ends when the part on that task has ended."));
  kernels.add({.op = "_Send", .types = {{"T", kPlain}}, .prepare = send_prepare, .mode = KernelMode::blocking});
  kernels.add({.op = "_Recv", .types = {{"dtype", kPlain}}, .prepare = recv_prepare, .mode = KernelMode::blocking});
  kernels.add({.op = "_Join", .prepare = join_prepare, .mode = KernelMode::blocking});
}

}  // namespace dtg::ops
