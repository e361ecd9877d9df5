// Functions of graphs and of the host over data sets, and sources of the host, from outside: what they hand out against what a loop by hand
// gives, places that are gone to, and every way in which a host can be wrong.
#include <dtg/sugar_ops.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "world.h"

namespace outside {
namespace {

using Rows = std::vector<std::vector<double>>;

double number_at(const dtg_tensor* tensor, int64_t i) {
  const void* const data = dtg_tensor_data(tensor, nullptr);
  switch (dtg_tensor_dtype(tensor)) {
    case DTG_I64: return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case DTG_F32: return static_cast<const float*>(data)[i];
    default: return -1e9;
  }
}

dtg_tensor* scalar(int64_t value) {
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_I64, nullptr, 0, &value, sizeof value, nullptr, nullptr, &tensor));
  return tensor;
}

// A data set that is released at the end of the scope.
class Data {
 public:
  Data() = default;
  ~Data() { dtg_dataset_release(it); }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  Data& range(int64_t count) {
    OK(dtg_dataset_range(nullptr, 0, count, 1, &it));
    return *this;
  }

  // One element, all its numbers in a row; empty at the end.
  dtg_error* next(std::vector<double>& row) {
    std::vector<dtg_tensor*> tensors(dtg_dataset_component_count(it));
    int32_t more = 0;
    dtg_error* const failed = dtg_dataset_next(it, tensors.data(), tensors.size(), &more);
    row.clear();
    if (failed || !more) return failed;
    for (dtg_tensor* tensor : tensors) {
      for (int64_t i = 0; i < dtg_tensor_count(tensor); ++i) row.push_back(number_at(tensor, i));
      dtg_tensor_release(tensor);
    }
    return nullptr;
  }
  Rows rest() {
    Rows all;
    std::vector<double> row;
    for (;;) {
      OK(next(row));
      if (row.empty()) return all;
      all.push_back(row);
    }
  }
  std::vector<int64_t> position() {
    size_t count = 0;
    OK(dtg_dataset_position(it, nullptr, 0, &count));
    std::vector<int64_t> numbers(count);
    OK(dtg_dataset_position(it, numbers.data(), count, &count));
    return numbers;
  }

  dtg_dataset* it = nullptr;
};

// What the pipeline hands out in three epochs, and after going to each place of them in one made anew, is one and the same.
void expect_places(const std::function<void(Data&)>& make) {
  Data data;
  make(data);
  std::vector<Rows> epochs;
  std::vector<std::vector<std::vector<int64_t>>> places;
  for (int epoch = 0; epoch < 3; ++epoch) {
    places.push_back({data.position()});
    Rows rows;
    for (std::vector<double> row;;) {
      OK(data.next(row));
      if (row.empty()) break;
      rows.push_back(row);
      places.back().push_back(data.position());
    }
    epochs.push_back(rows);
    OK(dtg_dataset_restart(data.it));
  }
  for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    for (size_t i = 0; i < places[epoch].size(); ++i) {
      Data fresh;
      make(fresh);
      OK(dtg_dataset_move_to(fresh.it, places[epoch][i].data(), places[epoch][i].size()));
      EXPECT_EQ(fresh.rest(), Rows(epochs[epoch].begin() + static_cast<std::ptrdiff_t>(i), epochs[epoch].end())) << epoch << " " << i;
      if (epoch + 1 == epochs.size()) continue;
      OK(dtg_dataset_restart(fresh.it));
      EXPECT_EQ(fresh.rest(), epochs[epoch + 1]) << epoch << " " << i;
    }
  }
}

// A function of a graph, built by `body` from the arguments.
class GraphFunctions : public testing::Test {
 protected:
  using Body = std::function<std::vector<dtg_value>(dtg_graph*, const std::vector<dtg_value>&)>;
  void SetUp() override {
    before_ = dtg_live_handles();
    OK(dtg_graph_create(nullptr, &graph));
  }
  void TearDown() override {
    for (dtg_function* function : made_) dtg_function_release(function);
    dtg_graph_release(graph);
    EXPECT_EQ(dtg_live_handles(), before_);
  }
  dtg_function* function(const dtg_dataset* data, size_t arguments, const Body& body) {
    dtg_graph* inside = nullptr;
    dtg_function* out = nullptr;
    OK(dtg_function_begin(graph, "f", DTG_STRLEN, &inside));
    std::vector<dtg_value> given(arguments);
    OK(dtg_dataset_add_arguments(data, inside, given.data(), arguments));
    const std::vector<dtg_value> results = body(inside, given);
    OK(dtg_function_end(inside, results.data(), results.size(), nullptr, 0, &out));
    dtg_graph_release(inside);
    made_.push_back(out);
    return out;
  }
  static dtg_value binary(dtg_graph* g, const char* op, dtg_value a, dtg_value b) {
    dtg_value out{};
    OK(dtg_add2(g, op, a, b, &out));
    return out;
  }
  static dtg_value constant(dtg_graph* g, int64_t value) {
    dtg_value out{};
    OK(dtg_const_of(g, DTG_I64, nullptr, 0, &value, sizeof value, &out));
    return out;
  }
  dtg_graph* graph = nullptr;

 private:
  size_t before_ = 0;
  std::vector<dtg_function*> made_;
};

TEST_F(GraphFunctions, MapAndFilterInOrderHoweverManyAtOnce) {
  for (const int32_t parallel : {1, 3, 0}) {
    const auto make = [&](Data& data) {
      data.range(20);
      OK(dtg_dataset_shuffle(data.it, 0, 5));
      dtg_map_options options = DTG_MAP_OPTIONS_INIT;
      options.parallel = parallel;
      dtg_function* const square = function(data.it, 1, [&](dtg_graph* g, const std::vector<dtg_value>& x) {
        return std::vector{x[0], binary(g, "Mul", x[0], x[0])};
      });
      OK(dtg_dataset_map(data.it, square, &options));
      dtg_function* const small = function(data.it, 2, [&](dtg_graph* g, const std::vector<dtg_value>& x) {
        return std::vector{binary(g, "Less", x[1], constant(g, 150))};
      });
      OK(dtg_dataset_filter(data.it, small, &options));
    };
    Data data;
    make(data);
    const Rows rows = data.rest();
    EXPECT_EQ(rows.size(), 13u);
    for (const auto& row : rows) EXPECT_EQ(row[1], row[0] * row[0]);
    EXPECT_EQ(dtg_dataset_cardinality(data.it), -2);
    expect_places(make);
  }
}

// The seed is that of epoch and element, so random numbers are the same wherever the pipeline begins.
TEST_F(GraphFunctions, DrawRandomNumbersByTheSeed) {
  const auto make = [&](Data& data) {
    data.range(5);
    dtg_map_options options = DTG_MAP_OPTIONS_INIT;
    options.parallel = 2;
    dtg_function* const draw = function(data.it, 2, [&](dtg_graph* g, const std::vector<dtg_value>& x) {
      dtg_value shape{}, drawn{};
      const int64_t two = 2;
      OK(dtg_const_i64s(g, &two, 1, &shape));
      OK(dtg_add2(g, "StatelessRandomUniform", shape, x[1], &drawn));
      return std::vector{x[0], drawn, x[1]};
    });
    OK(dtg_dataset_map(data.it, draw, &options));
  };
  Data data;
  make(data);
  const Rows first = data.rest();
  OK(dtg_dataset_restart(data.it));
  const Rows second = data.rest();
  ASSERT_EQ(first.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(first[i][3], 0);
    EXPECT_EQ(second[i][3], 1) << "the epoch";
    EXPECT_EQ(first[i][4], static_cast<double>(i));
    EXPECT_NE(first[i][1], second[i][1]);
    EXPECT_NE(first[i][1], first[(i + 1) % 5][1]);
  }
  expect_places(make);
}

TEST_F(GraphFunctions, UseWhatTheSessionTellsOfValuesFromAround) {
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_variable weight = DTG_VARIABLE_INIT;
  OK(dtg_model_create(graph, 1, &model));
  OK(dtg_variable_f32(model, "w", 2.5, &weight));
  OK(dtg_session_connect(nullptr, nullptr, 0, graph, nullptr, &session));
  dtg_value first{};
  OK(dtg_model_init(model, &first));
  OK(dtg_run_target(session, first));
  Data data;
  data.range(3);
  OK(dtg_dataset_cast(data.it, 0, DTG_F32));
  dtg_function* const scaled =
      function(data.it, 1, [&](dtg_graph* g, const std::vector<dtg_value>& x) { return std::vector{binary(g, "Mul", x[0], weight.read)}; });
  EXPECT_NE(refused(dtg_dataset_map(data.it, scaled, nullptr), DTG_FAILED_PRECONDITION, "no session").find("session"), std::string::npos);
  dtg_map_options options = DTG_MAP_OPTIONS_INIT;
  options.session = session;
  OK(dtg_dataset_map(data.it, scaled, &options));
  dtg_session_release(session);
  dtg_model_release(model);
  EXPECT_EQ(data.rest(), (Rows{{0}, {2.5}, {5}}));
}

TEST_F(GraphFunctions, WhatCannotBeLeavesTheDataSetAsItWas) {
  Data data;
  data.range(4);
  const auto identity = [](dtg_graph*, const std::vector<dtg_value>& x) { return x; };
  const auto drawing = [&](dtg_graph* g, const std::vector<dtg_value>&) {
    dtg_value shape{}, drawn{};
    const int64_t two = 2;
    OK(dtg_const_i64s(g, &two, 1, &shape));
    OK(dtg_add_random_uniform(g, nullptr, shape, DTG_F32, nullptr, &drawn));
    return std::vector{drawn};
  };
  EXPECT_NE(
      refused(dtg_dataset_map(data.it, function(data.it, 1, drawing), nullptr), DTG_INVALID_ARGUMENT, "a state").find("RandomUniform"),
      std::string::npos);
  refused(dtg_dataset_map(data.it, function(data.it, 1, [](auto*, auto&) { return std::vector<dtg_value>(); }), nullptr),
          DTG_INVALID_ARGUMENT, "no results");
  refused(dtg_dataset_filter(data.it, function(data.it, 1, identity), nullptr), DTG_INVALID_ARGUMENT, "no bool");
  dtg_map_options options = DTG_MAP_OPTIONS_INIT;
  options.parallel = 2000;
  refused(dtg_dataset_map(data.it, function(data.it, 1, identity), &options), DTG_INVALID_ARGUMENT, "too many");
  Data other;
  other.range(4);
  OK(dtg_dataset_cast(other.it, 0, DTG_F32));
  refused(dtg_dataset_map(data.it, function(other.it, 1, identity), nullptr), DTG_INVALID_ARGUMENT, "other types");
  dtg_graph* body = nullptr;
  dtg_value three[3];
  OK(dtg_function_begin(graph, "g", DTG_STRLEN, &body));
  refused(dtg_dataset_add_arguments(data.it, body, three, 3), DTG_INVALID_ARGUMENT, "too many arguments");
  refused(dtg_dataset_add_arguments(data.it, graph, three, 1), DTG_INVALID_ARGUMENT, "no body");
  dtg_graph_release(body);
  EXPECT_EQ(data.rest(), (Rows{{0}, {1}, {2}, {3}}));
}

// What a run of the function fails with is the error of that element, and of that one only.
TEST_F(GraphFunctions, AFailureIsThatOfItsElement) {
  for (const int32_t parallel : {1, 4}) {
    Data data;
    data.range(4);
    dtg_map_options options = DTG_MAP_OPTIONS_INIT;
    options.parallel = parallel;
    dtg_function* const divide = function(data.it, 1, [&](dtg_graph* g, const std::vector<dtg_value>& x) {
      return std::vector{binary(g, "FloorDiv", constant(g, 6), binary(g, "Sub", x[0], constant(g, 2)))};
    });
    OK(dtg_dataset_map(data.it, divide, &options));
    std::vector<double> row;
    for (const double wanted : {-3.0, -6.0}) {
      OK(data.next(row));
      EXPECT_EQ(row, std::vector{wanted});
    }
    refused(data.next(row), DTG_INVALID_ARGUMENT, "6 by 0");
    OK(data.next(row));
    EXPECT_EQ(row, std::vector{6.0});
    OK(data.next(row));
    EXPECT_TRUE(row.empty());
  }
}

// ---- the host's ----

constexpr dtg_component kNumber{DTG_I64, 0, nullptr};

// What the functions of the host get.
struct Host {
  std::function<dtg_error*(dtg_tensor* const*, dtg_tensor**)> map;
  std::function<dtg_error*(dtg_tensor* const*, int32_t*)> keep;
  int freed = 0;

  static dtg_error* map_one(void* user, dtg_tensor* const* arguments, size_t, dtg_tensor** results, size_t) {
    return static_cast<Host*>(user)->map(arguments, results);
  }
  static dtg_error* keep_one(void* user, dtg_tensor* const* arguments, size_t, int32_t* keep) {
    return static_cast<Host*>(user)->keep(arguments, keep);
  }
  static void release(void* user) { ++static_cast<Host*>(user)->freed; }
};

int64_t whole(const dtg_tensor* tensor) { return static_cast<int64_t>(number_at(tensor, 0)); }

TEST(HostFunctions, MapAndFilterAndAreGivenBack) {
  const size_t before = dtg_live_handles();
  Host host;
  host.map = [](dtg_tensor* const* x, dtg_tensor** y) {
    y[0] = dtg_tensor_retain(x[0]);
    y[1] = scalar(10 * whole(x[0]));
    return static_cast<dtg_error*>(nullptr);
  };
  host.keep = [](dtg_tensor* const* x, int32_t* keep) {
    *keep = whole(x[0]) % 3 != 1;
    return static_cast<dtg_error*>(nullptr);
  };
  const dtg_component two[] = {kNumber, kNumber};
  const auto make = [&](Data& data) {
    data.range(8);
    OK(dtg_dataset_shuffle(data.it, 3, 1));
    OK(dtg_dataset_map_host(data.it, Host::map_one, &host, Host::release, two, 2));
    OK(dtg_dataset_filter_host(data.it, Host::keep_one, &host, Host::release));
    OK(dtg_dataset_prefetch(data.it, 2));
  };
  {
    Data data;
    make(data);
    const Rows rows = data.rest();
    EXPECT_EQ(rows.size(), 5u);
    for (const auto& row : rows) EXPECT_EQ(row[1], 10 * row[0]);
  }
  EXPECT_EQ(host.freed, 2);
  expect_places(make);
  EXPECT_EQ(dtg_live_handles(), before);
}

// Each mistake of the host, and what the element's error says of it; nothing is leaked.
TEST(HostFunctions, MistakesOfTheHostAreErrorsOfTheElement) {
  const size_t before = dtg_live_handles();
  const auto fails = [](dtg_code code, const char* says, auto fn) {
    Host host;
    host.map = fn;
    Data data;
    data.range(2);
    const dtg_component pair[] = {kNumber, kNumber};
    OK(dtg_dataset_map_host(data.it, Host::map_one, &host, Host::release, pair, 2));
    std::vector<double> row;
    const std::string message = refused(data.next(row), code, says);
    EXPECT_NE(message.find(says), std::string::npos) << message;
  };
  const auto none = static_cast<dtg_error*>(nullptr);
  fails(DTG_INVALID_ARGUMENT, "component 0", [=](auto*, auto**) { return none; });
  fails(DTG_INVALID_ARGUMENT, "component 1: ", [=](auto* x, auto** y) { return y[0] = dtg_tensor_retain(x[0]), none; });
  fails(DTG_INVALID_ARGUMENT, "announced was", [=](auto* x, auto** y) {
    y[0] = dtg_tensor_retain(x[0]);
    y[1] = vector_of({1, 2});
    return none;
  });
  fails(DTG_DATA_LOSS, "the well is dry", [=](auto*, auto** y) {
    y[1] = scalar(3);
    return dtg_error_create(DTG_DATA_LOSS, "the well is dry", DTG_STRLEN);
  });
  fails(DTG_INTERNAL, "out of the wall", [=](auto*, auto**) -> dtg_error* { throw std::runtime_error("out of the wall"); });
  fails(DTG_INTERNAL, "no std::exception", [=](auto*, auto**) -> dtg_error* { throw 7; });
  EXPECT_EQ(dtg_live_handles(), before);
}

TEST(HostFunctions, MayNotUseTheDataSetThatAsks) {
  Host host;
  Data data;
  data.range(2);
  int asked = 0;
  host.keep = [&](dtg_tensor* const*, int32_t* keep) {
    int32_t more = 0;
    dtg_tensor* tensor = nullptr;
    refused(dtg_dataset_next(data.it, &tensor, 1, &more), DTG_FAILED_PRECONDITION, "next inside");
    refused(dtg_dataset_restart(data.it), DTG_FAILED_PRECONDITION, "restart inside");
    refused(dtg_dataset_batch(data.it, 2, 0), DTG_FAILED_PRECONDITION, "batch inside");
    Data other;  // another one is fine
    EXPECT_EQ(other.range(3).rest().size(), 3u);
    ++asked;
    *keep = 1;
    return static_cast<dtg_error*>(nullptr);
  };
  OK(dtg_dataset_filter_host(data.it, Host::keep_one, &host, nullptr));
  EXPECT_EQ(data.rest().size(), 2u);
  EXPECT_EQ(asked, 2);
}

// The one that is released may be the only one, in its own function.
TEST(HostFunctions, MayReleaseTheDataSetThatAsks) {
  Host host;
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_range(nullptr, 0, 2, 1, &data));
  host.keep = [&](dtg_tensor* const*, int32_t* keep) {
    dtg_dataset_release(data);
    *keep = 1;
    return static_cast<dtg_error*>(nullptr);
  };
  OK(dtg_dataset_filter_host(data, Host::keep_one, &host, Host::release));
  int32_t more = 0;
  dtg_tensor* tensor = nullptr;
  OK(dtg_dataset_next(data, &tensor, 1, &more));
  EXPECT_EQ(more, 1);
  dtg_tensor_release(tensor);
  EXPECT_EQ(host.freed, 1);
}

TEST(HostFunctions, AreTheHostsAgainWhereTheCallFailed) {
  Host host;
  Data data;
  data.range(2);
  const dtg_component strings{DTG_STRING, 0, nullptr}, deep{DTG_I64, 9, nullptr};
  refused(dtg_dataset_map_host(data.it, Host::map_one, &host, Host::release, &strings, 1), DTG_UNIMPLEMENTED, "strings");
  refused(dtg_dataset_map_host(data.it, Host::map_one, &host, Host::release, &deep, 1), DTG_INVALID_ARGUMENT, "rank 9");
  refused(dtg_dataset_map_host(data.it, Host::map_one, &host, Host::release, &kNumber, 0), DTG_INVALID_ARGUMENT, "none");
  EXPECT_EQ(host.freed, 0);
  EXPECT_EQ(data.rest().size(), 2u);
}

// A prefetch whose thread waits for the host does not keep whoever releases the data set.
TEST(HostFunctions, ThatWaitDoNotKeepARelease) {
  static std::atomic<bool> go{false}, inside{false}, freed{false};
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_range(nullptr, 0, 9, 1, &data));
  const auto waits = [](void*, dtg_tensor* const* x, size_t, int32_t* keep) {
    inside = whole(x[0]) > 0;
    while (inside && !go) std::this_thread::yield();
    *keep = 1;
    return static_cast<dtg_error*>(nullptr);
  };
  OK(dtg_dataset_filter_host(data, waits, nullptr, [](void*) { freed = true; }));
  OK(dtg_dataset_prefetch(data, 1));
  int32_t more = 0;
  dtg_tensor* tensor = nullptr;
  OK(dtg_dataset_next(data, &tensor, 1, &more));
  dtg_tensor_release(tensor);
  while (!inside) std::this_thread::yield();
  dtg_dataset_release(data);
  EXPECT_FALSE(freed);
  go = true;
  while (!freed) std::this_thread::yield();
}

// ---- sources of the host ----

// Numbers from `first` on, in an order that hangs on the epoch.
struct Counter {
  int64_t count = 6;
  int64_t epoch = -1;
  int64_t at = 0;
  int restarts = 0, skips = 0, freed = 0;

  static dtg_error* next(void* user, dtg_tensor** tensors, size_t, int32_t* more) {
    auto& self = *static_cast<Counter*>(user);
    *more = self.at < self.count;
    if (*more) tensors[0] = scalar(100 * self.epoch + self.at++);
    return nullptr;
  }
  static dtg_error* restart(void* user, int64_t epoch) {
    auto& self = *static_cast<Counter*>(user);
    self.epoch = epoch;
    self.at = 0;
    ++self.restarts;
    return nullptr;
  }
  static dtg_error* skip(void* user, int64_t count, int64_t* passed) {
    auto& self = *static_cast<Counter*>(user);
    *passed = std::min(count, self.count - self.at);
    self.at += *passed;
    ++self.skips;
    return nullptr;
  }
  static void release(void* user) { ++static_cast<Counter*>(user)->freed; }
  dtg_host_source source() {
    dtg_host_source made = DTG_HOST_SOURCE_INIT;
    made.user = this;
    made.user_free = release;
    made.components = &kNumber;
    made.num_components = 1;
    made.next = next;
    made.restart = restart;
    return made;
  }
};

TEST(HostSource, HandsOutEpochsAndGoesToPlaces) {
  for (const bool skips : {false, true}) {
    std::vector<std::unique_ptr<Counter>> all;
    expect_places([&](Data& data) {
      Counter& counter = *all.emplace_back(std::make_unique<Counter>());
      dtg_host_source source = counter.source();
      if (skips) source.skip = Counter::skip;
      source.cardinality = 6;
      OK(dtg_dataset_host(nullptr, &source, &data.it));
      EXPECT_EQ(dtg_dataset_cardinality(data.it), 6);
      OK(dtg_dataset_repeat(data.it, 2));
      OK(dtg_dataset_batch(data.it, 5, 0));
    });
    int skipped = 0;
    for (const auto& counter : all) {
      EXPECT_EQ(counter->freed, 1);
      skipped += counter->skips;
    }
    EXPECT_EQ(skipped > 0, skips);
  }
}

TEST(HostSource, WithoutARestartHasOneEpoch) {
  Counter counter;
  counter.epoch = 0;
  dtg_host_source source = counter.source();
  source.restart = nullptr;
  Data data;
  OK(dtg_dataset_host(nullptr, &source, &data.it));
  OK(dtg_dataset_restart(data.it));
  EXPECT_EQ(data.rest().size(), 6u);
  EXPECT_TRUE(data.rest().empty());
  const std::string message = refused(dtg_dataset_restart(data.it), DTG_FAILED_PRECONDITION, "a second epoch");
  EXPECT_NE(message.find("cache"), std::string::npos) << message;
}

TEST(HostSource, IsHeldToWhatItAnnounced) {
  for (const int64_t announced : {5, 7, -1}) {
    Counter counter;
    dtg_host_source source = counter.source();
    source.cardinality = announced;
    Data data;
    OK(dtg_dataset_host(nullptr, &source, &data.it));
    std::vector<double> row;
    for (int64_t i = 0; i < (announced == 5 ? 5 : 6); ++i) OK(data.next(row));
    refused(data.next(row), DTG_DATA_LOSS, "other than announced");
  }
  Counter counter;
  dtg_host_source source = counter.source();
  dtg_dataset* out = nullptr;
  source.cardinality = -3;
  refused(dtg_dataset_host(nullptr, &source, &out), DTG_INVALID_ARGUMENT, "cardinality -3");
  source = counter.source();
  source.next = nullptr;
  refused(dtg_dataset_host(nullptr, &source, &out), DTG_INVALID_ARGUMENT, "no next");
  source = counter.source();
  source.struct_size = 8;
  refused(dtg_dataset_host(nullptr, &source, &out), DTG_INVALID_ARGUMENT, "struct_size");
  EXPECT_EQ(counter.freed, 0);
}

TEST(HostSource, CarriesErrorsAndTrainsOn) {
  dtg_host_source source = DTG_HOST_SOURCE_INIT;
  int asked = 0;
  source.user = &asked;
  source.components = &kNumber;
  source.num_components = 1;
  source.next = [](void* user, dtg_tensor** tensors, size_t, int32_t*) -> dtg_error* {
    if (++*static_cast<int*>(user) == 2) return dtg_error_create(DTG_UNAVAILABLE, "the queue is away", DTG_STRLEN);
    tensors[0] = scalar(*static_cast<int*>(user));
    return nullptr;
  };
  Data data;
  OK(dtg_dataset_host(nullptr, &source, &data.it));
  std::vector<double> row;
  OK(data.next(row));
  EXPECT_NE(refused_by_host(data.next(row), DTG_UNAVAILABLE, "next").find("the queue is away"), std::string::npos);
  OK(data.next(row));
  EXPECT_EQ(row, std::vector{3.0});
}

}  // namespace
}  // namespace outside
