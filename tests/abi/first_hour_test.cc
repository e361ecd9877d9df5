// What one reaches for in the first hour: data in two parts that share nothing, numbers fitted on one of them, layers that are called
// twice, weights by other names, and a model that is loaded and served by a program that did not build it. One thread.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "world.h"

namespace outside {
namespace {

std::string taken(dtg_string* string) {
  size_t size = 0;
  const char* const data = dtg_string_data(string, &size);
  std::string text(data ? data : "", size);
  dtg_string_release(string);
  return text;
}

std::vector<float> floats_of(const dtg_tensor* tensor) {
  const auto* const data = static_cast<const float*>(dtg_tensor_data(tensor, nullptr));
  return data ? std::vector<float>(data, data + dtg_tensor_count(tensor)) : std::vector<float>();
}

class FirstHour : public testing::Test {
 protected:
  void SetUp() override {
    before_ = dtg_live_handles();
    file_ = folder("first-hour.safetensors");
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, 7, &model));
  }
  void TearDown() override {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
    for (dtg_dataset* data : data_) dtg_dataset_release(data);
    std::remove(file_.c_str());
    EXPECT_EQ(dtg_live_handles(), before_);
  }

  dtg_dataset* keep(dtg_dataset* data) {
    data_.push_back(data);
    return data;
  }

  // Rows {float[2], class}, one after the other; the first number is that of the row.
  dtg_dataset* rows(const std::vector<int64_t>& classes) {
    std::vector<float> features;
    for (size_t i = 0; i < classes.size(); ++i) features.insert(features.end(), {static_cast<float>(i), static_cast<float>(i % 3) * 10});
    const auto count = static_cast<int64_t>(classes.size());
    const int64_t wide[] = {count, 2};
    dtg_tensor *first = nullptr, *second = nullptr;
    OK(dtg_tensor_create(DTG_F32, wide, 2, features.data(), features.size() * 4, nullptr, nullptr, &first));
    OK(dtg_tensor_create(DTG_I64, &count, 1, const_cast<int64_t*>(classes.data()), classes.size() * 8, nullptr, nullptr, &second));
    const dtg_tensor* both[] = {first, second};
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_tensors(nullptr, both, 2, &data));
    dtg_tensor_release(first);
    dtg_tensor_release(second);
    return keep(data);
  }

  // {row number: class} of one epoch, in order of their coming in `order`.
  static std::map<int, int64_t> epoch(dtg_dataset* data, std::vector<int>* order = nullptr) {
    std::map<int, int64_t> found;
    for (int32_t more = 1;;) {
      dtg_tensor* element[2] = {};
      OK(dtg_dataset_next(data, element, 2, &more));
      if (!more) break;
      const int row = static_cast<int>(floats_of(element[0])[0]);
      EXPECT_TRUE(found.emplace(row, *static_cast<const int64_t*>(dtg_tensor_data(element[1], nullptr))).second) << row;
      if (order) order->push_back(row);
      dtg_tensor_release(element[0]);
      dtg_tensor_release(element[1]);
    }
    OK(dtg_dataset_restart(data));
    return found;
  }

  void split(dtg_dataset* data, const dtg_split* how, dtg_dataset** train, dtg_dataset** held_out) {
    OK(dtg_dataset_split(data, how, train, held_out));
    keep(*train);
    keep(*held_out);
  }

  void connect() {
    dtg_value init;
    OK(dtg_model_init(model, &init));
    OK(dtg_session_connect(nullptr, nullptr, 0, graph, nullptr, &session));
    OK(dtg_run_target(session, init));
  }

  static std::vector<float> run(dtg_session* in, dtg_value fetch, dtg_value feed = {}, std::vector<float> values = {}, int64_t width = 2) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    const int64_t dims[] = {static_cast<int64_t>(values.size()) / width, width};
    dtg_tensor *in_value = nullptr, *out_value = nullptr;
    if (!values.empty()) OK(dtg_tensor_create(DTG_F32, dims, 2, values.data(), values.size() * 4, nullptr, nullptr, &in_value));
    const dtg_tensor* const given = in_value;
    args.feeds = &feed;
    args.feed_tensors = &given;
    args.num_feeds = in_value ? 1 : 0;
    args.fetches = &fetch;
    args.fetched = &out_value;
    args.num_fetches = 1;
    OK(dtg_session_run(in, &args));
    const std::vector<float> found = floats_of(out_value);
    dtg_tensor_release(in_value);
    dtg_tensor_release(out_value);
    return found;
  }

  // x[?, 2] -> hidden -> out, with dropout and training by AdamW.
  void build_net() {
    const int64_t dims[] = {-1, 2};
    OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x));
    OK(dtg_placeholder(graph, "training", DTG_BOOL, nullptr, 0, &switch_));
    dtg_dense dense = DTG_DENSE_INIT;
    dense.name = "hidden", dense.units = 3, dense.activation = DTG_ACT_TANH;
    OK(dtg_nn_dense(model, x, &dense, &hidden));
    dtg_variable step = DTG_VARIABLE_INIT;
    OK(dtg_model_global_step(model, &step));
    OK(dtg_nn_dropout(model, hidden, 0.5, step.read, switch_, &dropped));
    dense.name = "out", dense.units = 1, dense.activation = DTG_ACT_NONE;
    OK(dtg_nn_dense(model, hidden, &dense, &y));
    dtg_value zero, loss;
    OK(dtg_add1(graph, "ZerosLike", y, &zero));
    OK(dtg_nn_mean_squared_error(model, zero, y, &loss));
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    optimizer.kind = DTG_OPT_ADAMW;
    OK(dtg_nn_minimize(model, loss, &optimizer, &training));
  }

  dtg_error* save_as(dtg_value input, dtg_value output, bool freeze = false) {
    dtg_export what = DTG_EXPORT_INIT;
    const char *const in[] = {"features"}, *const out[] = {"answer"};
    what.input_names = in, what.inputs = &input, what.num_inputs = 1;
    what.output_names = out, what.outputs = &output, what.num_outputs = 1;
    what.freeze = freeze;
    return dtg_model_export(model, session, &what, file_.c_str(), DTG_STRLEN);
  }

  // Loads what was saved and computes; the names of its variables.
  std::vector<std::string> serve(std::vector<float> values, std::vector<float>* answer) {
    dtg_session* served = nullptr;
    dtg_model* loaded = nullptr;
    dtg_value in{}, out{};
    std::vector<std::string> names;
    OK(dtg_model_load(nullptr, file_.c_str(), DTG_STRLEN, &served, &loaded));
    OK(dtg_model_endpoint(loaded, "features", DTG_STRLEN, &in));
    OK(dtg_model_endpoint(loaded, "answer", DTG_STRLEN, &out));
    *answer = run(served, out, in, std::move(values));
    for (size_t i = 0; i < dtg_model_variable_count(loaded); ++i) {
      dtg_variable variable = DTG_VARIABLE_INIT;
      OK(dtg_model_variable(loaded, i, &variable));
      names.emplace_back(variable.name);
    }
    dtg_model_release(loaded);
    dtg_session_release(served);
    return names;
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_value x{}, switch_{}, hidden{}, dropped{}, y{};
  dtg_training training = DTG_TRAINING_INIT;
  std::string file_;

 private:
  size_t before_ = 0;
  std::vector<dtg_dataset*> data_;
};

std::vector<int64_t> uneven(size_t count) {
  std::vector<int64_t> classes;
  for (size_t i = 0; i < count; ++i) classes.push_back(i % 10 == 0 ? 2 : i % 3 == 0 ? 1 : 0);
  return classes;
}

TEST_F(FirstHour, PartsShareNoRowAndRepeat) {
  dtg_dataset* const data = rows(uneven(100));
  dtg_dataset *train, *test, *again, *test_again, *other, *test_other;
  dtg_split how = DTG_SPLIT_INIT;
  how.fraction = 0.25, how.seed = 4;
  split(data, &how, &train, &test);
  const auto kept = epoch(train), held = epoch(test);
  EXPECT_EQ(dtg_dataset_cardinality(train), 75);
  EXPECT_EQ(held.size(), 25u);
  auto all = kept;
  all.insert(held.begin(), held.end());
  EXPECT_EQ(all, epoch(data));  // none twice, none lost, and the data set stands where it stood
  split(data, &how, &again, &test_again);
  EXPECT_EQ(epoch(test_again), held);
  how.seed = 5;
  split(data, &how, &other, &test_other);
  EXPECT_NE(epoch(test_other), held);
}

TEST_F(FirstHour, ClassesAreCutAlike) {
  const std::vector<int64_t> classes = uneven(200);
  dtg_dataset *train, *test;
  dtg_split how = DTG_SPLIT_INIT;
  how.fraction = 0.2, how.seed = 1, how.stratify = 1, how.classes = 1;
  split(rows(classes), &how, &train, &test);
  std::map<int64_t, double> whole, held;
  for (const int64_t of : classes) ++whole[of];
  for (const auto& [row, of] : epoch(test)) ++held[of];
  ASSERT_EQ(held.size(), 3u);
  for (const auto& [of, count] : whole) EXPECT_NEAR(held[of], count * 0.2, 1) << of;
}

TEST_F(FirstHour, FoldsCoverEachRowOnce) {
  dtg_dataset* const data = rows(uneven(53));
  std::map<int, int64_t> covered;
  for (int fold = 0; fold < 5; ++fold) {
    dtg_dataset *train, *test;
    dtg_split how = DTG_SPLIT_INIT;
    how.folds = 5, how.fold = fold, how.seed = 2, how.stratify = 1, how.classes = 1;
    split(data, &how, &train, &test);
    const auto kept = epoch(train), held = epoch(test);
    EXPECT_EQ(kept.size() + held.size(), 53u);
    EXPECT_TRUE(held.size() == 10 || held.size() == 11) << held.size();
    std::map<int64_t, int> count;
    for (const auto& [row, of] : held) {
      EXPECT_TRUE(covered.emplace(row, of).second) << "row " << row << " in two folds";
      EXPECT_FALSE(kept.contains(row));
      ++count[of];
    }
    EXPECT_GE(count[2], 1);
  }
  EXPECT_EQ(covered.size(), 53u);
}

TEST_F(FirstHour, SplitsThatWouldLeakAreRefused) {
  dtg_dataset *a = nullptr, *b = nullptr;
  const auto refuse = [&](dtg_dataset* data, const char* what, auto&& change) {
    dtg_split how = DTG_SPLIT_INIT;
    change(how);
    return refused(dtg_dataset_split(data, &how, &a, &b), DTG_INVALID_ARGUMENT, what);
  };
  const auto same = [](dtg_split&) {};
  dtg_dataset* const data = rows(uneven(10));
  EXPECT_NE(refuse(data, "a share of all", [](auto& s) { s.fraction = 1; }).find("fraction"), std::string::npos);
  refuse(data, "a share that is no number", [](auto& s) { s.fraction = NAN; });
  refuse(data, "one fold", [](auto& s) { s.folds = 1; });
  refuse(data, "a fold that is none", [](auto& s) { s.folds = 3, s.fold = 3; });
  EXPECT_NE(refuse(data, "folds and a share", [](auto& s) { s.folds = 3, s.fraction = 0.2; }).find("3 folds and a fraction of 0.2"),
            std::string::npos);
  refuse(data, "no such component", [](auto& s) { s.stratify = 1, s.classes = 9; });
  refuse(data, "classes that are vectors", [](auto& s) { s.stratify = 1; });
  refuse(rows({1}), "one row", same);
  OK(dtg_dataset_repeat(data, 2));
  EXPECT_NE(refuse(data, "rows twice", same).find("twice"), std::string::npos);
  dtg_dataset* const batched = rows(uneven(10));
  OK(dtg_dataset_batch(batched, 2, 0));
  EXPECT_NE(refuse(batched, "batches", same).find("before batch"), std::string::npos);
  dtg_dataset* const endless = rows(uneven(10));
  OK(dtg_dataset_repeat(endless, -1));
  refuse(endless, "an endless one", same);
  EXPECT_EQ(a, nullptr);
  EXPECT_EQ(b, nullptr);
}

TEST_F(FirstHour, AShuffleThatStays) {
  dtg_dataset* const stays = rows(uneven(40));
  dtg_dataset* const changes = rows(uneven(40));
  OK(dtg_dataset_shuffle_once(stays, 0, 3));
  OK(dtg_dataset_shuffle(changes, 0, 3));
  std::vector<int> first, second, other, another;
  epoch(stays, &first), epoch(stays, &second);
  epoch(changes, &other), epoch(changes, &another);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first, other);  // the order of the first epoch
  EXPECT_NE(other, another);
}

TEST_F(FirstHour, NormalizesByWhatWasTrainedOn) {
  dtg_dataset *train, *test;
  split(rows(uneven(60)), nullptr, &train, &test);
  std::vector<double> column;
  for (const auto& [row, of] : epoch(train)) column.push_back(row);
  double mean = 0, square = 0;
  for (const double value : column) mean += value / static_cast<double>(column.size());
  for (const double value : column) square += (value - mean) * (value - mean) / static_cast<double>(column.size());
  dtg_string* made = nullptr;
  OK(dtg_dataset_fit_normalization(train, 0, DTG_NORMALIZE_STANDARD, &made));
  const std::string numbers = taken(made);
  OK(dtg_dataset_normalize(test, 0, numbers.c_str(), DTG_STRLEN));
  // Row 0 to 59: the first one that is held out.
  const int64_t dims[] = {-1, 2};
  dtg_value in, out;
  OK(dtg_placeholder(graph, "in", DTG_F32, dims, 2, &in));
  OK(dtg_nn_normalize(model, in, numbers.c_str(), DTG_STRLEN, &out));
  OK(dtg_session_connect(nullptr, nullptr, 0, graph, nullptr, &session));
  int32_t more = 0;
  dtg_tensor* element[2] = {};
  OK(dtg_dataset_next(test, element, 2, &more));
  const std::vector<float> found = floats_of(element[0]);
  const double row = found[0] * std::sqrt(square) + mean;
  EXPECT_NEAR(row, std::round(row), 1e-4);
  const auto number = static_cast<float>(std::round(row));
  EXPECT_EQ(run(session, out, in, {number, static_cast<float>(static_cast<int>(number) % 3) * 10}), found);  // the same bits in the graph
  dtg_tensor_release(element[0]);
  dtg_tensor_release(element[1]);
  // To [0, 1], and what is refused.
  OK(dtg_dataset_fit_normalization(train, 0, DTG_NORMALIZE_RANGE, &made));
  EXPECT_NE(taken(made).find("\"scale\":["), std::string::npos);
  refused(dtg_dataset_fit_normalization(train, 0, 2, &made), DTG_INVALID_ARGUMENT, "a kind that is none");
  refused(dtg_dataset_fit_normalization(train, 2, 0, &made), DTG_OUT_OF_RANGE, "no such component");
  refused(dtg_dataset_normalize(rows({1, 2}), 0, "{}", DTG_STRLEN), DTG_INVALID_ARGUMENT, "no numbers");
  refused(dtg_dataset_normalize(rows({1, 2}), 0, R"({"shift":[0,0,0],"scale":[1,1,1]})", DTG_STRLEN), DTG_INVALID_ARGUMENT,
          "three features");
  refused(dtg_nn_normalize(model, in, R"({"shift":[0],"scale":[0]})", DTG_STRLEN, &out), DTG_INVALID_ARGUMENT, "a scale of 0");
}

TEST_F(FirstHour, OneLayerCalledTwice) {
  const int64_t dims[] = {-1, 2};
  dtg_value left, right, a, b, loss;
  OK(dtg_placeholder(graph, "left", DTG_F32, dims, 2, &left));
  OK(dtg_placeholder(graph, "right", DTG_F32, dims, 2, &right));
  dtg_dense dense = DTG_DENSE_INIT;
  dense.name = "leg", dense.units = 2;
  OK(dtg_nn_dense(model, left, &dense, &a));
  dense.weights_of = "leg";
  OK(dtg_nn_dense(model, right, &dense, &b));
  EXPECT_EQ(dtg_model_variable_count(model), 2u);
  dtg_dense wide = dense;
  wide.units = 3;
  EXPECT_NE(refused(dtg_nn_dense(model, right, &wide, &b), DTG_INVALID_ARGUMENT, "other units").find("leg/kernel"), std::string::npos);
  wide.weights_of = "arm";
  refused(dtg_nn_dense(model, right, &wide, &b), DTG_NOT_FOUND, "no such layer");
  OK(dtg_nn_mean_squared_error(model, a, b, &loss));
  dtg_training made = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize(model, loss, nullptr, &made));
  connect();
  EXPECT_EQ(run(session, a, left, {1, 2}), run(session, b, right, {1, 2}));
}

TEST_F(FirstHour, ServedWithoutItsBuilder) {
  build_net();
  OK(dtg_model_set_metadata(model, "schema", DTG_STRLEN, "{}", DTG_STRLEN));
  connect();
  const std::vector<float> rows = {1, 2, -3, 0.5f}, expected = run(session, y, x, rows);
  for (const bool freeze : {false, true}) {
    OK(save_as(x, y, freeze));
    std::vector<float> answer;
    const auto names = serve(rows, &answer);
    EXPECT_EQ(answer, expected);
    EXPECT_EQ(names, freeze ? std::vector<std::string>() :  // nothing of the training
                         std::vector<std::string>({"hidden/kernel", "hidden/bias", "out/kernel", "out/bias"}));
  }
  dtg_model* loaded = nullptr;
  dtg_string* text = nullptr;
  dtg_value value{};
  OK(dtg_model_load(nullptr, file_.c_str(), DTG_STRLEN, nullptr, &loaded));
  OK(dtg_model_metadata(loaded, "schema", DTG_STRLEN, &text));
  EXPECT_EQ(taken(text), "{}");
  OK(dtg_model_endpoints(loaded, &text));
  EXPECT_EQ(taken(text), "{\"inputs\":[{\"name\":\"features\",\"dtype\":\"float32\",\"shape\":[-1,2]}],"
                         "\"outputs\":[{\"name\":\"answer\",\"dtype\":\"float32\",\"shape\":[-1,1]}]}\n");
  EXPECT_NE(refused(dtg_model_endpoint(loaded, "anwser", DTG_STRLEN, &value), DTG_NOT_FOUND, "\"anwser\"")
                .find("did you mean \"answer\"? there are features, answer"),
            std::string::npos);
  dtg_model_release(loaded);
}

TEST_F(FirstHour, ServedFromTheMiddleOfTheGraph) {
  build_net();
  connect();
  const std::vector<float> at = {0.1f, -0.2f, 0.3f};
  OK(save_as(hidden, y));
  dtg_session* served = nullptr;
  dtg_model* loaded = nullptr;
  dtg_value in{}, out{};
  OK(dtg_model_load(nullptr, file_.c_str(), DTG_STRLEN, &served, &loaded));
  OK(dtg_model_endpoint(loaded, "features", DTG_STRLEN, &in));
  OK(dtg_model_endpoint(loaded, "answer", DTG_STRLEN, &out));
  EXPECT_EQ(run(served, out, in, at, 3), run(session, y, hidden, at, 3));
  EXPECT_EQ(dtg_model_variable_count(loaded), 2u);
  dtg_session_release(served);
  dtg_model_release(loaded);
}

TEST_F(FirstHour, TrainsOnAfterLoading) {
  build_net();
  connect();
  OK(save_as(x, training.train));
  dtg_session* served = nullptr;
  dtg_model* loaded = nullptr;
  dtg_value in{}, train{};
  OK(dtg_model_load(nullptr, file_.c_str(), DTG_STRLEN, &served, &loaded));
  OK(dtg_model_endpoint(loaded, "features", DTG_STRLEN, &in));
  OK(dtg_model_endpoint(loaded, "answer", DTG_STRLEN, &train));
  EXPECT_EQ(dtg_model_variable_count(loaded), dtg_model_variable_count(model));
  std::vector<float> batch = {1, 2};
  const auto step = [&batch](dtg_session* where, dtg_value feed, dtg_value target) {
    const int64_t dims[] = {1, 2};
    dtg_tensor* tensor = nullptr;
    OK(dtg_tensor_create(DTG_F32, dims, 2, batch.data(), 8, nullptr, nullptr, &tensor));
    const dtg_tensor* const given = tensor;
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = &feed, args.feed_tensors = &given, args.num_feeds = 1, args.targets = &target, args.num_targets = 1;
    OK(dtg_session_run(where, &args));
    dtg_tensor_release(tensor);
  };
  for (int i = 0; i < 3; ++i) step(session, x, training.train), step(served, in, train);
  for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
    dtg_variable here = DTG_VARIABLE_INIT, there = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(model, i, &here));
    OK(dtg_model_find_variable(loaded, here.name, here.name_len, &there));
    EXPECT_EQ(here.trainable, there.trainable) << here.name;
    if (here.dtype != DTG_F32) continue;
    EXPECT_EQ(run(session, here.read), run(served, there.read)) << here.name;
  }
  dtg_session_release(served);
  dtg_model_release(loaded);
}

TEST_F(FirstHour, ExportsThatNobodyCouldServe) {
  build_net();
  connect();
  EXPECT_NE(refused(save_as(x, dropped), DTG_FAILED_PRECONDITION, "the switch").find("\"training\""), std::string::npos);
  refused(save_as(x, training.train, true), DTG_FAILED_PRECONDITION, "training, frozen");
  dtg_export nothing = DTG_EXPORT_INIT;
  refused(dtg_model_export(model, session, &nothing, file_.c_str(), DTG_STRLEN), DTG_INVALID_ARGUMENT, "no outputs");
  const char* const twice[] = {"a", "a"};
  const dtg_value values[] = {y, hidden};
  nothing.output_names = twice, nothing.outputs = values, nothing.num_outputs = 2;
  refused(dtg_model_export(model, session, &nothing, file_.c_str(), DTG_STRLEN), DTG_INVALID_ARGUMENT, "one name twice");
  EXPECT_FALSE(std::ifstream(file_).good());
  dtg_model* loaded = nullptr;
  OK(dtg_model_save(model, session, file_.c_str(), DTG_STRLEN));
  EXPECT_NE(refused(dtg_model_load(nullptr, file_.c_str(), DTG_STRLEN, nullptr, &loaded), DTG_DATA_LOSS, "weights only").find("exporting"),
            std::string::npos);
  OK(save_as(x, y));
  std::ofstream(file_, std::ios::binary | std::ios::in).seekp(900).write("damage", 6);
  refused(dtg_model_load(nullptr, file_.c_str(), DTG_STRLEN, nullptr, &loaded), DTG_DATA_LOSS, "damaged");
}

TEST_F(FirstHour, AnImportedGraphKnowsItsVariables) {
  build_net();
  connect();
  const std::vector<float> expected = run(session, y, x, {1, 2});
  OK(dtg_model_save(model, session, file_.c_str(), DTG_STRLEN));
  dtg_string* bytes = nullptr;
  OK(dtg_graph_serialize(graph, &bytes));
  const std::string text = taken(bytes);
  dtg_graph* other = nullptr;
  dtg_model* found = nullptr;
  dtg_session* fresh = nullptr;
  dtg_value in{}, out{};
  OK(dtg_graph_create(nullptr, &other));
  OK(dtg_graph_import(other, text.data(), text.size()));
  OK(dtg_model_import(other, 7, &found));
  ASSERT_EQ(dtg_model_variable_count(found), dtg_model_variable_count(model));
  for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
    dtg_variable a = DTG_VARIABLE_INIT, b = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(model, i, &a));
    OK(dtg_model_variable(found, i, &b));
    EXPECT_STREQ(a.name, b.name);
    EXPECT_EQ(a.trainable, b.trainable) << a.name;
  }
  OK(dtg_session_connect(nullptr, nullptr, 0, other, nullptr, &fresh));
  OK(dtg_model_restore(found, fresh, file_.c_str(), DTG_STRLEN));
  OK(dtg_graph_find(other, "x", DTG_STRLEN, &in));
  const char* name = nullptr;
  OK(dtg_value_name(graph, y, &name, nullptr));
  OK(dtg_graph_find(other, name, DTG_STRLEN, &out));
  EXPECT_EQ(run(fresh, out, in, {1, 2}), expected);
  // A layer that is added takes the next free name, not a free variable of the one that is there.
  dtg_dense again = DTG_DENSE_INIT;
  again.name = "hidden", again.units = 2;
  OK(dtg_nn_dense(found, in, &again, &out));
  dtg_variable added = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(found, "hidden_1/kernel", DTG_STRLEN, &added));
  dtg_session_release(fresh);
  dtg_model_release(found);
  dtg_graph_release(other);
}

TEST_F(FirstHour, RestoresByOtherNamesAndInPart) {
  build_net();
  connect();
  OK(dtg_model_save(model, session, file_.c_str(), DTG_STRLEN));
  dtg_variable trained = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(model, "hidden/kernel", DTG_STRLEN, &trained));
  const std::vector<float> kernel = run(session, trained.read);
  dtg_session_release(session);
  session = nullptr;
  dtg_model_release(model);
  OK(dtg_model_create(graph, 8, &model));
  dtg_value h, out;
  dtg_dense dense = DTG_DENSE_INIT;
  dense.name = "encoder", dense.units = 3;
  OK(dtg_nn_dense(model, x, &dense, &h));
  dense.name = "head", dense.units = 4;
  OK(dtg_nn_dense(model, h, &dense, &out));
  connect();
  dtg_restore how = DTG_RESTORE_INIT;
  dtg_string* report = nullptr;
  how.names = R"({"encoder/": "hidden/", "head/kernel": "out/kernel"})";
  const auto attempt = [&] { return dtg_model_restore_from(model, session, file_.c_str(), DTG_STRLEN, &how, &report); };
  const std::string why = refused(attempt(), DTG_FAILED_PRECONDITION, "another head");
  EXPECT_NE(why.find("\"head/kernel\" (\"out/kernel\" there) is float32[3,1] there and float32[3,4] here"), std::string::npos) << why;
  EXPECT_NE(why.find("not in it: \"head/bias\""), std::string::npos) << why;
  dtg_variable encoder = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(model, "encoder/kernel", DTG_STRLEN, &encoder));
  EXPECT_NE(run(session, encoder.read), kernel);  // nothing was assigned
  how.partial = 1;
  OK(attempt());
  EXPECT_EQ(run(session, encoder.read), kernel);
  const std::string told = taken(report);
  EXPECT_NE(told.find("\"variables\":2,\"missing\":[\"head/bias\"]"), std::string::npos) << told;
  EXPECT_NE(told.find("\"reshaped\":[\"head/kernel\"]"), std::string::npos) << told;
  EXPECT_NE(told.find("\"out/bias\""), std::string::npos) << told;
  report = nullptr;
  how.names = R"({"decoder/": "hidden/"})";
  refused(attempt(), DTG_NOT_FOUND, "a rule for nobody");
  how.names = R"({"encoder/": "hidden"})";
  refused(attempt(), DTG_INVALID_ARGUMENT, "half a scope");
  how.names = "[]";
  refused(attempt(), DTG_INVALID_ARGUMENT, "no object");
  how.names = R"({"head/": "nowhere/", "encoder/": "nothing/"})";
  const std::string none = refused(attempt(), DTG_FAILED_PRECONDITION, "nothing fits");
  EXPECT_NE(none.find("it has none of the model's variables; not in it: \"encoder/kernel\" (\"nothing/kernel\" there)"), std::string::npos)
      << none;
  EXPECT_NE(none.find("in it alone: \"beta1_power\""), std::string::npos) << none;
}

// Every training has the counts of its metrics, so they fit whatever the model is.
TEST_F(FirstHour, CountsAloneAreNoWeightsThatFit) {
  dtg_metric metric = DTG_METRIC_INIT;
  dtg_metric_values values = DTG_METRIC_VALUES_INIT;
  build_net();
  OK(dtg_nn_metric(model, &metric, {0}, x, {0}, &values));
  connect();
  OK(dtg_model_save(model, session, file_.c_str(), DTG_STRLEN));
  dtg_session_release(session);
  session = nullptr;
  dtg_model_release(model);
  OK(dtg_model_create(graph, 9, &model));
  dtg_value out;
  dtg_dense dense = DTG_DENSE_INIT;
  dense.name = "another", dense.units = 3;
  OK(dtg_nn_dense(model, x, &dense, &out));
  OK(dtg_nn_metric(model, &metric, {0}, x, {0}, &values));
  connect();
  dtg_restore how = DTG_RESTORE_INIT;
  how.partial = 1;
  how.names = R"({"mean_1/": "mean/"})";
  const std::string why =
      refused(dtg_model_restore_from(model, session, file_.c_str(), DTG_STRLEN, &how, nullptr), DTG_FAILED_PRECONDITION, "counts alone");
  EXPECT_NE(why.find("it has none of the model's variables but counts of metrics"), std::string::npos) << why;
}

TEST_F(FirstHour, CheckpointsByOtherNames) {
  const std::string sets = folder("renamed");
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  options.directory = sets.c_str();
  build_net();
  connect();
  dtg_checkpoint* checkpoint = nullptr;
  OK(dtg_checkpoint_open(model, session, &options, &checkpoint));
  OK(dtg_checkpoint_save(checkpoint, 3, 0));
  dtg_checkpoint_release(checkpoint);
  dtg_variable trained = DTG_VARIABLE_INIT, encoder = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(model, "hidden/kernel", DTG_STRLEN, &trained));
  const std::vector<float> kernel = run(session, trained.read);
  dtg_session_release(session);
  session = nullptr;
  dtg_model_release(model);
  OK(dtg_model_create(graph, 9, &model));
  dtg_value out;
  dtg_dense dense = DTG_DENSE_INIT;
  dense.name = "encoder", dense.units = 3;
  OK(dtg_nn_dense(model, x, &dense, &out));
  connect();
  options.partial = 1;
  options.names = R"({"encoder/": "hidden/"})";
  OK(dtg_checkpoint_open(model, session, &options, &checkpoint));
  dtg_string* report = nullptr;
  OK(dtg_checkpoint_restore(checkpoint, nullptr, 0, nullptr, &report));
  EXPECT_NE(taken(report).find("\"variables\":2"), std::string::npos);
  OK(dtg_model_find_variable(model, "encoder/kernel", DTG_STRLEN, &encoder));
  EXPECT_EQ(run(session, encoder.read), kernel);
  dtg_checkpoint_release(checkpoint);
  ASSERT_EQ(std::system(("rm -rf '" + sets + "'").c_str()), 0);
}

}  // namespace
}  // namespace outside
