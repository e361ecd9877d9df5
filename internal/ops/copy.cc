// The private op that the planner puts where a value goes from one memory space to another: from the host's to a device's, or back. It
// runs on the stream of the device, which reaches both.
#include <cstring>

#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

struct CopyArgs {
  int64_t bytes = 0;
};

Status copy_shape(InferContext& c) {
  c.output(0, c.input(0));
  return {};
}

Status copy_run(RunContext& c) {
  if (const int64_t bytes = c.args<CopyArgs>().bytes; bytes > 0) std::memcpy(c.out<void>(0), c.in<void>(0), static_cast<size_t>(bytes));
  return {};
}

Status copy_prepare(PrepareContext& c) {
  c.args<CopyArgs>()->bytes = c.input(0).bytes();
  return c.sync(copy_run);
}

}  // namespace

void register_copy(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_Copy")
              .input("x: T")
              .output("y: T")
              .attr("T: type")
              .shape(copy_shape)
              .no_gradient()
              .role(Role::copy)
              .doc("Private: the same value in another memory space."));
  kernels.add({.op = "_Copy", .types = {{"T", kPlain}}, .prepare = copy_prepare});
}

}  // namespace dtg::ops
