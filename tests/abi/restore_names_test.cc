// Weights that were saved under a scope and are wanted at the root, or the other way round: of a file and of a set of checkpoints.
// What stands at the root has no scope to name it by, so a rule may say "" for it. One thread.
#include <cstdio>

#include "world.h"

namespace outside {
namespace {

// A model of one layer, `name`, in a session of its own with first values.
struct Layer {
  explicit Layer(const char* name, uint64_t seed) {
    const int64_t dims[] = {-1, 2};
    dtg_value out{}, init{};
    dtg_dense dense = DTG_DENSE_INIT;
    dense.name = name, dense.units = 3;
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, seed, &model));
    OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x));
    OK(dtg_nn_dense(model, x, &dense, &out));
    OK(dtg_model_init(model, &init));
    OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, nullptr, &session));
    OK(dtg_run_target(session, init));
  }
  ~Layer() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  std::vector<float> values(const std::string& name) const {
    dtg_variable variable = DTG_VARIABLE_INIT;
    OK(dtg_model_find_variable(model, name.c_str(), DTG_STRLEN, &variable));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    dtg_tensor* tensor = nullptr;
    args.fetches = &variable.read, args.num_fetches = 1, args.fetched = &tensor;
    OK(dtg_session_run(session, &args));
    const auto* const data = static_cast<const float*>(dtg_tensor_data(tensor, nullptr));
    std::vector<float> copy(data, data + dtg_tensor_count(tensor));
    dtg_tensor_release(tensor);
    return copy;
  }
  dtg_error* restore(const std::string& file, const char* names) const {
    dtg_restore how = DTG_RESTORE_INIT;
    how.names = names;
    return dtg_model_restore_from(model, session, file.c_str(), DTG_STRLEN, &how, nullptr);
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_value x{};
};

class RestoreNames : public testing::Test {
 protected:
  void TearDown() override {
    std::remove(file_.c_str());
    ASSERT_EQ(std::system(("rm -rf '" + sets_ + "'").c_str()), 0);
    EXPECT_EQ(dtg_live_handles(), before_);
  }
  const size_t before_ = dtg_live_handles();
  const std::string file_ = folder("names.safetensors"), sets_ = folder("names");
};

TEST_F(RestoreNames, FromAScopeToTheRoot) {
  const Layer scoped("old/layer", 1), plain("layer", 2);
  OK(dtg_model_save(scoped.model, scoped.session, file_.c_str(), DTG_STRLEN));
  ASSERT_NE(plain.values("layer/kernel"), scoped.values("old/layer/kernel"));
  OK(plain.restore(file_, R"({"": "old/"})"));
  EXPECT_EQ(plain.values("layer/kernel"), scoped.values("old/layer/kernel"));
}

TEST_F(RestoreNames, FromTheRootToAScope) {
  const Layer scoped("new/layer", 1), plain("layer", 2);
  OK(dtg_model_save(plain.model, plain.session, file_.c_str(), DTG_STRLEN));
  OK(scoped.restore(file_, R"({"new/": ""})"));
  EXPECT_EQ(scoped.values("new/layer/kernel"), plain.values("layer/kernel"));
}

// The root is the shortest of all beginnings, and a whole name goes before.
TEST_F(RestoreNames, TheRootGivesWayToEveryOtherRule) {
  const Layer scoped("old/layer", 1), plain("layer", 2);
  OK(dtg_model_save(scoped.model, scoped.session, file_.c_str(), DTG_STRLEN));
  OK(plain.restore(file_, R"({"": "nowhere/", "layer/": "old/layer/"})"));
  EXPECT_EQ(plain.values("layer/kernel"), scoped.values("old/layer/kernel"));
  const std::string why = refused(plain.restore(file_, R"({"": "old/", "layer/kernel": "old/layer/other"})"), DTG_FAILED_PRECONDITION,
                                  "a name that is not there");
  EXPECT_NE(why.find("not in it: \"layer/kernel\" (\"old/layer/other\" there)"), std::string::npos) << why;
}

// A name is no scope: neither of nothing, nor to nothing.
TEST_F(RestoreNames, TheRootIsNoName) {
  const Layer plain("layer", 2);
  OK(dtg_model_save(plain.model, plain.session, file_.c_str(), DTG_STRLEN));
  for (const char* const names : {R"({"": "layer"})", R"({"layer/kernel": ""})"}) {
    const std::string why = refused(plain.restore(file_, names), DTG_INVALID_ARGUMENT, names);
    EXPECT_NE(why.find("\"\", which is the root"), std::string::npos) << why;
  }
  OK(plain.restore(file_, R"({"": ""})"));
}

TEST_F(RestoreNames, OfASetToo) {
  const Layer scoped("old/layer", 1), plain("layer", 2);
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  options.directory = sets_.c_str();
  dtg_checkpoint* checkpoint = nullptr;
  OK(dtg_checkpoint_open(scoped.model, scoped.session, &options, &checkpoint));
  OK(dtg_checkpoint_save(checkpoint, 3, 0));
  dtg_checkpoint_release(checkpoint);
  options.names = R"({"": "old/"})";
  OK(dtg_checkpoint_open(plain.model, plain.session, &options, &checkpoint));
  OK(dtg_checkpoint_restore(checkpoint, nullptr, 0, nullptr, nullptr));
  EXPECT_EQ(plain.values("layer/kernel"), scoped.values("old/layer/kernel"));
  dtg_checkpoint_release(checkpoint);
}

}  // namespace
}  // namespace outside
