// Hints for products, convolutions, pooling and the losses: sizes that fit each other.
#include "random/hints.h"

namespace dtg::random {
namespace {

Shape swapped(const Shape& shape, bool swap, int64_t last_but_one, int64_t last) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end() - 2);
  dims.push_back(swap ? last : last_but_one);
  dims.push_back(swap ? last_but_one : last);
  return with_dims(dims);
}

void product(Ask& a) {
  const bool batch = a.op.name() != "MatMul";
  const std::string_view left = batch ? "x" : "a", right = batch ? "y" : "b";
  const char* const flags[] = {batch ? "adj_x" : "transpose_a", batch ? "adj_y" : "transpose_b"};
  const bool ta = a.w.draw.chance(40), tb = a.w.draw.chance(40);
  a.set(flags[0], ta);
  a.set(flags[1], tb);
  for (const char* flag : {"grad_a", "grad_b", "grad_x", "grad_y"}) {
    if (a.op.find_attr(flag)) a.set(flag, false);
  }
  if (a.op.name() == "BatchMatMulV3") {
    const DType dtype = a.type("Ta");
    a.set("Tb", dtype);
    a.set("Tout", dtype);
  }
  const Shape shape = a.w.tensor(a.data(left, 2, batch ? 4 : 2)).shape();
  const int64_t inner = shape.dim(shape.rank() - (ta ? 2 : 1));
  const int64_t columns = a.w.draw.chance(20) ? 1 : a.w.draw.between(1, 9);
  a.put(right, a.w.wanted(a.dtype(right), swapped(shape, tb, inner, columns)));
}

void bias_add(Ask& a) {
  const Shape shape = a.w.tensor(a.data("value", 2, 4)).shape();
  const bool channels_first = a.op.find_attr("data_format") && a.w.draw.chance(25);
  if (a.op.find_attr("data_format")) a.set("data_format", channels_first ? "NCHW" : "NHWC");
  a.put("bias", a.w.wanted(a.type("T"), with_dims({shape.dim(channels_first ? 1 : shape.rank() - 1)})));
}

// A window over an image, and what comes out of it.
struct Window {
  std::vector<int64_t> image, filter, out;
};

Window window(Ask& a, bool pooling) {
  Draw& draw = a.w.draw;
  const bool same = draw.chance(50), first = draw.chance(15);
  const int64_t kh = draw.between(1, 3), kw = draw.between(1, 3), s = draw.between(1, 2);
  const int64_t n = draw.between(1, 2), h = draw.between(3, 5), w = draw.between(3, 5), c = draw.between(1, 3),
                o = pooling ? c : draw.between(1, 4);
  const auto size = [&](int64_t dim, int64_t k) { return same ? (dim + s - 1) / s : (dim - k + s) / s; };
  const auto order = [&](int64_t y, int64_t x, int64_t ch, int64_t batch) {
    return first ? std::vector<int64_t>{batch, ch, y, x} : std::vector<int64_t>{batch, y, x, ch};
  };
  a.set("strides", order(s, s, 1, 1));
  a.set("padding", same ? "SAME" : "VALID");
  a.set("data_format", first ? "NCHW" : "NHWC");
  if (pooling) a.set("ksize", order(kh, kw, 1, 1));
  if (a.op.find_attr("dilations")) a.set("dilations", std::vector<int64_t>{1, 1, 1, 1});
  if (a.op.find_attr("explicit_paddings")) a.set("explicit_paddings", std::vector<int64_t>{});
  return {order(h, w, c, n), {kh, kw, c, o}, order(size(h, kh), size(w, kw), o, n)};
}

void conv(Ask& a) {
  const Window dims = window(a, false);
  const DType dtype = a.type("T");
  for (const ArgDef& arg : a.op.inputs()) {
    const std::string& name = arg.name;
    if (name == "input_sizes") a.numbers(name, dims.image);
    else if (name == "filter_sizes") a.numbers(name, dims.filter);
    else a.put(name, a.w.wanted(dtype, with_dims(name == "input" ? dims.image : name == "filter" ? dims.filter : dims.out)));
  }
}

void pool(Ask& a) {
  const Window dims = window(a, true);
  const DType dtype = a.type("T");
  for (const ArgDef& arg : a.op.inputs()) {
    const std::string& name = arg.name;
    if (name == "orig_input_shape") a.numbers(name, dims.image);
    else if (name == "orig_output") a.put(name, a.w.wanted(dtype, with_dims(dims.out)));
    else if (name == "grad") a.put(name, a.w.wanted(dtype, with_dims(a.op.name() == "MaxPoolGradGrad" ? dims.image : dims.out)));
    else a.put(name, a.w.wanted(dtype, with_dims(dims.image)));
  }
}

void entropy(Ask& a) {
  const Shape shape = a.w.tensor(a.data("features", 2, 2)).shape();
  a.put("labels", a.w.wanted(a.type("T"), shape));
}

void sparse_entropy(Ask& a) {
  const Shape shape = a.w.tensor(a.data("features", 2, 2)).shape();
  a.numbers("labels", indices(a.w.draw, shape.dim(0), shape.dim(1)));
}

constexpr HintRow kRows[] = {
    {"AvgPool", pool},
    {"AvgPoolGrad", pool},
    {"BatchMatMul", product},
    {"BatchMatMulV2", product},
    {"BatchMatMulV3", product},
    {"BiasAdd", bias_add},
    {"BiasAddV1", bias_add},
    {"Conv2D", conv},
    {"Conv2DBackpropFilter", conv},
    {"Conv2DBackpropInput", conv},
    {"MatMul", product},
    {"MaxPool", pool},
    {"MaxPoolGrad", pool},
    {"MaxPoolGradGrad", pool},
    {"SoftmaxCrossEntropyWithLogits", entropy},
    {"SparseSoftmaxCrossEntropyWithLogits", sparse_entropy},
};

}  // namespace

std::span<const HintRow> window_hints() { return kRows; }

}  // namespace dtg::random
