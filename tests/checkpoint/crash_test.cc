// Faults and power cuts while a set is saved, published, pruned and tidied: whatever call fails and whatever the disk keeps of what
// was not synced, a restore finds the old set or the new one, whole, and never the old one after the new was published.
#include <gtest/gtest.h>

#include "model_disk.h"
#include "sample_set.h"
#include "scratch.h"

namespace dtg {
namespace {

using Fault = ModelDisk::Fault;
constexpr const char* kPath = "/data/run/checkpoints";

// What one task with two shards does between two sets, and how far it came.
struct Saving {
  Status status;
  bool published = false;
};

Saving save_and_tidy(ModelDisk& disk, const Random& random, int64_t step, float value) {
  CheckpointDirectory directory(disk, random, kPath);
  SteppedClock clock;
  Saving saving;
  const auto id = save_sample(directory, step, value);
  saving.status = id.status();
  saving.published = id.ok();
  if (id.ok()) saving.status = directory.prune(1);
  if (saving.status.ok()) saving.status = directory.remove_leftovers(clock, {.live = {}, .older_than_s = 0});
  return saving;
}

// The value of the newest set; 0 when there is none, -1 for anything else.
float newest(ModelDisk& disk, Status* status = nullptr) {
  const CountingRandom random;
  CheckpointDirectory directory(disk, random, kPath);
  const auto set = restore_newest(disk, directory, OnDamage::fail);
  if (status) *status = set.status();
  if (set.ok()) return sample_value(set.value());
  return set.status().code() == Code::not_found ? 0.0f : -1.0f;
}

struct World {
  ModelDisk disk;
  CountingRandom random;
  // With a set of step 1 and value 1, or without any.
  explicit World(bool with_old) {
    if (!with_old) return;
    EXPECT_TRUE(save_and_tidy(disk, random, 1, 1).status.ok());
  }
};

// After a crash: what is found is one of the two, and the next save works as if nothing had been. Gives how many wrong ones.
int check_crash_states(const World& world, bool with_old, bool published, int* states) {
  int wrong = 0;
  *states += world.disk.for_each_crash_state([&](ModelDisk& left) {
    Status status;
    const float found = newest(left, &status);
    const bool right = published ? found == 2.0f : found == 2.0f || found == (with_old ? 1.0f : 0.0f);
    const CountingRandom random;
    const bool goes_on = right && save_and_tidy(left, random, 3, 3).status.ok() && newest(left) == 3.0f;
    const bool tidy = goes_on && left.list(kPath).value().size() == 1;
    if (!tidy) ++wrong;
  });
  return wrong;
}

int calls_of_a_save(bool with_old) {
  World world(with_old);
  world.disk.fail(INT32_MAX, Fault::none);
  EXPECT_TRUE(save_and_tidy(world.disk, world.random, 2, 2).status.ok());
  return world.disk.calls();
}

TEST(CheckpointCrash, APowerCutAtAnyCallLeavesOneOrTheOther) {
  int states = 0, cuts = 0;
  for (const bool with_old : {true, false}) {
    const int calls = calls_of_a_save(with_old);
    for (int call = 0; call <= calls; ++call, ++cuts) {
      World world(with_old);
      world.disk.fail(call, Fault::crash);
      const Saving saving = save_and_tidy(world.disk, world.random, 2, 2);
      EXPECT_EQ(check_crash_states(world, with_old, saving.published, &states), 0) << "at call " << call << " of " << calls;
    }
  }
  std::printf("%d cuts, %d different disks\n", cuts, states);
  EXPECT_GT(states, 400);
}

// One failed call, from which the program goes on, and the power cut at any call after it.
TEST(CheckpointCrash, AFaultAndThenAPowerCut) {
  int states = 0, pairs = 0;
  const int calls = calls_of_a_save(true);
  for (int call = 0; call < calls; ++call) {
    for (int cut = call + 1; cut <= calls; ++cut, ++pairs) {
      World world(true);
      world.disk.fail(call, Fault::io_error);
      world.disk.crash_at(cut);
      const Saving saving = save_and_tidy(world.disk, world.random, 2, 2);
      ASSERT_EQ(check_crash_states(world, true, saving.published, &states), 0) << "fault at call " << call << ", cut at " << cut;
    }
  }
  std::printf("%d pairs, %d disks\n", pairs, states);
}

TEST(CheckpointCrash, AnyFailedCallIsAnErrorAndChangesNothing) {
  const int calls = calls_of_a_save(true);
  int faults = 0, told = 0;
  for (const Fault fault : {Fault::io_error, Fault::no_space, Fault::short_write}) {
    for (const bool for_good : {false, true}) {
      for (int call = 0; call < calls; ++call, ++faults) {
        World world(true);
        world.disk.fail(call, fault, for_good);
        const Saving saving = save_and_tidy(world.disk, world.random, 2, 2);
        EXPECT_TRUE(world.disk.failed());
        EXPECT_FALSE(world.disk.synced_again()) << call;
        told += saving.status.ok() ? 0 : 1;
        world.disk.fail(-1, Fault::none);
        Status status;
        const float found = newest(world.disk, &status);
        // Where nothing works any more after the rename, it cannot be taken back: the new set stays in sight, whole.
        const bool stuck = for_good && !saving.published && found == 2.0f;
        EXPECT_TRUE(stuck || found == (saving.published ? 2.0f : 1.0f))
            << "call " << call << ": " << saving.status.message() << "; " << status.message();
        // And nothing is left of it after the next one.
        ASSERT_TRUE(save_and_tidy(world.disk, world.random, 3, 3).status.ok()) << call;
        EXPECT_EQ(newest(world.disk), 3.0f);
        EXPECT_EQ(world.disk.list(kPath).value().size(), 1u) << world.disk.text();
      }
    }
  }
  std::printf("%d faults in %d calls, %d of them told to the caller\n", faults, calls, told);
}

// The checker has teeth: a disk that forgets any one of the syncs loses something.
TEST(CheckpointCrash, EverySyncIsNeeded) {
  World counted(false);
  ASSERT_TRUE(save_sample(*std::make_unique<CheckpointDirectory>(counted.disk, counted.random, kPath), 2, 2).ok());
  const int syncs = counted.disk.syncs();
  const int calls = calls_of_a_save(false);
  for (int sync = 0; sync < syncs; ++sync) {
    int wrong = 0, states = 0;
    for (int call = 0; call <= calls && wrong == 0; ++call) {
      World world(false);
      world.disk.lie(sync);
      world.disk.fail(call, Fault::crash);
      const Saving saving = save_and_tidy(world.disk, world.random, 2, 2);
      wrong += check_crash_states(world, false, saving.published, &states);
    }
    EXPECT_GT(wrong, 0) << "sync " << sync << " of " << syncs << " could be left out";
  }
}

// Readers meet faults too: an error, never half a set.
TEST(CheckpointCrash, AFailedReadIsAnError) {
  World world(true);
  world.disk.fail(INT32_MAX, Fault::none);
  ASSERT_EQ(newest(world.disk), 1.0f);
  const int calls = world.disk.calls();
  for (int call = 0; call < calls; ++call) {
    world.disk.fail(call, Fault::io_error);
    EXPECT_EQ(newest(world.disk), -1.0f) << call;
    EXPECT_TRUE(world.disk.failed());
  }
}

TEST(CheckpointCrash, ADiskThatIsTooFullSaysHowMuchIsNeeded) {
  World world(true);
  world.disk.free = 100;
  const Status status = save_and_tidy(world.disk, world.random, 2, 2).status;
  EXPECT_EQ(status.code(), Code::resource_exhausted);
  EXPECT_NE(status.message().find("bytes are needed, 100 are free"), std::string::npos) << status.message();
  EXPECT_EQ(newest(world.disk), 1.0f);
}

}  // namespace
}  // namespace dtg
