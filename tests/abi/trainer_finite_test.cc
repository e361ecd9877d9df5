// A gradient that is no number where every loss was one: a fit keeps nothing of such weights, says so, and what it kept before stands.
#include <filesystem>

#include "trainer_lab.h"

namespace {

using namespace fits;

// loss = mean |w x| by a root, whose gradient at 0 is no number. `ill`: the last of four rows is 0.
struct Rooted {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_trainer* trainer = nullptr;
  dtg_dataset* data = nullptr;

  explicit Rooted(bool ill, bool unchecked = false) {
    const int64_t dims[] = {-1, 1}, rows[] = {4, 1};
    float numbers[] = {1, 2, 3, ill ? 0.f : 4.f};
    dtg_tensor* x = nullptr;
    OK(dtg_tensor_create(DTG_F32, rows, 2, numbers, sizeof numbers, nullptr, nullptr, &x));
    OK(dtg_dataset_tensors(nullptr, &x, 1, &data));
    dtg_tensor_release(x);
    OK(dtg_dataset_batch(data, 1, 0));
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, 3, &model));
    OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, nullptr, &session));
    dtg_value fed, y, axes, loss;
    OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &fed));
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = 1;
    layer.no_bias = 1;
    OK(dtg_nn_dense(model, fed, &layer, &y));
    const int32_t both[] = {0, 1};
    const int64_t two = 2;
    OK(dtg_const_of(graph, DTG_I32, &two, 1, both, sizeof both, &axes));
    OK(dtg_add1(graph, "Square", y, &y));
    OK(dtg_add1(graph, "Sqrt", y, &y));
    OK(dtg_add2(graph, "Mean", y, axes, &loss));
    dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
    sgd.rate = 0.01;
    sgd.unchecked_loss = unchecked ? 1 : 0;
    dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
    options.session = session;
    options.feeds = &fed;
    options.num_feeds = 1;
    options.loss = loss;
    options.optimizer = &sgd;
    OK(dtg_trainer_create(model, &options, &trainer));
  }
  ~Rooted() {
    dtg_trainer_release(trainer);
    dtg_session_release(session);
    dtg_dataset_release(data);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  std::string summary() const {
    dtg_string* text = nullptr;
    OK(dtg_trainer_summary(trainer, &text));
    std::string all = dtg_string_data(text, nullptr);
    dtg_string_release(text);
    return all;
  }
};

TEST_F(Trainer, KeepsNoWeightsThatAreNoNumbers) {
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 1;
  {
    Rooted alone(true);
    const std::string why =
        refused(dtg_trainer_fit(alone.trainer, alone.data, nullptr, &how, nullptr), DTG_INVALID_ARGUMENT, "no directory");
    EXPECT_NE(why.find("after step 4 element 0 of the variable \"dense/kernel\""), std::string::npos) << why;
    EXPECT_NE(alone.summary().find("\"outcome\":\"failed\""), std::string::npos);
    Rooted wanted(true, true);
    OK(dtg_trainer_fit(wanted.trainer, wanted.data, nullptr, &how, nullptr));
  }
  how.directory = run_.c_str();
  how.checkpoint_steps = 2;
  for (int attempt = 0; attempt < 2; ++attempt) {
    Rooted kept(true);
    (void)refused(dtg_trainer_fit(kept.trainer, kept.data, nullptr, &how, nullptr), DTG_INVALID_ARGUMENT, "a directory");
    EXPECT_NE(kept.summary().find(attempt == 0 ? "\"resumed\":false" : "\"resumed\":true"), std::string::npos) << kept.summary();
    EXPECT_FALSE(std::filesystem::exists(run_ + "/model.safetensors"));
  }
  // What was kept is sound, and a program that was mended goes on from it.
  how.epochs = 2;
  Rooted mended(false);
  OK(dtg_trainer_fit(mended.trainer, mended.data, nullptr, &how, nullptr));
  EXPECT_TRUE(std::filesystem::exists(run_ + "/model.safetensors"));
}

}  // namespace
