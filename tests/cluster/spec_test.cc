// Cluster specs: both forms of text, there and back, and what is refused.
#include "cluster/spec.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

TEST(ClusterSpec, ReadsAndWrites) {
  const std::string text = "ps=unix:/run/a;worker=unix:/run/b,unix:/run/c";
  const ClusterSpec spec = ClusterSpec::parse(text).take();
  ASSERT_EQ(spec.tasks().size(), 3u);
  EXPECT_EQ(spec.text(), text);
  EXPECT_EQ(spec.find("worker", 1)->address.path, "/run/c");
  EXPECT_EQ(spec.find("worker", 1)->name(), "/job:worker/replica:0/task:1");
  EXPECT_EQ(spec.find("worker", 2), nullptr);
  EXPECT_EQ(spec.find("worker", -1), nullptr);
  EXPECT_EQ(spec.find("chief", 0), nullptr);
  EXPECT_EQ(spec.task_count("worker"), 2u);
  EXPECT_EQ(task_of_device("/job:ps/replica:0/task:3/device:CPU:0"), "/job:ps/replica:0/task:3");
}

TEST(ClusterSpec, SparseJobs) {
  const ClusterSpec spec = ClusterSpec::parse("ps=unix:/p;worker=9@unix:/c,3@unix:/a,unix:/b").take();
  EXPECT_EQ(spec.text(), "ps=unix:/p;worker=3@unix:/a,4@unix:/b,9@unix:/c");
  EXPECT_EQ(spec.json().text(), R"({"ps":["unix:/p"],"worker":{"3":"unix:/a","4":"unix:/b","9":"unix:/c"}})");
  EXPECT_TRUE(spec.find_job("ps")->dense);
  EXPECT_FALSE(spec.find_job("worker")->dense);
  EXPECT_EQ(spec.find("worker", 9)->address.path, "/c");
  EXPECT_EQ(spec.find("worker", 5), nullptr);
  // Numbers without a hole are a dense job, in whatever order they come.
  EXPECT_EQ(ClusterSpec::parse(R"({"w": {"1": "unix:/b", "0": "unix:/a"}})").take().text(), "w=unix:/a,unix:/b");
}

TEST(ClusterSpec, ThereAndBack) {
  for (const char* text :
       {"", R"({"ps":{}})", "ps=unix:/a", "a=unix:/1;b=unix:/2,unix:/3", R"({"w":{"5":"unix:/x"},"v":{}})", "w=0@unix:/x,2@unix:/y",
        R"({"w":["unix:/with,comma","unix:/with;mark"]})", R"({"w":{"4":"unix:/with,comma"}})"}) {
    const ClusterSpec spec = ClusterSpec::parse(text).take();
    EXPECT_EQ(spec.text(), text);
    EXPECT_EQ(ClusterSpec::parse(spec.text()).take().json().text(), spec.json().text()) << text;
    EXPECT_EQ(ClusterSpec::parse(spec.json().text()).take().text(), spec.text()) << text;
  }
  EXPECT_EQ(ClusterSpec::parse(R"( {"worker": []})").take().json().text(), R"({"worker":{}})");
}

TEST(ClusterSpec, HostsAndPorts) {
  const std::string text = "chief=a.example:2222;worker=3@[::1]:4000,7@10.0.0.1:4000";
  const ClusterSpec spec = ClusterSpec::parse(text).take();
  EXPECT_EQ(spec.text(), text);
  EXPECT_EQ(spec.json().text(), R"({"chief":["a.example:2222"],"worker":{"3":"[::1]:4000","7":"10.0.0.1:4000"}})");
  // Ports that the system chooses differ in the end.
  EXPECT_EQ(ClusterSpec::parse("w=localhost:0,localhost:0").take().tasks().size(), 2u);
}

// A list that was forgotten is no cluster; one that a program wrote may be empty.
TEST(ClusterSpec, AJobWithoutTasks) {
  for (const char* text : {"ps=", "ps=;worker=unix:/a", "worker=unix:/a;ps="}) {
    const Status status = ClusterSpec::parse(text).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << text;
    EXPECT_NE(status.message().find("job \"ps\" has no tasks"), std::string::npos) << status.message();
  }
  EXPECT_EQ(ClusterSpec::parse(R"({"ps": [], "worker": ["unix:/a"]})").take().task_count("ps"), 0u);
}

TEST(ClusterSpec, Refuses) {
  // clang-format off
  for (const char* text :
       {"ps", "=unix:/a", "ps=unix:/a;ps=unix:/b", "ps=unix:/a,unix:/a", "p s=unix:/a", "9=unix:/a", "*=unix:/a", "w=1@unix:/a,1@unix:/b",
        "w=1048576@unix:/a", "w=99999999999999999999@unix:/a", "w=1048575@unix:/a,unix:/b", "w=unix:", "w=h", "w=unix:/\xff", "w=h:1,h:1",
        "{", "{\"w\": \"a\"}", "{\"w\": [1]}",
        "{\"w\": {\"x\": \"unix:/a\"}}", "{\"w\": {\"-1\": \"unix:/a\"}}", "{\"w\": {\"1\": \"unix:/a\", \"01\": \"unix:/b\"}}",
        "{\"w\": 4}", "{\"w\": [], \"w\": []}", "{\"w-x\": []}"}) {
    // clang-format on
    EXPECT_EQ(ClusterSpec::parse(text).status().code(), Code::invalid_argument) << text;
  }
  EXPECT_EQ(ClusterSpec::parse(std::string(64, 'j') + "=unix:/a").status().code(), Code::invalid_argument);
  EXPECT_EQ(ClusterSpec::parse(std::string(63, 'j') + "=unix:/a").take().tasks().size(), 1u);
  EXPECT_TRUE(ClusterSpec::parse("").take().empty());
}

TEST(ClusterSpec, Limits) {
  std::string most = "w=", jobs = "{";
  for (size_t i = 0; i < ClusterSpec::kTasksMax; ++i) {
    most += "unix:/" + std::to_string(i) + ",";
    jobs += (i > 0 ? ",\"j" : "\"j") + std::to_string(i) + "\":[]";
  }
  EXPECT_EQ(ClusterSpec::parse(most).take().tasks().size(), ClusterSpec::kTasksMax);
  EXPECT_EQ(ClusterSpec::parse(most + "unix:/x").status().code(), Code::resource_exhausted);
  EXPECT_EQ(ClusterSpec::parse(jobs + "}").take().jobs().size(), ClusterSpec::kTasksMax);
  EXPECT_EQ(ClusterSpec::parse(jobs + ",\"k\":[]}").status().code(), Code::resource_exhausted);
}

}  // namespace
}  // namespace dtg
