// TF_CONFIG: who is chief, ids and counts, targets, and what is refused. Real TensorFlow's answers to a table of
// texts are replayed by tests/oracle.
#include "cluster/tf_config.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

std::string with_task(const char* cluster, const char* task) {
  return std::string("{\"cluster\": ") + cluster + ", \"task\": " + task + "}";
}

const char* const kWorkers = R"({"worker": ["unix:/a", "unix:/b"], "ps": ["unix:/p", "unix:/q"]})";
const char* const kChief = R"({"chief": ["unix:/c"], "worker": ["unix:/a", "unix:/b"]})";

TEST(TfConfig, AloneIsChief) {
  for (const char* text : {"{}", "[]", "{\"cluster\": {}}", R"({"task": {"type": "worker", "index": 3}})"}) {
    const TfConfig config = TfConfig::parse(text).take();
    EXPECT_TRUE(config.cluster.empty()) << text;
    EXPECT_TRUE(config.is_chief()) << text;
    EXPECT_EQ(config.num_workers(), 1) << text;
    EXPECT_EQ(task_target(config.cluster, config.type, config.index, "grpc").take(), "") << text;
  }
}

TEST(TfConfig, WorkerZeroLeadsWhereNobodyElseDoes) {
  const TfConfig first = TfConfig::parse(with_task(kWorkers, R"({"type": "worker", "index": "0"})")).take();
  EXPECT_TRUE(first.is_chief());
  EXPECT_EQ(first.id(), 0);
  EXPECT_EQ(first.num_workers(), 2);
  EXPECT_EQ(first.num_ps(), 2);
  const TfConfig second = TfConfig::parse(with_task(kWorkers, R"({"type": "worker", "index": 1.0})")).take();
  EXPECT_FALSE(second.is_chief());
  EXPECT_EQ(second.id(), 1);
  const TfConfig ps = TfConfig::parse(with_task(kWorkers, R"({"type": "ps", "index": 0})")).take();
  EXPECT_FALSE(ps.is_chief());
  const TfConfig behind = TfConfig::parse(with_task(kChief, R"({"type": "worker", "index": 0})")).take();
  EXPECT_FALSE(behind.is_chief());
  EXPECT_EQ(behind.id(), 1);
  EXPECT_EQ(behind.num_workers(), 3);
  EXPECT_TRUE(TfConfig::parse(with_task(kChief, R"({"type": "chief", "index": 0})")).take().is_chief());
  EXPECT_FALSE(TfConfig::parse(with_task(kChief, R"({"type": "evaluator", "index": 0})")).take().is_chief());
}

TEST(TfConfig, SparseClusters) {
  const TfConfig config =
      TfConfig::parse(R"({"sparseCluster": {"worker": {"4": "unix:/w"}, "ps": ["unix:/p"]}, "task": {"type": "worker", "index": 4}})")
          .take();
  EXPECT_EQ(config.cluster.text(), "worker=4@unix:/w;ps=unix:/p");
  EXPECT_EQ(task_target(config.cluster, config.type, config.index, config.rpc_layer).take(), "unix:/w");
}

TEST(TfConfig, Targets) {
  const ClusterSpec two = ClusterSpec::parse("worker=unix:/a,unix:/b").take();
  EXPECT_EQ(task_target(two, "worker", 1, "").take(), "unix:/b");
  EXPECT_EQ(task_target(two, "worker", 1, "grpc+loas").take(), "grpc+loas://unix:/b");
  EXPECT_EQ(task_target(two, "worker", 2, "").status().code(), Code::invalid_argument);
  EXPECT_EQ(task_target(two, "worker", std::nullopt, "").status().code(), Code::invalid_argument);
  EXPECT_EQ(task_target(two, "", 0, "").status().code(), Code::invalid_argument);
  EXPECT_EQ(task_target(ClusterSpec::parse("worker=unix:/a").take(), "worker", 0, "grpc").take(), "");
  EXPECT_EQ(task_target(ClusterSpec::parse(R"({"worker": []})").take(), "worker", 0, "").status().code(), Code::invalid_argument);
}

TEST(TfConfig, Refuses) {
  // clang-format off
  for (const char* text : {"", "{", "null", "5", "\"x\"", "[1]", R"({"cluster": []})", R"({"cluster": {"w": "unix:/a"}})", R"({"task": 1})",
                           R"({"clusters": {"worker": ["unix:/a"]}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": {"worker": ["unix:/a"]}, "task": {"typ": "worker", "index": 0}})",
                           R"({"task": {"type": 1}})", R"({"task": {"index": "x"}})", R"({"task": {"index": " 1"}})",
                           R"({"task": {"index": 1.5}})",
                           R"({"task": {"index": 1e300}})", R"({"task": {"index": 99999999999}})", R"({"task": {"index": true}})",
                           R"({"task": {"index": null}})", R"({"task": {"type": "a\u0000b"}})", R"({"rpc_layer": 1})",
                           R"({"rpc_layer": "0123456789012345678901234567890123"})", R"({"cluster": {"chief": ["unix:/a", "unix:/b"]}})",
                           R"({"cluster": {"chief": ["unix:/a"], "master": ["unix:/b"]}})",
                           R"({"cluster": {"evaluator": ["unix:/a", "unix:/b"]}})"}) {
    // clang-format on
    EXPECT_EQ(TfConfig::parse(text).status().code(), Code::invalid_argument) << text;
  }
  EXPECT_EQ(TfConfig::parse(with_task(kChief, R"({"index": -1})")).take().index, -1);
}

TEST(TfConfig, RefusesATaskThatItsJobLacks) {
  const auto refused = [](const std::string& text, const char* words) {
    const Status status = TfConfig::parse(text).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << text;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  refused(with_task(kWorkers, R"({"type": "worker", "index": 2})"),
          "task.index is 2, and the job \"worker\" of the cluster has 2 tasks: 0 to 1");
  refused(with_task(kChief, R"({"type": "chief", "index": 1})"), "has 1 task: 0;");
  refused(with_task(kWorkers, R"({"type": "worker", "index": -1})"), "task.index is -1");
  refused(with_task(R"({"worker": {"3": "unix:/a", "5": "unix:/b"}})", R"({"type": "worker", "index": 4})"), "has 2 tasks: 3, 5;");
  refused(with_task(R"({"worker": []})", R"({"type": "worker", "index": 0})"), "has 0 tasks;");
  for (const char* task : {R"({"type": "evaluator", "index": 3})", R"({"type": "worker"})", R"({"type": "worker", "index": 1})"}) {
    EXPECT_TRUE(TfConfig::parse(with_task(kWorkers, task)).ok()) << task;
  }
}

}  // namespace
}  // namespace dtg
