// Several devices of each task in one group: the values of every op against the same number of devices of one process, bit by bit; and
// graphs whose devices do not fit the group, which are refused by name. The devices are emulated accelerators.
#include <algorithm>
#include <barrier>
#include <random>

#include "group_members.h"

namespace outside {
namespace {

constexpr int kDevices = 2, kRanks = kSize * kDevices;

class GroupDevices : public GroupOps {
 protected:
  GroupDevices() : GroupOps(kDevices) {}
};

struct Wanted {
  const char* op;
  const char* merge;
  const char* last;
  int64_t rows;
  bool uneven;  // rank r brings r rows more
};

// Small and large ones travel in different ways.
constexpr Wanted kWanted[] = {
    {"CollectiveReduceV2", "Add", "Id", 50, false},        {"CollectiveReduceV2", "Add", "Div", 18'001, false},
    {"CollectiveReduceV2", "Mul", "Id", 30, false},        {"CollectiveReduceV2", "Max", "Id", 30, false},
    {"CollectiveReduceScatterV2", "Add", "Id", 12, false}, {"CollectiveReduceScatterV2", "Add", "Div", 18'000, false},
    {"CollectiveGatherV2", nullptr, "Id", 3, false},       {"CollectiveGatherV2", nullptr, "Id", 0, true},
    {"CollectiveAllToAllV2", nullptr, "Id", 18, false},    {"CollectiveBcastSendV2", nullptr, "Id", 7, false}};

// What sums of floats in another order would not give.
dtg_value numbers(Member& m, int rank, const Wanted& wanted) {
  std::mt19937 random(static_cast<uint32_t>(rank * 31 + wanted.rows));
  const int64_t dims[] = {wanted.rows + (wanted.uneven ? rank : 0), 2};
  std::vector<float> values;
  for (int64_t i = 0; i < dims[0] * 2; ++i) values.push_back(static_cast<float>(random()) * 0x1p-30f - 2.0f);
  dtg_tensor* tensor = nullptr;
  dtg_value out{};
  OK(dtg_tensor_create(DTG_F32, dims, 2, values.data(), values.size() * sizeof(float), nullptr, nullptr, &tensor));
  OK(dtg_const(m.graph, tensor, &out));
  dtg_tensor_release(tensor);
  return out;
}

// The calls of that many ranks from `first` on, on devices EMU:0 and up.
std::vector<dtg_value> calls(Member& m, const Wanted& wanted, int first, int devices, int instance) {
  std::vector<dtg_value> out;
  for (int d = devices; d-- > 0;) {  // the order in which they are made does not matter
    OK(dtg_graph_push_device(m.graph, ("/device:EMU:" + std::to_string(d)).c_str(), DTG_STRLEN));
    if (std::string(wanted.op) == "CollectiveBcastSendV2" && first + d != 3) {
      const int64_t two[] = {2};
      int32_t dims[] = {7, 2};
      dtg_tensor* tensor = nullptr;
      dtg_value shape{};
      OK(dtg_tensor_create(DTG_I32, two, 1, dims, sizeof dims, nullptr, nullptr, &tensor));
      OK(dtg_const(m.graph, tensor, &shape));
      dtg_tensor_release(tensor);
      out.insert(out.begin(), m.call("CollectiveBcastRecvV2", {shape}, instance, nullptr, "Id", kRanks));
    } else {
      out.insert(out.begin(), m.call(wanted.op, {numbers(m, first + d, wanted)}, instance, wanted.merge, wanted.last, kRanks));
    }
    OK(dtg_graph_pop_device(m.graph));
  }
  return out;
}

std::vector<std::vector<float>> fetch(dtg_session* session, const std::vector<dtg_value>& values) {
  std::vector<dtg_tensor*> tensors(values.size());
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = values.data();
  args.fetched = tensors.data();
  args.num_fetches = values.size();
  args.timeout_ns = kWaitNs;
  OK(dtg_session_run(session, &args));
  std::vector<std::vector<float>> all;
  for (dtg_tensor* tensor : tensors) {
    size_t bytes = 0;
    const auto* const data = tensor ? static_cast<const float*>(dtg_tensor_data(tensor, &bytes)) : nullptr;
    all.emplace_back(data, data + bytes / sizeof(float));
    dtg_tensor_release(tensor);
  }
  return all;
}

TEST_F(GroupDevices, TheBitsAreThoseOfAsManyDevicesOfOneProcess) {
  std::vector<std::vector<std::vector<float>>> expected;  // by op and rank
  {
    Member local(*servers_[0], 0, kRanks);
    int instance = 1;
    for (const Wanted& wanted : kWanted) expected.push_back(fetch(local.session, calls(local, wanted, 0, kRanks, instance++)));
  }
  EXPECT_EQ(expected[0][0].size(), 100u);
  EXPECT_NE(expected[4][0], expected[4][5]);
  std::barrier through(kSize);
  all([&](Member& m) {
    m.join("devices", kKey);
    std::vector<std::vector<dtg_value>> made;
    for (int i = 0; i < static_cast<int>(std::size(kWanted)); ++i) made.push_back(calls(m, kWanted[i], m.rank * kDevices, kDevices, i + 1));
    // All of them in one run too.
    std::vector<dtg_value> together;
    for (const auto& each : made) together.insert(together.end(), each.begin(), each.end());
    const auto at_once = fetch(m.session, together);
    for (size_t i = 0; i < made.size(); ++i) {
      const auto got = fetch(m.session, made[i]);
      for (size_t d = 0; d < kDevices; ++d) {
        const std::vector<float>& wanted = expected[i][static_cast<size_t>(m.rank) * kDevices + d];
        EXPECT_TRUE(got[d] == wanted) << kWanted[i].op << ", case " << i << ", rank " << m.rank << ", device " << d;
        EXPECT_TRUE(at_once[i * kDevices + d] == wanted) << kWanted[i].op << ", all at once, case " << i << ", device " << d;
      }
    }
    std::vector<dtg_value> barriers;
    for (int d = 0; d < kDevices; ++d) {
      OK(dtg_graph_push_device(m.graph, ("/device:EMU:" + std::to_string(d)).c_str(), DTG_STRLEN));
      barriers.push_back(m.call("CollectiveBarrier", {}, 90, nullptr, "Id", kRanks));
      OK(dtg_graph_pop_device(m.graph));
    }
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.targets = barriers.data();
    args.num_targets = barriers.size();
    args.timeout_ns = kWaitNs;
    OK(dtg_session_run(m.session, &args));
    through.arrive_and_wait();
  });
}

// Two devices that make one call each where the group counts one of each task would mix the members' values.
TEST_F(GroupDevices, WhatDoesNotFitTheGroupIsRefusedByName) {
  std::barrier through(kSize);
  all([&](Member& m) {
    const Wanted sum{"CollectiveReduceV2", "Add", "Id", 4, false};
    const auto on = [&](int device, int instance, int size) {
      OK(dtg_graph_push_device(m.graph, ("/device:EMU:" + std::to_string(device)).c_str(), DTG_STRLEN));
      const dtg_value made = m.call(sum.op, {numbers(m, device, sum)}, instance, sum.merge, sum.last, size);
      OK(dtg_graph_pop_device(m.graph));
      return made;
    };
    const auto run = [&](const std::vector<dtg_value>& values) {
      std::vector<dtg_tensor*> tensors(values.size());
      dtg_run_args args = DTG_RUN_ARGS_INIT;
      args.fetches = values.data();
      args.fetched = tensors.data();
      args.num_fetches = values.size();
      args.timeout_ns = kWaitNs;
      dtg_error* const error = dtg_session_run(m.session, &args);
      for (dtg_tensor* each : tensors) dtg_tensor_release(each);
      return error;
    };
    // Before this task is in the group, its two devices meet; the same plan must not do so afterwards.
    const std::vector<dtg_value> two = {on(0, 1, 2), on(1, 1, 2)};
    OK(run(two));
    m.join("misfits", kKey);
    const auto says = [&](dtg_error* error, const std::vector<const char*>& parts) {
      const std::string message = refused(error, DTG_INVALID_ARGUMENT, "a misfit");
      for (const char* const part : parts) EXPECT_NE(message.find(part), message.npos) << part << " in: " << message;
      through.arrive_and_wait();
      OK(dtg_group_reform(m.group, 0, 0));
      through.arrive_and_wait();
    };
    says(run(two),
         {"group_size is 2", "has 3 members", "\"CollectiveReduceV2\" on /job:worker", "EMU:0", "\"CollectiveReduceV2_1\" on /job:worker"});
    says(run({on(0, 2, kSize), on(1, 2, kSize)}), {"group_size is 3", "\"CollectiveReduceV2_2\"", "\"CollectiveReduceV2_3\""});
    says(run({on(0, 3, kRanks)}), {"group_size is 6", "instance 3", "\"CollectiveReduceV2_4\""});
    says(run({on(0, 4, kSize), on(1, 5, kRanks)}), {"group_size is 6", "\"CollectiveReduceV2_5\"", "is 3"});
    // Instances of their own, each from one device.
    OK(run({on(0, 6, kSize), on(1, 7, kSize)}));
    OK(run({on(0, 8, kRanks), on(1, 8, kRanks)}));
    through.arrive_and_wait();
  });
}

}  // namespace
}  // namespace outside
