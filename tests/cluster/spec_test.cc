// Cluster specs as text.
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
  EXPECT_EQ(spec.find("chief", 0), nullptr);
  EXPECT_EQ(task_of_device("/job:ps/replica:0/task:3/device:CPU:0"), "/job:ps/replica:0/task:3");
}

TEST(ClusterSpec, Refuses) {
  for (const char* text : {"ps", "=unix:/a", "ps=unix:/a;ps=unix:/b", "ps=unix:/a,unix:/a", "p s=unix:/a", "9=unix:/a"}) {
    EXPECT_EQ(ClusterSpec::parse(text).status().code(), Code::invalid_argument) << text;
  }
  EXPECT_EQ(ClusterSpec::parse("ps=localhost:80").status().code(), Code::unimplemented);
  EXPECT_TRUE(ClusterSpec::parse("").take().empty());
}

}  // namespace
}  // namespace dtg
