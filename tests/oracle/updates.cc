// Optimizers written out as nodes; see updates.h.
#include "updates.h"

namespace dtg::oracle {
namespace {

using Values = std::vector<dtg_value>;

// What the rules share while they are written.
struct Writer {
  Program& program;
  const Json& optimizer;
  Values before;                             // nodes that all writes wait for
  std::map<std::string, dtg_value> scalars;  // constants by name
  std::map<std::string, dtg_value> powers;   // beta1_power, beta2_power: handles
};

Outcome add_node(Program& program, const std::string& op, const Values& inputs, const Values& controls, const Json& attrs, dtg_value* out) {
  Node node(op);
  for (dtg_value value : inputs) node.input(value);
  for (dtg_value value : controls) node.control(value);
  for (const auto& [name, value] : attrs.items()) node.flag(name.c_str(), value.get<bool>());
  Values outputs;
  Outcome failed = node.add(program.graph(), &outputs);
  if (!failed) *out = outputs[0];
  return failed;
}

Outcome read_variable(Program& program, dtg_value handle, dtg_dtype dtype, dtg_value* out) {
  Values outputs;
  Outcome failed = Node("ReadVariableOp").type("dtype", dtype).input(handle).add(program.graph(), &outputs);
  if (!failed) *out = outputs[0];
  return failed;
}

Outcome add_scalars(Writer& w, dtg_dtype dtype) {
  for (const auto& [name, value] : w.optimizer.at("scalars").items()) {
    if (Outcome failed = w.program.constant(make_scalar(dtype, value), &w.scalars[name])) return failed;
  }
  if (!w.scalars.count("beta1")) return std::nullopt;
  for (const std::string name : {"beta1", "beta2"}) {
    const Tensor start = make_scalar(dtype, w.optimizer.at("scalars").at(name));
    const std::vector<int64_t> scalar;
    dtg_value& handle = w.powers[name];
    if (Outcome failed = w.program.variable(name + "_power", dtype, &scalar, &handle)) return failed;
    if (Outcome failed = w.program.assign(handle, start)) return failed;
  }
  return std::nullopt;
}

Outcome add_slots(Writer& w, Parameter& parameter) {
  size_t count = 1;
  for (int64_t dim : parameter.shape) count *= static_cast<size_t>(dim);
  for (const auto& [name, start] : w.optimizer.at("slots").items()) {
    const std::vector<double> data(count, start);
    const Json filled = {{"dtype", dtg_dtype_name(parameter.dtype)}, {"shape", parameter.shape}, {"data", data}};
    std::string why;
    dtg_value& handle = parameter.slots[name];
    if (Outcome failed = w.program.variable(parameter.name + "/" + name, parameter.dtype, &parameter.shape, &handle)) return failed;
    if (Outcome failed = w.program.assign(handle, make_tensor(filled, &why))) return failed;
  }
  return std::nullopt;
}

Outcome densify(Writer& w, Parameter& parameter) {
  dtg_value dense{};
  if (Outcome failed = outcome(dtg_graph_densify(w.program.graph(), &parameter.gradient, &dense))) return failed;
  parameter.gradient = {};
  parameter.gradient.dense = dense;
  return std::nullopt;
}

// g *= clip * min(1 / norm, 1 / clip)
Outcome clip(Writer& w, std::vector<Parameter>& parameters, double limit, dtg_value* norm) {
  Program& p = w.program;
  Values squares;
  for (Parameter& parameter : parameters) {
    dtg_value square{}, axes{};
    if (Outcome failed = densify(w, parameter)) return failed;
    Json all = Json::array();
    for (size_t i = 0; i < parameter.shape.size(); ++i) all.push_back(i);
    std::string why;
    const Tensor every = make_tensor({{"dtype", "int32"}, {"shape", {all.size()}}, {"data", all}}, &why);
    if (Outcome failed = p.constant(every, &axes)) return failed;
    if (Outcome failed = p.apply("Square", {parameter.gradient.dense}, &square)) return failed;
    if (Outcome failed = p.apply("Sum", {square, axes}, &squares.emplace_back())) return failed;
  }
  dtg_value sum{}, one{}, bound{}, inverse{}, ceiling{}, scale{};
  const dtg_dtype dtype = parameters[0].dtype;
  if (Outcome failed = p.apply("AddN", squares, &sum)) return failed;
  if (Outcome failed = p.apply("Sqrt", {sum}, norm)) return failed;
  if (Outcome failed = p.constant(make_scalar(dtype, 1), &one)) return failed;
  if (Outcome failed = p.constant(make_scalar(dtype, limit), &bound)) return failed;
  if (Outcome failed = p.apply("RealDiv", {one, *norm}, &inverse)) return failed;
  if (Outcome failed = p.apply("RealDiv", {one, bound}, &ceiling)) return failed;
  if (Outcome failed = p.apply("Minimum", {inverse, ceiling}, &scale)) return failed;
  if (Outcome failed = p.apply("Mul", {bound, scale}, &scale)) return failed;
  for (Parameter& parameter : parameters) {
    if (Outcome failed = p.apply("Mul", {parameter.gradient.dense, scale}, &parameter.gradient.dense)) return failed;
  }
  return std::nullopt;
}

// v -= lr * weight_decay * v, before the update proper.
Outcome decay(Writer& w, const Parameter& parameter, dtg_value* done) {
  dtg_value value{}, rate{}, loss{};
  if (Outcome failed = read_variable(w.program, parameter.handle, parameter.dtype, &value)) return failed;
  if (Outcome failed = w.program.apply("Mul", {w.scalars["lr"], w.scalars["weight_decay"]}, &rate)) return failed;
  if (Outcome failed = w.program.apply("Mul", {value, rate}, &loss)) return failed;
  return w.program.apply("AssignSubVariableOp", {parameter.handle, loss}, done, w.before);
}

// The inputs of the dense update op, in registry order.
Outcome dense_inputs(Writer& w, const Parameter& parameter, Values* inputs) {
  const std::string kind = w.optimizer.at("kind");
  inputs->push_back(parameter.handle);
  const auto slot = [&](const char* name) { inputs->push_back(parameter.slots.at(name)); };
  const auto scalar = [&](const char* name) { inputs->push_back(w.scalars.at(name)); };
  const auto gradient = [&] { inputs->push_back(parameter.gradient.dense); };
  if (kind == "sgd") {
    scalar("lr"), gradient();
  } else if (kind == "momentum" || kind == "nesterov") {
    slot("accum"), scalar("lr"), gradient(), scalar("momentum");
  } else if (kind == "adagrad") {
    slot("accum"), scalar("lr"), gradient();
  } else if (kind == "adam" || kind == "adamw") {
    slot("m"), slot("n");
    for (const char* name : {"beta1", "beta2"}) {
      if (Outcome failed = read_variable(w.program, w.powers[name], parameter.dtype, &inputs->emplace_back())) return failed;
    }
    scalar("lr"), scalar("beta1"), scalar("beta2"), scalar("epsilon"), gradient();
  } else if (kind == "rmsprop") {
    slot("ms"), slot("mom"), scalar("lr"), scalar("rho"), scalar("momentum"), scalar("epsilon"), gradient();
  } else if (kind == "rmsprop_centered") {
    slot("mg"), slot("ms"), slot("mom"), scalar("lr"), scalar("rho"), scalar("momentum"), scalar("epsilon"), gradient();
  } else if (kind == "ftrl") {
    slot("accum"), slot("linear"), gradient(), scalar("lr"), scalar("l1"), scalar("l2"), scalar("lr_power");
  }
  return std::nullopt;
}

// Equal rows summed: what the sparse update ops want.
Outcome sum_rows(Writer& w, const dtg_gradient& rows, dtg_value* values, dtg_value* indices) {
  Node node("Unique");
  Values unique;
  if (Outcome failed = node.input(rows.indices).add(w.program.graph(), &unique)) return failed;
  *indices = unique[0];
  dtg_value shape{}, zero{}, one{}, count{};
  std::string why;
  const Tensor first = make_tensor({{"dtype", "int32"}, {"shape", {1}}, {"data", {0}}}, &why);
  const Tensor length = make_tensor({{"dtype", "int32"}, {"shape", {1}}, {"data", {1}}}, &why);
  if (Outcome failed = w.program.apply("Shape", {unique[0]}, &shape)) return failed;
  if (Outcome failed = w.program.constant(first, &zero)) return failed;
  if (Outcome failed = w.program.constant(length, &one)) return failed;
  if (Outcome failed = w.program.apply("Slice", {shape, zero, one}, &count)) return failed;
  Values squeezed;
  if (Outcome failed = Node("Squeeze").input(count).add(w.program.graph(), &squeezed)) return failed;
  return w.program.apply("UnsortedSegmentSum", {rows.values, unique[1], squeezed[0]}, values);
}

Outcome sparse_update(Writer& w, const Parameter& parameter, Updates* out, dtg_value* done) {
  const std::string kind = w.optimizer.at("kind");
  const dtg_value lr = w.scalars["lr"];
  dtg_value values = parameter.gradient.values, indices = parameter.gradient.indices;
  if (kind == "sgd") {
    if (Outcome failed = w.program.apply("Mul", {values, lr}, &values)) return failed;
    return w.program.apply("ResourceScatterSub", {parameter.handle, indices, values}, done, w.before);
  }
  const std::string op = kind == "adagrad" ? "ResourceSparseApplyAdagrad" : "ResourceSparseApplyMomentum";
  if (out->beyond = missing_op(op); !out->beyond.empty()) return std::nullopt;
  if (Outcome failed = sum_rows(w, parameter.gradient, &values, &indices)) return failed;
  Values inputs = {parameter.handle, parameter.slots.at("accum"), lr, values, indices};
  if (kind != "adagrad") inputs.push_back(w.scalars.at("momentum"));
  return add_node(w.program, op, inputs, w.before, w.optimizer.at("attrs"), done);
}

Outcome update(Writer& w, Parameter& parameter, Updates* out) {
  const std::string kind = w.optimizer.at("kind");
  const bool rows = parameter.gradient.values.id != 0;
  dtg_value& done = out->targets.emplace_back();
  if (rows && (kind == "sgd" || kind == "momentum" || kind == "adagrad")) return sparse_update(w, parameter, out, &done);
  if (Outcome failed = densify(w, parameter)) return failed;
  Values controls = w.before, inputs;
  if (kind == "adamw") {
    if (Outcome failed = decay(w, parameter, &controls.emplace_back())) return failed;
  }
  if (Outcome failed = dense_inputs(w, parameter, &inputs)) return failed;
  return add_node(w.program, w.optimizer.at("update_op"), inputs, controls, w.optimizer.at("attrs"), &done);
}

// Behind all updates: beta1_power *= beta1 and the other.
Outcome advance_powers(Writer& w, dtg_dtype dtype, Updates* out) {
  const Values updates = out->targets;
  for (const auto& [name, handle] : w.powers) {
    dtg_value power{}, next{};
    if (Outcome failed = read_variable(w.program, handle, dtype, &power)) return failed;
    if (Outcome failed = w.program.apply("Mul", {power, w.scalars[name]}, &next)) return failed;
    if (Outcome failed = w.program.apply("AssignVariableOp", {handle, next}, &out->targets.emplace_back(), updates)) return failed;
  }
  return std::nullopt;
}

}  // namespace

Outcome add_updates(Program& program, const Json& optimizer, dtg_value reads, std::vector<Parameter>& parameters, Updates* out) {
  if (out->beyond = missing_op(optimizer.at("update_op")); !out->beyond.empty()) return std::nullopt;
  Writer w{program, optimizer, {reads}, {}, {}};
  const dtg_dtype dtype = parameters.empty() ? DTG_F32 : parameters[0].dtype;
  if (Outcome failed = add_scalars(w, dtype)) return failed;
  if (optimizer.contains("clip_global_norm")) {
    if (Outcome failed = clip(w, parameters, optimizer.at("clip_global_norm"), &out->global_norm)) return failed;
  }
  for (const Parameter& parameter : parameters) {
    w.before.push_back(parameter.gradient.dense.id ? parameter.gradient.dense : parameter.gradient.values);
  }
  for (Parameter& parameter : parameters) {
    if (Outcome failed = add_slots(w, parameter)) return failed;
    if (Outcome failed = update(w, parameter, out)) return failed;
    if (!out->beyond.empty()) return std::nullopt;
  }
  return advance_powers(w, dtype, out);
}

}  // namespace dtg::oracle
