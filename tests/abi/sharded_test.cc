// Variables in shards and meshes through the public headers: what files hold of them, other numbers of shards, what is refused, and a table
// on several parameter servers in the scope of a strategy.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "job.h"

namespace outside {
namespace {

std::vector<float> floats(dtg_session* session, dtg_value value) {
  dtg_tensor* tensor = nullptr;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = &value;
  args.num_fetches = 1;
  args.fetched = &tensor;
  OK(dtg_session_run(session, &args));
  if (!tensor) return {};
  const auto* const data = static_cast<const float*>(dtg_tensor_data(tensor, nullptr));
  std::vector<float> out(data, data + dtg_tensor_count(tensor));
  dtg_tensor_release(tensor);
  return out;
}

void run_target(dtg_session* session, dtg_value target) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &target;
  args.num_targets = 1;
  OK(dtg_session_run(session, &args));
}

constexpr int64_t kRows = 7, kWidth = 3;
constexpr int32_t kIds[] = {6, 0, 3, 3, 5};

// An embedding in that many shards (0: in one piece), a dense layer behind it, and Adam.
struct Table {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_value loss{};
  dtg_training training = DTG_TRAINING_INIT;

  explicit Table(int64_t shards, const Server* at = nullptr, const dtg_device_setter* setter = nullptr) {
    dtg_runtime* const runtime = at ? at->runtime : nullptr;
    OK(dtg_graph_create(runtime, &graph));
    OK(dtg_model_create(graph, 9, &model));
    if (setter) OK(dtg_graph_push_device_setter(graph, setter));
    build(shards);
    if (setter) OK(dtg_graph_pop_device(graph));
    OK(dtg_session_connect(runtime, at ? dtg_server_target(at->server) : "local", DTG_STRLEN, graph, nullptr, &session));
  }
  ~Table() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  Table(const Table&) = delete;

  void build(int64_t shards) {
    const int64_t dims[] = {std::size(kIds)};
    dtg_value ids{}, rows{}, y{}, zero{};
    OK(dtg_const_of(graph, DTG_I32, dims, 1, kIds, sizeof kIds, &ids));
    dtg_embedding layer = DTG_EMBEDDING_INIT;
    layer.rows = kRows;
    layer.width = kWidth;
    dtg_partitioner how = DTG_PARTITIONER_INIT;
    how.num_shards = shards;
    if (shards == 0) OK(dtg_nn_embedding(model, ids, &layer, &rows));
    else OK(dtg_nn_sharded_embedding(model, ids, &layer, &how, &rows));
    dtg_dense dense = DTG_DENSE_INIT;
    dense.units = 2;
    OK(dtg_nn_dense(model, rows, &dense, &y));
    OK(dtg_add1(graph, "ZerosLike", y, &zero));
    OK(dtg_nn_mean_squared_error(model, zero, y, &loss));
    dtg_optimizer adam = DTG_OPTIMIZER_INIT;
    adam.kind = DTG_OPT_ADAM;
    adam.rate = 0.1;
    OK(dtg_nn_minimize(model, loss, &adam, &training));
  }
  void init() {
    dtg_value target{};
    OK(dtg_model_init(model, &target));
    run_target(session, target);
  }
  void step() { run_target(session, training.train); }
  // The table and a slot of it, put together.
  std::vector<float> whole(const std::string& slot = "") const {
    std::vector<float> all;
    for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
      dtg_variable each = DTG_VARIABLE_INIT;
      OK(dtg_model_variable(model, i, &each));
      const std::string name = each.name;
      const bool mine =
          name.starts_with("embedding/embeddings") && (slot.empty() ? name.find("Adam") == std::string::npos : name.ends_with(slot));
      if (!mine) continue;
      const std::vector<float> part = floats(session, each.read);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
};

class ShardedAbi : public testing::Test {
 protected:
  void SetUp() override {
    handles_ = dtg_live_handles();
    std::filesystem::remove_all(file_);
  }
  void TearDown() override {
    std::filesystem::remove_all(file_);
    EXPECT_EQ(dtg_live_handles(), handles_);
  }
  const std::string file_ = folder("sharded");

 private:
  size_t handles_ = 0;
};

TEST_F(ShardedAbi, OnePieceAndShardsAreOneInFiles) {
  for (const int64_t from : {0, 1, 3, 7}) {
    std::filesystem::remove_all(file_);
    Table saved(from);
    saved.init();
    for (int i = 0; i < 3; ++i) saved.step();
    OK(dtg_model_save(saved.model, saved.session, file_.c_str(), DTG_STRLEN));
    const std::vector<float> weights = saved.whole(), slot = saved.whole("/Adam");
    ASSERT_EQ(weights.size(), static_cast<size_t>(kRows * kWidth));
    ASSERT_EQ(slot.size(), weights.size());
    saved.step();
    for (const int64_t into : {0, 1, 2, 5}) {
      Table restored(into);
      OK(dtg_model_restore(restored.model, restored.session, file_.c_str(), DTG_STRLEN));
      EXPECT_EQ(restored.whole(), weights) << from << " into " << into;
      EXPECT_EQ(restored.whole("/Adam"), slot) << from << " into " << into;
      // And training goes on with the bits that it would have had.
      restored.step();
      EXPECT_EQ(restored.whole(), saved.whole()) << from << " into " << into;
    }
  }
}

TEST_F(ShardedAbi, CheckpointsAreResharded) {
  const auto open = [&](Table& table, dtg_checkpoint** out) {
    dtg_checkpoint_options where = DTG_CHECKPOINT_OPTIONS_INIT;
    where.directory = file_.c_str();
    OK(dtg_checkpoint_open(table.model, table.session, &where, out));
  };
  dtg_checkpoint* checkpoint = nullptr;
  Table saved(3);
  open(saved, &checkpoint);
  saved.init();
  saved.step();
  OK(dtg_checkpoint_save(checkpoint, 1, 0));
  dtg_string* told = nullptr;
  OK(dtg_checkpoint_describe(nullptr, file_.c_str(), DTG_STRLEN, &told));
  const std::string set = dtg_string_data(told, nullptr);
  dtg_string_release(told);
  dtg_checkpoint_release(checkpoint);
  EXPECT_EQ(set.find("part_"), std::string::npos) << set;
  EXPECT_NE(set.find("\"embedding/embeddings/Adam\""), std::string::npos) << set;
  for (const int64_t into : {0, 2, 7}) {
    Table restored(into);
    int64_t step = 0;
    open(restored, &checkpoint);
    OK(dtg_checkpoint_restore(checkpoint, nullptr, 0, &step, nullptr));
    EXPECT_EQ(step, 1);
    EXPECT_EQ(restored.whole(), saved.whole());
    EXPECT_EQ(restored.whole("/Adam_1"), saved.whole("/Adam_1"));
    dtg_checkpoint_release(checkpoint);
  }
}

TEST_F(ShardedAbi, TellsWhatItIs) {
  Table table(3);
  dtg_sharded found = DTG_SHARDED_INIT;
  const char* const name = "embedding/embeddings";
  OK(dtg_model_find_sharded_variable(table.model, name, DTG_STRLEN, &found));
  EXPECT_EQ(std::string(found.name, found.name_len), name);
  EXPECT_EQ(found.shards, 3);
  EXPECT_EQ(found.rank, 2u);
  EXPECT_EQ(found.dims[0], kRows);
  int64_t rows = 0;
  for (int64_t i = 0; i < 3; ++i) {
    dtg_variable shard = DTG_VARIABLE_INIT;
    OK(dtg_sharded_shard(table.model, name, DTG_STRLEN, i, &shard));
    EXPECT_EQ(std::string(shard.name), std::string(name) + "/part_" + std::to_string(i));
    rows += shard.dims[0];
  }
  EXPECT_EQ(rows, kRows);
  dtg_variable none = DTG_VARIABLE_INIT;
  refused(dtg_sharded_shard(table.model, name, DTG_STRLEN, 3, &none), DTG_OUT_OF_RANGE, "a shard too many");
  refused(dtg_sharded_shard(table.model, name, DTG_STRLEN, -1, &none), DTG_OUT_OF_RANGE, "a shard below 0");
  refused(dtg_model_find_sharded_variable(table.model, "dense/kernel", DTG_STRLEN, &found), DTG_NOT_FOUND, "what is in one piece");
  dtg_value whole{};
  OK(dtg_nn_sharded_value(table.model, name, DTG_STRLEN, &whole));
  table.init();
  EXPECT_EQ(floats(table.session, whole), table.whole());
}

// Two parameter servers and a worker: shards stand on both, and the numbers are those of one process.
TEST_F(ShardedAbi, ShardsStandOnEachParameterServer) {
  ::mkdir(file_.c_str(), 0700);
  const std::string spec = "ps=unix:" + file_ + "/p0,unix:" + file_ + "/p1;worker=unix:" + file_ + "/w";
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster));
  {
    const Server ps0(cluster, "ps", 0), ps1(cluster, "ps", 1), worker(cluster, "worker", 0);
    Table one(0);
    one.init();
    dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
    setter.cluster = cluster;
    setter.worker_device = "/job:worker/task:0";
    Table far(3, &worker, &setter);
    std::set<std::string> devices;
    for (int64_t i = 0; i < 3; ++i) {
      dtg_variable shard = DTG_VARIABLE_INIT;
      OK(dtg_sharded_shard(far.model, "embedding/embeddings", DTG_STRLEN, i, &shard));
      size_t length = 0;
      const char* device = nullptr;
      OK(dtg_value_device(far.graph, shard.handle, &device, &length));
      devices.emplace(device, length);
    }
    EXPECT_EQ(devices.size(), 2u);
    far.init();
    for (int i = 0; i < 4; ++i) {
      one.step();
      far.step();
    }
    const std::vector<float> a = one.whole(), b = far.whole();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  }
  dtg_cluster_release(cluster);
}

// --- meshes ---

constexpr int64_t kBatch = 8, kIn = 4;

// Two layers of a stage each and a loss, over a grid; without one, plain layers.
struct Net {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_mesh* mesh = nullptr;
  dtg_value x{}, loss{};
  dtg_training training = DTG_TRAINING_INIT;

  Net(int64_t data, int64_t ranks, int64_t pipe, dtg_mesh_zero zero = DTG_ZERO_NONE) {
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, 4, &model));
    std::vector<float> numbers;
    for (int64_t i = 0; i < kBatch * kIn; ++i) numbers.push_back(static_cast<float>((i * 7) % 11) / 5 - 1);
    const int64_t dims[] = {kBatch, kIn};
    OK(dtg_const_of(graph, DTG_F32, dims, 2, numbers.data(), numbers.size() * sizeof(float), &x));
    if (data * ranks * pipe == 0) plain();
    else cut(data, ranks, pipe, zero);
    dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
    options.emu_devices = static_cast<int32_t>(std::max<int64_t>(1, data * ranks * pipe));
    OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, &options, &session));
  }
  ~Net() {
    dtg_mesh_release(mesh);
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  Net(const Net&) = delete;

  static dtg_dense layer(int64_t units, dtg_activation activation) {
    dtg_dense made = DTG_DENSE_INIT;
    made.units = units;
    made.activation = activation;
    return made;
  }
  static dtg_optimizer momentum() {
    dtg_optimizer made = DTG_OPTIMIZER_INIT;
    made.kind = DTG_OPT_MOMENTUM;
    made.momentum = 0.9;
    made.rate = 0.05;
    return made;
  }
  void plain() {
    const dtg_dense wide = layer(5, DTG_ACT_TANH), narrow = layer(kIn, DTG_ACT_NONE);
    dtg_value y = x;
    for (int i = 0; i < 2; ++i) {
      OK(dtg_nn_dense(model, y, &wide, &y));
      OK(dtg_nn_dense(model, y, &narrow, &y));
    }
    OK(dtg_nn_mean_squared_error(model, x, y, &loss));
    const dtg_optimizer how = momentum();
    OK(dtg_nn_minimize(model, loss, &how, &training));
  }
  void cut(int64_t data, int64_t ranks, int64_t pipe, dtg_mesh_zero zero) {
    std::vector<std::string> names;
    std::vector<const char*> devices;
    for (int64_t i = 0; i < data * ranks * pipe; ++i) names.push_back("/device:EMU:" + std::to_string(i));
    for (const std::string& name : names) devices.push_back(name.c_str());
    dtg_mesh_options grid{sizeof(dtg_mesh_options), data, ranks, pipe, devices.data(), devices.size(), zero, 0};
    OK(dtg_mesh_create(model, &grid, &mesh));
    OK(dtg_mesh_begin(mesh, &x, 1, 2, 0));
    const dtg_dense wide = layer(5, DTG_ACT_TANH), narrow = layer(kIn, DTG_ACT_NONE);
    dtg_mesh_step step = DTG_MESH_STEP_INIT;
    int32_t more = 1;
    while (true) {
      OK(dtg_mesh_next(mesh, &step, &more));
      if (!more) break;
      dtg_value y = step.stage == 0 ? step.batch[0] : step.inputs[0];
      for (int64_t i = step.stage * 2 / pipe; i < (step.stage + 1) * 2 / pipe; ++i) {
        std::vector<dtg_value> parts(static_cast<size_t>(ranks));
        OK(dtg_mesh_column_dense(mesh, y, &wide, parts.data(), parts.size()));
        OK(dtg_mesh_row_dense(mesh, parts.data(), parts.size(), &narrow, &y));
      }
      if (step.stage + 1 == pipe) OK(dtg_nn_mean_squared_error(model, step.batch[0], y, &y));
      OK(dtg_mesh_give(mesh, &y, 1));
    }
    const dtg_optimizer how = momentum();
    OK(dtg_mesh_minimize(mesh, &how, &training));
    OK(dtg_mesh_result(mesh, 0, &loss));
  }
  void init() {
    dtg_value target{};
    OK(dtg_model_init(model, &target));
    run_target(session, target);
  }
  float step() {
    const float now = floats(session, loss).at(0);
    run_target(session, training.train);
    return now;
  }
};

// What one mesh has trained another goes on with, and one device too.
TEST_F(ShardedAbi, TrainingMovesFromMeshToMesh) {
  Net one(0, 0, 0), many(2, 2, 2, DTG_ZERO_GRADIENTS);
  one.init();
  many.init();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(one.step(), many.step(), 1e-6);
  OK(dtg_model_save(many.model, many.session, file_.c_str(), DTG_STRLEN));
  Net other(1, 3, 1), plain(0, 0, 0), deep(2, 1, 2, DTG_ZERO_STATES);
  for (Net* each : {&other, &plain, &deep}) OK(dtg_model_restore(each->model, each->session, file_.c_str(), DTG_STRLEN));
  for (int i = 0; i < 3; ++i) {
    const float wanted = one.step();
    for (Net* each : {&other, &plain, &deep}) EXPECT_NEAR(each->step(), wanted, 1e-6);
  }
}

}  // namespace
}  // namespace outside
