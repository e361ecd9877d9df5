// Sets on the real disk: saving by several tasks, the newest wins, damage, pruning under a reader, leftovers, resharding, hostile
// manifests. What power cuts leave is in crash_test.cc.
#include "checkpoint/directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "judge.h"
#include "sample_set.h"
#include "scratch.h"

namespace dtg {
namespace {

// A directory for sets on a scratch disk.
struct Place {
  Scratch scratch;
  CountingRandom random;
  Disk& disk = system_disk();
  CheckpointDirectory sets{disk, random, scratch / "run/checkpoints"};

  SetId save(int64_t step, float value) {
    auto id = save_sample(sets, step, value);
    EXPECT_TRUE(id.ok()) << id.status().message();
    return id.ok() ? id.take() : SetId();
  }
  float newest(OnDamage on_damage = OnDamage::fail) {
    auto set = restore_newest(disk, sets, on_damage);
    return set.ok() ? sample_value(set.value()) : -1.0f;
  }
  std::string file(const SetId& id, size_t shard) {
    auto manifest = read_manifest(disk, sets.path_of(id));
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    return sets.path_of(id) + "/" + manifest.value().shards[shard].file;
  }
  std::string read(const std::string& path) { return disk.read_file(path, int64_t{1} << 30).take(); }
  void write(const std::string& path, std::string_view bytes) {
    auto file = disk.open_write(path).take();
    EXPECT_TRUE(file->append(bytes).ok() && file->close().ok());
  }
  size_t entries() { return disk.list(sets.path()).value().size(); }
};

TEST(CheckpointDirectory, SavesAndRestores) {
  Place place;
  EXPECT_TRUE(place.sets.list().value().empty());
  EXPECT_EQ(restore_newest(place.disk, place.sets, OnDamage::fail).status().code(), Code::not_found);
  const SetId first = place.save(100, 1);
  const SetId second = place.save(200, 2);
  EXPECT_EQ(place.newest(), 2);
  // A later attempt at the same step is newer; an older step is not.
  const SetId again = place.save(200, 3);
  place.save(150, 4);
  EXPECT_EQ(place.newest(), 3);
  const auto found = place.sets.list().take();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].id, again);
  EXPECT_EQ(found[1].id, second);
  EXPECT_EQ(found[3].id, first);
  EXPECT_EQ(found[0].shards, 2u);
  EXPECT_EQ(found[0].tensors, 4u);
  const auto set = restore_set(place.disk, place.sets, first).take();
  const ManifestTensor* const slot = set.manifest.find("w/momentum");
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(slot->of, "w");
  EXPECT_EQ(slot->slot, "momentum");
  EXPECT_EQ(set.manifest.find("global_step")->role, TensorRole::step);
  EXPECT_EQ(set.manifest.rows[0].sequence, 100);
}

TEST(CheckpointDirectory, ATaskReadsWhatIsItsOwn) {
  Place place;
  const SetId id = place.save(1, 5);
  // The shard with nothing wanted may be gone.
  std::filesystem::remove(place.file(id, 0));
  const RestoreOptions step_only{.budget = nullptr, .wanted = [](const auto& tensor) { return tensor.role == TensorRole::step; }};
  auto set = restore_set(place.disk, place.sets, id, step_only);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(set.value().tensors.size(), 1u);
  EXPECT_EQ(restore_set(place.disk, place.sets, id).status().code(), Code::data_loss);
}

TEST(CheckpointDirectory, OnlyWhatWasReportedIsPublished) {
  Place place;
  const SetId id = place.sets.begin(7).take();
  const auto first = place.sets.write(id, {0, 2}, sample_tensors(0, 1)).take();
  // The task was started again, and wrote its shard a second time.
  const auto retried = place.sets.write(id, {0, 2}, sample_tensors(0, 9)).take();
  const auto other = place.sets.write(id, {1, 2}, sample_tensors(1, 9)).take();
  EXPECT_NE(first.shard.file, retried.shard.file);
  const auto travelled = parse_receipt(receipt_text(retried), "a task");
  ASSERT_TRUE(travelled.ok()) << travelled.status().message();
  const ShardReceipt receipts[] = {travelled.value(), other};
  ASSERT_TRUE(place.sets.publish(id, receipts, {{{"worker 0", 1, 7, 0, ""}}, {{"note", std::to_string(9.0f)}}}).ok());
  EXPECT_EQ(place.newest(), 9);
  EXPECT_EQ(place.disk.list(place.sets.path_of(id)).value().size(), 3u) << "the first try's shard is gone";

  // Shards that are missing, cut, or share a tensor: nothing is published and nothing stays.
  for (const char* what : {"missing", "cut", "twice"}) {
    const SetId bad = place.sets.begin(8).take();
    ShardReceipt shard = place.sets.write(bad, {0, 2}, sample_tensors(0, 1)).take();
    ShardReceipt second = place.sets.write(bad, {1, 2}, sample_tensors(*what == 't' ? 0 : 1, 1)).take();
    const std::string path = place.sets.path() + "/.saving-" + bad.name() + "/" + shard.shard.file;
    if (*what == 'm') std::filesystem::remove(path);
    if (*what == 'c') std::filesystem::resize_file(path, 10);
    const ShardReceipt pair[] = {shard, second};
    EXPECT_FALSE(place.sets.publish(bad, pair).ok()) << what;
    EXPECT_EQ(place.entries(), 1u) << what;
  }
  EXPECT_EQ(place.newest(), 9);
}

TEST(CheckpointDirectory, EveryChangedByteAndEveryCutIsFound) {
  Place place;
  const SetId id = place.save(3, 6);
  size_t flips = 0, cuts = 0;
  for (const std::string& path : {place.file(id, 0), place.file(id, 1), place.sets.path_of(id) + "/" + kManifestFile}) {
    const std::string good = place.read(path);
    const auto damaged = [&](const std::string& bytes) {
      place.write(path, bytes);
      const auto report = verify_set(place.disk, place.sets, id);
      return report.ok() && !report.value().problems.empty() &&
             restore_newest(place.disk, place.sets, OnDamage::fail).status().code() == Code::data_loss;
    };
    for (size_t i = 0; i < good.size(); ++i, ++flips) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
      ASSERT_TRUE(damaged(bad)) << path << " byte " << i;
    }
    for (size_t length = 0; length < good.size(); ++length, ++cuts)
      ASSERT_TRUE(damaged(good.substr(0, length))) << path << " cut at " << length;
    ASSERT_TRUE(damaged(good + "x"));
    place.write(path, good);
  }
  EXPECT_EQ(place.newest(), 6);
  std::printf("%zu flips, %zu cuts\n", flips, cuts);
}

TEST(CheckpointDirectory, DamageIsNamedAndFallenBackFromWhenAsked) {
  Place place;
  place.save(1, 1);
  const SetId id = place.save(2, 2);
  const std::string path = place.file(id, 0);
  std::string bytes = place.read(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  place.write(path, bytes);
  const Status status = restore_newest(place.disk, place.sets, OnDamage::fail).status();
  EXPECT_EQ(status.code(), Code::data_loss);
  EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("\"w/momentum\""), std::string::npos) << status.message();
  EXPECT_EQ(place.newest(OnDamage::fall_back), 1);
  const auto report = verify_set(place.disk, place.sets, id).take();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(path.find(report.problems[0].file), std::string::npos);
  // A lack of memory is no reason to go back in time.
  MemoryBudget tight(1000);
  EXPECT_EQ(restore_newest(place.disk, place.sets, OnDamage::fall_back, {.budget = &tight, .wanted = {}}).status().code(),
            Code::resource_exhausted);
  MemoryBudget enough(int64_t{1} << 30);
  EXPECT_TRUE(restore_newest(place.disk, place.sets, OnDamage::fall_back, {.budget = &enough, .wanted = {}}).ok());
  EXPECT_EQ(enough.used(), 0);
}

TEST(CheckpointDirectory, PruningKeepsTheNewestValidOnesAndTheirReaders) {
  Place place;
  SetId ids[6];
  for (int i = 0; i < 6; ++i) ids[i] = place.save(i, static_cast<float>(i));
  std::filesystem::remove(place.file(ids[5], 1));  // damaged
  EXPECT_EQ(place.sets.prune(0).code(), Code::invalid_argument);
  ASSERT_TRUE(place.sets.prune(2).ok());
  auto found = place.sets.list().take();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[0].status.ok());
  EXPECT_EQ(found[1].id, ids[4]);
  EXPECT_EQ(found[2].id, ids[3]);
  // A reader opens set 3 and is overtaken while it reads.
  int asked = 0;
  const auto set = restore_set(place.disk, place.sets, ids[3], {.budget = nullptr, .wanted = [&](const auto&) {
                                                                  // Asked once per tensor to find the shards; then all is open.
                                                                  if (++asked == 5) {
                                                                    EXPECT_TRUE(place.sets.prune(1).ok());
                                                                  }
                                                                  return true;
                                                                }});
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(sample_value(set.value()), 3);
  EXPECT_FALSE(std::filesystem::exists(place.sets.path_of(ids[3])));
  EXPECT_EQ(place.newest(OnDamage::fall_back), 4);
}

TEST(CheckpointDirectory, LeftoversGoWhenTheyAreOldAndNotLive) {
  Place place;
  place.save(1, 1);
  const SetId live = place.sets.begin(2).take(), dead = place.sets.begin(2).take();
  EXPECT_LT(live, dead);
  ASSERT_TRUE(place.sets.write(dead, {0, 2}, sample_tensors(0, 1)).ok());
  place.disk.make_directory(place.sets.path() + "/.removed-" + SetId{1, 1}.name()).ok();
  place.disk.make_directory(place.sets.path() + "/.saving-of-somebody-else").ok();
  ASSERT_TRUE(place.sets.remove_leftovers(system_clock()).ok());
  EXPECT_EQ(place.entries(), 4u) << "both attempts are young";
  ASSERT_TRUE(place.sets.remove_leftovers(system_clock(), {.live = {live}, .older_than_s = 0}).ok());
  EXPECT_EQ(place.entries(), 3u);
  EXPECT_EQ(place.sets.write(dead, {1, 2}, sample_tensors(1, 1)).status().code(), Code::not_found);
  ASSERT_TRUE(place.sets.write(live, {1, 2}, sample_tensors(1, 1)).ok());
  place.sets.give_up(live);
  EXPECT_EQ(place.entries(), 2u);
  EXPECT_EQ(place.newest(), 1);
}

TEST(CheckpointDirectory, ReshardsIntoAnyNumber) {
  Place place;
  const SetId id = place.save(9, 7);
  SetId last = id;
  for (const int shards : {1, 2, 3, 7, 1}) {
    auto made = reshard_set(place.disk, place.sets, last, place.sets, {.shards = shards, .place = {}, .budget = nullptr});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_GT(made.value(), last);
    last = made.value();
    const auto set = restore_set(place.disk, place.sets, last).take();
    EXPECT_EQ(set.manifest.shards.size(), static_cast<size_t>(shards));
    EXPECT_EQ(sample_value(set), 7);
    EXPECT_EQ(set.manifest.find("w")->shard, set.manifest.find("w/momentum")->shard) << "a slot stays with its variable";
  }
  const auto nowhere = [](const ManifestTensor&) { return 2; };
  EXPECT_EQ(reshard_set(place.disk, place.sets, id, place.sets, {.shards = 2, .place = nowhere, .budget = nullptr}).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(reshard_set(place.disk, place.sets, id, place.sets, {.shards = 0, .place = {}, .budget = nullptr}).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(place.newest(), 7);
}

// A manifest with a hash that fits, from the text of a true one with `from` replaced.
std::string forged(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  text.replace(11, 64, std::string(64, '0'));
  return text.replace(11, 64, sha256(text).hex());
}

TEST(CheckpointDirectory, HostileManifestsAreRefused) {
  Place place;
  const SetId id = place.save(4, 8);
  const std::string path = place.sets.path_of(id) + "/" + kManifestFile;
  const std::string good = place.read(path);
  ASSERT_EQ(forged(good, "\"version\":1", "\"version\":1"), good);
  const std::string file = read_manifest(place.disk, place.sets.path_of(id)).value().shards[0].file;
  const auto code = [&](const std::string& from, const std::string& to) {
    place.write(path, forged(good, from, to));
    const Status status = restore_newest(place.disk, place.sets, OnDamage::fail).status();
    EXPECT_NE(status.message().find(place.sets.path_of(id)), std::string::npos) << status.message();
    return status.code();
  };
  for (const char* name : {"../x.safetensors", "/etc/passwd", ".hidden.safetensors", "a/b.safetensors", "x", "", "a\\u0000b.safetensors"}) {
    EXPECT_EQ(code(file, name), Code::data_loss) << name;
  }
  EXPECT_EQ(code("\"shard\":1", "\"shard\":2"), Code::data_loss);
  EXPECT_EQ(code("\"shard\":1", "\"shard\":99999999999"), Code::data_loss);
  EXPECT_EQ(code("\"shape\":[3]", "\"shape\":[4611686018427387904]"), Code::data_loss);
  EXPECT_EQ(code("\"shape\":[3]", "\"shape\":[-1]"), Code::data_loss);
  EXPECT_EQ(code("\"shape\":[3]", "\"shape\":[2]"), Code::data_loss);
  EXPECT_EQ(code("\"dtype\":\"F32\"", "\"dtype\":\"I32\""), Code::data_loss);
  EXPECT_EQ(code("\"dtype\":\"F32\"", "\"dtype\":\"F4\""), Code::data_loss);
  EXPECT_EQ(code("\"name\":\"w\"", "\"name\":\"global_step\""), Code::data_loss);
  EXPECT_EQ(code("\"name\":\"w\"", "\"name\":\"v\""), Code::data_loss);
  EXPECT_EQ(code("\"step\":4", "\"step\":5"), Code::data_loss) << "the set of another step";
  EXPECT_EQ(code("\"format\":\"dtg checkpoint\"", "\"format\":\"other\""), Code::data_loss);
  EXPECT_EQ(code("\"version\":1", "\"version\":2"), Code::unimplemented);
  // A role of later days is no reason to refuse.
  place.write(path, forged(good, "\"role\":\"step\"", "\"role\":\"dream\""));
  EXPECT_EQ(place.newest(), 8);
  place.write(path, good);
  // Links lead out of the directory.
  const std::string shard = place.file(id, 0);
  std::filesystem::rename(shard, place.scratch / "elsewhere");
  std::filesystem::create_symlink(place.scratch / "elsewhere", shard);
  EXPECT_EQ(restore_set(place.disk, place.sets, id).status().code(), Code::data_loss);
  EXPECT_FALSE(place.sets.list().value()[0].status.ok());
  EXPECT_EQ(verify_set(place.disk, place.sets, id).value().problems.size(), 1u);
  // And a set that is one.
  std::filesystem::create_directory_symlink(place.scratch.path(), place.sets.path_of({5, 1}));
  EXPECT_EQ(restore_set(place.disk, place.sets, {5, 1}).status().code(), Code::data_loss);
  EXPECT_EQ(place.sets.list().value()[0].status.code(), Code::data_loss);
}

// sets_check.py reads each shard of the set, and compares.
TEST(CheckpointDirectory, TheReferenceLibraryReadsEachShard) {
  Place place;
  const SetId id = place.save(12, 2.5f);
  const Verdict verdict = judge("tests/checkpoint/sets_check.py", place.sets.path_of(id));
  if (verdict == Verdict::absent) GTEST_SKIP() << "no Python with tests/requirements.txt; see tests/judge.h";
  ASSERT_EQ(verdict, Verdict::fine);
}

}  // namespace
}  // namespace dtg
