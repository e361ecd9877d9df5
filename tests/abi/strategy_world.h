// StrategyJob: a graph, a model, a session with four emulated accelerators and maybe a strategy, for the tests of dtg/strategy.h; the
// network of those tests, and reading what came of it. Public headers only. One thread.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "world.h"

namespace outside {

inline constexpr const char* kDevices[] = {"/device:EMU:0", "/device:EMU:1", "/device:EMU:2", "/device:EMU:3"};

inline dtg_strategy_options options_of(dtg_strategy_kind kind, size_t devices = 4) {
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  options.devices = kDevices;
  options.num_devices = devices;
  return options;
}

// A function of this program as the library calls it.
using ReplicaFn = std::function<dtg_error*(int32_t, const dtg_value*, dtg_value*)>;
inline dtg_error* call_replica(void* user, dtg_strategy*, int32_t replica, const dtg_value* inputs, size_t, dtg_value* results, size_t) {
  return (*static_cast<ReplicaFn*>(user))(replica, inputs, results);
}

#define PASS(call)                         \
  do {                                     \
    if (dtg_error* e_ = (call)) return e_; \
  } while (0)

class StrategyJob {
 public:
  explicit StrategyJob(uint64_t seed = 7, dtg_runtime* in = nullptr) : runtime(in) {
    OK(dtg_graph_create(runtime, &graph));
    OK(dtg_model_create(graph, seed, &model));
  }
  StrategyJob(uint64_t seed, const dtg_strategy_options& options, dtg_runtime* in = nullptr) : StrategyJob(seed, in) {
    OK(dtg_strategy_create(model, &options, &strategy));
  }
  ~StrategyJob() {
    dtg_session_release(session);
    dtg_strategy_release(strategy);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  StrategyJob(const StrategyJob&) = delete;
  StrategyJob& operator=(const StrategyJob&) = delete;

  dtg_value placeholder(dtg_dtype type, std::vector<int64_t> dims) {
    dtg_value out{};
    OK(dtg_placeholder(graph, nullptr, type, dims.data(), dims.size(), &out));
    return out;
  }
  std::vector<dtg_per_replica> run(ReplicaFn fn, std::vector<dtg_per_replica> inputs, size_t results) {
    std::vector<dtg_per_replica> out(results);
    OK(dtg_strategy_run(strategy, call_replica, &fn, inputs.data(), inputs.size(), out.data(), results));
    return out;
  }
  // First values for all variables; asked for when the graph is complete.
  void begin(const char* target = "local") {
    dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
    if (!runtime) options.emu_devices = 4;
    OK(dtg_session_connect(runtime, target, DTG_STRLEN, graph, &options, &session));
    dtg_value init{};
    OK(dtg_model_init(model, &init));
    OK(dtg_run_target(session, init));
  }
  void feed(dtg_value where, dtg_dtype type, std::vector<int64_t> dims, const void* data) {
    size_t bytes = dtg_dtype_size(type);
    for (const int64_t dim : dims) bytes *= static_cast<size_t>(dim);
    dtg_tensor* tensor = nullptr;
    OK(dtg_tensor_allocate(type, dims.data(), dims.size(), &tensor));
    std::memcpy(dtg_tensor_mutable_data(tensor), data, bytes);
    feeds_.push_back(where);
    tensors_.push_back(tensor);
  }
  // One run with what was fed since the last; the bytes of what is fetched.
  std::string go(std::vector<dtg_value> targets, dtg_value fetch = {}) {
    std::string bytes;
    OK(try_go(std::move(targets), fetch, &bytes));
    return bytes;
  }
  dtg_error* try_go(std::vector<dtg_value> targets, dtg_value fetch = {}, std::string* bytes = nullptr) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    dtg_tensor* fetched = nullptr;
    args.feeds = feeds_.data();
    args.feed_tensors = tensors_.data();
    args.num_feeds = feeds_.size();
    args.targets = targets.data();
    args.num_targets = targets.size();
    args.fetches = &fetch;
    args.fetched = &fetched;
    args.num_fetches = fetch.id ? 1 : 0;
    dtg_error* const error = dtg_session_run(session, &args);
    size_t size = 0;
    const auto* data = static_cast<const char*>(fetched ? dtg_tensor_data(fetched, &size) : nullptr);
    if (data && bytes) bytes->assign(data, size);
    dtg_tensor_release(fetched);
    for (dtg_tensor* tensor : tensors_) dtg_tensor_release(tensor);
    feeds_.clear();
    tensors_.clear();
    return error;
  }
  std::string bytes(dtg_value value) { return go({}, value); }
  std::vector<float> floats(dtg_value value) {
    const std::string read = bytes(value);
    std::vector<float> list(read.size() / 4);
    if (!list.empty()) std::memcpy(list.data(), read.data(), list.size() * 4);
    return list;
  }
  float number(dtg_value value) {
    const auto list = floats(value);
    EXPECT_EQ(list.size(), 1u);
    return list.empty() ? NAN : list[0];
  }
  std::map<std::string, dtg_variable> variables() {
    std::map<std::string, dtg_variable> all;
    for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
      dtg_variable variable = DTG_VARIABLE_INIT;
      OK(dtg_model_variable(model, i, &variable));
      all[std::string(variable.name, variable.name_len)] = variable;
    }
    return all;
  }
  std::map<std::string, std::string> all_bytes() {
    std::map<std::string, std::string> all;
    for (const auto& [name, variable] : variables()) all[name] = bytes(variable.read);
    return all;
  }
  // The reads of all copies of a variable of the strategy.
  std::vector<dtg_value> copies(dtg_value handle) {
    struct Seen {
      std::vector<dtg_value> reads;
      static dtg_error* look(void* user, dtg_strategy*, int32_t, const dtg_variable* variable, const dtg_value*, size_t, dtg_value* out) {
        static_cast<Seen*>(user)->reads.push_back(variable->read);
        *out = variable->read;
        return nullptr;
      }
    } seen;
    dtg_value ignored{};
    OK(dtg_strategy_update(strategy, handle, Seen::look, &seen, nullptr, 0, &ignored));
    return seen.reads;
  }

  dtg_runtime* const runtime;  // null: the default one
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_strategy* strategy = nullptr;
  dtg_session* session = nullptr;

 private:
  std::vector<dtg_value> feeds_;
  std::vector<dtg_tensor*> tensors_;
};

// Predictions from x[b, 3] and ids[b]: through dense layers, or from the rows of a table. The loss is the mean over b of squares, or
// their sum over the rows of the whole batch.
struct Network {
  bool rows = false;
  double of_batch = 0;  // not 0: the sum, divided by it
  double dropped = 0;   // of what the first layer gives

  dtg_error* add(dtg_model* model, dtg_graph* graph, const dtg_value in[3], dtg_value* loss) const {
    dtg_value y = in[0], part{};
    dtg_dense hidden = DTG_DENSE_INIT, last = DTG_DENSE_INIT;
    hidden.units = 4;
    hidden.activation = DTG_ACT_TANH;
    last.units = 1;
    if (rows) {
      dtg_embedding table = DTG_EMBEDDING_INIT;
      table.rows = 6;
      table.width = 4;
      PASS(dtg_nn_embedding(model, in[1], &table, &y));
    } else {
      PASS(dtg_nn_dense(model, y, &hidden, &y));
    }
    if (dropped > 0) {
      dtg_variable step = DTG_VARIABLE_INIT;
      PASS(dtg_model_global_step(model, &step));
      PASS(dtg_nn_dropout(model, y, dropped, step.read, dtg_value{}, &y));
    }
    PASS(dtg_nn_dense(model, y, &last, &y));
    if (of_batch == 0) return dtg_nn_mean_squared_error(model, in[2], y, loss);
    PASS(dtg_add2(graph, "SquaredDifference", in[2], y, &y));
    const int32_t both[] = {0, 1};
    const int64_t two[] = {2};
    dtg_tensor* axes = nullptr;
    PASS(dtg_tensor_allocate(DTG_I32, two, 1, &axes));
    std::memcpy(dtg_tensor_mutable_data(axes), both, sizeof both);
    dtg_error* const failed = dtg_const(graph, axes, &part);
    dtg_tensor_release(axes);
    if (failed) return failed;
    PASS(dtg_add2(graph, "Sum", y, part, &y));
    PASS(dtg_const_f32(graph, static_cast<float>(of_batch), &part));
    return dtg_add2(graph, "RealDiv", y, part, loss);
  }
};

// Batch number `step` of b rows.
struct Batch {
  Batch(int step, int64_t b) : rows(b) {
    for (int64_t r = 0; r < b; ++r) {
      for (int64_t c = 0; c < 3; ++c) x.push_back(0.25f * static_cast<float>((r * 5 + c * 3 + step) % 7) - 0.7f);
      ids.push_back((r * r + step) % 6);
      y.push_back(0.5f * static_cast<float>((r + step) % 3) - 0.4f);
    }
  }
  // Rows [begin, end) to the three placeholders.
  void feed(StrategyJob& job, const dtg_value in[3], int64_t begin, int64_t end) const {
    const int64_t n = end - begin;
    job.feed(in[0], DTG_F32, {n, 3}, x.data() + begin * 3);
    job.feed(in[1], DTG_I64, {n}, ids.data() + begin);
    job.feed(in[2], DTG_F32, {n, 1}, y.data() + begin);
  }
  const int64_t rows;
  std::vector<float> x, y;
  std::vector<int64_t> ids;
};

inline void placeholders(StrategyJob& job, dtg_value in[3]) {
  in[0] = job.placeholder(DTG_F32, {-1, 3});
  in[1] = job.placeholder(DTG_I64, {-1});
  in[2] = job.placeholder(DTG_F32, {-1, 1});
}

}  // namespace outside
