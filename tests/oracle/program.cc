// Graphs and runs through the C ABI; see program.h.
#include "program.h"

#include <cstdlib>
#include <cstring>

namespace dtg::oracle {
namespace {

constexpr int64_t kRunTimeoutNs = int64_t{20} * 1000 * 1000 * 1000;

// The ops that the spine names: a vector of one of these is never skipped for want of the op.
const std::set<std::string>& promised_ops() {
  // clang-format off
  static const std::set<std::string> names = {
      "Placeholder", "Const", "Identity", "NoOp", "VarHandleOp", "ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp",
      "AssignSubVariableOp", "VarIsInitializedOp", "ResourceGather", "ResourceScatterAdd", "ResourceScatterSub", "MatMul",
      "BatchMatMulV2", "BiasAdd", "BiasAddGrad", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "MaxPool",
      "MaxPoolGrad", "AvgPool", "AvgPoolGrad", "Relu", "ReluGrad", "Tanh", "TanhGrad", "Sigmoid", "SigmoidGrad", "Softmax",
      "LogSoftmax", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "AddV2", "Sub", "Mul", "RealDiv",
      "Neg", "Square", "Sqrt", "SqrtGrad", "Rsqrt", "RsqrtGrad", "Exp", "Log", "Maximum", "Minimum", "AddN", "Sum", "Mean",
      "Max", "ArgMax", "Equal", "Greater", "Less", "LogicalAnd", "Cast", "Reshape", "Shape", "Transpose", "ConcatV2", "Split",
      "Slice", "Pack", "Unpack", "Tile", "Pad", "ExpandDims", "Squeeze", "Fill", "ZerosLike", "OnesLike", "Range", "GatherV2",
      "Where", "Unique", "UnsortedSegmentSum", "BroadcastTo", "BroadcastGradientArgs", "SelectV2", "StatelessRandomUniformV2",
      "StatelessRandomNormalV2", "StatelessTruncatedNormalV2", "ResourceApplyGradientDescent", "ResourceApplyMomentum",
      "ResourceApplyAdam", "FIFOQueueV2", "QueueEnqueueV2", "QueueDequeueV2", "QueueCloseV2", "QueueSizeV2",
      "ResourceConditionalAccumulator", "ResourceAccumulatorApplyGradient", "ResourceAccumulatorTakeGradient",
      "ResourceAccumulatorNumAccumulated", "ResourceAccumulatorSetGlobalStep", "SparseConditionalAccumulator"};
  // clang-format on
  return names;
}

std::map<std::string, OpEntry> read_op_table() {
  std::map<std::string, OpEntry> table;
  dtg_string* text = nullptr;
  if (outcome(dtg_ops_json(nullptr, &text))) return table;
  size_t length = 0;
  const char* data = dtg_string_data(text, &length);
  const Json list = Json::parse(data, data + length, nullptr, false);
  dtg_string_release(text);
  if (!list.is_array()) return table;
  for (const Json& op : list) {
    OpEntry& entry = table[op.at("name")];
    for (const Json& input : op.at("inputs")) entry.inputs.push_back({input.at("name"), input.at("type")});
  }
  return table;
}

}  // namespace

Outcome outcome(dtg_error* error) {
  if (!error) return std::nullopt;
  Failure failure{dtg_error_code(error), dtg_code_name(dtg_error_code(error))};
  failure.text += std::string(": ") + dtg_error_message(error, nullptr);
  dtg_error_release(error);
  return failure;
}

const std::map<std::string, OpEntry>& op_table() {
  static const std::map<std::string, OpEntry> table = read_op_table();
  return table;
}

std::string missing_op(const std::string& op) {
  if (op_table().count(op) || promised_ops().count(op)) return "";
  return "op " + op + " is not in this library";
}

// ---- nodes -----------------------------------------------------------------------------------------------------------------

Node::Node(std::string op, std::string name, std::string device) : op_(std::move(op)), name_(std::move(name)), device_(std::move(device)) {}

Node& Node::input(dtg_value value) {
  inputs_.push_back(value);
  return *this;
}

Node& Node::control(dtg_value value) {
  controls_.push_back(value);
  return *this;
}

dtg_attr& Node::next(const std::string& name, dtg_attr_kind kind) {
  dtg_attr attr = DTG_ATTR_INIT;
  attr.name = strings_.emplace_back(name).c_str();
  attr.kind = kind;
  return attrs_.emplace_back(attr);
}

Node& Node::type(const char* name, dtg_dtype dtype) {
  next(name, DTG_ATTR_TYPE).i = dtype;
  return *this;
}

Node& Node::shape(const char* name, const std::vector<int64_t>& dims) {
  dtg_attr& attr = next(name, DTG_ATTR_SHAPE);
  attr.ints = ints_.emplace_back(dims).data();
  attr.count = dims.size();
  return *this;
}

Node& Node::unknown_shape(const char* name) {
  next(name, DTG_ATTR_SHAPE).count = DTG_STRLEN;
  return *this;
}

Node& Node::text(const char* name, std::string value) {
  dtg_attr& attr = next(name, DTG_ATTR_STRING);
  attr.s = strings_.emplace_back(std::move(value)).c_str();
  attr.s_len = strings_.back().size();
  return *this;
}

Node& Node::flag(const char* name, bool value) {
  next(name, DTG_ATTR_BOOL).i = value;
  return *this;
}

Node& Node::tensor(const char* name, Tensor value) {
  next(name, DTG_ATTR_TENSOR).tensor = tensors_.emplace_back(std::move(value)).get();
  return *this;
}

Node& Node::functions(const Functions& known) {
  known_ = &known;
  return *this;
}

std::string Node::json_functions(const std::string& name, dtg_attr_kind kind, const std::vector<std::string>& wanted) {
  std::vector<const dtg_function*>& list = called_.emplace_back();
  for (const std::string& one : wanted) {
    const auto at = known_ ? known_->find(one) : Functions::const_iterator();
    if (!known_ || at == known_->end()) return "function " + one + ", which is not in the file";
    list.push_back(at->second.get());
  }
  dtg_attr& attr = next(name, kind);
  attr.functions = list.data();
  attr.count = list.size();
  return "";
}

std::string Node::json_list(const std::string& name, const std::string& type, const Json& list) {
  static const std::map<std::string, dtg_attr_kind> kinds = {{"list(int)", DTG_ATTR_LIST_INT},     {"list(float)", DTG_ATTR_LIST_FLOAT},
                                                             {"list(bool)", DTG_ATTR_LIST_BOOL},   {"list(type)", DTG_ATTR_LIST_TYPE},
                                                             {"list(shape)", DTG_ATTR_LIST_SHAPE}, {"list(string)", DTG_ATTR_LIST_STRING}};
  const auto kind = kinds.find(type);
  if (kind == kinds.end()) return "attributes of type " + type;
  std::vector<int64_t>& ints = ints_.emplace_back();
  std::vector<double>& floats = floats_.emplace_back();
  std::vector<size_t>& lens = lens_.emplace_back();
  std::vector<const char*>& words = words_.emplace_back();
  for (const Json& item : list) {
    switch (kind->second) {
      case DTG_ATTR_LIST_INT: ints.push_back(item.get<int64_t>()); break;
      case DTG_ATTR_LIST_BOOL: ints.push_back(item.get<bool>()); break;
      case DTG_ATTR_LIST_FLOAT: floats.push_back(number(item)); break;
      case DTG_ATTR_LIST_TYPE: ints.push_back(dtg_dtype_from_name(item.get<std::string>().c_str())); break;
      case DTG_ATTR_LIST_STRING:
        words.push_back(strings_.emplace_back(item.get<std::string>()).c_str());
        lens.push_back(strings_.back().size());
        break;
      default:
        lens.push_back(item.is_null() ? DTG_STRLEN : item.size());
        if (!item.is_null()) ints.insert(ints.end(), item.begin(), item.end());
    }
  }
  dtg_attr& attr = next(name, kind->second);
  attr.ints = ints.data();
  attr.floats = floats.data();
  attr.lens = lens.data();
  attr.strings = words.data();
  attr.count = list.size();
  return "";
}

std::string Node::json(const std::string& name, const Json& typed) {
  const std::string kind = typed.at("type");
  const Json& value = typed.at("value");
  if (kind == "func") return json_functions(name, DTG_ATTR_FUNC, {value.get<std::string>()});
  if (kind == "list(func)") return json_functions(name, DTG_ATTR_LIST_FUNC, value.get<std::vector<std::string>>());
  if (kind == "type") {
    const std::string dtype = value;
    type(name.c_str(), dtg_dtype_from_name(dtype.c_str()));
  } else if (kind == "int") {
    next(name, DTG_ATTR_INT).i = value.get<int64_t>();
  } else if (kind == "float") {
    next(name, DTG_ATTR_FLOAT).f = number(value);
  } else if (kind == "bool") {
    flag(name.c_str(), value.get<bool>());
  } else if (kind == "string") {
    text(name.c_str(), value);
  } else if (kind == "shape") {
    if (value.is_null()) unknown_shape(name.c_str());
    else shape(name.c_str(), value.get<std::vector<int64_t>>());
  } else if (kind == "tensor") {
    std::string why;
    const Tensor held = make_tensor(value, &why);
    if (!held) return why;
    tensor(name.c_str(), held);
  } else {
    return json_list(name, kind, value);
  }
  return "";
}

std::string Node::json(const Json& attrs) {
  for (const auto& [name, typed] : attrs.items()) {
    if (std::string why = json(name, typed); !why.empty()) return why;
  }
  return "";
}

Outcome Node::add(dtg_graph* graph, std::vector<dtg_value>* outputs) {
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = op_.c_str();
  if (!name_.empty()) spec.name = name_.c_str();
  if (!device_.empty()) spec.device = device_.c_str();
  spec.inputs = inputs_.data();
  spec.num_inputs = inputs_.size();
  spec.controls = controls_.data();
  spec.num_controls = controls_.size();
  spec.attrs = attrs_.data();
  spec.num_attrs = attrs_.size();
  dtg_value first{};
  if (Outcome failed = outcome(dtg_graph_add_op(graph, &spec, &first, 1))) return failed;
  size_t count = 0;
  if (Outcome failed = outcome(dtg_value_num_outputs(graph, first, &count))) return failed;
  outputs->assign(1, first);
  for (size_t i = 1; i < count; ++i) {
    dtg_value value{};
    if (Outcome failed = outcome(dtg_value_output(graph, first, i, &value))) return failed;
    outputs->push_back(value);
  }
  return std::nullopt;
}

// ---- programs --------------------------------------------------------------------------------------------------------------

namespace {
std::string default_device;
}

void use_device(const std::string& device) { default_device = device; }

Program::Program(Options wanted) {
  if (wanted.runtime) {
    runtime_ = wanted.runtime;
  } else if (wanted.threads > 0) {
    dtg_runtime_options settings = DTG_RUNTIME_OPTIONS_INIT;
    settings.compute_threads = wanted.threads;
    dtg_runtime* runtime = nullptr;
    if (outcome(dtg_runtime_create(&settings, &runtime))) return;
    runtime_ = {runtime, dtg_runtime_release};
  }
  dtg_graph* graph = nullptr;
  if (outcome(dtg_graph_create(runtime_.get(), &graph))) return;
  graph_ = {graph, dtg_graph_release};
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.cpu_devices = wanted.cpu_devices;
  if (!default_device.empty() && wanted.target == "local" && !wanted.own_devices) {
    // A graph over several CPUs asks for them itself; what it leaves open goes to the accelerator, which is preferred.
    const std::string scope = "/device:" + default_device;
    if (wanted.cpu_devices == 1 && outcome(dtg_graph_push_device(graph_.get(), scope.c_str(), scope.size()))) return;
    if (default_device.starts_with("EMU:")) options.emu_devices = std::atoi(default_device.c_str() + 4) + 1;
  }
  options.disable_fusion = !wanted.fusion;
  options.default_timeout_ns = kRunTimeoutNs;
  dtg_session* session = nullptr;
  if (outcome(dtg_session_connect(runtime_.get(), wanted.target.c_str(), DTG_STRLEN, graph, &options, &session))) return;
  session_ = {session, dtg_session_release};
}

Outcome Program::constant(const Tensor& tensor, dtg_value* out) {
  std::vector<dtg_value> outputs;
  Outcome failed = Node("Const").type("dtype", dtg_tensor_dtype(tensor.get())).tensor("value", tensor).add(graph(), &outputs);
  if (!failed) *out = outputs[0];
  return failed;
}

Outcome Program::placeholder(dtg_dtype dtype, dtg_value* out) {
  std::vector<dtg_value> outputs;
  Outcome failed = Node("Placeholder").type("dtype", dtype).unknown_shape("shape").add(graph(), &outputs);
  if (!failed) *out = outputs[0];
  return failed;
}

Outcome Program::variable(const std::string& name, dtg_dtype dtype, const std::vector<int64_t>* shape, dtg_value* out) {
  std::vector<dtg_value> outputs;
  Node node("VarHandleOp");
  node.text("shared_name", name).type("dtype", dtype);
  if (shape) node.shape("shape", *shape);
  else node.unknown_shape("shape");
  Outcome failed = node.add(graph(), &outputs);
  if (!failed) *out = outputs[0];
  return failed;
}

Outcome Program::apply(const std::string& op, const std::vector<dtg_value>& inputs, dtg_value* out,
                       const std::vector<dtg_value>& controls) {
  Node node(op);
  for (dtg_value value : inputs) node.input(value);
  for (dtg_value value : controls) node.control(value);
  std::vector<dtg_value> outputs;
  Outcome failed = node.add(graph(), &outputs);
  if (!failed) *out = outputs[0];
  return failed;
}

Outcome Program::assign(dtg_value handle, const Tensor& value) {
  dtg_value start{}, done{};
  if (Outcome failed = constant(value, &start)) return failed;
  if (Outcome failed = apply("AssignVariableOp", {handle, start}, &done)) return failed;
  return run({}, {}, {done}, nullptr);
}

Outcome Program::read(dtg_value handle, dtg_dtype dtype, Tensor* out) {
  std::vector<dtg_value> outputs;
  if (Outcome failed = Node("ReadVariableOp").type("dtype", dtype).input(handle).add(graph(), &outputs)) return failed;
  std::vector<Tensor> fetched;
  Outcome failed = run({}, {outputs[0]}, {}, &fetched);
  if (!failed) *out = fetched[0];
  return failed;
}

Outcome Program::run(const std::vector<Feed>& feeds, const std::vector<dtg_value>& fetches, const std::vector<dtg_value>& targets,
                     std::vector<Tensor>* fetched) {
  std::vector<dtg_value> fed;
  std::vector<const dtg_tensor*> tensors;
  for (const Feed& feed : feeds) {
    fed.push_back(feed.value);
    tensors.push_back(feed.tensor.get());
  }
  std::vector<dtg_tensor*> results(fetches.size());
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = fed.data();
  args.feed_tensors = tensors.data();
  args.num_feeds = fed.size();
  args.fetches = fetches.data();
  args.fetched = results.data();
  args.num_fetches = results.size();
  args.targets = targets.data();
  args.num_targets = targets.size();
  if (Outcome failed = outcome(dtg_session_run(session(), &args))) return failed;
  if (fetched) fetched->clear();
  for (dtg_tensor* tensor : results) {
    Tensor held = adopt(tensor);
    if (fetched) fetched->push_back(std::move(held));
  }
  return std::nullopt;
}

bool is_none(const dtg_gradient& gradient) { return gradient.dense.id == 0 && gradient.values.id == 0; }

}  // namespace dtg::oracle
