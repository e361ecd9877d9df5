// Collectives as ops of graphs whose sessions are at servers of a group: every op with its values, calls that do not fit, runs that are
// cancelled or run out of time, keys. The members are servers in this process, each with a runtime and a thread.
#include <barrier>

#include "group_members.h"

namespace outside {
namespace {

TEST_F(GroupOps, EveryOpGivesWhatItShould) {
  all([](Member& m) {
    m.join("ops", kKey);
    const auto mine = static_cast<float>(m.rank * 100);
    const dtg_value x = m.floats(6, mine), few = m.floats(m.rank, mine);
    std::vector<float> sum, mean, all_rows, exchanged, all_few;
    for (int i = 0; i < 12; ++i) sum.push_back(300 + 3 * static_cast<float>(i)), mean.push_back(100 + static_cast<float>(i));
    for (int r = 0; r < kSize; ++r) {
      const std::vector<float> theirs = rows_from(6, static_cast<float>(r * 100)), less = rows_from(r, static_cast<float>(r * 100));
      all_rows.insert(all_rows.end(), theirs.begin(), theirs.end());
      all_few.insert(all_few.end(), less.begin(), less.end());
      exchanged.insert(exchanged.end(), theirs.begin() + 4 * m.rank, theirs.begin() + 4 * m.rank + 4);
    }
    const dtg_value reduce = m.call("CollectiveReduceV2", {x}, 1, "Add"), average = m.call("CollectiveReduceV2", {x}, 2, "Add", "Div");
    const dtg_value least = m.call("CollectiveReduceV2", {x}, -7, "Min"), share = m.call("CollectiveReduceScatterV2", {x}, 3, "Add");
    const dtg_value gather = m.call("CollectiveGatherV2", {x}, 4), uneven = m.call("CollectiveGatherV2", {few}, 5);
    const dtg_value swap = m.call("CollectiveAllToAllV2", {x}, 6);
    dtg_value told{};
    if (m.rank == 1) {
      told = m.call("CollectiveBcastSendV2", {x}, 8);
    } else {
      const int64_t two[] = {2};
      int32_t dims[] = {6, 2};
      dtg_tensor* tensor = nullptr;
      dtg_value shape{};
      OK(dtg_tensor_create(DTG_I32, two, 1, dims, sizeof dims, nullptr, nullptr, &tensor));
      OK(dtg_const(m.graph, tensor, &shape));
      dtg_tensor_release(tensor);
      told = m.call("CollectiveBcastRecvV2", {shape}, 8);
    }
    const dtg_value barrier = m.call("CollectiveBarrier", {}, 9);
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_EQ(m.get(reduce), sum);
      EXPECT_EQ(m.get(average), mean);
      EXPECT_EQ(m.get(least), rows_from(6, 0));
      EXPECT_EQ(m.get(share), std::vector<float>(sum.begin() + 4 * m.rank, sum.begin() + 4 * m.rank + 4));
      EXPECT_EQ(m.get(gather), all_rows);
      EXPECT_EQ(m.get(uneven), all_few);
      EXPECT_EQ(m.get(swap), exchanged);
      EXPECT_EQ(m.get(told), rows_from(6, 100));
      OK(dtg_run_target(m.session, barrier));
    }
  });
}

TEST_F(GroupOps, ARunThatEndsEndsTheOthersWithItsName) {
  // Whoever fails first ends what others have under way, so all are through before.
  std::barrier through(kSize);
  all([&](Member& m) {
    m.join("ends", kKey);
    const dtg_value x = m.floats(2, 1), sum = m.call("CollectiveReduceV2", {x}, 1, "Add");
    const auto again = [&] {
      OK(dtg_group_reform(m.group, 0, 0));
      EXPECT_EQ(m.get(sum), (std::vector<float>{3, 6, 9, 12}));
      through.arrive_and_wait();
    };
    EXPECT_EQ(m.get(sum), (std::vector<float>{3, 6, 9, 12}));
    through.arrive_and_wait();
    // Out of time: whoever waits says for whom.
    if (m.rank == 0) {
      const std::string late = refused(m.run(sum, nullptr, 300 * kMs), DTG_DEADLINE_EXCEEDED, "alone");
      refused(m.run(sum, nullptr), DTG_DEADLINE_EXCEEDED, "after that");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
      const std::string late = refused(m.run(sum, nullptr), DTG_DEADLINE_EXCEEDED, "too late");
      EXPECT_NE(late.find("instance 1"), late.npos) << late;
      EXPECT_NE(late.find("nothing has come from rank 1"), late.npos) << late;
    }
    again();
    // Cancelled.
    if (m.rank == 2) {
      dtg_cancellation* cancellation = nullptr;
      OK(dtg_cancellation_create(&cancellation));
      std::thread soon([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        dtg_cancellation_cancel(cancellation);
      });
      refused(m.run(sum, nullptr, kWaitNs, cancellation), DTG_CANCELLED, "a run that was cancelled");
      soon.join();
      dtg_cancellation_release(cancellation);
    } else {
      if (m.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(600));
      const std::string ended = refused(m.run(sum, nullptr), DTG_CANCELLED, "with one that was cancelled");
      EXPECT_NE(ended.find("a run of /job:worker/replica:0/task:2 ended"), ended.npos) << ended;
    }
    again();
    // Another call, and one for a group of another size.
    const dtg_value odd = m.call("CollectiveReduceV2", {x}, 2, m.rank == 1 ? "Max" : "Add");
    const std::string differs = refused(m.run(odd, nullptr), DTG_INVALID_ARGUMENT, "another call");
    EXPECT_NE(differs.find("rank 1 (/job:worker/replica:0/task:1) called all_reduce(float32[2,2], max)"), differs.npos) << differs;
    again();
    const dtg_value larger = m.call("CollectiveReduceV2", {x}, 3, "Add", "Id", kSize + 1);
    refused(m.run(larger, nullptr), DTG_INVALID_ARGUMENT, "a group of another size");
    again();
    const dtg_value stranger = m.call("CollectiveReduceV2", {x}, 4, "Add", "Id", kSize, 77);
    const std::string none = refused(m.run(stranger, nullptr), DTG_FAILED_PRECONDITION, "no such group");
    EXPECT_NE(none.find("joined no group with the key 77"), none.npos) << none;
    EXPECT_EQ(m.get(sum), (std::vector<float>{3, 6, 9, 12}));
    // A member calls for itself only.
    const std::string elsewhere = "/job:worker/task:" + std::to_string((m.rank + 1) % kSize);
    OK(dtg_graph_push_device(m.graph, elsewhere.c_str(), DTG_STRLEN));
    const dtg_value theirs = m.call("CollectiveReduceV2", {m.floats(2, 1)}, 5, "Add");
    OK(dtg_graph_pop_device(m.graph));
    refused(m.run(theirs, nullptr), DTG_PERMISSION_DENIED, "a collective of another task");
    EXPECT_EQ(m.get(sum), (std::vector<float>{3, 6, 9, 12}));
    through.arrive_and_wait();
    OK(dtg_group_leave(m.group));
    refused(m.run(sum, nullptr), DTG_CANCELLED, "after leaving");
  });
}

}  // namespace
}  // namespace outside
