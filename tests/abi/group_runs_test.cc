// Runs and the epochs of their groups: whoever waits for a call that will not come hears so at once, with the name, however the run that
// owes it ends; what began in one epoch calls in no other; and the devices of a task that call together give the bits of as many in
// one process. Nothing here hangs on who is first: a bound of time is only that of a hang.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <latch>
#include <random>

#include "group_members.h"

namespace outside {
namespace {

constexpr int kOther = 4;  // the key of a second group

bool says(const std::string& message, const std::string& part) { return message.find(part) != message.npos; }
std::string task_name(int task) { return "/job:worker/replica:0/task:" + std::to_string(task); }

class GroupRuns : public GroupOps {
 protected:
  using GroupOps::GroupOps;
  static dtg_value placeholder(Member& m) {
    dtg_value out{};
    const int64_t dims[] = {-1, 2};
    OK(dtg_placeholder(m.graph, nullptr, DTG_F32, dims, 2, &out));
    return out;
  }
  // Of the value, with that many rows fed.
  static dtg_error* run_fed(Member& m, dtg_value fetch, dtg_value feed, int64_t rows, dtg_cancellation* cancellation = nullptr) {
    const std::vector<float> data(static_cast<size_t>(rows * 2), 1.0f);
    const int64_t dims[] = {rows, 2};
    dtg_tensor *in = nullptr, *out = nullptr;
    OK(dtg_tensor_create(DTG_F32, dims, 2, const_cast<float*>(data.data()), data.size() * sizeof(float), nullptr, nullptr, &in));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = &feed;
    args.feed_tensors = &in;
    args.num_feeds = 1;
    args.fetches = &fetch;
    args.fetched = &out;
    args.num_fetches = 1;
    args.timeout_ns = kWaitNs;
    args.cancellation = cancellation;
    dtg_error* const error = dtg_session_run(m.session, &args);
    dtg_tensor_release(in);
    dtg_tensor_release(out);
    return error;
  }
};

// By the planner, by the group itself, by a cancellation that was there before, by a closed session, and by a run nobody waits for.
TEST_F(GroupRuns, WhatIsRefusedBeforeItBeginsIsHeardByTheOthers) {
  std::barrier through(kSize);
  all([&](Member& m) {
    m.join("refused", kKey);
    const dtg_value x = placeholder(m), share = m.call("CollectiveReduceScatterV2", {x}, 1, "Add");
    const dtg_value swap = m.call("CollectiveAllToAllV2", {x}, 2);
    dtg_cancellation* over = nullptr;
    OK(dtg_cancellation_create(&over));
    dtg_cancellation_cancel(over);
    for (int kind = 0; kind < 5; ++kind) {
      const dtg_value fetch = kind == 1 ? swap : share;
      const bool mine = m.rank == kind % kSize;
      const std::string what = "kind " + std::to_string(kind);
      const dtg_code code = kind == 2 ? DTG_CANCELLED : DTG_ABORTED;
      if (!mine) {
        const std::string heard = refused(run_fed(m, fetch, x, 6), code, what);
        EXPECT_TRUE(says(heard, "a run of " + task_name(kind % kSize) + " ended before its collectives did: ")) << heard;
        EXPECT_EQ(says(heard, "5 rows cannot be cut into 3 equal"), kind != 2 && kind != 3) << heard;
      } else if (kind < 2) {
        refused(run_fed(m, fetch, x, 5), DTG_INVALID_ARGUMENT, what);
      } else if (kind == 2) {
        refused(run_fed(m, fetch, x, 6, over), DTG_CANCELLED, what);
      } else if (kind == 3) {
        OK(dtg_session_close(m.session, 0));
        refused(run_fed(m, fetch, x, 6), DTG_FAILED_PRECONDITION, what);
        dtg_session_release(m.session);
        OK(dtg_session_connect(m.at.runtime, dtg_server_target(m.at.server), DTG_STRLEN, m.graph, nullptr, &m.session));
      } else {
        dtg_cq* cq = nullptr;
        OK(dtg_cq_create(&cq));
        const std::vector<float> ten(10, 1.0f);
        const int64_t dims[] = {5, 2};
        dtg_tensor* in = nullptr;
        OK(dtg_tensor_create(DTG_F32, dims, 2, const_cast<float*>(ten.data()), 40, nullptr, nullptr, &in));
        start(m.session, fetch, {x}, {in}, cq, 1);
        wait_for(cq, 1, DTG_INVALID_ARGUMENT);
        dtg_cq_release(cq);
      }
      through.arrive_and_wait();
      OK(dtg_group_reform(m.group, 0, 0));
      OK(run_fed(m, fetch, x, 6));
      through.arrive_and_wait();
    }
    dtg_cancellation_release(over);
  });
}

// A run over two groups owes each its own calls: the end of one is no payment to the other.
TEST_F(GroupRuns, TheEndOfOneGroupIsHeardInTheOther) {
  std::barrier through(kSize);  // who leaves meanwhile may be heard before its run
  all([&](Member& m) {
    if (m.rank != 2) m.join("one", kKey, {0, 1});
    if (m.rank != 1) m.join("two", kOther, {0, 2});
    const dtg_value x = m.rank == 1 ? placeholder(m) : m.floats(2, 1);
    if (m.rank == 1) {
      refused(run_fed(m, m.call("CollectiveReduceScatterV2", {x}, 1, "Add", "Id", 2), x, 3), DTG_INVALID_ARGUMENT, "its own run");
      through.arrive_and_wait();
      return;
    }
    const dtg_value first = m.rank == 0 ? m.call("CollectiveReduceScatterV2", {x}, 1, "Add", "Id", 2) : x;
    const dtg_value gathered = m.call("CollectiveGatherV2", {first}, 1, nullptr, "Id", 2, kOther);
    const std::string heard = refused(m.run(gathered, nullptr), DTG_ABORTED, "two groups");
    EXPECT_TRUE(says(heard, task_name(1))) << heard;
    if (m.rank == 2) {
      EXPECT_TRUE(says(heard, "group \"two\": a run of " + task_name(0))) << heard;
    }
    through.arrive_and_wait();
  });
}

// The run is held in one group while the other is formed anew without a member.
TEST_F(GroupRuns, ARunCallsOnlyInTheEpochInWhichItBegan) {
  std::latch began(3), formed(2), through(2);
  all([&](Member& m) {
    m.join("epochs", kKey);
    if (m.rank != 2) m.join("gate", kOther, {0, 1});
    if (m.rank == 2) {
      began.arrive_and_wait();
      OK(dtg_group_leave(m.group));
      return;
    }
    const auto gate = [&](dtg_value x, int instance) { return m.call("CollectiveReduceV2", {x}, instance, "Max", "Id", 2, kOther); };
    const dtg_value x = m.floats(2, 1);
    const dtg_value first = gate(x, 1), second = gate(m.rank == 0 ? first : x, 2);
    const auto form = [&] {
      const std::string gone = refused(dtg_group_barrier(m.group, 0), DTG_UNAVAILABLE, "without one");
      EXPECT_TRUE(says(gone, task_name(2))) << gone;
      OK(dtg_group_reform(m.group, 2, 0));
      formed.arrive_and_wait();
    };
    if (m.rank == 0) {
      dtg_cq* cq = nullptr;
      dtg_run* run = nullptr;
      OK(dtg_cq_create(&cq));
      dtg_run_args args = DTG_RUN_ARGS_INIT;
      const dtg_value late = m.call("CollectiveReduceV2", {second}, 1, "Add");
      args.targets = &late;
      args.num_targets = 1;
      args.timeout_ns = kWaitNs;
      OK(dtg_session_run_async(m.session, &args, cq, 1, &run));
      began.arrive_and_wait();
      form();
      dtg_completion done{};
      size_t count = 0;
      OK(dtg_cq_next(cq, &done, 0, 1, kWaitNs, &count));
      EXPECT_EQ(count, 1u);
      const std::string old = refused(done.error, DTG_ABORTED, "a call of epoch 1 in a later one");
      EXPECT_TRUE(says(old, "the run began in epoch 1, which ended: ")) << old;
      EXPECT_TRUE(says(old, task_name(2))) << old;
      dtg_run_release(run);
      dtg_cq_release(cq);
    } else {
      EXPECT_EQ(m.get(first), rows_from(2, 1));
      began.arrive_and_wait();  // the run of rank 0 has
      form();
      EXPECT_EQ(m.get(second), rows_from(2, 1));
    }
    OK(dtg_group_barrier(m.group, 0));  // the new epoch owes nothing to the old run
    through.arrive_and_wait();
  });
}

// The run's own deadline is that of its calls, so either may be first. Where the run did not come to its call in time, it gets more.
TEST_F(GroupRuns, ADeadlineSaysWhoHasNotCome) {
  std::barrier through(kSize);
  std::atomic<bool> named{false};
  all([&](Member& m) {
    m.join("late", kKey);
    const dtg_value sum = m.call("CollectiveReduceV2", {m.floats(2, 1)}, 1, "Add");
    for (int64_t ms = 250; ms <= 16'000 && !named; ms *= 4) {
      EXPECT_EQ(m.get(sum).size(), 4u);
      through.arrive_and_wait();
      if (m.rank == 0) {
        const std::string late = refused(m.run(sum, nullptr, ms * kMs), DTG_DEADLINE_EXCEEDED, "alone");
        if (says(late, "nothing has come from rank 1 (" + task_name(1) + "), rank 2 (" + task_name(2) + ")")) named = true;
      }
      through.arrive_and_wait();
      OK(dtg_group_reform(m.group, 0, 0));
      through.arrive_and_wait();
    }
  });
  EXPECT_TRUE(named);
}

TEST_F(GroupRuns, BroadcastsSayWhoSends) {
  std::barrier through(kSize);
  all([&](Member& m) {
    m.join("casts", kKey);
    const auto receive = [&](int32_t rows, int instance) {
      const int64_t two[] = {2};
      int32_t dims[] = {rows, 2};
      dtg_tensor* tensor = nullptr;
      dtg_value shape{};
      OK(dtg_tensor_create(DTG_I32, two, 1, dims, sizeof dims, nullptr, nullptr, &tensor));
      OK(dtg_const(m.graph, tensor, &shape));
      dtg_tensor_release(tensor);
      return m.call("CollectiveBcastRecvV2", {shape}, instance);
    };
    const auto send = [&](int instance) { return m.call("CollectiveBcastSendV2", {m.floats(3, 1)}, instance); };
    const dtg_value values[] = {m.rank == 1 ? receive(3, 1) : send(1), receive(3, 2), m.rank == 2 ? send(3) : receive(m.rank + 3, 3)};
    const char* const texts[] = {"rank 0 and rank 2 both send", "nobody sends: all 3 ranks receive",
                                 "rank 2 sends 6 elements, but rank 1 receives 8"};
    for (int kind = 0; kind < 3; ++kind) {
      const bool fits = kind == 2 && m.rank != 1;
      dtg_error* const error = m.run(values[kind], nullptr);
      // Who has everything may be through before it hears that somebody else is not.
      if (!fits || error) {
        const std::string text = refused(error, DTG_INVALID_ARGUMENT, "broadcast " + std::to_string(kind));
        EXPECT_TRUE(says(text, texts[kind])) << text;
        EXPECT_TRUE(says(text, "broadcast(float32")) << text;
      }
      through.arrive_and_wait();
      OK(dtg_group_reform(m.group, 0, 0));
      through.arrive_and_wait();
    }
  });
}

}  // namespace
}  // namespace outside
