// Clusters through the ABI: both forms of text, what is asked of them, and a process that learns its place.
#include <cstdlib>

#include "world.h"

namespace outside {
namespace {

std::string taken(dtg_string* string) {
  size_t length = 0;
  const char* const data = dtg_string_data(string, &length);
  std::string text(data ? data : "", length);
  dtg_string_release(string);
  return text;
}

std::string json_of(const dtg_cluster* cluster) {
  dtg_string* json = nullptr;
  OK(dtg_cluster_json(cluster, &json));
  return taken(json);
}

TEST(Cluster, AnswersWhatIsInIt) {
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse("ps=unix:/run/p;worker=7@unix:/run/b,3@unix:/run/a", DTG_STRLEN, &cluster));
  EXPECT_EQ(dtg_cluster_job_count(cluster), 2u);
  EXPECT_STREQ(dtg_cluster_job(cluster, 0), "ps");
  EXPECT_STREQ(dtg_cluster_job(cluster, 1), "worker");
  EXPECT_EQ(dtg_cluster_job(cluster, 2), nullptr);
  EXPECT_EQ(dtg_cluster_task_count(cluster, "worker"), 2u);
  EXPECT_EQ(dtg_cluster_task_count(cluster, "chief"), 0u);
  EXPECT_EQ(dtg_cluster_task_index(cluster, "worker", 0), 3);
  EXPECT_EQ(dtg_cluster_task_index(cluster, "worker", 1), 7);
  EXPECT_EQ(dtg_cluster_task_index(cluster, "worker", 2), -1);
  EXPECT_STREQ(dtg_cluster_address(cluster, "worker", 7), "unix:/run/b");
  EXPECT_EQ(dtg_cluster_address(cluster, "worker", 0), nullptr);
  EXPECT_EQ(json_of(cluster), R"({"ps":["unix:/run/p"],"worker":{"3":"unix:/run/a","7":"unix:/run/b"}})");
  dtg_cluster* again = nullptr;
  OK(dtg_cluster_parse(json_of(cluster).c_str(), DTG_STRLEN, &again));
  EXPECT_EQ(json_of(again), json_of(cluster));
  dtg_cluster_release(again);
  dtg_cluster_release(cluster);
}

TEST(Cluster, SaysWhatIsWrong) {
  dtg_cluster* cluster = nullptr;
  EXPECT_NE(refused(dtg_cluster_parse("ps=unix:/a;ps=unix:/b", DTG_STRLEN, &cluster), DTG_INVALID_ARGUMENT, "twice").find("\"ps\""),
            std::string::npos);
  EXPECT_NE(refused(dtg_cluster_parse("{\"worker\": [1]}", DTG_STRLEN, &cluster), DTG_INVALID_ARGUMENT, "a number").find("worker"),
            std::string::npos);
  std::string many = "worker=";
  for (int i = 0; i <= 4096; ++i) many += "unix:/" + std::to_string(i) + ",";
  refused(dtg_cluster_parse(many.c_str(), DTG_STRLEN, &cluster), DTG_RESOURCE_EXHAUSTED, "4,097 tasks");
  EXPECT_EQ(cluster, nullptr);
}

TEST(Cluster, PlacesVariablesOnItsParameterServers) {
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse("ps=3@unix:/a,8@unix:/b;worker=unix:/w", DTG_STRLEN, &cluster));
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  OK(dtg_graph_create(nullptr, &graph));
  OK(dtg_model_create(graph, 1, &model));
  dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
  setter.cluster = cluster;
  OK(dtg_graph_push_device_setter(graph, &setter));
  dtg_cluster_release(cluster);
  const auto device_of = [&](dtg_value value) {
    const char* device = nullptr;
    OK(dtg_value_device(graph, value, &device, nullptr));
    return std::string(device);
  };
  dtg_value handles[2];
  for (int i = 0; i < 2; ++i) {
    dtg_variable made = DTG_VARIABLE_INIT;
    OK(dtg_variable_f32(model, i == 0 ? "a" : "b", 2, &made));
    handles[i] = made.handle;
    EXPECT_EQ(device_of(made.read), device_of(made.handle));
  }
  EXPECT_EQ(device_of(handles[0]), "/job:ps/task:3");
  EXPECT_EQ(device_of(handles[1]), "/job:ps/task:8");
  OK(dtg_graph_push_device(graph, nullptr, 0));
  dtg_value x{};
  OK(dtg_placeholder(graph, "x", DTG_F32, nullptr, 0, &x));
  EXPECT_EQ(device_of(x), "");
  OK(dtg_graph_pop_device(graph));
  OK(dtg_placeholder(graph, "y", DTG_F32, nullptr, 0, &x));
  EXPECT_EQ(device_of(x), "/job:worker");
  OK(dtg_graph_pop_device(graph));
  refused(dtg_graph_pop_device(graph), DTG_FAILED_PRECONDITION, "a scope too many");
  dtg_model_release(model);
  dtg_graph_release(graph);
}

TEST(Cluster, ReadsTheEnvironment) {
  const char* const config = R"({"cluster": {"chief": ["unix:/c"], "worker": ["unix:/a", "unix:/b"], "ps": ["unix:/p"]},
                                 "task": {"type": "worker", "index": 1}})";
  ASSERT_EQ(setenv("TF_CONFIG", config, 1), 0);
  dtg_cluster* cluster = nullptr;
  dtg_task self = DTG_TASK_INIT;
  OK(dtg_cluster_from_tf_config(nullptr, 0, &cluster, &self));
  EXPECT_STREQ(self.type, "worker");
  EXPECT_EQ(self.index, 1);
  EXPECT_EQ(self.id, 2);
  EXPECT_EQ(self.is_chief, 0);
  EXPECT_EQ(self.num_workers, 3);
  EXPECT_EQ(self.num_ps, 1);
  EXPECT_STREQ(self.rpc_layer, "");
  dtg_string* target = nullptr;
  OK(dtg_cluster_target(cluster, &self, &target));
  EXPECT_EQ(taken(target), "unix:/b");
  self.index = 2;
  refused(dtg_cluster_target(cluster, &self, &target), DTG_INVALID_ARGUMENT, "a task that is not there");
  dtg_cluster_release(cluster);

  ASSERT_EQ(unsetenv("TF_CONFIG"), 0);
  OK(dtg_cluster_from_tf_config(nullptr, 0, &cluster, &self));
  EXPECT_EQ(cluster, nullptr);
  EXPECT_STREQ(self.type, "");
  EXPECT_EQ(self.index, -1);
  EXPECT_EQ(self.is_chief, 1);
  EXPECT_EQ(self.num_workers, 1);
  OK(dtg_cluster_target(cluster, &self, &target));
  EXPECT_EQ(taken(target), "");
}

}  // namespace
}  // namespace outside
