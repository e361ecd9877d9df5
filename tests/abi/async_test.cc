// Asynchronous runs from outside: completions and their descriptor, cancels and deadlines of what is blocked, results
// taken once; many threads over one session and one callable.
#include <poll.h>

#include <atomic>
#include <thread>

#include "world.h"

namespace outside {
namespace {

class Async : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    const int64_t types[] = {DTG_F32};
    dtg_attr attr = DTG_ATTR_INIT;
    attr.name = "component_types";
    attr.kind = DTG_ATTR_LIST_TYPE;
    attr.ints = types;
    attr.count = 1;
    dtg_op_spec spec = DTG_OP_SPEC_INIT;
    spec.type = "FIFOQueueV2";
    spec.attrs = &attr;
    spec.num_attrs = 1;
    OK(dtg_graph_add_op(h.graph, &spec, &queue, 1));
    spec = DTG_OP_SPEC_INIT;
    spec.type = "QueueDequeueV2";
    spec.inputs = &queue;
    spec.num_inputs = 1;
    spec.attrs = &attr;
    spec.num_attrs = 1;
    OK(dtg_graph_add_op(h.graph, &spec, &dequeue, 1));
  }

  dtg_run* start(dtg_value fetch, uint64_t tag, int64_t timeout_ns = 0) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.fetches = &fetch;
    args.num_fetches = 1;
    args.timeout_ns = timeout_ns;
    dtg_run* run = nullptr;
    OK(dtg_session_run_async(h.session, &args, h.cq, tag, &run));
    return run;
  }
  dtg_completion next(int64_t timeout_ns = 20'000'000'000) {
    dtg_completion done{};
    size_t count = 0;
    OK(dtg_cq_next(h.cq, &done, sizeof done, 1, timeout_ns, &count));
    EXPECT_EQ(count, 1u);
    return done;
  }
  bool readable(int timeout_ms) {
    pollfd watched{dtg_cq_fd(h.cq), POLLIN, 0};
    return poll(&watched, 1, timeout_ms) == 1 && (watched.revents & POLLIN);
  }

  dtg_value queue{}, dequeue{};
};

TEST_F(Async, ABlockedDequeueIsCancelled) {
  dtg_run* const run = start(dequeue, 42);
  EXPECT_FALSE(readable(50));
  dtg_tensor* out = nullptr;
  refused(dtg_run_take_result(run, 0, &out), DTG_FAILED_PRECONDITION, "take before the end");
  dtg_run_cancel(run);
  dtg_run_cancel(run);
  EXPECT_TRUE(readable(20'000));
  const dtg_completion done = next();
  EXPECT_EQ(done.tag, 42u);
  refused(done.error, DTG_CANCELLED, "a cancelled run");
  EXPECT_FALSE(readable(0));
  refused(dtg_run_take_result(run, 0, &out), DTG_CANCELLED, "take after a cancel");
  dtg_run_release(run);
}

TEST_F(Async, ABlockedDequeueHasADeadline) {
  dtg_run* const run = start(dequeue, 1, 20'000'000);
  refused(next().error, DTG_DEADLINE_EXCEEDED, "an asynchronous run");
  dtg_run_release(run);
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_tensor* fetched = nullptr;
  args.fetches = &dequeue;
  args.fetched = &fetched;
  args.num_fetches = 1;
  args.timeout_ns = 20'000'000;
  refused(dtg_session_run(h.session, &args), DTG_DEADLINE_EXCEEDED, "a run");
  EXPECT_EQ(fetched, nullptr);
}

TEST_F(Async, ResultsAreTakenOnce) {
  dtg_tensor* out = nullptr;
  OK(dtg_run_take_result(h.run, 0, &out));
  EXPECT_EQ(static_cast<const float*>(dtg_tensor_data(out, nullptr))[1], 9);
  dtg_tensor_release(out);
  refused(dtg_run_take_result(h.run, 0, &out), DTG_FAILED_PRECONDITION, "take twice");
  refused(dtg_run_take_result(h.run, 1, &out), DTG_INVALID_ARGUMENT, "take what is not there");
}

TEST_F(Async, ManyCompletionsWithAStride) {
  dtg_value value;
  OK(dtg_const_f32(h.graph, 5, &value));
  for (uint64_t tag = 0; tag < 20; ++tag) dtg_run_release(start(value, tag));
  struct Wide {
    dtg_completion completion;
    uint64_t mine;
  } events[20];
  for (Wide& each : events) each.mine = 77;
  bool seen[20] = {};
  for (size_t got = 0; got < 20;) {
    size_t count = 0;
    OK(dtg_cq_next(h.cq, &events[0].completion, sizeof(Wide), 7, DTG_INFINITE, &count));
    ASSERT_GT(count, 0u);
    ASSERT_LE(count, 7u);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(events[i].completion.error, nullptr);
      EXPECT_EQ(events[i].mine, 77u);
      ASSERT_LT(events[i].completion.tag, 20u);
      EXPECT_FALSE(std::exchange(seen[events[i].completion.tag], true));
    }
    got += count;
  }
  size_t count = 9;
  OK(dtg_cq_next(h.cq, &events[0].completion, 0, 1, 1'000'000, &count));
  EXPECT_EQ(count, 0u);
}

TEST_F(Async, ClosingASessionEndsItsRuns) {
  dtg_run* const run = start(dequeue, 3);
  OK(dtg_session_close(h.session, 20'000'000'000));
  refused(next().error, DTG_CANCELLED, "a run of a closed session");
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &dequeue;
  args.num_targets = 1;
  refused(dtg_session_run(h.session, &args), DTG_FAILED_PRECONDITION, "a run after close");
  OK(dtg_session_close(h.session, 0));
  dtg_run_release(run);
}

TEST_F(Async, EverythingIsReleasedUnderARun) {
  dtg_run* const run = start(dequeue, 4);
  dtg_session_release(std::exchange(h.session, nullptr));
  dtg_graph_release(std::exchange(h.graph, nullptr));
  dtg_runtime_release(std::exchange(h.runtime, nullptr));
  dtg_run_cancel(run);
  refused(next().error, DTG_CANCELLED, "a run");
  dtg_run_release(run);
}

TEST_F(Async, FourThreadsOverOneSessionAndOneCallable) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const dtg_value feeds[] = {v.x, v.y};
      for (int i = 0; i < 300; ++i) {
        float values[] = {static_cast<float>(t), static_cast<float>(i)};
        const int64_t dims[] = {2};
        dtg_tensor* fed = nullptr;
        dtg_tensor* fetched = nullptr;
        dtg_error* error = dtg_tensor_create(DTG_F32, dims, 1, values, sizeof values, nullptr, nullptr, &fed);
        const dtg_tensor* tensors[] = {fed, fed};
        if (i % 2) {
          if (!error) error = dtg_callable_run(h.callable, tensors, 2, &fetched, 1, 0);
        } else {
          dtg_run_args args = DTG_RUN_ARGS_INIT;
          args.feeds = feeds;
          args.feed_tensors = tensors;
          args.num_feeds = 2;
          args.fetches = &v.z;
          args.fetched = &fetched;
          args.num_fetches = 1;
          if (!error) error = dtg_session_run(h.session, &args);
        }
        const auto* got = static_cast<const float*>(dtg_tensor_data(fetched, nullptr));
        wrong += error != nullptr || !got || got[0] != values[0] * values[0] || got[1] != values[1] * values[1];
        dtg_error_release(error);
        dtg_tensor_release(fetched);
        dtg_tensor_release(fed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace outside
