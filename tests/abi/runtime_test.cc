// What the library says it has; numbers and traces of a runtime.
#include <gtest/gtest.h>

#include <string>

#include "dtg/dtg.h"
#include "dtg/sugar.h"

namespace outside {
namespace {

std::string take(dtg_string* string) {
  size_t length = 0;
  const char* data = dtg_string_data(string, &length);
  std::string text(data, length);
  dtg_string_release(string);
  return text;
}

TEST(Features, AreWhatIsBuiltIn) {
  EXPECT_EQ(dtg_has_feature("cpu"), 1);
  EXPECT_EQ(dtg_has_feature("tls"), 1);
  EXPECT_EQ(dtg_has_feature("cuda"), 0);
  EXPECT_EQ(dtg_has_feature("TLS"), 0);
  EXPECT_EQ(dtg_has_feature("no such thing"), 0);
  EXPECT_EQ(dtg_has_feature(nullptr), 0);
}

TEST(RuntimeNumbers, RunsAreCountedAndTraced) {
  dtg_runtime* runtime = nullptr;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_value three;
  ASSERT_EQ(dtg_runtime_create(nullptr, &runtime), nullptr);
  ASSERT_EQ(dtg_graph_create(runtime, &graph), nullptr);
  ASSERT_EQ(dtg_const_f32(graph, 3.0f, &three), nullptr);
  // A shape that only the run decides, so that the planner cannot fold it all away.
  dtg_value held = three, out;
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  dtg_attr dtype = DTG_ATTR_INIT;
  dtype.name = "dtype";
  dtype.kind = DTG_ATTR_TYPE;
  dtype.i = DTG_F32;
  spec.type = "Placeholder";
  spec.attrs = &dtype;
  spec.num_attrs = 1;
  ASSERT_EQ(dtg_graph_add_op(graph, &spec, &held, 1), nullptr);
  spec = DTG_OP_SPEC_INIT;
  spec.type = "Tanh";
  spec.inputs = &held;
  spec.num_inputs = 1;
  ASSERT_EQ(dtg_graph_add_op(graph, &spec, &out, 1), nullptr);
  ASSERT_EQ(dtg_session_connect(runtime, nullptr, 0, graph, nullptr, &session), nullptr);
  ASSERT_EQ(dtg_runtime_trace_start(runtime), nullptr);
  float one = 1;
  dtg_tensor *fed = nullptr, *got = nullptr;
  ASSERT_EQ(dtg_tensor_create(DTG_F32, nullptr, 0, &one, 4, nullptr, nullptr, &fed), nullptr);
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &held;
  args.feed_tensors = &fed;
  args.num_feeds = 1;
  args.fetches = &out;
  args.fetched = &got;
  args.num_fetches = 1;
  ASSERT_EQ(dtg_session_run(session, &args), nullptr);
  dtg_string* text = nullptr;
  ASSERT_EQ(dtg_runtime_trace_stop(runtime, &text), nullptr);
  EXPECT_NE(take(text).find("Tanh"), std::string::npos);
  ASSERT_EQ(dtg_runtime_metrics(runtime, &text), nullptr);
  const std::string metrics = take(text);
  EXPECT_NE(metrics.find("dtg_runs_total 1"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("dtg_plans_total 1"), std::string::npos) << metrics;
  dtg_tensor_release(fed);
  dtg_tensor_release(got);
  dtg_session_release(session);
  dtg_graph_release(graph);
  dtg_runtime_release(runtime);
}

// What the planner made of several nodes is gone with the planner's notes; what a trace says of it must not be.
TEST(Runtime, ATraceNamesWhatWasFused) {
  dtg_runtime* runtime = nullptr;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_tensor *fed = nullptr, *got = nullptr;
  float one = 1;
  dtg_value x, y;
  ASSERT_EQ(dtg_runtime_create(nullptr, &runtime), nullptr);
  ASSERT_EQ(dtg_graph_create(runtime, &graph), nullptr);
  ASSERT_EQ(dtg_placeholder(graph, "x", DTG_F32, nullptr, 0, &x), nullptr);
  ASSERT_EQ(dtg_add1(graph, "Neg", x, &y), nullptr);
  ASSERT_EQ(dtg_add1(graph, "Tanh", y, &y), nullptr);
  ASSERT_EQ(dtg_session_connect(runtime, nullptr, 0, graph, nullptr, &session), nullptr);
  ASSERT_EQ(dtg_tensor_create(DTG_F32, nullptr, 0, &one, 4, nullptr, nullptr, &fed), nullptr);
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &x;
  args.feed_tensors = &fed;
  args.num_feeds = 1;
  args.fetches = &y;
  args.fetched = &got;
  args.num_fetches = 1;
  ASSERT_EQ(dtg_session_run(session, &args), nullptr);
  ASSERT_EQ(dtg_runtime_trace_start(runtime), nullptr);
  ASSERT_EQ(dtg_session_run(session, &args), nullptr);
  dtg_string* text = nullptr;
  ASSERT_EQ(dtg_runtime_trace_stop(runtime, &text), nullptr);
  const std::string trace = take(text);
  EXPECT_NE(trace.find("_ElementChain"), std::string::npos) << trace;
  dtg_tensor_release(fed);
  dtg_tensor_release(got);
  dtg_session_release(session);
  dtg_graph_release(graph);
  dtg_runtime_release(runtime);
}

}  // namespace
}  // namespace outside
