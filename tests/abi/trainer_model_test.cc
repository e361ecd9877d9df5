// model.dtg: what a fit leaves behind is loaded where nobody knows how it was built, predicts from many threads what the trainer predicts,
// and refuses what is torn or does not fit.
#include <thread>

#include "trainer_lab.h"

namespace {

using namespace fits;

// The first output of a model for some rows; the error, if it refuses.
std::string answer(dtg_session* session, dtg_value in, dtg_value out, const dtg_tensor* rows, dtg_code wanted = DTG_OK) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &in;
  args.feed_tensors = &rows;
  args.num_feeds = 1;
  args.fetches = &out;
  args.num_fetches = 1;
  dtg_tensor* found = nullptr;
  args.fetched = &found;
  if (wanted != DTG_OK) return refused(dtg_session_run(session, &args), wanted, "rows that do not fit");
  OK(dtg_session_run(session, &args));
  size_t bytes = 0;
  const char* const data = static_cast<const char*>(dtg_tensor_data(found, &bytes));
  const std::string bits(data, bytes);
  dtg_tensor_release(found);
  return bits;
}

dtg_tensor* tensor(dtg_dtype dtype, std::vector<int64_t> dims, std::vector<float> values) {
  dtg_tensor* made = nullptr;
  OK(dtg_tensor_create(dtype, dims.data(), dims.size(), values.data(), values.size() * 4, nullptr, nullptr, &made));
  return made;
}

struct Loaded {
  dtg_session* session = nullptr;
  dtg_model* model = nullptr;
  dtg_value x{}, y{};
  explicit Loaded(const std::string& path) {
    OK(dtg_model_load(nullptr, path.c_str(), DTG_STRLEN, &session, &model));
    OK(dtg_model_endpoint(model, "x", DTG_STRLEN, &x));
    OK(dtg_model_endpoint(model, "output", DTG_STRLEN, &y));
  }
  ~Loaded() {
    dtg_session_release(session);
    dtg_model_release(model);
  }
  Loaded(const Loaded&) = delete;
};

dtg_fit in(const std::string& directory) {
  dtg_fit how = DTG_FIT_INIT;
  how.directory = directory.c_str();
  return how;
}

TEST_F(Trainer, LeavesAModelThatManyThreadsAsk) {
  Lab lab;
  OK(dtg_model_set_metadata(lab.model, "schema", DTG_STRLEN, "{}", DTG_STRLEN));
  const dtg_fit how = in(run_);
  OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  const Loaded loaded(run_ + "/model.dtg");
  dtg_string* told = nullptr;
  OK(dtg_model_endpoints(loaded.model, &told));
  EXPECT_STREQ(dtg_string_data(told, nullptr), "{\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[-1,3]}],"
                                               "\"outputs\":[{\"name\":\"output\",\"dtype\":\"float32\",\"shape\":[-1,2]}]}\n");
  dtg_string_release(told);
  OK(dtg_model_metadata(loaded.model, "schema", DTG_STRLEN, &told));
  EXPECT_STREQ(dtg_string_data(told, nullptr), "{}");
  dtg_string_release(told);
  EXPECT_EQ(dtg_model_variable_count(loaded.model), 5u) << "weights, and the count of steps, which the dropout has";
  // Batch by batch the same bits as the trainer's, from every thread.
  const std::vector<float> values = {0.1f, -0.2f, 0.3f, 0.4f, 0.5f, -0.6f};
  dtg_tensor* const rows = tensor(DTG_F32, {2, 3}, values);
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, &rows, 1, &data));
  OK(dtg_dataset_batch(data, 2, 0));
  dtg_tensor* predicted = nullptr;
  OK(dtg_trainer_predict(lab.trainer, data, nullptr, &predicted, 1));
  const std::string wanted(static_cast<const char*>(dtg_tensor_data(predicted, nullptr)), 2 * 2 * sizeof(float));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) EXPECT_EQ(answer(loaded.session, loaded.x, loaded.y, rows), wanted);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // And what does not fit is told by name.
  dtg_tensor* const wide = tensor(DTG_F32, {2, 2}, {1, 2, 3, 4});
  dtg_tensor* const whole = tensor(DTG_I32, {2, 3}, values);
  for (dtg_tensor* wrong : {wide, whole}) {
    EXPECT_NE(answer(loaded.session, loaded.x, loaded.y, wrong, DTG_INVALID_ARGUMENT).find("x"), std::string::npos);
    dtg_tensor_release(wrong);
  }
  dtg_tensor_release(predicted);
  dtg_tensor_release(rows);
  dtg_dataset_release(data);
}

TEST_F(Trainer, ExportsWithNamesOfOnesOwn) {
  Lab lab;
  dtg_trainer_options what = lab.what();
  const char *const in_names[] = {"features"}, *const out_names[] = {"scores", "again"}, *const twice[] = {"a", "a"};
  const char *const clash[] = {"features", "b"}, *const empty[] = {""};
  const dtg_value both[] = {lab.logits, lab.logits};
  what.outputs = both;
  what.num_outputs = 2;
  what.input_names = in_names;
  what.output_names = twice;
  dtg_trainer* other = nullptr;
  refused(dtg_trainer_create(lab.model, &what, &other), DTG_INVALID_ARGUMENT, "a name twice");
  what.output_names = out_names;
  what.input_names = empty;
  refused(dtg_trainer_create(lab.model, &what, &other), DTG_INVALID_ARGUMENT, "no name");
  what.input_names = in_names;
  OK(dtg_trainer_create(lab.model, &what, &other));
  OK(dtg_trainer_export(other, run_.c_str(), DTG_STRLEN));
  dtg_model* loaded = nullptr;
  dtg_value value{};
  OK(dtg_model_load(nullptr, run_.c_str(), DTG_STRLEN, nullptr, &loaded));
  for (const char* name : {"features", "scores", "again"}) OK(dtg_model_endpoint(loaded, name, DTG_STRLEN, &value));
  dtg_model_release(loaded);
  dtg_trainer_release(other);
  what.output_names = clash;
  OK(dtg_trainer_create(lab.model, &what, &other));
  refused(dtg_trainer_export(other, run_.c_str(), DTG_STRLEN), DTG_INVALID_ARGUMENT, "an input and an output of one name");
  dtg_trainer_release(other);
  what = lab.what();
  what.num_outputs = 0;
  OK(dtg_trainer_create(lab.model, &what, &other));
  refused(dtg_trainer_export(other, run_.c_str(), DTG_STRLEN), DTG_FAILED_PRECONDITION, "no outputs");
  dtg_trainer_release(other);
  // The loss needs the labels, which are no input.
  what = lab.what();
  what.outputs = &lab.loss;
  OK(dtg_trainer_create(lab.model, &what, &other));
  EXPECT_NE(refused(dtg_trainer_export(other, run_.c_str(), DTG_STRLEN), DTG_FAILED_PRECONDITION, "labels").find("\"y\""),
            std::string::npos);
  remove();
  const dtg_fit how = in(run_);
  OK(dtg_trainer_fit(other, lab.train, nullptr, &how, nullptr));  // a warning, and no model.dtg
  EXPECT_TRUE(file("model.dtg").empty());
  EXPECT_FALSE(file("model.safetensors").empty());
  dtg_trainer_release(other);
}

// Cuts at every 97th byte, and 300 changed bytes: an error or a model, never a crash.
TEST_F(Trainer, LoadsNoModelThatIsTorn) {
  Lab lab;
  OK(dtg_trainer_export(lab.trainer, run_.c_str(), DTG_STRLEN));
  const std::string whole = text_of(run_);
  const auto load = [&](const std::string& bytes) {
    std::ofstream(run_, std::ios::binary) << bytes;
    dtg_model* model = nullptr;
    dtg_session* session = nullptr;
    dtg_error* const error = dtg_model_load(nullptr, run_.c_str(), DTG_STRLEN, &session, &model);
    const dtg_code code = dtg_error_code(error);
    EXPECT_EQ(error == nullptr, model != nullptr);
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_error_release(error);
    return code;
  };
  EXPECT_EQ(load(whole), DTG_OK);
  for (size_t length = 0; length < whole.size(); length += 97) EXPECT_EQ(load(whole.substr(0, length)), DTG_DATA_LOSS) << length;
  uint64_t state = 1;
  for (int i = 0; i < 300; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::string torn = whole;
    torn[(state >> 20) % torn.size()] ^= static_cast<char>(1 + (state >> 56) % 255);
    load(torn);
  }
  // The signature is held against the graph.
  std::string lies = whole;
  const size_t at = lies.find("float32", lies.find("dtg.signature"));
  ASSERT_NE(at, std::string::npos);
  lies.replace(at, 7, "float64");
  EXPECT_EQ(load(lies), DTG_DATA_LOSS);
}

}  // namespace
