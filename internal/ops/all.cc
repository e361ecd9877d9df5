// Every op family, by name.
#include "ops/all.h"

#include "ops/step_clocks.h"
#include "ops/step_members.h"
#include "ops/step_tokens.h"

namespace dtg::ops {

namespace {

// What only training adds to a graph.
[[gnu::cold]] void register_of_training(OpTable& ops, KernelTable& kernels) {
  register_loss_check(ops, kernels);
  register_remedy(ops, kernels);
  register_step_tokens(ops, kernels);
  register_step_clocks(ops, kernels);
  register_step_members(ops, kernels);
  register_contribution(ops, kernels);
}

void register_maths(OpTable& ops, KernelTable& kernels) {
  register_diag(ops, kernels);
  register_linalg(ops, kernels);
  register_einsum(ops, kernels);
  register_fake_quant(ops, kernels);
  register_quantize(ops, kernels);
  register_sets(ops, kernels);
  register_special(ops, kernels);
  register_sequence(ops, kernels);
  register_bits(ops, kernels);
  register_small_math(ops, kernels);
  register_bincount(ops, kernels);
}

}  // namespace

void register_all(OpTable& ops, KernelTable& kernels) {
  register_graph(ops, kernels);
  register_of_training(ops, kernels);
  register_control(ops, kernels);
  register_list(ops, kernels);
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
  register_attention(ops, kernels);
  register_norm(ops, kernels);
  register_image(ops, kernels);
  register_rnn(ops, kernels);
  register_partition(ops, kernels);
  register_top_k(ops, kernels);
  register_search(ops, kernels);
  register_maths(ops, kernels);
  register_checks(ops, kernels);
  register_print(ops, kernels);
  register_random(ops, kernels);
  register_random_stateful(ops, kernels);
  register_sampler(ops, kernels);
  register_variable(ops, kernels);
  register_optimizer(ops, kernels);
  register_queue(ops, kernels);
  register_accumulator(ops, kernels);
  register_table(ops, kernels);
  register_stack(ops, kernels);
  register_tensor_array(ops, kernels);
  register_sparse_layout(ops, kernels);
  register_sparse_dense(ops, kernels);
  register_sparse_segment(ops, kernels);
  register_strings(ops, kernels);
  register_collective(ops, kernels);
  register_sendrecv(ops, kernels);
  register_copy(ops, kernels);
  register_commit(ops, kernels);
}

}  // namespace dtg::ops
