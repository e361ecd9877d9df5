// The rules. Bias and activation are done while a product is still in the cache; the gradients of pooling and of the Relu before it
// in one pass.
#include "ops/fuse.h"

#include <string>
#include <vector>

#include "ops/chain.h"

namespace dtg::ops {
namespace {

// What _FusedConv2D computes: NHWC, one group of channels, and no taps so far apart that the image lies between them.
bool is_plain_conv(const Rewriter& r, uint32_t n) {
  const PartialShape& image = r.info(r.operand(n, 0)).shape;
  const PartialShape& filter = r.info(r.operand(n, 1)).shape;
  const auto& dilations = r.node(n).attr<std::vector<int64_t>>("dilations");
  for (int axis : {1, 2}) {
    if (dilations[static_cast<size_t>(axis)] > 1 && image.rank() == 4 && image.dim(axis) < dilations[static_cast<size_t>(axis)])
      return false;
  }
  return r.node(n).attr<std::string>("data_format") == "NHWC" && image.rank() == 4 && filter.rank() == 4 && image.dim(3) == filter.dim(2);
}

// `last` is the BiasAdd itself or the Relu after it.
bool fuse_product(Rewriter& r, uint32_t bias, uint32_t last) {
  if (r.node(bias).attr<std::string>("data_format") != "NHWC" || r.info(r.result(last, 0)).dtype != DType::f32) return false;
  const uint32_t product = r.sole_producer(r.operand(bias, 0), bias);
  if (product == Rewriter::kNobody) return false;
  const std::string& name = r.node(product).op->name();
  const bool conv = name == "Conv2D";
  if (!conv && name != "MatMul") return false;
  if (conv && !is_plain_conv(r, product)) return false;
  const OpDef* fused = r.ops().find(conv ? "_FusedConv2D" : "_FusedMatMul");
  if (!fused) return false;
  std::vector<Attr> attrs = r.attrs_for(*fused, product);
  std::erase_if(attrs, [](const Attr& attr) { return attr.name == "activation"; });
  attrs.push_back({"activation", AttrValue(last != bias ? "Relu" : "")});
  const uint32_t operands[] = {r.operand(product, 0), r.operand(product, 1), r.operand(bias, 1)};
  const uint32_t absorbed[] = {product, bias};
  r.replace(last, *fused, operands, std::move(attrs), std::span(absorbed).first(last != bias ? 2 : 1));
  return true;
}

}  // namespace

bool fuse_bias_add(Rewriter& r, uint32_t n) {
  const uint32_t next = r.sole_reader(r.result(n, 0));
  // The Relu takes it along.
  if (next != Rewriter::kNobody && r.node(next).op->name() == "Relu" && r.sole_producer(r.result(n, 0), next) == n) return false;
  return fuse_product(r, n, n);
}

bool fuse_relu(Rewriter& r, uint32_t n) {
  const uint32_t bias = r.sole_producer(r.operand(n, 0), n);
  return bias != Rewriter::kNobody && r.node(bias).op->name() == "BiasAdd" && fuse_product(r, bias, n);
}

// Where a window's maximum is not above zero, nothing flows.
bool fuse_relu_grad(Rewriter& r, uint32_t n) {
  const uint32_t pool = r.sole_producer(r.operand(n, 0), n);
  if (pool == Rewriter::kNobody || r.node(pool).op->name() != "MaxPoolGrad" || r.operand(pool, 0) != r.operand(n, 1)) return false;
  const OpDef* fused = r.ops().find("_MaxPoolGradRelu");
  if (!fused || r.info(r.result(n, 0)).dtype != DType::f32) return false;
  const uint32_t operands[] = {r.operand(pool, 0), r.operand(pool, 1), r.operand(pool, 2)};
  const uint32_t absorbed[] = {pool};
  r.replace(n, *fused, operands, r.attrs_for(*fused, pool), absorbed);
  return true;
}

// The chain's result is reduced while it is in the cache, and never written.
bool fuse_reduction(Rewriter& r, uint32_t n) {
  const uint32_t chain = r.sole_producer(r.operand(n, 0), n);
  if (chain == Rewriter::kNobody || r.node(chain).op->role() != Role::chain || !r.node(chain).attr<std::string>("reduce").empty())
    return false;
  const Tensor axes = r.known(r.operand(n, 1));
  const auto space = r.info(r.operand(n, 0)).shape.to_shape();
  if (!axes.valid() || !space.ok() || r.info(r.operand(n, 0)).dtype != r.info(r.result(n, 0)).dtype) return false;
  const int rank = space.value().rank();
  uint32_t mask = 0;
  for (int64_t i = 0; i < axes.count(); ++i) {
    const int64_t axis = axes.int_at(i) < 0 ? axes.int_at(i) + rank : axes.int_at(i);
    if (axis < 0 || axis >= rank || (mask >> axis & 1u)) return false;  // the kernel says what is wrong with it
    mask |= 1u << axis;
  }
  const std::string& reduction = r.node(n).op->name();
  if (!chain_can_reduce(reduction, r.info(r.operand(n, 0)).dtype, space.value(), mask)) return false;
  std::vector<int64_t> reduced;
  for (int d = 0; d < rank; ++d) {
    if (mask >> d & 1u) reduced.push_back(d);
  }
  const OpDef& op = *r.node(chain).op;
  std::vector<Attr> attrs = r.attrs_for(op, chain);
  for (Attr& attr : attrs) {
    if (attr.name == "reduce") attr.value = AttrValue(reduction);
    if (attr.name == "axes") attr.value = AttrValue(reduced);
    if (attr.name == "keep_dims") attr.value = AttrValue(r.node(n).attr<bool>("keep_dims"));
  }
  std::vector<uint32_t> operands;
  for (size_t i = 0; i < r.operand_count(chain); ++i) operands.push_back(r.operand(chain, i));
  const uint32_t absorbed[] = {chain};
  r.replace(n, op, operands, std::move(attrs), absorbed);
  return true;
}

}  // namespace dtg::ops
