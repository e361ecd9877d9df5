// Every op family, by name.
#include "ops/all.h"

namespace dtg::ops {

void register_all(OpTable& ops, KernelTable& kernels) {
  register_graph(ops, kernels);
  register_chain(ops, kernels);
  register_unary(ops, kernels);
  register_binary(ops, kernels);
  register_compare(ops, kernels);
  register_cast(ops, kernels);
  register_reduce(ops, kernels);
  register_shape(ops, kernels);
  register_array(ops, kernels);
  register_concat(ops, kernels);
  register_slice(ops, kernels);
  register_gather(ops, kernels);
  register_matmul(ops, kernels);
  register_bias(ops, kernels);
  register_conv(ops, kernels);
  register_pool(ops, kernels);
  register_softmax(ops, kernels);
  register_random(ops, kernels);
  register_variable(ops, kernels);
  register_optimizer(ops, kernels);
  register_queue(ops, kernels);
  register_accumulator(ops, kernels);
  register_sendrecv(ops, kernels);
  register_commit(ops, kernels);
}

}  // namespace dtg::ops
