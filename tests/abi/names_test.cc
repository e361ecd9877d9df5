// A name that nothing has: the error tells what is near and what there is, whatever is asked by name. One thread.
#include <string>

#include "world.h"

namespace outside {
namespace {

class Names : public testing::Test {
 protected:
  void SetUp() override {
    before_ = dtg_live_handles();
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, 7, &model));
    const int64_t dims[] = {-1, 3};
    OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x));
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = 2;
    OK(dtg_nn_dense(model, x, &layer, &y));
  }
  void TearDown() override {
    dtg_model_release(model);
    dtg_graph_release(graph);
    EXPECT_EQ(dtg_live_handles(), before_);
  }

  static void near(dtg_error* error, const std::string& words) {
    const std::string message = refused(error, DTG_NOT_FOUND, words);
    EXPECT_NE(message.find(words), std::string::npos) << message << "\n" << words;
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_value x{}, y{};
  uint64_t before_ = 0;
};

TEST_F(Names, OfVariablesAndLayers) {
  dtg_variable found = DTG_VARIABLE_INIT;
  near(dtg_model_find_variable(model, "dense/kernl", DTG_STRLEN, &found),
       "the model has no variable \"dense/kernl\": did you mean \"dense/kernel\"? there are dense/kernel, dense/bias");
  near(dtg_model_find_variable(model, "something", DTG_STRLEN, &found), "\"something\": there are dense/kernel, dense/bias");
  dtg_dense again = DTG_DENSE_INIT;
  again.units = 2;
  again.weights_of = "dens", again.weights_of_len = DTG_STRLEN;
  near(dtg_nn_dense(model, x, &again, &y), "did you mean \"dense/kernel\"? there are");
  dtg_sharded shards = DTG_SHARDED_INIT;
  near(dtg_model_find_sharded_variable(model, "tabel", DTG_STRLEN, &shards), "\"tabel\" in shards: there are none");
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  const int64_t rows[] = {4, 2};
  spec.name = "table", spec.name_len = DTG_STRLEN, spec.dims = rows, spec.rank = 2;
  dtg_partitioner two = DTG_PARTITIONER_INIT;
  two.num_shards = 2;
  OK(dtg_model_add_sharded_variable(model, &spec, &two, &shards));
  near(dtg_model_find_sharded_variable(model, "tabel", DTG_STRLEN, &shards), "did you mean \"table\"? there is table");
}

TEST_F(Names, OfMetadata) {
  dtg_string* text = nullptr;
  near(dtg_model_metadata(model, "shema", DTG_STRLEN, &text), "the model has no metadata \"shema\": there are none");
  OK(dtg_model_set_metadata(model, "schema", DTG_STRLEN, "{}", DTG_STRLEN));
  near(dtg_model_metadata(model, "shema", DTG_STRLEN, &text), "did you mean \"schema\"? there is schema");
}

TEST_F(Names, OfNodes) {
  dtg_value value{};
  near(dtg_graph_find(graph, "xx", DTG_STRLEN, &value), "no node \"xx\" in the graph: did you mean \"x\"? there are x, ");
}

TEST_F(Names, OfWeightSets) {
  dtg_weights* weights = nullptr;
  dtg_tensor *one = nullptr, *found = nullptr;
  const float number = 1;
  OK(dtg_weights_create(&weights));
  OK(dtg_tensor_create(DTG_F32, nullptr, 0, const_cast<float*>(&number), 4, nullptr, nullptr, &one));
  OK(dtg_weights_set(weights, "kernel", DTG_STRLEN, one));
  near(dtg_weights_get(weights, "kernal", DTG_STRLEN, &found),
       "the weight set has no tensor \"kernal\": did you mean \"kernel\"? there is kernel");
  dtg_tensor_release(one);
  dtg_weights_release(weights);
}

// What a program in the wrong folder, or with the session of another model, sees.
TEST_F(Names, OfFoldersAndSessions) {
  dtg_dataset* data = nullptr;
  const std::string why = refused(dtg_dataset_csv(nullptr, "none.csv", DTG_STRLEN, nullptr, &data), DTG_NOT_FOUND, "no file");
  EXPECT_NE(why.find("open \"none.csv\": No such file or directory; the current folder is \"/"), std::string::npos) << why;
  EXPECT_EQ(refused(dtg_dataset_csv(nullptr, "/none.csv", DTG_STRLEN, nullptr, &data), DTG_NOT_FOUND, "no file").find("folder"),
            std::string::npos);
  dtg_graph* other = nullptr;
  dtg_session* session = nullptr;
  OK(dtg_graph_create(nullptr, &other));
  OK(dtg_session_connect(nullptr, nullptr, 0, other, nullptr, &session));
  const std::string file = folder("other.safetensors");
  for (dtg_error* error :
       {dtg_model_save(model, session, file.c_str(), DTG_STRLEN), dtg_model_restore(model, session, file.c_str(), DTG_STRLEN),
        dtg_model_restore_from(model, session, file.c_str(), DTG_STRLEN, nullptr, nullptr)}) {
    const std::string told = refused(error, DTG_INVALID_ARGUMENT, "a session of another graph");
    EXPECT_NE(told.find("the session runs another graph than the model's"), std::string::npos) << told;
  }
  dtg_session_release(session);
  dtg_graph_release(other);
}

}  // namespace
}  // namespace outside
