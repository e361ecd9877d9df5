// Members of groups as graphs see them: a server in this process for each task, with a runtime, a graph and a session, and a thread that
// does what the test says. Each test owns its own.
#pragma once

#include <functional>
#include <thread>

#include "job.h"

namespace outside {

constexpr int64_t kMs = 1'000'000;
constexpr int kSize = 3, kKey = 3;

// One member's graph.
struct Member {
  // With `local` devices it is alone, in a session of its own.
  explicit Member(Server& server, int number, int local = 0) : rank(number), at(server) {
    OK(dtg_graph_create(at.runtime, &graph));
    if (local > 0) {
      dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
      options.emu_devices = local;
      OK(dtg_session_connect(at.runtime, nullptr, 0, graph, &options, &session));
      return;
    }
    const std::string device = "/job:worker/task:" + std::to_string(rank);
    OK(dtg_graph_push_device(graph, device.c_str(), DTG_STRLEN));
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, graph, nullptr, &session));
  }
  ~Member() {
    dtg_session_release(session);
    dtg_graph_release(graph);
    for (dtg_group* each : groups) dtg_group_release(each);
  }
  Member(const Member&) = delete;

  // Of all servers, or of those.
  void join(const char* name, int32_t key, const std::vector<int>& members = {}) {
    std::vector<std::string> names;
    std::vector<const char*> texts;
    for (const int member : members) names.push_back("/job:worker/task:" + std::to_string(member));
    for (const std::string& each : names) texts.push_back(each.c_str());
    dtg_group_options options = DTG_GROUP_OPTIONS_INIT;
    options.name = name;
    options.key = key;
    options.members = texts.data();
    options.num_members = texts.size();
    options.default_timeout_ns = kWaitNs;
    groups.push_back(nullptr);
    OK(dtg_group_join(at.server, &options, &groups.back()));
    group = groups[0];
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
  std::vector<dtg_group*> groups;
  dtg_group* group = nullptr;  // the first of them
};

class GroupOps : public ::testing::Test {
 protected:
  // Emulated accelerators of each server.
  explicit GroupOps(int emu = 0) : emu_(emu) {}
  void SetUp() override {
    directory_ = folder("group-ops");
    ::mkdir(directory_.c_str(), 0700);
    std::string spec = "worker=";
    for (int i = 0; i < kSize; ++i) spec += (i ? ",unix:" : "unix:") + directory_ + "/w" + std::to_string(i);
    OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster_));
    for (int i = 0; i < kSize; ++i) servers_.push_back(std::make_unique<Server>(cluster_, "worker", i, nullptr, emu_));
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

  const int emu_;
  std::string directory_;
  dtg_cluster* cluster_ = nullptr;
  std::vector<std::unique_ptr<Server>> servers_;
};

// Rows that count from `first`.
inline std::vector<float> rows_from(int64_t rows, float first) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * 2; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

}  // namespace outside
