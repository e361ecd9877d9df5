// Device names: both grammars, merging and intersection. The rows are those of TensorFlow's runtime and
// client parsers where they differ or surprise.
#include "graph/device_name.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

// What the strict parser makes of a name, or "bad".
std::string strict(const char* text) {
  auto name = DeviceName::parse(text);
  return name.ok() ? name.value().text() : "bad";
}

std::string lenient(const char* text) {
  auto name = DeviceName::parse_spec(text);
  return name.ok() ? name.value().text() : "bad";
}

std::string merged(const char* outer, const char* inner) {
  DeviceName name = DeviceName::parse_spec(outer).take();
  name.merge(DeviceName::parse_spec(inner).take());
  return name.text();
}

TEST(DeviceName, StrictFormsOfAGraph) {
  EXPECT_EQ(strict(""), "");
  EXPECT_EQ(strict("/"), "");
  EXPECT_EQ(strict("/job:ps/replica:0/task:1/device:CPU:0"), "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(strict("/replica:0/job:w/device:GPU:0/task:3"), "/job:w/replica:0/task:3/device:GPU:0");
  EXPECT_EQ(strict("/cpu:0"), "/device:CPU:0");
  EXPECT_EQ(strict("/GPU:2"), "/device:GPU:2");
  EXPECT_EQ(strict("/gpu:*"), "/device:GPU:*");
  EXPECT_EQ(strict("/device:CPU"), "/device:CPU:*");
  EXPECT_EQ(strict("/job:*/replica:*/task:*/device:GPU:*"), "/device:GPU:*");
  EXPECT_EQ(strict("/task:0/task:1"), "/task:1");
  EXPECT_EQ(strict("/cpu:0/gpu:0"), "/device:GPU:0");
  EXPECT_EQ(strict("/device:cpu:00"), "/device:cpu:0") << "types are case-sensitive in a graph";
  EXPECT_EQ(strict("/device:CPU:99999999999"), "/device:CPU:99999999999");
  for (const char* text :
       {"job:worker", "CPU:0",    "/cpu",         "/JOB:w",        "/job:",           "/task:",  "/task:x",
        "/task:-1",   "/device:", "/device:CPU:", "/device:CPU:x", "/device:CPU:0:1", "/foo:1",  "foo",
        "//cpu:0",    "/cpu:0/",  "/job:1w",      "/job:w-x",      " /cpu:0",         "/cpu:0 ", "/device:CPU:99999999999999999999"}) {
    EXPECT_EQ(strict(text), "bad") << text;
  }
}

TEST(DeviceName, LenientFormsOfAScope) {
  EXPECT_EQ(lenient("job:worker"), "/job:worker");
  EXPECT_EQ(lenient("cpu:0"), "/device:CPU:0");
  EXPECT_EQ(lenient("/gpu"), "/device:GPU:*");
  EXPECT_EQ(lenient("//cpu:0/"), "/device:CPU:0");
  EXPECT_EQ(lenient("/device:gpu:1"), "/device:GPU:1");
  EXPECT_EQ(lenient("/device:XLA_CPU:0"), "/device:XLA_CPU:0");
  EXPECT_EQ(lenient("/job:"), "/job:");
  EXPECT_EQ(lenient("/job:*"), "/job:*");
  EXPECT_EQ(lenient("/job:w /task:0"), "/job:w /task:0");
  EXPECT_EQ(lenient("/task:-1"), "/task:-1");
  EXPECT_EQ(lenient("/cpu:0 "), "/device:CPU:0");
  for (const char* text : {"/device:CPU", "/replica:*", "/JOB:w", "/task:", "/device:CPU:x", "/device:CPU:0:1", "/foo", " /cpu:0",
                           "/cpu:0/gpu:0", "/device:CPU:0/device:GPU:1"}) {
    EXPECT_EQ(lenient(text), "bad") << text;
  }
}

// What can be read, but stand nowhere.
TEST(DeviceName, WhatIsGivenCanBePlaced) {
  for (const char* text : {"", "/", "/job:*", "job:worker", "cpu:0", "//cpu:0/", "/device:XLA_CPU:0", "/device:CPU:99999999999"}) {
    const auto name = DeviceName::parse_given(text);
    ASSERT_TRUE(name.ok()) << text;
    EXPECT_EQ(name.value().text(), lenient(text));
    EXPECT_TRUE(DeviceName::parse(name.value().text()).ok()) << text;
  }
  for (const char* text : {"/job:", "job:/cpu:0", "/job:w /task:0", "/job:1w", "/task:-1", "/replica:-2", "CPU:-1", "/device:CPU:-1",
                           "/device::0", "/device:a-b:0", "foo"}) {
    const auto name = DeviceName::parse_given(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.status().code(), Code::invalid_argument);
    EXPECT_NE(name.status().message().find(text), std::string::npos) << name.status().message();
  }
}

TEST(DeviceName, MergeReplacesFieldByField) {
  EXPECT_EQ(merged("/job:ps/task:1", "/device:CPU:0"), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(merged("CPU:0", "/gpu"), "/device:GPU:0") << "type and id are separate fields";
  EXPECT_EQ(merged("/job:w/replica:2/gpu:1", "/CPU:1"), "/job:w/replica:2/device:CPU:1");
  EXPECT_EQ(merged("/cpu:0", ""), "/device:CPU:0");
}

TEST(DeviceName, IntersectionAndMatching) {
  const DeviceName full = DeviceName::parse("/job:ps/replica:0/task:1/device:CPU:0").take();
  const DeviceName task = DeviceName::parse("/job:ps/task:1").take();
  const DeviceName gpu = DeviceName::parse("/gpu:0").take();
  EXPECT_TRUE(full.is_full());
  EXPECT_TRUE(task.matches(full));
  EXPECT_FALSE(gpu.matches(full));
  EXPECT_FALSE(full.matches(task));
  EXPECT_TRUE(DeviceName().matches(full));
  EXPECT_EQ(DeviceName::intersect(task, gpu).take().text(), "/job:ps/task:1/device:GPU:0");
  const auto none = DeviceName::intersect(full, gpu);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::invalid_argument);
  EXPECT_NE(none.status().message().find("device type"), std::string::npos);
  DeviceName soft = full;
  soft.drop_type_and_id();
  EXPECT_EQ(soft.text(), "/job:ps/replica:0/task:1");
}

}  // namespace
}  // namespace dtg
