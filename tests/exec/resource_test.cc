// ResourceStore: identity is (device, container, name); destruction moves the generation.
#include "exec/resource.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

class Thing final : public Resource {
 public:
  static constexpr std::string_view kKind = "thing";
  using Resource::Resource;
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override { why = reason; }
  Status why;
};

Result<Ref<Resource>> thing(ResourceStore& store, std::string_view device, std::string_view container, std::string_view name) {
  return store.find_or_create(device, container, name, Thing::kKind, [&] { return Ref<Resource>(make_ref<Thing>(std::string(name))); });
}

constexpr const char* kDevice = "/job:localhost/replica:0/task:0/device:CPU:0";

TEST(ResourceStore, SharesByDeviceContainerAndName) {
  ResourceStore store;
  const auto a = thing(store, kDevice, "", "a");
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a.value(), thing(store, kDevice, kDefaultContainer, "a").value());
  EXPECT_FALSE(a.value() == thing(store, kDevice, "other", "a").value());
  EXPECT_FALSE(a.value() == thing(store, "/device:CPU:1", "", "a").value());
  EXPECT_EQ(store.find(kDevice, "", "a"), a.value());
  EXPECT_FALSE(store.find(kDevice, "", "b"));
  EXPECT_EQ(store.list().size(), 3u);
  EXPECT_NE(resource_cast<Thing>(static_cast<RefCounted*>(a.value().get())), nullptr);
}

TEST(ResourceStore, WhatIsOnNoDeviceIsTheTasksOwn) {
  ResourceStore store;
  const auto own = thing(store, "", "_own", "a").take();
  EXPECT_TRUE(store.list().empty());
  store.reset({"_own"});
  EXPECT_EQ(store.find("", "_own", "a"), own);
  EXPECT_TRUE(static_cast<Thing&>(*own).why.ok());
}

TEST(ResourceStore, RefusesAnotherKindUnderTheSameName) {
  ResourceStore store;
  ASSERT_TRUE(thing(store, kDevice, "", "a").ok());
  const auto other = store.find_or_create(kDevice, "", "a", "queue", [] { return Ref<Resource>(); });
  EXPECT_EQ(other.status().code(), Code::invalid_argument);
  EXPECT_NE(other.status().message().find("a thing has that name"), std::string::npos);
}

TEST(ResourceStore, DestroyAndResetMoveTheGeneration) {
  ResourceStore store;
  auto a = thing(store, kDevice, "", "a").take();
  auto b = thing(store, kDevice, "box", "b").take();
  const uint64_t before = store.generation();
  store.destroy(*a, cancelled("gone"));
  EXPECT_NE(store.generation(), before);
  EXPECT_EQ(static_cast<Thing&>(*a).why.code(), Code::cancelled);
  EXPECT_FALSE(store.find(kDevice, "", "a"));
  store.reset({});
  EXPECT_TRUE(store.find(kDevice, "box", "b"));
  store.reset({"box"});
  EXPECT_FALSE(store.find(kDevice, "box", "b"));
  EXPECT_EQ(static_cast<Thing&>(*b).why.code(), Code::aborted);
}

}  // namespace
}  // namespace dtg
