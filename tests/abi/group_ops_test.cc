// Collectives as ops of graphs whose sessions are at servers of a group: every op with its values, calls that do not fit, runs that are
// cancelled or run out of time, keys. The members are servers in this process, each with a runtime and a thread.
#include <barrier>
#include <functional>
#include <thread>

#include "job.h"

namespace outside {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int kSize = 3, kKey = 3;

// One member's graph.
struct Member {
  explicit Member(Server& server, int number) : rank(number), at(server) {
    OK(dtg_graph_create(at.runtime, &graph));
    const std::string device = "/job:worker/task:" + std::to_string(rank);
    OK(dtg_graph_push_device(graph, device.c_str(), DTG_STRLEN));
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, graph, nullptr, &session));
  }
  ~Member() {
    dtg_session_release(session);
    dtg_graph_release(graph);
    dtg_group_release(group);
  }
  Member(const Member&) = delete;

  void join(const char* name, int32_t key) {
    dtg_group_options options = DTG_GROUP_OPTIONS_INIT;
    options.name = name;
    options.key = key;
    options.default_timeout_ns = 20'000 * kMs;
    OK(dtg_group_join(at.server, &options, &group));
  }
  dtg_value number(int32_t value) {
    dtg_tensor* tensor = nullptr;
    dtg_value out{};
    OK(dtg_tensor_create(DTG_I32, nullptr, 0, &value, sizeof value, nullptr, nullptr, &tensor));
    OK(dtg_const(graph, tensor, &out));
    dtg_tensor_release(tensor);
    return out;
  }
  // [rows, 2], counted from `first`.
  dtg_value floats(int64_t rows, float first) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows * 2; ++i) values.push_back(first + static_cast<float>(i));
    const int64_t dims[] = {rows, 2};
    dtg_tensor* tensor = nullptr;
    dtg_value out{};
    OK(dtg_tensor_create(DTG_F32, dims, 2, values.data(), values.size() * sizeof(float), nullptr, nullptr, &tensor));
    OK(dtg_const(graph, tensor, &out));
    dtg_tensor_release(tensor);
    return out;
  }
  dtg_value call(const char* type, std::vector<dtg_value> inputs, int32_t instance, const char* merge = nullptr, const char* last = "Id",
                 int32_t size = kSize, int32_t key = kKey) {
    const size_t front = std::string(type) == "CollectiveBcastRecvV2" ? 0 : inputs.size();
    const dtg_value keys[] = {number(size), number(key), number(instance)};
    inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(front), std::begin(keys), std::end(keys));
    dtg_attr attrs[2] = {DTG_ATTR_INIT, DTG_ATTR_INIT};
    attrs[0].name = merge ? "merge_op" : "T";
    attrs[0].kind = merge ? DTG_ATTR_STRING : DTG_ATTR_TYPE;
    attrs[0].s = merge;
    attrs[0].i = DTG_F32;
    attrs[1].name = "final_op";
    attrs[1].kind = DTG_ATTR_STRING;
    attrs[1].s = last;
    dtg_op_spec spec = DTG_OP_SPEC_INIT;
    spec.type = type;
    spec.inputs = inputs.data();
    spec.num_inputs = inputs.size();
    spec.attrs = attrs;
    spec.num_attrs = merge ? 2 : front == 0 && inputs.size() > 3 ? 1 : 0;
    dtg_value out{};
    OK(dtg_graph_add_op(graph, &spec, &out, 1));
    return out;
  }
  dtg_error* run(dtg_value fetch, std::vector<float>* values, int64_t timeout_ns = kWaitNs, dtg_cancellation* cancellation = nullptr) {
    dtg_tensor* tensor = nullptr;
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.fetches = &fetch;
    args.fetched = &tensor;
    args.num_fetches = 1;
    args.timeout_ns = timeout_ns;
    args.cancellation = cancellation;
    dtg_error* const error = dtg_session_run(session, &args);
    size_t bytes = 0;
    const auto* const data = error ? nullptr : static_cast<const float*>(dtg_tensor_data(tensor, &bytes));
    if (values) values->assign(data, data + bytes / sizeof(float));
    dtg_tensor_release(tensor);
    return error;
  }
  std::vector<float> get(dtg_value fetch) {
    std::vector<float> values;
    OK(run(fetch, &values));
    return values;
  }

  const int rank;
  Server& at;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_group* group = nullptr;
};

class GroupOps : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = folder("group-ops");
    ::mkdir(directory_.c_str(), 0700);
    std::string spec = "worker=";
    for (int i = 0; i < kSize; ++i) spec += (i ? ",unix:" : "unix:") + directory_ + "/w" + std::to_string(i);
    OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster_));
    for (int i = 0; i < kSize; ++i) servers_.push_back(std::make_unique<Server>(cluster_, "worker", i));
  }
  void TearDown() override {
    servers_.clear();
    dtg_cluster_release(cluster_);
    ::rmdir(directory_.c_str());
  }
  void all(const std::function<void(Member&)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kSize; ++i) {
      threads.emplace_back([&, i] {
        Member member(*servers_[static_cast<size_t>(i)], i);
        body(member);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::string directory_;
  dtg_cluster* cluster_ = nullptr;
  std::vector<std::unique_ptr<Server>> servers_;
};

// Rows that count from `first`.
std::vector<float> rows_from(int64_t rows, float first) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * 2; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

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
