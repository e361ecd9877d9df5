// Categories through the C ABI: texts that become numbers, rows of an embedding and a prediction; the vocabulary goes where the model goes;
// and what is misused is told.
#include <cmath>

#include "world.h"

namespace outside {
namespace {

dtg_tensor* texts(const std::vector<const char*>& given) {
  const auto count = static_cast<int64_t>(given.size());
  dtg_tensor* made = nullptr;
  OK(dtg_tensor_create_strings(&count, 1, given.data(), nullptr, &made));
  return made;
}

class Categories : public World {
 protected:
  void TearDown() override {
    for (dtg_tensor* each : held_) dtg_tensor_release(each);
    World::TearDown();
  }
  dtg_tensor* keep(dtg_tensor* tensor) {
    held_.push_back(tensor);
    return tensor;
  }
  dtg_value placeholder(dtg_graph* graph, const char* name, dtg_dtype dtype, int64_t count) {
    dtg_value made{};
    OK(dtg_placeholder(graph, name, dtype, &count, 1, &made));
    return made;
  }
  // What one fetch gives.
  dtg_tensor* run(dtg_session* in, dtg_value feed, const dtg_tensor* tensor, dtg_value fetch) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    dtg_tensor* fetched = nullptr;
    args.feeds = &feed;
    args.feed_tensors = &tensor;
    args.num_feeds = 1;
    args.fetches = &fetch;
    args.num_fetches = 1;
    args.fetched = &fetched;
    OK(dtg_session_run(in, &args));
    return keep(fetched);
  }
  std::vector<float> floats(const dtg_tensor* tensor) {
    size_t bytes = 0;
    const auto* data = static_cast<const float*>(dtg_tensor_data(tensor, &bytes));
    return {data, data + bytes / sizeof(float)};
  }
  // Predictions of a model file for some cities, by its endpoints.
  std::vector<float> served(const std::string& path, const dtg_tensor* cities) {
    dtg_session* session = nullptr;
    dtg_model* model = nullptr;
    dtg_value in{}, out{};
    OK(dtg_model_load(h.runtime, path.c_str(), DTG_STRLEN, &session, &model));
    OK(dtg_model_endpoint(model, "city", DTG_STRLEN, &in));
    OK(dtg_model_endpoint(model, "price", DTG_STRLEN, &out));
    std::vector<float> found = floats(run(session, in, cities, out));
    dtg_session_release(session);
    dtg_model_release(model);
    return found;
  }

 private:
  std::vector<dtg_tensor*> held_;
};

void expect_refused(dtg_error* error, const std::string& part) {
  const std::string message = refused(error, DTG_INVALID_ARGUMENT, part);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

struct Net {
  explicit Net(dtg_runtime* runtime) {
    OK(dtg_graph_create(runtime, &graph));
    OK(dtg_model_create(graph, 3, &model));
    OK(dtg_session_connect(runtime, "local", DTG_STRLEN, graph, nullptr, &session));
  }
  ~Net() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
};

TEST_F(Categories, AreLearntFromAndServedAsTexts) {
  const Net net(h.runtime);
  const dtg_value city = placeholder(net.graph, "city", DTG_STRING, -1);
  const int64_t dims[] = {-1, 1};
  dtg_value price{}, number{}, x{}, loss{}, init{};
  OK(dtg_placeholder(net.graph, "price", DTG_F32, dims, 2, &price));
  dtg_lookup lookup = DTG_LOOKUP_INIT;
  dtg_tensor* vocabulary = texts({"Berlin", "Lyon", "Porto"});
  lookup.vocabulary = vocabulary;
  OK(dtg_nn_lookup(net.model, city, &lookup, &number));
  dtg_tensor_release(vocabulary);
  dtg_embedding embedding = DTG_EMBEDDING_INIT;
  embedding.rows = 4;
  embedding.width = 3;
  OK(dtg_nn_embedding(net.model, number, &embedding, &x));
  dtg_dense dense = DTG_DENSE_INIT;
  dense.units = 1;
  OK(dtg_nn_dense(net.model, x, &dense, &x));
  OK(dtg_nn_mean_squared_error(net.model, price, x, &loss));
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.1;
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize(net.model, loss, &adam, &training));
  OK(dtg_model_init(net.model, &init));
  OK(dtg_run_target(net.session, init));
  const dtg_tensor* const cities = keep(texts({"Porto", "Lyon", "Berlin", "Oslo"}));
  float prices[] = {1, 2, 3, 4};
  const int64_t four[] = {4, 1};
  dtg_tensor* wanted = nullptr;
  OK(dtg_tensor_create(DTG_F32, four, 2, prices, sizeof prices, nullptr, nullptr, &wanted));
  keep(wanted);
  const dtg_value feeds[] = {city, price};
  dtg_tensor* const given[] = {const_cast<dtg_tensor*>(cities), wanted};
  float value = 0;
  for (int step = 0; step < 200; ++step) OK(dtg_step_f32(net.session, feeds, given, 2, loss, training.train, &value));
  EXPECT_LT(value, 0.01f);

  const std::vector<float> now = floats(run(net.session, city, cities, x));
  const char *in_name = "city", *out_name = "price";
  dtg_export serving = DTG_EXPORT_INIT;
  serving.input_names = &in_name;
  serving.inputs = &city;
  serving.output_names = &out_name;
  serving.outputs = &x;
  serving.num_inputs = serving.num_outputs = 1;
  for (const int32_t freeze : {0, 1}) {
    serving.freeze = freeze;
    const std::string path = folder("model.dtg");
    OK(dtg_model_export(net.model, net.session, &serving, path.c_str(), DTG_STRLEN));
    EXPECT_EQ(served(path, cities), now);
    // What it has not met is what is unknown, whatever it is.
    EXPECT_EQ(served(path, keep(texts({"Rome", "", "lyon", "Oslo"}))), std::vector<float>(4, now[3]));
  }
}

TEST_F(Categories, TheVocabularyIsTheHostsNoMore) {
  const Net net(h.runtime);
  const dtg_value x = placeholder(net.graph, "x", DTG_I64, -1);
  int64_t numbers[] = {7, 8}, asked[] = {8, 7, 9};
  const int64_t two = 2, three = 3;
  dtg_tensor *vocabulary = nullptr, *given = nullptr;
  OK(dtg_tensor_create(DTG_I64, &two, 1, numbers, sizeof numbers, nullptr, nullptr, &vocabulary));
  OK(dtg_tensor_create(DTG_I64, &three, 1, asked, sizeof asked, nullptr, nullptr, &given));
  keep(given);
  dtg_lookup lookup = DTG_LOOKUP_INIT;
  lookup.vocabulary = vocabulary;
  dtg_value number{}, back{};
  OK(dtg_nn_lookup(net.model, x, &lookup, &number));
  lookup.invert = 1;
  OK(dtg_nn_lookup(net.model, number, &lookup, &back));
  static_cast<int64_t*>(dtg_tensor_mutable_data(vocabulary))[1] = 9;
  dtg_tensor_release(vocabulary);
  const auto* found = static_cast<const int64_t*>(dtg_tensor_data(run(net.session, x, given, back), nullptr));
  EXPECT_EQ(std::vector<int64_t>(found, found + 3), (std::vector<int64_t>{8, 7, -1}));
}

// Texts stay on the host; numbers come from the device and go on there.
TEST_F(Categories, StandBesideAcceleratorsAsWell) {
  const Net net(h.runtime);
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.emu_devices = 1;
  dtg_session* session = nullptr;
  OK(dtg_session_connect(h.runtime, "local", DTG_STRLEN, net.graph, &options, &session));
  const dtg_value x = placeholder(net.graph, "x", DTG_I64, -1);
  int64_t numbers[] = {7, 8}, asked[] = {8, 7, 8}, unknown[] = {8, -5, 7};
  const int64_t two = 2, three = 3;
  dtg_tensor *vocabulary = nullptr, *known = nullptr, *others = nullptr;
  OK(dtg_tensor_create(DTG_I64, &two, 1, numbers, sizeof numbers, nullptr, nullptr, &vocabulary));
  OK(dtg_tensor_create(DTG_I64, &three, 1, asked, sizeof asked, nullptr, nullptr, &known));
  OK(dtg_tensor_create(DTG_I64, &three, 1, unknown, sizeof unknown, nullptr, nullptr, &others));
  dtg_lookup lookup = DTG_LOOKUP_INIT;
  lookup.vocabulary = keep(vocabulary);
  lookup.no_oov = 1;
  dtg_value number{}, text{}, counts{};
  OK(dtg_nn_lookup(net.model, x, &lookup, &number));
  dtg_lookup names = DTG_LOOKUP_INIT;
  names.vocabulary = keep(texts({"seven", "eight"}));
  names.no_oov = names.invert = 1;
  OK(dtg_nn_lookup(net.model, number, &names, &text));
  names.invert = 0;
  names.output_mode = DTG_OUTPUT_COUNT;
  OK(dtg_nn_lookup(net.model, text, &names, &counts));
  EXPECT_EQ(floats(run(session, x, keep(known), counts)), (std::vector<float>{1, 2}));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_tensor *fetched = nullptr, *const fed = keep(others);
  args.feeds = &x;
  args.feed_tensors = &fed;
  args.fetches = &counts;
  args.fetched = &fetched;
  args.num_feeds = args.num_fetches = 1;
  expect_refused(dtg_session_run(session, &args), "[-5]");
  dtg_session_release(session);
}

TEST_F(Categories, HashingHasTheBinsOfKeras) {
  const Net net(h.runtime);
  const dtg_value x = placeholder(net.graph, "x", DTG_STRING, -1);
  dtg_hashing hashing = DTG_HASHING_INIT;
  hashing.num_bins = 3;
  dtg_value bin{};
  const dtg_tensor* const given = keep(texts({"A", "B", "C", "D", "E"}));
  OK(dtg_nn_hashing(net.model, x, &hashing, &bin));
  const auto* bins = static_cast<const int64_t*>(dtg_tensor_data(run(net.session, x, given, bin), nullptr));
  EXPECT_EQ(std::vector<int64_t>(bins, bins + 5), (std::vector<int64_t>{1, 0, 1, 1, 2}));  // the example of Keras
  hashing.salted = 1;
  hashing.salt[0] = 133;
  hashing.salt[1] = 137;
  OK(dtg_nn_hashing(net.model, x, &hashing, &bin));
  bins = static_cast<const int64_t*>(dtg_tensor_data(run(net.session, x, given, bin), nullptr));
  EXPECT_EQ(std::vector<int64_t>(bins, bins + 5), (std::vector<int64_t>{1, 2, 1, 0, 2}));  // likewise
}

TEST_F(Categories, WhatIsMisusedIsTold) {
  const Net net(h.runtime);
  const dtg_value x = placeholder(net.graph, "x", DTG_STRING, -1);
  dtg_value out{};
  dtg_hashing hashing = DTG_HASHING_INIT;
  hashing.num_bins = 3;
  hashing.salt[1] = 4;
  expect_refused(dtg_nn_hashing(net.model, x, &hashing, &out), "salted");
  hashing.salt[1] = 0;
  hashing.output_mode = 4;
  expect_refused(dtg_nn_hashing(net.model, x, &hashing, &out), "output mode: 4");
  dtg_lookup lookup = DTG_LOOKUP_INIT;
  expect_refused(dtg_nn_lookup(net.model, x, &lookup, &out), "no vocabulary");
  dtg_tensor* vocabulary = texts({"a", "b", "a"});
  lookup.vocabulary = vocabulary;
  expect_refused(dtg_nn_lookup(net.model, x, &lookup, &out), "the token \"a\" is in the vocabulary twice");
  lookup.no_oov = 1;
  lookup.num_oov_indices = 2;
  expect_refused(dtg_nn_lookup(net.model, x, &lookup, &out), "no_oov together with num_oov_indices of 2");
  lookup.no_oov = 0;
  lookup.name = "cities";
  lookup.name_len = 0;
  expect_refused(dtg_nn_lookup(net.model, x, &lookup, &out), "name is given with length 0");
  dtg_tensor_release(vocabulary);
  lookup.name_len = DTG_STRLEN;
  expect_refused(dtg_nn_lookup(net.model, x, &lookup, &out), "vocabulary");
}

}  // namespace
}  // namespace outside
