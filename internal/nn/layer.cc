// Called by the thread that builds the model.
#include "nn/layer.h"
#include "base/spelling.h"
#include "nn/scope.h"

#include <string>

namespace dtg {

const char* padding_name(Padding padding) { return padding == Padding::same ? "SAME" : "VALID"; }

std::string described(const Graph& graph, Value x) {
  return "\"" + graph.value_name(x) + "\" of " + dtype_name(graph.info(x).dtype) + graph.info(x).shape.text();
}

// The input of a layer: a floating-point value whose last dimension is known.
Result<int64_t> channels_of(const Model& model, Value x, const char* layer, int rank_min, int rank_max) {
  DTG_TRY(model.graph().check(x).with_context(layer));
  const ValueInfo& info = model.graph().info(x);
  const int rank = info.shape.rank();
  if (!dtype_is_floating(info.dtype)) {
    return invalid_argument("%s: the input is %s; cast it to a floating-point type first", layer, described(model, x).c_str());
  }
  if (!info.shape.has_rank() || rank < rank_min || rank > rank_max || info.shape.dim(rank - 1) < 0) {
    const std::string ranks = rank_min == rank_max ? format("rank %d", rank_min) : format("a rank of %d to %d", rank_min, rank_max);
    return invalid_argument("%s: the input is %s; %s and a known last dimension are needed", layer, described(model, x).c_str(),
                            ranks.c_str());
  }
  return info.shape.dim(rank - 1);
}

// A variable of the layer's own, or that of the layer whose weights it shares.
Result<NamedVariable> variable_of(Model& model, std::string_view weights_of, const VariableSpec& spec) {
  if (weights_of.empty()) return model.add_variable(spec);
  const std::string name = std::string(weights_of) + "/" + std::string(spec.name);
  const NamedVariable* const there = model.find(name);
  if (!there) {
    return not_found("a layer with the weights of \"%s\": the model has no variable \"%s\"; give the full name of the layer that was made "
                     "first, scopes included: %s",
                     std::string(weights_of).c_str(), name.c_str(), names_text(name, model.variables(), &NamedVariable::name).c_str());
  }
  if (there->dtype == spec.dtype && there->shape == spec.shape) return model.here(*there);
  return invalid_argument("a layer with the weights of \"%s\": \"%s\" is %s%s, and %s%s is needed for this input",
                          std::string(weights_of).c_str(), name.c_str(), dtype_name(there->dtype), there->shape.text().c_str(),
                          dtype_name(spec.dtype), spec.shape.text().c_str());
}

Value look_up(Model& model, Build& build, const NamedVariable& table, Value ids) {
  if (model.is_inside()) return build.op("GatherV2", {table.read, ids, build.integer(0)});
  const ColocationScope beside(model.graph(), table.handle.node());
  return build.op("ResourceGather", {table.handle, ids}, {{"dtype", table.dtype}});
}

Value add_bias(Model& model, Build& build, Value y, int64_t units, const Initializer& initializer, std::string_view weights_of) {
  auto bias = variable_of(model, weights_of,
                          {.name = "bias", .dtype = build.info(y).dtype, .shape = Shape::of({units}), .initializer = initializer});
  if (!bias.ok()) build.fail(bias.status());
  return bias.ok() ? build.op("BiasAdd", {y, bias.value().read}) : Value();
}

Value dimension(Build& build, Value shape, int64_t axis) {
  return build.op("StridedSlice", {shape, build.ints({axis}), build.ints({axis + 1}), build.ints({1})}, {{"shrink_axis_mask", 1}});
}

Value counting(Build& build, Value below) { return build.op("Range", {build.integer(0), below, build.integer(1)}); }

// Each is looked up among those that are possible, which names one that is not.
Value checked_lengths(Build& build, Value lengths, Value limit) {
  const Value possible = counting(build, build.add(limit, build.integer(1)));
  if (!build.ok()) return {};
  const std::string name = build.graph().unique_name("lengths");
  return build.op("GatherV2", {possible, lengths, build.integer(0)}, {{"_lengths", true}}, name.substr(name.rfind('/') + 1));
}

Status check_one_each(const Model& model, const char* layer, const char* said, Value each, Value x) {
  const PartialShape &of = model.graph().info(each).shape, &batch = model.graph().info(x).shape;
  if (of.rank() < 1 || batch.rank() < 1 || of.dim(0) < 0 || batch.dim(0) < 0 || of.dim(0) == batch.dim(0)) return {};
  return invalid_argument("%s: %s %s, and %s has %lld examples; one for each of them is needed", layer, said,
                          described(model, each).c_str(), described(model, x).c_str(), static_cast<long long>(batch.dim(0)));
}

Value shaped(Build& build, Value x, const PartialShape& shape) {
  if (!build.ok() || build.info(x).shape == shape) return x;
  return build.op("EnsureShape", {x}, {{"shape", shape}});
}

// As a matrix of rows, and back.
Value project(Build& build, Value x, Value kernel, int64_t in, int64_t units) {
  PartialShape shape = build.info(x).shape;
  const int rank = shape.rank();
  if (rank == 2) return build.op("MatMul", {x, kernel});
  const Value rows = build.reshape(x, build.ints({-1, in}));
  const Value product = build.op("MatMul", {rows, kernel});
  const Value outer = build.op("StridedSlice", {build.shape(x), build.ints({0}), build.ints({-1}), build.ints({1})}, {{"begin_mask", 1}});
  const Value y = build.reshape(product, build.op("ConcatV2", {outer, build.ints({units}), build.integer(0)}));
  shape.set_dim(rank - 1, units);
  return shaped(build, y, shape);
}

// A window that slides along a dimension (negative: not known), before anything is added for it.
Status check_window(const char* layer, int64_t size, int64_t window, int64_t stride, int64_t dilation, Padding padding) {
  if (window < 1 || stride < 1 || dilation < 1) {
    return invalid_argument("%s: a window of %lld, a stride of %lld and a dilation of %lld; at least 1 of each is needed", layer,
                            static_cast<long long>(window), static_cast<long long>(stride), static_cast<long long>(dilation));
  }
  int64_t reach = 0;
  const bool beyond = __builtin_mul_overflow(window - 1, dilation, &reach) || reach >= (int64_t{1} << 40);
  if (beyond || (padding == Padding::valid && size >= 0 && reach >= size)) {
    return invalid_argument("%s: a window of %lld with a dilation of %lld does not fit into %lld", layer, static_cast<long long>(window),
                            static_cast<long long>(dilation), static_cast<long long>(size));
  }
  return {};
}

}  // namespace dtg
