// Every optimizer in every mode, over every channel, with dense gradients and with rows: a parameter server and two workers, the
// second of which is not the chief, train a small model together. Nobody is refused anything, the loss falls, no step is lost, and
// strict workers leave the bits of towers in one local session. Optimizers and modes are those that the library takes, so one
// that is new has its place here. One thread.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>

#include "job.h"

namespace outside {
namespace {

constexpr int kSteps = 6, kWorkers = 2;

dtg_optimizer optimizer_of(dtg_optimizer_kind kind) {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.kind = kind;
  optimizer.rate = 0.05;
  // Those that have none refuse it.
  const bool moves = kind == DTG_OPT_MOMENTUM || kind == DTG_OPT_RMSPROP || kind == DTG_OPT_LARS;
  optimizer.momentum = moves ? 0.5 : 0;
  // It makes a variable from what it keeps, and so forgets the first value; it must come as far in the steps that there are. But
  // not at one stride: two asynchronous workers that each take it from the same values go past the goal by as much.
  if (kind == DTG_OPT_FTRL) optimizer.rate = 0.25;
  return optimizer;
}

// --- what there is ---

// The name scope that a worker's share of a model of one number gets from its optimizer, as in "train/Adam/count_step"; "" when
// the library does not know the optimizer or the mode.
std::string name_of(dtg_optimizer_kind kind, dtg_sync_mode mode) {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_variable w = DTG_VARIABLE_INIT;
  const dtg_optimizer optimizer = optimizer_of(kind);
  dtg_replication replication = DTG_REPLICATION_INIT;
  replication.mode = mode;
  replication.total = kWorkers;
  dtg_replicated share = DTG_REPLICATED_INIT;
  dtg_error* error = dtg_graph_create(nullptr, &graph);
  if (!error) error = dtg_model_create(graph, 1, &model);
  if (!error) error = dtg_variable_f32(model, "w", 1, &w);
  if (!error) error = dtg_nn_minimize_replicated(model, w.read, &optimizer, &replication, &share);
  const char* full = "train/?/";
  if (!error) error = dtg_value_name(graph, share.train, &full, nullptr);
  std::string name;
  if (!error) name = std::string(std::strchr(full, '/') + 1);
  dtg_error_release(error);
  dtg_model_release(model);
  dtg_graph_release(graph);
  return name.substr(0, name.find('/'));
}

enum class Channel { inside, unix_socket, tls };

struct Case {
  dtg_optimizer_kind kind = DTG_OPT_SGD;
  dtg_sync_mode mode = DTG_SYNC_ASYNC;
  bool rows = false;  // the gradient of the table
  Channel channel = Channel::inside;

  std::string name() const {
    const char* const modes[] = {"Async", "Strict", "Replicas", "Bounded", "Elastic"};
    const char* const channels[] = {"Inside", "Unix", "Tls"};
    return name_of(kind, DTG_SYNC_ASYNC) + (mode < 5 ? modes[mode] : "Mode" + std::to_string(mode)) + (rows ? "Rows" : "Dense") +
           channels[static_cast<int>(channel)];
  }
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name(); }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (dtg_sync_mode mode = 0; !name_of(DTG_OPT_SGD, mode).empty(); ++mode) {
    for (dtg_optimizer_kind kind = 0; !name_of(kind, mode).empty(); ++kind) {
      for (const bool rows : {false, true}) {
        for (const Channel channel : {Channel::inside, Channel::unix_socket, Channel::tls}) cases.push_back({kind, mode, rows, channel});
      }
    }
  }
  return cases;
}

// --- the model ---

// One copy of the computation: rows ids[4] of a table, as they are or by a product with their one-hot vectors, tanh, a layer, and
// the loss against ones.
struct Copy {
  dtg_value ids{}, loss{};
};

dtg_value variable(Program& p, const char* name, int64_t rows, int64_t columns, const std::string& device, dtg_value* handle = nullptr) {
  const int64_t dims[] = {rows, columns};
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  spec.name = name;
  spec.dims = dims;
  spec.rank = 2;
  spec.initializer.kind = DTG_INIT_GLOROT_UNIFORM;
  dtg_variable made = DTG_VARIABLE_INIT;
  p.on(device);
  OK(dtg_model_add_variable(p.model, &spec, &made));
  p.off();
  if (handle) *handle = made.handle;
  return made.read;
}

dtg_value add_rows(Program& p, bool rows, dtg_value ids, const std::string& variables) {
  dtg_value x{}, handle{};
  const dtg_value table = variable(p, "table", 6, 3, variables, &handle);
  if (rows) {
    p.on(variables);
    OK(dtg_add_resource_gather(p.graph, nullptr, handle, ids, DTG_F32, nullptr, &x));
    p.off();
    return x;
  }
  dtg_value depth{}, one{}, zero{};
  int32_t six = 6;
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_I32, nullptr, 0, &six, sizeof six, nullptr, nullptr, &tensor));
  OK(dtg_const(p.graph, tensor, &depth));
  dtg_tensor_release(tensor);
  OK(dtg_const_f32(p.graph, 1, &one));
  OK(dtg_const_f32(p.graph, 0, &zero));
  OK(dtg_add_one_hot(p.graph, nullptr, ids, depth, one, zero, nullptr, &x));
  OK(dtg_add2(p.graph, "MatMul", x, table, &x));
  return x;
}

Copy add_copy(Program& p, bool rows, const std::string& home, const std::string& variables) {
  Copy copy;
  const int64_t count[] = {4};
  dtg_value one{}, y{};
  p.on(home);
  OK(dtg_placeholder(p.graph, nullptr, DTG_I32, count, 1, &copy.ids));
  OK(dtg_add1(p.graph, "Tanh", add_rows(p, rows, copy.ids, variables), &y));
  OK(dtg_add2(p.graph, "MatMul", y, variable(p, "layer", 3, 1, variables), &y));
  OK(dtg_const_f32(p.graph, 1, &one));
  OK(dtg_nn_mean_squared_error(p.model, one, y, &copy.loss));
  p.off();
  return copy;
}

std::map<std::string, std::string> variables_of(const Program& p) {
  std::map<std::string, std::string> values;
  for (size_t i = 0; i < dtg_model_variable_count(p.model); ++i) {
    dtg_variable each = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(p.model, i, &each));
    values[each.name] = fetched(p.session, each.read);
  }
  return values;
}

template <class T>
T as(const std::string& bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

float loss_of(const Program& p, const Copy& copy) {
  dtg_tensor* const ids = ids_of(0, 0);
  const auto loss = as<float>(fetched(p.session, copy.loss, &copy.ids, ids));
  dtg_tensor_release(ids);
  return loss;
}

// --- the job ---

// Ports that are free just now, all different.
std::vector<std::string> free_addresses(int count) {
  std::vector<std::string> addresses;
  std::vector<int> taken;
  for (int i = 0; i < count; ++i) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    taken.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(taken.back(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(taken.back(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    addresses.push_back("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  }
  for (const int fd : taken) ::close(fd);
  return addresses;
}

// The servers: a parameter server and two workers, or one task inside which everybody is.
struct Servers {
  Servers(Channel channel, const std::string& place) : inside(channel == Channel::inside) {
    const std::string key = place + "/key";
    if (channel == Channel::tls) OK(dtg_keygen(key.c_str(), DTG_STRLEN));
    // Between the choice of a port and its use somebody else may take it.
    for (int attempt = 0; attempt < 5 && !all_serve(); ++attempt) {
      tasks.clear();
      std::vector<std::string> at = {"unix:" + place + "/ps", "unix:" + place + "/w0", "unix:" + place + "/w1"};
      if (channel == Channel::tls) at = free_addresses(3);
      const std::string spec = inside ? "ps=" + at[0] : "ps=" + at[0] + ";worker=" + at[1] + "," + at[2];
      dtg_cluster* cluster = nullptr;
      OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster));
      const char* const key_file = channel == Channel::tls ? key.c_str() : nullptr;
      tasks.push_back(std::make_unique<Server>(cluster, "ps", 0, key_file));
      for (int32_t w = 0; !inside && w < kWorkers; ++w) tasks.push_back(std::make_unique<Server>(cluster, "worker", w, key_file));
      dtg_cluster_release(cluster);
    }
    EXPECT_TRUE(all_serve());
  }
  bool all_serve() const {
    for (const auto& task : tasks) {
      if (!task->server) return false;
    }
    return !tasks.empty();
  }
  const Server& of_worker(int32_t w) const { return *tasks[inside ? 0 : static_cast<size_t>(w) + 1]; }
  std::string home_of(int32_t w) const { return inside ? "/job:ps/task:0" : "/job:worker/task:" + std::to_string(w); }

  const bool inside;
  std::vector<std::unique_ptr<Server>> tasks;
};

// One worker: its own graph, and a session at its own server.
struct Worker {
  Worker(const Case& c, const Servers& servers, int32_t number) : program(servers.of_worker(number).runtime) {
    copy = add_copy(program, c.rows, servers.home_of(number), "/job:ps/task:0");
    program.global_step("/job:ps/task:0");
    dtg_replication replication = DTG_REPLICATION_INIT;
    replication.mode = c.mode;
    replication.worker = number;
    replication.total = kWorkers;
    const dtg_optimizer optimizer = optimizer_of(c.kind);
    OK(dtg_nn_minimize_replicated(program.model, copy.loss, &optimizer, &replication, &share));
    const Server& at = servers.of_worker(number);
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
  }
  void join() {
    OK(dtg_model_wait_ready(program.model, program.session, kWaitNs));
    OK(dtg_run_target(program.session, share.local_init));
  }
  Program program;
  Copy copy;
  dtg_replicated share = DTG_REPLICATED_INIT;
};

// Steps of all workers, each step's at once, while the chief's updates go on.
void train(const std::array<Worker*, kWorkers>& workers) {
  const Worker& chief = *workers[0];
  dtg_cq *cq = nullptr, *updates = nullptr;
  OK(dtg_cq_create(&cq));
  OK(dtg_cq_create(&updates));
  dtg_run* loop = nullptr;
  const bool updating = chief.share.update.id != 0;
  if (updating) OK(dtg_session_run_repeatedly(chief.program.session, &chief.share.update, 1, updates, 7, &loop));
  for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
    for (int w = 0; w < kWorkers; ++w) {
      const Worker& worker = *workers[static_cast<size_t>(w)];
      start(worker.program.session, worker.share.train, {worker.copy.ids}, {ids_of(step, w)}, cq, static_cast<uint64_t>(w));
    }
    wait_for(cq, kWorkers);
  }
  dtg_run_cancel(loop);
  if (updating) wait_for(updates, 1, DTG_CANCELLED);
  dtg_run_release(loop);
  dtg_cq_release(cq);
  dtg_cq_release(updates);
}

std::map<std::string, std::string> trained_by_towers(const Case& c) {
  Program p(nullptr);
  std::array<Copy, kWorkers> copies;
  for (int w = 0; w < kWorkers; ++w) {
    if (w > 0) OK(dtg_model_next_tower(p.model));
    copies[static_cast<size_t>(w)] = add_copy(p, c.rows, "", "");
  }
  p.global_step("");
  const dtg_value losses[] = {copies[0].loss, copies[1].loss};
  const dtg_optimizer optimizer = optimizer_of(c.kind);
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize_towers(p.model, losses, kWorkers, &optimizer, &training));
  dtg_value init{};
  OK(dtg_model_init(p.model, &init));
  OK(dtg_session_connect(nullptr, nullptr, 0, p.graph, nullptr, &p.session));
  OK(dtg_run_target(p.session, init));
  dtg_cq* cq = nullptr;
  OK(dtg_cq_create(&cq));
  for (int step = 0; step < kSteps; ++step) {
    start(p.session, training.train, {copies[0].ids, copies[1].ids}, {ids_of(step, 0), ids_of(step, 1)}, cq, 0);
    wait_for(cq, 1);
  }
  dtg_cq_release(cq);
  return variables_of(p);
}

// What each of the updates, whoever made it, has multiplied or counted once.
void expect_counted(const std::map<std::string, std::string>& values, int64_t steps) {
  for (const auto& [name, beta] : {std::pair("beta1_power", 0.9f), std::pair("beta2_power", 0.999f)}) {
    float power = beta;
    for (int64_t step = 0; step < steps; ++step) power *= beta;
    if (values.count(name) == 0) continue;
    EXPECT_EQ(as<float>(values.at(name)), power) << name;
  }
  if (values.count("adafactor_step") == 0) return;
  EXPECT_EQ(as<double>(values.at("adafactor_step")), static_cast<double>(steps + 1));
}

class EveryOptimizer : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    place_ = folder("optimizers");
    ASSERT_EQ(mkdir(place_.c_str(), 0700), 0);
  }
  void TearDown() override {
    ASSERT_EQ(std::system(("rm -rf '" + place_ + "'").c_str()), 0);
    EXPECT_EQ(dtg_live_handles(), before_);
  }
  const size_t before_ = dtg_live_handles();
  std::string place_;
};

TEST_P(EveryOptimizer, TrainsWithTwoWorkers) {
  const Case c = GetParam();
  const Servers servers(c.channel, place_);
  ASSERT_TRUE(servers.all_serve());
  Worker chief(c, servers, 0), other(c, servers, 1);
  dtg_value init{};
  OK(dtg_model_init(chief.program.model, &init));
  OK(dtg_run_target(chief.program.session, init));
  ASSERT_FALSE(HasFailure());  // what failed once would be waited for
  if (chief.share.chief_init.id) OK(dtg_run_target(chief.program.session, chief.share.chief_init));
  chief.join();
  other.join();
  const float before = loss_of(chief.program, chief.copy);
  train({&chief, &other});
  EXPECT_LT(loss_of(chief.program, chief.copy), before);
  const auto values = variables_of(chief.program);
  const auto steps = as<int64_t>(values.at("global_step"));
  if (c.mode == DTG_SYNC_ASYNC || c.mode == DTG_SYNC_SSP) {
    EXPECT_EQ(steps, kSteps * kWorkers);
  }
  EXPECT_GT(steps, 0);
  // Under sync-replicas the end of the test may have come in the middle of an update.
  if (c.mode != DTG_SYNC_REPLICAS) expect_counted(values, steps);
  if (c.mode == DTG_SYNC_STRICT) {
    EXPECT_TRUE(values == trained_by_towers(c)) << "strict workers and towers differ";
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, testing::ValuesIn(all_cases()), [](const auto& each) { return each.param.name(); });

// Where the search for names ends early, nothing would be tested and nobody would know.
TEST(AllOptimizers, AreFound) {
  EXPECT_EQ(name_of(DTG_OPT_ADAFACTOR, DTG_SYNC_ASYNC), "Adafactor");
  EXPECT_GE(all_cases().size(), (DTG_OPT_ADAFACTOR + 1u) * (DTG_SYNC_ELASTIC + 1u) * 2 * 3);
}

}  // namespace
}  // namespace outside
