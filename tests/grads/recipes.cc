// The recipes, family by family; see recipe.h.
#include "recipe.h"

namespace dtg::grads {
namespace {

// Away from the ends of the domain, where the slope of the slope would drown the difference.
void add_unary(std::vector<Recipe>& list) {
  for (const char* op :
       {"Abs",        "Asinh", "Atan",  "Cos",  "Cosh",    "Elu",  "Erf", "Erfc", "Exp",      "Expm1",    "Inv",    "LeakyRelu", "Neg",
        "Reciprocal", "Relu",  "Relu6", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Square", "Tanh"}) {
    list.push_back({op, {num({2, 3})}, {}});
  }
  for (const char* op : {"Acos", "Asin", "Atanh"}) list.push_back({op, {num({5}, -0.8, 0.8)}, {}});
  for (const char* op : {"Log", "Log1p", "Rsqrt", "Sqrt"}) list.push_back({op, {num({5}, 0.3, 3)}, {}});
  list.push_back({"Acosh", {num({5}, 1.4, 3)}, {}});
  list.push_back({"Tan", {num({5}, -1, 1)}, {}});
  for (const char* op : {"Identity", "L2Loss", "PreventGradient", "BiasAddGrad"}) list.push_back({op, {num({2, 3})}, {}});
  list.push_back({"LeakyRelu", {num({4})}, {set_real("alpha", 0.4)}});
  list.push_back({"IdentityN", {num({2}), num({3})}, {}});
  list.push_back({"PlaceholderWithDefault", {num({2, 3})}, {set_shape("shape", {-1, 3})}});
  list.push_back({"EnsureShape", {num({2, 3})}, {set_shape("shape", {-1, 3})}});
  list.push_back({"Cast", {num({4})}, {set_f64("DstT")}});
  for (const char* op : {"Softmax", "LogSoftmax"}) list.push_back({op, {num({3, 4})}, {}});
}

// The inner derivatives, themselves differentiable.
void add_unary_gradients(std::vector<Recipe>& list) {
  for (const char* op : {"InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"}) {
    list.push_back({op, {num({5}, 0.2, 0.9), num({5})}, {}});
  }
  for (const char* op : {"EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"}) {
    list.push_back({op, {num({6}), num({6}, -0.9, 0.9)}, {}});
  }
}

void add_binary(std::vector<Recipe>& list) {
  for (const char* op : {"Add", "AddV2", "Maximum", "Minimum", "Mul", "MulNoNan", "SquaredDifference", "Sub"}) {
    list.push_back({op, {num({2, 3}), num({3})}, {}});
    list.push_back({op, {num({2, 1}), num({1, 3})}, {}});
    list.push_back({op, {num({}), num({4})}, {}});
  }
  for (const char* op : {"Div", "DivNoNan", "RealDiv"}) list.push_back({op, {num({2, 3}), num({3}, 0.5, 2)}, {}});
  for (const char* op : {"Atan2", "Pow", "Xdivy", "Xlogy", "Xlog1py"}) {
    list.push_back({op, {num({2, 1}, 0.4, 2), num({1, 3}, 0.4, 2)}, {}});
  }
  list.push_back({"FloorMod", {exact({3}, {5.3, -4.1, 2.7}), exact({3}, {2, 3, -2})}, {}});
  list.push_back({"AddN", {num({2, 2}), num({2, 2}), num({2, 2})}, {}});
  list.push_back({"Select", {flags({4}, {1, 0, 0, 1}), num({4}), num({4})}, {}});
  list.push_back({"SelectV2", {flags({2, 1}, {1, 0}), num({3}), num({2, 3})}, {}});
}

void add_reductions(std::vector<Recipe>& list) {
  for (const char* op : {"Max", "Mean", "Min", "Prod", "Sum"}) {
    list.push_back({op, {num({2, 3, 2}), ints({1})}, {}});
    list.push_back({op, {num({2, 3}), ints({-1, 0})}, {set_flag("keep_dims")}});
  }
  for (const char* op : {"Cumprod", "Cumsum"}) {
    list.push_back({op, {num({2, 4}), integer(1)}, {}});
    list.push_back({op, {num({3, 2}), integer(0)}, {set_flag("exclusive"), set_flag("reverse")}});
  }
  list.push_back({"SegmentSum", {num({4, 2}), ints({0, 0, 1, 2})}, {}});
  list.push_back({"UnsortedSegmentSum", {num({4, 2}), ints({2, 0, 2, -1}), integer(3)}, {}});
}

void add_shapes(std::vector<Recipe>& list) {
  list.push_back({"BroadcastTo", {num({2, 1}), ints({3, 2, 2})}, {}});
  list.push_back({"Concat", {integer(1), num({2, 1}), num({2, 3})}, {}});
  list.push_back({"ConcatV2", {num({2, 1}), num({2, 3}), integer(-1)}, {}});
  list.push_back({"ExpandDims", {num({2, 3}), integer(1)}, {}});
  list.push_back({"Fill", {ints({2, 3}), num({})}, {}});
  list.push_back({"Pack", {num({2}), num({2})}, {set("axis", 1)}});
  list.push_back({"Pad", {num({2, 2}), ints({2, 2}, {1, 0, 0, 2})}, {}});
  // TensorFlow gives no gradient to the constant.
  list.push_back({"PadV2", {num({2, 2}), ints({2, 2}, {1, 0, 0, 2}), num({})}, {}, -1, {2}});
  list.push_back({"Reshape", {num({2, 3}), ints({3, -1})}, {}});
  list.push_back({"ReverseV2", {num({2, 3}), ints({1})}, {}});
  list.push_back({"Slice", {num({3, 4}), ints({1, 0}), ints({2, 3})}, {}});
  list.push_back({"Split", {integer(1), num({2, 4})}, {set("num_split", 2)}});
  list.push_back({"SplitV", {num({5}), ints({2, 3}), integer(0)}, {set("num_split", 2)}});
  list.push_back({"Squeeze", {num({2, 1, 3})}, {}});
  list.push_back({"StridedSlice", {num({4, 3}), ints({3, 0}), ints({0, 2}), ints({-2, 1})}, {}});
  list.push_back({"StridedSlice", {num({3, 2}), ints({1}), ints({2}), ints({1})}, {set("shrink_axis_mask", 1)}});
  list.push_back({"StridedSliceGrad", {ints({4, 3}), ints({3, 0}), ints({0, 2}), ints({-2, 1}), num({2, 2})}, {}});
  list.push_back({"Tile", {num({2, 3}), ints({3, 1})}, {}});
  for (const char* op : {"Transpose", "ConjugateTranspose"}) list.push_back({op, {num({2, 3, 2}), ints({2, 0, 1})}, {}});
  list.push_back({"Unpack", {num({2, 3})}, {set("num", 3), set("axis", 1)}});
}

void add_gathers(std::vector<Recipe>& list) {
  list.push_back({"Gather", {num({4, 2}), ints({3, 0, 3})}, {}});
  list.push_back({"GatherNd", {num({3, 2}), ints({2, 2}, {2, 1, 0, 0})}, {}});
  list.push_back({"GatherV2", {num({4, 2}), ints({3, 0, 3}), integer(0)}, {}});
  list.push_back({"GatherV2", {num({2, 4}), ints({3, 0, 3}), integer(1)}, {}});
  list.push_back({"GatherV2", {num({2, 4}), ints({2, 2}, {3, 0, 1, 1}), integer(1)}, {set("batch_dims", 1)}});
  list.push_back({"ScatterNd", {ints({3, 1}, {1, 3, 1}), num({3, 2}), ints({4, 2})}, {}});
  list.push_back({"ReadVariableOp", {var({2, 3})}, {set_f64("dtype")}});
  list.push_back({"ResourceGather", {var({4, 2}), ints({3, 0, 3})}, {set_f64("dtype")}});
  list.push_back({"ResourceGatherNd", {var({3, 2}), ints({2, 2}, {2, 1, 2, 1})}, {set_f64("dtype")}});
}

void add_products(std::vector<Recipe>& list) {
  list.push_back({"MatMul", {num({2, 3}), num({3, 2})}, {}});
  list.push_back({"MatMul", {num({3, 2}), num({4, 3})}, {set_flag("transpose_a"), set_flag("transpose_b")}});
  for (const char* op : {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}) {
    const bool typed = std::string(op) == "BatchMatMulV3";
    const std::vector<Setting> type = typed ? std::vector<Setting>{set_f64("Tout")} : std::vector<Setting>();
    list.push_back({op, {num({2, 2, 3}), num({2, 3, 2})}, type});
    list.push_back({op, {num({2, 3, 2}), num({2, 2, 3})}, type});
    list.back().settings.push_back(set_flag("adj_x"));
    list.back().settings.push_back(set_flag("adj_y"));
  }
  list.push_back({"BatchMatMulV2", {num({2, 3}), num({2, 3, 2})}, {}});
  for (const char* op : {"BiasAdd", "BiasAddV1"}) list.push_back({op, {num({2, 3}), num({3})}, {}});
  list.push_back({"BiasAdd", {num({2, 3, 2}), num({3})}, {set_text("data_format", "NCHW")}});
  // Labels are taken to be distributions: the gradient is that of the loss only where they add up to 1.
  const Input labels = exact({2, 4}, {0.1, 0.2, 0.3, 0.4, 0.7, 0.1, 0.1, 0.1}), shared = exact({1, 4}, {0.4, 0.3, 0.2, 0.1});
  list.push_back({"SoftmaxCrossEntropyWithLogits", {num({2, 4}), labels}, {}, 1, {}});
  list.push_back({"SoftmaxCrossEntropyWithLogits", {num({2, 4}), shared}, {}, 1, {}});
  list.push_back({"SparseSoftmaxCrossEntropyWithLogits", {num({3, 4}), ints({2, 0, 3})}, {}, 1, {}});
}

// A member that is alone; several are in tests/session/collectives_test.cc.
void add_collectives(std::vector<Recipe>& list) {
  const std::vector<Input> inputs = {num({4, 3}), integer(1), integer(9), integer(5)};
  for (const char* op : {"CollectiveReduceV2", "CollectiveReduceScatterV2"}) {
    for (const char* last : {"Id", "Div"}) list.push_back({op, inputs, {set_text("merge_op", "Add"), set_text("final_op", last)}});
  }
  for (const char* op : {"CollectiveGatherV2", "CollectiveAllToAllV2"}) list.push_back({op, inputs, {}});
}

void add_windows(std::vector<Recipe>& list) {
  const std::vector<Setting> step = {set_ints("strides", {1, 2, 1, 1}), set_text("padding", "SAME")};
  const Input image = num({2, 4, 3, 2}), filter = num({2, 3, 2, 2}), out = num({2, 2, 3, 2});
  list.push_back({"Conv2D", {image, filter}, step});
  list.push_back({"Conv2D", {image, filter}, {set_ints("strides", {1, 1, 1, 1}), set_text("padding", "VALID")}});
  list.push_back({"Conv2DBackpropFilter", {image, ints({2, 3, 2, 2}), out}, step});
  list.push_back({"Conv2DBackpropInput", {ints({2, 4, 3, 2}), filter, out}, step});
  const std::vector<Setting> window = {set_ints("ksize", {1, 2, 2, 1}), set_ints("strides", {1, 2, 1, 1}), set_text("padding", "SAME")};
  const Input pooled = num({1, 2, 3, 1});
  for (const char* op : {"AvgPool", "MaxPool"}) list.push_back({op, {num({1, 4, 3, 1})}, window});
  list.push_back({"AvgPoolGrad", {ints({1, 4, 3, 1}), pooled}, window});
  // The largest elements of each window are known here, so that input and output of the pooling agree.
  const std::vector<Setting> halves = {set_ints("ksize", {1, 2, 1, 1}), set_ints("strides", {1, 2, 1, 1}), set_text("padding", "VALID")};
  const Input before = exact({1, 4, 2, 1}, {1, 5, 4, 2, 7, 3, 6, 8}), after = exact({1, 2, 2, 1}, {4, 5, 7, 8});
  list.push_back({"MaxPoolGrad", {before, after, num({1, 2, 2, 1})}, halves, -1, {0, 1}});
  list.push_back({"MaxPoolGradGrad", {before, after, num({1, 4, 2, 1})}, halves, -1, {0, 1}});
}

void add_sparse(std::vector<Recipe>& list) {
  const Input places = longs({3, 2}, {2, 0, 0, 3, 2, 1}), shape = longs({2}, {4, 5});
  list.push_back({"SparseReorder", {places, num({3}), shape}, {}});
  list.push_back({"SparseFillEmptyRows", {places, num({3}), shape, num({})}, {}});
  list.push_back({"SparseToDense", {longs({3, 2}, {0, 3, 2, 0, 2, 1}), shape, num({3}), num({})}, {}});
  list.push_back({"SparseToDense", {longs({2}, {1, 4}), longs({1}, {6}), num({}), num({})}, {}});
  list.push_back({"SparseTensorDenseMatMul", {places, num({3}), shape, num({5, 2})}, {}});
  list.push_back({"SparseTensorDenseMatMul", {places, num({3}), shape, num({2, 4})}, {set_flag("adjoint_a"), set_flag("adjoint_b")}});
  const Input indices = ints({3, 0, 3, 1, 2}), segments = ints({0, 0, 1, 3, 3});
  for (const char* op : {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    const std::string counted = std::string(op) + "WithNumSegments";
    list.push_back({op, {num({4, 2}), indices, segments}, {}});
    list.push_back({op, {num({4, 2}), indices, segments}, {set_flag("sparse_gradient")}});
    list.push_back({counted, {num({4, 2}), indices, segments, integer(5)}, {}});
    list.push_back({std::string(op) + "Grad", {num({4, 2}), indices, segments, integer(5)}, {}});
  }
}

// Extremes are unique here, and nothing is near 0 where a product is divided.
void add_segments(std::vector<Recipe>& list) {
  for (const char* op : {"SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd"}) {
    list.push_back({op, {num({4, 2}), ints({0, 0, 1, 2})}, {}});
  }
  for (const char* op : {"UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"}) {
    // Each segment has a row: the extreme of none is so large that nothing else would count.
    list.push_back({op, {num({5, 2}), ints({2, 0, 2, -1, 1}), integer(3)}, {}});
  }
  list.push_back({"DynamicPartition", {num({4, 2}), ints({1, 0, 1, 1})}, {set("num_partitions", 3)}});
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    list.push_back({op, {ints({0, 3}), ints({2, 1}), num({2, 2}), num({2, 2})}, {set("N", 2)}});
  }
  list.push_back({"TopK", {num({2, 5})}, {set("k", 2)}});
  list.push_back({"TopKV2", {num({2, 5}), integer(3)}, {}});
  list.push_back({"NthElement", {num({2, 5}), integer(1)}, {}});
  const Input places = ints({2, 1}, {2, 0});
  for (const char* op :
       {"ScatterNdNonAliasingAdd", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate"}) {
    list.push_back({op, {num({4, 2}), places, num({2, 2})}, {}});
  }
  list.push_back({"TensorStridedSliceUpdate", {num({4, 3}), ints({3, 0}), ints({0, 2}), ints({-2, 1}), num({2, 2})}, {}});
  list.push_back({"TensorStridedSliceUpdate", {num({4, 3}), ints({1}), ints({3}), ints({1}), num({3})}, {}});
}

// In the middle of each domain, where the series behind the functions are smooth.
void add_special(std::vector<Recipe>& list) {
  for (const char* op : {"BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1"})
    list.push_back({op, {num({5}, 0.5, 4)}, {}});
  for (const char* op : {"BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1"})
    list.push_back({op, {num({5}, 0.6, 4)}, {}});
  for (const char* op : {"Digamma", "Lgamma"}) list.push_back({op, {num({5}, 0.5, 4)}, {}});
  list.push_back({"Erfinv", {num({5}, -0.8, 0.8)}, {}});
  list.push_back({"Ndtri", {num({5}, 0.2, 0.8)}, {}});
  for (const char* op : {"Igamma", "Igammac"}) list.push_back({op, {num({2, 1}, 0.6, 3), num({3}, 0.6, 3)}, {}});
  // TensorFlow gives no gradient to the parameters.
  list.push_back({"Betainc", {num({3}, 0.8, 2), num({3}, 0.8, 2), num({3}, 0.2, 0.8)}, {}, -1, {0, 1}});
  list.push_back({"Polygamma", {exact({3}, {1, 2, 3}), num({3}, 0.8, 3)}, {}, -1, {0}});
  list.push_back({"Zeta", {num({3}, 1.6, 4), num({3}, 0.8, 3)}, {}, -1, {0}});
}

void add_more_maths(std::vector<Recipe>& list) {
  list.push_back({"AccumulateNV2", {num({2, 2}), num({2, 2}), num({2, 2})}, {set_shape("shape", {2, 2})}});
  for (const char* op : {"CheckNumerics", "CheckNumericsV2"}) list.push_back({op, {num({2, 3})}, {set_text("message", "probe")}});
  list.push_back({"ClipByValue", {exact({4}, {-2, -0.4, 0.3, 2}), exact({}, {-1}), exact({}, {1})}, {}});
  list.push_back({"Cross", {num({2, 3}), num({2, 3})}, {}});
  list.push_back({"CumulativeLogsumexp", {num({2, 4}), integer(1)}, {}});
  list.push_back({"CumulativeLogsumexp", {num({3, 2}), integer(0)}, {set_flag("reverse")}});
  list.push_back({"EuclideanNorm", {num({2, 3, 2}), ints({1})}, {}});
  list.push_back({"EuclideanNorm", {num({2, 3}), ints({-1, 0})}, {set_flag("keep_dims")}});
  list.push_back({"NextAfter", {num({3}), num({2, 1})}, {}});
  list.push_back({"ReverseSequence", {num({2, 4}), longs({2}, {3, 2})}, {set("seq_dim", 1)}});
  list.push_back({"Roll", {num({2, 4}), ints({1, -3}), ints({0, 1})}, {}});
  for (const char* equation : {"ij,jk->ik", "...ij,...jk->...ik", "bij,kj->kbi", "ij,jk->", "ij,ki->kj"}) {
    const bool batched = equation[0] == '.' || equation[0] == 'b';
    const Input second = std::string(equation) == "ij,ki->kj"     ? num({3, 2})
                         : std::string(equation) == "bij,kj->kbi" ? num({2, 3})
                                                                  : num({3, 2});
    list.push_back({"Einsum", {batched ? num({2, 2, 3}) : num({2, 3}), second}, {set_text("equation", equation)}});
  }
  for (const char* equation : {"ii->i", "ii->", "ij->ji", "ij->i"}) {
    list.push_back({"Einsum", {num({3, 3})}, {set_text("equation", equation)}});
  }
}

void add_diagonals(std::vector<Recipe>& list) {
  const Input zero = exact({}, {0});
  list.push_back({"Diag", {num({3})}, {}});
  list.push_back({"DiagPart", {num({2, 3, 2, 3})}, {}});
  list.push_back({"MatrixBandPart", {num({2, 3, 4}), integer(1), integer(0)}, {}});
  list.push_back({"MatrixDiag", {num({2, 3})}, {}});
  list.push_back({"MatrixDiagV2", {num({2, 3}), integer(1), integer(-1), integer(-1), zero}, {}, -1, {4}});
  list.push_back({"MatrixDiagV3", {num({2, 3}), ints({-1, 0}), integer(4), integer(3), zero}, {}, -1, {4}});
  list.push_back({"MatrixDiagPart", {num({2, 3, 4})}, {}});
  list.push_back({"MatrixDiagPartV2", {num({3, 4}), integer(1), zero}, {}, -1, {2}});
  list.push_back({"MatrixDiagPartV3", {num({3, 4}), ints({-1, 1}), zero}, {}, -1, {2}});
  list.push_back({"MatrixSetDiag", {num({2, 3, 3}), num({2, 3})}, {}});
  list.push_back({"MatrixSetDiagV2", {num({3, 4}), num({3}), integer(1)}, {}});
  // The corners are padding, to which nothing flows.
  list.push_back({"MatrixSetDiagV3", {num({3, 3}), num({2, 3}), ints({0, 1})}, {}});
}

// Far from singular, and with values of their own.
void add_linear_algebra(std::vector<Recipe>& list) {
  const Input matrix = exact({2, 2, 2}, {2, 0.5, -0.3, 1.5, -1, 0.7, 0.4, 2}), right = num({2, 2, 3});
  const Input definite = exact({3, 3}, {3, 0, 0, 0.5, 2, 0, -0.4, 0.3, 1.5});
  for (const char* op : {"MatrixDeterminant", "MatrixInverse"}) list.push_back({op, {matrix}, {}});
  list.push_back({"LogMatrixDeterminant", {matrix}, {}});
  list.push_back({"MatrixInverse", {matrix}, {set_flag("adjoint")}});
  list.push_back({"MatrixSolve", {matrix, right}, {}});
  list.push_back({"MatrixSolve", {matrix, right}, {set_flag("adjoint")}});
  list.push_back({"MatrixTriangularSolve", {matrix, right}, {}});
  list.push_back({"MatrixTriangularSolve", {exact({2, 2}, {2, 0.5, -0.3, 1.5}), right}, {set_flag("adjoint")}});
  list.push_back({"SelfAdjointEigV2", {definite}, {}});
  list.push_back({"Qr", {exact({3, 2}, {2, 0.5, -0.3, 1.5, 0.4, -1})}, {}});
  list.push_back({"Qr", {exact({2, 3}, {2, 0.5, -0.3, 1.5, 0.4, -1})}, {}});
  // The gradient is that of a symmetric matrix, while only the lower triangle is read: differences agree where there is no other.
  list.push_back({"Cholesky", {num({3, 1, 1}, 0.5, 3)}, {}});
  list.push_back({"Svd", {exact({2, 3}, {2, 0.5, -0.3, 1.5, 0.4, -1})}, {set_off("compute_uv")}});
  list.push_back({"Svd", {exact({2, 3}, {2, 0.5, -0.3, 1.5, 0.4, -1})}, {}, -1, {}, false, {}, true});
  list.push_back({"Svd", {exact({3, 2}, {2, 0.5, -0.3, 1.5, 0.4, -1})}, {set_flag("full_matrices")}, 1, {}, false, {}, true});
}

std::vector<Recipe> make() {
  std::vector<Recipe> list;
  add_unary(list);
  add_unary_gradients(list);
  add_binary(list);
  add_reductions(list);
  add_shapes(list);
  add_gathers(list);
  add_products(list);
  add_collectives(list);
  add_windows(list);
  add_image_recipes(list);
  add_sparse(list);
  add_segments(list);
  add_special(list);
  add_more_maths(list);
  add_diagonals(list);
  add_linear_algebra(list);
  return list;
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> list = make();
  return list;
}

}  // namespace dtg::grads
