// What goes wrong in somebody's first programs is told in his terms: times that are no times, folders that are not there, arguments in the
// wrong order, numbers fitted to batches, a cluster that does not come. One thread, but for the log.
#include <sys/stat.h>

#include <algorithm>
#include <mutex>

#include "job.h"

namespace outside {
namespace {

std::string taken(dtg_string* string) {
  size_t size = 0;
  const char* const data = dtg_string_data(string, &size);
  std::string text(data ? data : "", size);
  dtg_string_release(string);
  return text;
}

// ---- times ----

// A default so short that it has passed when it is looked at, as bindings say "no time".
class NoTime : public testing::Test {
 protected:
  void SetUp() override {
    OK(dtg_graph_create(nullptr, &graph_));
    const int64_t dims[] = {2};
    OK(dtg_placeholder(graph_, "x", DTG_F32, dims, 1, &x_));
    OK(dtg_add1(graph_, "Neg", x_, &y_));
    in_ = vector_of({1, 2});
    dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
    options.default_timeout_ns = 1;
    OK(dtg_session_connect(nullptr, nullptr, 0, graph_, &options, &session_));
    OK(dtg_cq_create(&cq_));
    args_.feeds = &x_;
    args_.feed_tensors = &in_;
    args_.num_feeds = 1;
    args_.fetches = &y_;
    args_.fetched = &out_;
    args_.num_fetches = 1;
  }
  void TearDown() override {
    dtg_tensor_release(in_);
    dtg_tensor_release(out_);
    dtg_callable_release(callable_);
    dtg_cq_release(cq_);
    dtg_session_release(session_);
    dtg_graph_release(graph_);
  }
  // Every way to run once.
  void all_ways(dtg_code code) {
    const auto expect = [&](dtg_error* error, const char* way) {
      if (code == DTG_OK) {
        OK(error);
      } else {
        refused(error, code, way);
        EXPECT_EQ(out_, nullptr) << way;
      }
      dtg_tensor_release(out_);
      out_ = nullptr;
    };
    int32_t ran = 0;
    expect(dtg_session_run(session_, &args_), "a run");
    expect(dtg_session_run_if_brief(session_, &args_, &ran), "a brief run");
    expect(dtg_callable_run(callable_, &in_, 1, &out_, 1, args_.timeout_ns), "a callable");
    dtg_cancellation* cancellation = nullptr;
    OK(dtg_cancellation_create(&cancellation));
    expect(dtg_callable_run_cancellable(callable_, &in_, 1, &out_, 1, args_.timeout_ns, cancellation), "a callable that may be cancelled");
    dtg_cancellation_release(cancellation);
    args_.fetched = nullptr;
    // Where there is no plan yet, planning says so; otherwise the end does.
    dtg_error* error = dtg_session_run_async(session_, &args_, cq_, 1, nullptr);
    if (!error) {
      dtg_completion done{};
      size_t count = 0;
      OK(dtg_cq_next(cq_, &done, 0, 1, kWaitNs, &count));
      error = done.error;
    }
    expect(error, "an asynchronous run");
    args_.fetched = &out_;
  }
  dtg_graph* graph_ = nullptr;
  dtg_session* session_ = nullptr;
  dtg_callable* callable_ = nullptr;
  dtg_cq* cq_ = nullptr;
  dtg_value x_{}, y_{};
  dtg_tensor *in_ = nullptr, *out_ = nullptr;
  dtg_run_args args_ = DTG_RUN_ARGS_INIT;
};

TEST_F(NoTime, HoldsForBriefRunsAndCallablesToo) {
  OK(dtg_session_prepare(session_, &args_, &callable_));
  all_ways(DTG_DEADLINE_EXCEEDED);  // before there is a plan
  args_.timeout_ns = kWaitNs;
  all_ways(DTG_OK);  // a run that names its own time has it
  args_.timeout_ns = 0;
  all_ways(DTG_DEADLINE_EXCEEDED);  // and with one
  args_.timeout_ns = 1;
  all_ways(DTG_DEADLINE_EXCEEDED);
}

// ---- data ----

dtg_dataset* rows_of(std::vector<float> values, std::vector<int64_t> dims) {
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_F32, dims.data(), dims.size(), values.data(), values.size() * 4, nullptr, nullptr, &tensor));
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, &tensor, 1, &data));
  dtg_tensor_release(tensor);
  return data;
}

// What is fitted after batch is what is fitted before it: places in a batch are no features.
TEST(FittedAfterBatch, IsWhatIsFittedBefore) {
  for (const int64_t width : {0, 1, 3, 4}) {
    std::vector<float> values;
    for (int i = 0; i < 12 * std::max<int64_t>(1, width); ++i) values.push_back(static_cast<float>((i * 7) % 11));
    const std::vector<int64_t> dims = width ? std::vector<int64_t>{12, width} : std::vector<int64_t>{12};
    for (const int32_t kind : {DTG_NORMALIZE_STANDARD, DTG_NORMALIZE_RANGE}) {
      dtg_string* numbers = nullptr;
      dtg_dataset* const plain = rows_of(values, dims);
      OK(dtg_dataset_fit_normalization(plain, 0, kind, &numbers));
      const std::string wanted = taken(numbers);
      dtg_dataset_release(plain);
      for (const int32_t whole : {0, 1}) {
        dtg_dataset* const batched = rows_of(values, dims);
        OK(dtg_dataset_shuffle_once(batched, 0, 0));
        OK(dtg_dataset_batch(batched, 4, whole));
        OK(dtg_dataset_prefetch(batched, 2));
        OK(dtg_dataset_fit_normalization(batched, 0, kind, &numbers));
        const std::string found = taken(numbers);
        if (kind == DTG_NORMALIZE_RANGE) {
          EXPECT_EQ(found, wanted) << width;  // the order does not matter to it, to the bit
        }
        EXPECT_EQ(std::count(found.begin(), found.end(), ','), std::count(wanted.begin(), wanted.end(), ',')) << width << found << wanted;
        OK(dtg_dataset_normalize(batched, 0, found.c_str(), DTG_STRLEN));
        dtg_dataset_release(batched);
      }
    }
  }
}

// ---- losses and files ----

struct Small {
  Small() : program(nullptr) {
    const int64_t classes[] = {-1}, rows[] = {-1, 3};
    OK(dtg_placeholder(program.graph, "y", DTG_I64, classes, 1, &labels));
    OK(dtg_placeholder(program.graph, "x", DTG_F32, rows, 2, &logits));
  }
  Program program;
  dtg_value labels{}, logits{}, out{};
};

TEST(LabelsAndLogits, LookSwapped) {
  Small s;
  for (const auto fn : {dtg_nn_sparse_softmax_cross_entropy, dtg_nn_accuracy, dtg_nn_correct_count}) {
    const std::string message = refused(fn(s.program.model, s.logits, s.labels, &s.out), DTG_INVALID_ARGUMENT, "swapped");
    EXPECT_NE(message.find("look swapped"), std::string::npos) << message;
    OK(fn(s.program.model, s.labels, s.logits, &s.out));
  }
}

// A layer that fails half-way, with its kernel made: the next try has its names, and the graph can still be written and read.
TEST(AFailedLayer, LeavesItsNameToTheNext) {
  Small s;
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = 2;
  const size_t nodes = dtg_graph_node_count(s.program.graph);
  for (int i = 0; i < 3; ++i) {
    layer.bias.kind = DTG_INIT_ORTHOGONAL;
    refused(dtg_nn_dense(s.program.model, s.logits, &layer, &s.out), DTG_INVALID_ARGUMENT, "an orthogonal bias");
  }
  EXPECT_GT(dtg_graph_node_count(s.program.graph), nodes) << "a failure that made nothing shows nothing";
  for (const std::string name : {"dense", "dense_1"}) {
    layer.bias.kind = DTG_INIT_ZEROS;
    OK(dtg_nn_dense(s.program.model, s.logits, &layer, &s.out));
    for (const std::string part : {"/kernel", "/bias"}) {
      dtg_variable variable = DTG_VARIABLE_INIT;
      const size_t at = (name == "dense" ? 0 : 2) + (part == "/kernel" ? 0 : 1);
      OK(dtg_model_variable(s.program.model, at, &variable));
      EXPECT_EQ(std::string(variable.name, variable.name_len), name + part);
    }
  }
  dtg_string* bytes = nullptr;
  OK(dtg_graph_serialize(s.program.graph, &bytes));
  const std::string written = taken(bytes);
  dtg_graph* copy = nullptr;
  OK(dtg_graph_create(nullptr, &copy));
  OK(dtg_graph_import(copy, written.data(), written.size()));
  dtg_value found{};
  OK(dtg_graph_find(copy, "dense/kernel", DTG_STRLEN, &found));
  dtg_graph_release(copy);
}

TEST(AFolderThatIsNotThere, IsNamed) {
  Small s;
  dtg_variable w = DTG_VARIABLE_INIT;
  dtg_value init{};
  OK(dtg_variable_f32(s.program.model, "w", 1, &w));
  OK(dtg_model_init(s.program.model, &init));
  OK(dtg_session_connect(nullptr, nullptr, 0, s.program.graph, nullptr, &s.program.session));
  OK(dtg_run_target(s.program.session, init));
  const std::string missing = folder("nowhere"), path = missing + "/weights.safetensors";
  const auto told = [&](dtg_error* error) {
    const std::string message = refused(error, DTG_NOT_FOUND, "a folder that is not there");
    EXPECT_NE(message.find("no folder \"" + missing + "\""), std::string::npos) << message;
    EXPECT_NE(message.find("make it first"), std::string::npos) << message;
    EXPECT_EQ(message.find("partial"), std::string::npos) << message;
  };
  told(dtg_model_save(s.program.model, s.program.session, path.c_str(), DTG_STRLEN));
  const char* const name = "w";
  dtg_export what = DTG_EXPORT_INIT;
  what.output_names = &name;
  what.outputs = &w.read;
  what.num_outputs = 1;
  told(dtg_model_export(s.program.model, s.program.session, &what, path.c_str(), DTG_STRLEN));
  dtg_weights* weights = nullptr;
  OK(dtg_weights_create(&weights));
  told(dtg_weights_save(weights, path.c_str(), DTG_STRLEN));
  dtg_weights_release(weights);
}

// ---- a cluster that does not come ----

struct Lines {
  std::mutex mutex;
  std::vector<std::string> list;
  static void take(void* user, dtg_log_level level, const char*, const char* message) {
    auto& lines = *static_cast<Lines*>(user);
    const std::lock_guard lock(lines.mutex);
    if (level >= DTG_LOG_WARN) lines.list.emplace_back(message);
  }
};

TEST(AConnectThatKeepsTrying, SaysSoOnceAndSoon) {
  Lines lines;
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.log = Lines::take;
  options.log_user = &lines;
  dtg_runtime* runtime = nullptr;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  OK(dtg_runtime_create(&options, &runtime));
  OK(dtg_graph_create(runtime, &graph));
  dtg_session_options patience = DTG_SESSION_OPTIONS_INIT;
  patience.connect_timeout_ns = 4'000'000'000;
  const std::string nobody = "unix:" + folder("nobody");
  refused(dtg_session_connect(runtime, nobody.c_str(), DTG_STRLEN, graph, &patience, &session), DTG_UNAVAILABLE, "nobody there");
  patience.connect_timeout_ns = 500'000'000;  // sooner over than it is worth a line
  refused(dtg_session_connect(runtime, nobody.c_str(), DTG_STRLEN, graph, &patience, &session), DTG_UNAVAILABLE, "nobody there");
  dtg_graph_release(graph);
  dtg_runtime_release(runtime);
  const std::lock_guard lock(lines.mutex);
  ASSERT_EQ(lines.list.size(), 1u);
  EXPECT_NE(lines.list[0].find(nobody), std::string::npos) << lines.list[0];
  EXPECT_NE(lines.list[0].find("for 3 s more"), std::string::npos) << lines.list[0];
}

}  // namespace
}  // namespace outside
