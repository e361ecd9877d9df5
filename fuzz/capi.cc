// Any sequence of calls of the C ABI: the bytes are a small program whose instructions are calls, with handles and values
// taken from what was made before, closed ones, foreign ones and NULL included. Every call must answer; at the end every
// handle must be gone. Nodes, elements and bytes are bounded, so that what is slow is the library's fault.
#include <dtg/dtg.h>
#include <dtg/sugar.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace {

constexpr int kCalls = 64;

class Interpreter {
 public:
  Interpreter(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  ~Interpreter() {
    for (int i = 0; i < 4; ++i) {
      dtg_run_release(runs_[i]);
      dtg_callable_release(callables_[i]);
      dtg_session_release(sessions_[i]);
      dtg_model_release(models_[i]);
      dtg_graph_release(graphs_[i]);
      dtg_tensor_release(tensors_[i]);
      dtg_string_release(strings_[i]);
      dtg_cq_release(queues_[i]);
      dtg_dataset_release(datasets_[i]);
    }
  }
  void run() {
    for (int i = 0; i < kCalls && at_ < end_; ++i) step();
  }

 private:
  uint8_t byte() { return at_ < end_ ? *at_++ : 0; }
  int slot() { return byte() & 3; }
  int64_t number() { return static_cast<int8_t>(byte()); }

  void answer(dtg_error* error) {
    if (error && *dtg_error_message(error, nullptr) == 0) __builtin_trap();
    dtg_error_release(error);
  }
  // A fresh handle into a slot; what was there is released, and sometimes stays there, closed.
  template <class T>
  T** into(T* (&slots)[4], void (*release)(T*) noexcept) {
    T** const at = &slots[slot()];
    release(*at);
    *at = nullptr;
    return at;
  }
  dtg_value value() { return values_[byte() % std::size(values_)]; }
  void keep(dtg_value made) { values_[next_value_++ % std::size(values_)] = made; }

  int64_t* dims(size_t* rank) {
    *rank = byte() % 10;
    for (size_t i = 0; i < *rank && i < std::size(dims_); ++i) dims_[i] = byte() % 5 - (byte() % 16 == 0);
    return dims_;
  }

  void add_op();
  void run_session();
  void step();
  void build_call(int which);
  void model_call(int which);
  void data_call(int which);

  const uint8_t* at_;
  const uint8_t* const end_;
  dtg_graph* graphs_[4] = {};
  dtg_tensor* tensors_[4] = {};
  dtg_session* sessions_[4] = {};
  dtg_callable* callables_[4] = {};
  dtg_model* models_[4] = {};
  dtg_run* runs_[4] = {};
  dtg_cq* queues_[4] = {};
  dtg_string* strings_[4] = {};
  dtg_dataset* datasets_[4] = {};
  dtg_value values_[16] = {};
  size_t next_value_ = 0;
  int64_t dims_[10] = {};
};

// clang-format off
const char* const kOps[] = {
    "Const", "Placeholder", "Identity", "NoOp", "AddV2", "Mul", "MatMul", "Relu", "Reshape", "Shape", "Sum", "Mean", "ConcatV2", "Split",
    "Softmax", "VarHandleOp", "ReadVariableOp", "AssignVariableOp", "Cast", "Transpose", "GatherV2", "Unique", "Where", "Range", "Fill",
    "Slice", "Pad", "Tile", "Pack", "Unpack", "FIFOQueueV2", "QueueEnqueueV2", "QueueDequeueV2", "BiasAdd", "ExpandDims", "ArgMax",
    "Select", "StatelessRandomUniformV2", "ZerosLike", "Nothing", "SparseSoftmaxCrossEntropyWithLogits", "Conv2D", "MaxPool", "_Fused"};
const char* const kAttrs[] = {"dtype", "T", "shape", "value", "axis", "N", "num", "transpose_a", "component_types", "keep_dims", "strides",
                              "padding", "capacity"};
// clang-format on

void Interpreter::add_op() {
  dtg_value inputs[4], outs[3];
  dtg_attr attrs[3] = {DTG_ATTR_INIT, DTG_ATTR_INIT, DTG_ATTR_INIT};
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = kOps[byte() % std::size(kOps)];
  spec.inputs = inputs;
  spec.num_inputs = byte() % 5;
  for (size_t i = 0; i < spec.num_inputs; ++i) inputs[i] = value();
  spec.attrs = attrs;
  spec.num_attrs = byte() % 4;
  static const double reals[] = {0.5, -1};
  static const char* const texts[] = {"SAME", "VALID"};
  static const size_t lengths[] = {1, 1};
  static const int64_t small[] = {1, 2, 2, 1};
  for (size_t i = 0; i < spec.num_attrs; ++i) {
    attrs[i].name = kAttrs[byte() % std::size(kAttrs)];
    attrs[i].kind = byte() % 14;
    attrs[i].i = number();
    attrs[i].s = texts[i & 1];
    attrs[i].ints = small;
    attrs[i].floats = reals;
    attrs[i].strings = texts;
    attrs[i].lens = lengths;
    attrs[i].count = byte() % 3;
    if (attrs[i].kind == DTG_ATTR_SHAPE) attrs[i].ints = dims(&attrs[i].count);
    attrs[i].tensor = tensors_[slot()];
  }
  const dtg_value control = value();
  spec.controls = &control;
  spec.num_controls = byte() % 8 == 0;
  const size_t count = byte() % 4;
  dtg_error* const error = dtg_graph_add_op(graphs_[slot()], &spec, outs, count);
  if (!error) {
    for (size_t i = 0; i < count; ++i) keep(outs[i]);
  }
  answer(error);
}

void Interpreter::run_session() {
  const dtg_value feeds[] = {value(), value()};
  const dtg_value fetches[] = {value(), value()};
  const dtg_value target = value();
  const dtg_tensor* fed[] = {tensors_[slot()], tensors_[slot()]};
  dtg_tensor* fetched[2] = {};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = feeds;
  args.feed_tensors = fed;
  args.num_feeds = byte() % 3;
  args.fetches = fetches;
  args.num_fetches = byte() % 3;
  args.targets = &target;
  args.num_targets = byte() % 2;
  args.timeout_ns = 20'000'000;  // of a dequeue that nobody feeds
  dtg_session* const session = sessions_[slot()];
  switch (byte() % 4) {
    case 0: answer(dtg_session_prepare(session, &args, into(callables_, dtg_callable_release))); break;
    case 1: {
      dtg_cq* const queue = queues_[slot()];
      answer(dtg_session_run_async(session, &args, queue, 1, into(runs_, dtg_run_release)));
      break;
    }
    case 2: answer(dtg_callable_run(callables_[slot()], fed, args.num_feeds, fetched, args.num_fetches, args.timeout_ns)); break;
    default: args.fetched = fetched; answer(dtg_session_run(session, &args));
  }
  for (dtg_tensor* tensor : fetched) dtg_tensor_release(tensor);
}

void Interpreter::build_call(int which) {
  dtg_graph* const graph = graphs_[slot()];
  dtg_value made{};
  size_t rank = 0;
  switch (which) {
    case 0: answer(dtg_graph_create(nullptr, into(graphs_, dtg_graph_release))); break;
    case 1: {
      int64_t* const shape = dims(&rank);
      answer(dtg_tensor_allocate(byte() % 26, shape, rank, into(tensors_, dtg_tensor_release)));
      break;
    }
    case 2: {
      float data[4] = {1, static_cast<float>(number()), 0, -2};
      const int64_t shape[] = {2, 2};
      answer(dtg_tensor_create(DTG_F32, shape, byte() % 3, data, byte() % 17, nullptr, nullptr, into(tensors_, dtg_tensor_release)));
      break;
    }
    case 3: {
      const dtg_value y = value(), x = value();
      dtg_gradient gradient{};
      dtg_error* error = dtg_graph_add_gradients(graph, &y, 1, &x, 1, nullptr, &gradient);
      if (!error) error = dtg_graph_densify(graph, &gradient, &made);
      if (!error) keep(made);
      answer(error);
      break;
    }
    case 4: answer(dtg_graph_serialize(graph, into(strings_, dtg_string_release))); break;
    case 5: {
      size_t length = 0;
      const char* const bytes = dtg_string_data(strings_[slot()], &length);
      answer(dtg_graph_import(graph, bytes, length - (byte() % 8 == 0 && length > 0)));
      break;
    }
    case 6: answer(dtg_graph_push_name_scope(graph, reinterpret_cast<const char*>(at_), static_cast<size_t>(end_ - at_) % 5)); break;
    case 7: answer(dtg_graph_pop_name_scope(graph)); break;
    case 8: answer(dtg_graph_push_device(graph, "/device:CPU:1", byte() % 14)); break;
    case 9: answer(dtg_graph_pop_device(graph)); break;
    case 10: answer(dtg_graph_push_colocation(graph, value())); break;
    case 11: answer(dtg_graph_pop_colocation(graph)); break;
    case 12: {
      int32_t known = 0;
      answer(dtg_value_shape(graph, value(), dims_, byte() % 10, &known));
      break;
    }
    case 13: {
      dtg_value out{};
      if (dtg_error* const error = dtg_graph_node_at(graph, byte(), &out)) answer(error);
      else keep(out);
      break;
    }
    case 14: dtg_graph_release(graph); break;  // the slot keeps the closed handle
    default: dtg_tensor_release(tensors_[slot()]); break;
  }
}

void Interpreter::model_call(int which) {
  dtg_model* const model = models_[slot()];
  dtg_value made{};
  dtg_error* error = nullptr;
  switch (which) {
    case 0: error = dtg_model_create(graphs_[slot()], byte(), into(models_, dtg_model_release)); break;
    case 1: {
      dtg_dense layer = DTG_DENSE_INIT;
      layer.units = number() % 8;
      layer.activation = byte() % 11;
      error = dtg_nn_dense(model, value(), &layer, &made);
      break;
    }
    case 2: {
      dtg_conv2d layer = DTG_CONV2D_INIT;
      layer.filters = number() % 8;
      layer.kernel_height = number() % 5;
      layer.stride_width = number() % 3;
      layer.padding = byte() % 3;
      error = dtg_nn_conv2d(model, value(), &layer, &made);
      break;
    }
    case 3: error = dtg_nn_max_pool2d(model, value(), nullptr, &made); break;
    case 4: error = dtg_nn_mean_squared_error(model, value(), value(), &made); break;
    case 5: {
      dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
      dtg_training training = DTG_TRAINING_INIT;
      optimizer.kind = byte() % 15;
      optimizer.clip_norm = byte() % 2;
      error = dtg_nn_minimize(model, value(), &optimizer, &training);
      made = training.train;
      break;
    }
    case 6: error = dtg_model_init(model, &made); break;
    default: {
      dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
      dtg_variable variable = DTG_VARIABLE_INIT;
      spec.name = "v";
      spec.dtype = byte() % 24;
      spec.dims = dims(&spec.rank);
      spec.initializer.kind = byte() % 12;
      error = dtg_model_add_variable(model, &spec, &variable);
      made = variable.read;
    }
  }
  if (!error && made.id) keep(made);
  answer(error);
}

void Interpreter::data_call(int which) {
  dtg_dataset* const data = datasets_[slot()];
  int32_t more = 0;
  switch (which) {
    case 0: answer(dtg_dataset_range(nullptr, number(), number(), number(), into(datasets_, dtg_dataset_release))); break;
    case 1: answer(dtg_dataset_batch(data, number(), byte() & 1)); break;
    case 2: answer(dtg_dataset_shuffle(data, number(), byte())); break;
    case 3: answer(dtg_dataset_shard(data, number(), number())); break;
    case 4: answer(dtg_dataset_take(data, number())); break;
    case 5: answer(dtg_dataset_cast(data, byte() % 3, byte() % 12)); break;
    case 6: {
      dtg_tensor* const closed = tensors_[0];
      dtg_tensor_release(closed);
      tensors_[0] = nullptr;
      answer(dtg_dataset_next(data, tensors_, byte() % 2, &more));
      break;
    }
    default: answer(dtg_dataset_restart(data)); break;
  }
}

void Interpreter::step() {
  switch (const int what = byte() % 64; what) {
    // clang-format off
    case 0: case 1: case 2: case 3: case 4: case 5: case 6: case 7: case 8: case 9: add_op(); break;
    case 10: case 11: case 12: case 13: run_session(); break;
    // clang-format on
    case 14: answer(dtg_session_connect(nullptr, nullptr, 0, graphs_[slot()], nullptr, into(sessions_, dtg_session_release))); break;
    case 15: answer(dtg_cq_create(into(queues_, dtg_cq_release))); break;
    case 16: {
      dtg_completion done{};
      size_t count = 0;
      answer(dtg_cq_next(queues_[slot()], &done, 0, 1, 5'000'000, &count));
      if (count) answer(done.error);
      break;
    }
    case 17: dtg_run_cancel(runs_[slot()]); break;
    case 18: answer(dtg_run_take_result(runs_[slot()], byte() % 3, into(tensors_, dtg_tensor_release))); break;
    case 19: answer(dtg_session_close(sessions_[slot()], 1'000'000'000)); break;
    case 20: answer(dtg_session_reset(sessions_[slot()], nullptr, 0)); break;
    // clang-format off
    case 21: case 22: case 23: case 24: case 25: case 26: case 27: case 28: model_call(what - 21); break;
    case 29: case 30: case 31: case 32: case 33: case 34: case 35: case 36: data_call(what - 29); break;
    // clang-format on
    default: build_call((what - 37) % 16); break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const size_t before = dtg_live_handles();
  Interpreter(data, size).run();
  if (dtg_live_handles() != before) __builtin_trap();
  return 0;
}
