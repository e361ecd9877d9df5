// What a newcomer gives by mistake and would not notice: other columns, rows that are missing, one NaN, batches of two sizes, options that
// do nothing. Each is refused or told. One thread.
#include <cmath>

#include "told.h"
#include "trainer_lab.h"

namespace {

using namespace fits;
using outside::Told;

bool has(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

int64_t count(const std::string& text, const char* words) {
  int64_t found = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

dtg_tensor* tensor(dtg_dtype dtype, std::vector<int64_t> dims, const void* data, size_t bytes) {
  dtg_tensor* made = nullptr;
  OK(dtg_tensor_create(dtype, dims.data(), static_cast<int32_t>(dims.size()), const_cast<void*>(data), bytes, nullptr, nullptr, &made));
  return made;
}

// Rows of three numbers and a class, one of the numbers NaN.
dtg_dataset* ill_rows() {
  std::vector<float> x(3 * 8, 0.5f);
  std::vector<int64_t> y(8, 1);
  x[4 * 3 + 1] = std::nanf("");
  dtg_tensor* tensors[] = {tensor(DTG_F32, {8, 3}, x.data(), x.size() * 4), tensor(DTG_I64, {8}, y.data(), y.size() * 8)};
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, tensors, 2, &data));
  for (dtg_tensor* each : tensors) dtg_tensor_release(each);
  OK(dtg_dataset_batch(data, 2, 0));
  return data;
}

class Mistakes : public Trainer {
 protected:
  void TearDown() override {
    std::remove(csv_.c_str());
    Trainer::TearDown();
  }
  // `batch` 0: none.
  dtg_dataset* read(const std::string& text, const char* label, const char* schema = nullptr, dtg_runtime* runtime = nullptr,
                    int32_t missing = 0, int64_t batch = 2) {
    std::ofstream(csv_) << text;
    dtg_csv_options options = DTG_CSV_OPTIONS_INIT;
    options.label = label;
    options.schema = schema;
    options.missing = missing;
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_csv(runtime, csv_.c_str(), DTG_STRLEN, &options, &data));
    if (batch) OK(dtg_dataset_batch(data, batch, 0));
    return data;
  }
  const std::string csv_ = folder("mistakes.csv");
  const std::string rows_ = "a,b,c,kind\n1,2,3,0\n4,5,6,1\n7,8,9,0\n1,0,2,1\n";
};

TEST_F(Mistakes, OtherColumnsOfEqualNumberAreRefused) {
  Lab lab;
  dtg_dataset* const data = read(rows_, "kind");
  OK(dtg_trainer_fit(lab.trainer, data, nullptr, nullptr, nullptr));
  dtg_tensor* scores = nullptr;
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  // The label in the place of a feature.
  dtg_dataset* const swapped = read(rows_, "c");
  std::string why = refused(dtg_trainer_predict(lab.trainer, swapped, nullptr, &scores, 1), DTG_INVALID_ARGUMENT, "another label");
  EXPECT_TRUE(
      has(why, "predict: column \"kind\" of it, where \"c\" stands, is no feature of the schema that the model has kept; read it with"))
      << why;
  dtg_dataset* const renamed = read("a,b,d,kind\n1,2,3,0\n4,5,6,1\n", "kind");
  why = refused(dtg_trainer_evaluate(lab.trainer, renamed, 0, nullptr, &event), DTG_INVALID_ARGUMENT, "another name");
  EXPECT_TRUE(has(why, "column \"d\" of it, where \"c\" stands, is no feature of")) << why;
  dtg_dataset* const other_label = read("a,b,c,sort\n1,2,3,0\n4,5,6,1\n", "sort");
  why = refused(dtg_trainer_evaluate(lab.trainer, other_label, 0, nullptr, &event), DTG_INVALID_ARGUMENT, "another label");
  EXPECT_TRUE(has(why, "evaluate: its label is \"sort\", and \"kind\" in the schema that the model has kept")) << why;
  // What the label is called does not matter to what is predicted.
  OK(dtg_trainer_predict(lab.trainer, other_label, nullptr, &scores, 1));
  dtg_tensor_release(scores);
  why = refused(dtg_trainer_fit(lab.trainer, data, other_label, nullptr, nullptr), DTG_INVALID_ARGUMENT, "to validate with");
  EXPECT_TRUE(has(why, "its label is \"sort\"")) << why;
  for (dtg_dataset* each : {data, swapped, renamed, other_label}) dtg_dataset_release(each);
}

// One row of the validation that is no number says nothing about the weights.
TEST_F(Mistakes, NaNInTheValidationIsToldAndDecidesNothing) {
  Told lines;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_dataset* const ill = ill_rows();
    dtg_fit how = DTG_FIT_INIT;
    dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
    dtg_plateau plateau = DTG_PLATEAU_INIT;
    stopping.patience = plateau.patience = 1;
    stopping.restore_best = 1;
    how.epochs = 4;
    how.early_stopping = &stopping;
    how.plateau = &plateau;
    OK(dtg_trainer_begin(lab.trainer, lab.train, ill, &how));
    const dtg_fit_event last = lab.finish();
    EXPECT_EQ(last.epoch, 4) << "not stopped as not improved";
    EXPECT_FLOAT_EQ(static_cast<float>(last.learning_rate), 0.05f);
    EXPECT_FALSE(has(lab.summary(), "best_epoch"));
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    OK(dtg_trainer_evaluate(lab.trainer, ill, 0, nullptr, &event));
    EXPECT_TRUE(std::isnan(event.loss));
    dtg_dataset_release(ill);
  }
  const std::string told = lines.end();
  EXPECT_EQ(
      count(told,
            "fit: validation: the loss of element 2 of the data, counted from 0, is NaN: \"x:0\" is fed nan at element 1 of [2,3]; mend"),
      1)
      << told;
  EXPECT_EQ(count(told, "trainer: evaluate: the loss of element 2 of the data"), 1) << told;
}

// Maximum pooling passes over NaN, as TensorFlow's on a CPU, and so does the loss; the gradients do not.
TEST_F(Mistakes, NaNUnderAPoolIsSeen) {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_trainer* trainer = nullptr;
  OK(dtg_graph_create(nullptr, &graph));
  OK(dtg_model_create(graph, 3, &model));
  const int64_t image[] = {-1, 4, 4, 1}, one[] = {-1};
  dtg_value feeds[2], layer, loss;
  OK(dtg_placeholder(graph, "x", DTG_F32, image, 4, &feeds[0]));
  OK(dtg_placeholder(graph, "y", DTG_I64, one, 1, &feeds[1]));
  dtg_conv2d conv = DTG_CONV2D_INIT;
  conv.filters = 2;
  dtg_dense classes = DTG_DENSE_INIT;
  classes.units = 2;
  OK(dtg_nn_conv2d(model, feeds[0], &conv, &layer));
  OK(dtg_nn_max_pool2d(model, layer, nullptr, &layer));
  OK(dtg_nn_flatten(model, layer, &layer));
  OK(dtg_nn_dense(model, layer, &classes, &layer));
  OK(dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], layer, &loss));
  dtg_trainer_options what = DTG_TRAINER_OPTIONS_INIT;
  what.feeds = feeds;
  what.num_feeds = 2;
  what.loss = loss;
  OK(dtg_trainer_create(model, &what, &trainer));
  std::vector<float> x(32, 1.0f);
  x[21] = std::nanf("");
  const int64_t y[] = {0, 1};
  dtg_tensor* batch[] = {tensor(DTG_F32, {2, 4, 4, 1}, x.data(), 128), tensor(DTG_I64, {2}, y, 16)};
  const std::string why = refused(dtg_trainer_train_step(trainer, batch, 2, nullptr, nullptr), DTG_INVALID_ARGUMENT, "a pixel");
  EXPECT_TRUE(has(why, "make a step: \"x:0\" is fed nan at element 21 of [2,4,4,1]; maximum pooling passes over what is no number")) << why;
  for (dtg_tensor* each : batch) dtg_tensor_release(each);
  dtg_trainer_release(trainer);
  dtg_model_release(model);
  dtg_graph_release(graph);
}

TEST_F(Mistakes, RowsThatAreLeftOutAreToldWherePredictionsAreFewer) {
  Told lines;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_dataset* const data = read("a,b,c,kind\n1,2,3,0\n,5,6,1\n7,8,9,0\n", "kind", nullptr, lines.runtime, DTG_MISSING_DROP);
    dtg_tensor* scores = nullptr;
    OK(dtg_trainer_predict(lab.trainer, data, nullptr, &scores, 1));
    EXPECT_EQ(dtg_tensor_dim(scores, 0), 2);
    dtg_tensor_release(scores);
    dtg_dataset_release(data);
  }
  const std::string told = lines.end();
  EXPECT_TRUE(has(told, "trainer: predict: 1 rows of the data were left out where they were read")) << told;
  EXPECT_TRUE(has(told, "line 3 has no value in column \"a\"")) << told;
}

TEST_F(Mistakes, ALabelOfNamesHasAnOutputThatTellsThemApart) {
  Lab lab;
  dtg_dataset* const three = read("a,b,c,kind\n1,2,3,cat\n4,5,6,dog\n7,8,9,ape\n", "kind");
  const std::string why = refused(dtg_trainer_begin(lab.trainer, three, nullptr, nullptr), DTG_INVALID_ARGUMENT, "two units");
  EXPECT_TRUE(
      has(why, "fit: the label has 3 names (\"ape\", ...), and no output tells so many apart: \"output\" float32[?,2]; give the last layer "
               "one unit for each name"))
      << why;
  const char* const names[] = {"no", "yes"};
  OK(dtg_model_set_classes(lab.model, "output", DTG_STRLEN, names, 2));
  OK(dtg_trainer_begin(lab.trainer, three, nullptr, nullptr));
  OK(dtg_trainer_give_up(lab.trainer));
  dtg_dataset_release(three);
}

TEST_F(Mistakes, ABatchHasAsManyLabelsAsRows) {
  Lab lab;
  const float x[6] = {};
  const int64_t y[1] = {1};
  dtg_tensor* batch[] = {tensor(DTG_F32, {2, 3}, x, sizeof x), tensor(DTG_I64, {1}, y, sizeof y)};
  const std::string why = refused(dtg_trainer_train_step(lab.trainer, batch, 2, nullptr, nullptr), DTG_INVALID_ARGUMENT, "one label");
  EXPECT_TRUE(has(why, "make a step: \"x:0\" is fed float32[2,3] and \"y:0\" int64[1]; they are one batch, so both have as many rows"))
      << why;
  for (dtg_tensor* each : batch) dtg_tensor_release(each);
}

TEST_F(Mistakes, ALabelBeyondTheClassesIsToldWhatItMayBe) {
  const float x[6] = {};
  for (const auto& [label, says] : std::vector<std::pair<int64_t, const char*>>{{2, "labels that count from 1 need 1 subtracted"},
                                                                                {-1, "-1 is a name that was missing"},
                                                                                {7, "as many units as there are classes"}}) {
    Lab lab;
    const int64_t y[2] = {0, label};
    dtg_tensor* batch[] = {tensor(DTG_F32, {2, 3}, x, sizeof x), tensor(DTG_I64, {2}, y, sizeof y)};
    const std::string why = refused(dtg_trainer_train_step(lab.trainer, batch, 2, nullptr, nullptr), DTG_INVALID_ARGUMENT, "a label");
    EXPECT_TRUE(has(why, says)) << why;
    for (dtg_tensor* each : batch) dtg_tensor_release(each);
  }
}

TEST_F(Mistakes, WhatAnOptimizerWouldIgnoreIsRefused) {
  Lab lab(false);
  const auto why = [&](const std::function<void(dtg_optimizer&)>& set) {
    dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
    set(sgd);
    dtg_training training = DTG_TRAINING_INIT;
    return refused(dtg_nn_minimize(lab.model, lab.loss, &sgd, &training), DTG_INVALID_ARGUMENT, "an optimizer");
  };
  EXPECT_EQ(
      why([](dtg_optimizer& o) { o.momentum = 0.9; }),
      "optimizer GradientDescent: momentum is 0.9 and would do nothing: it is of DTG_OPT_MOMENTUM, DTG_OPT_RMSPROP and DTG_OPT_LARS; take "
      "such a kind, or leave it out");
  EXPECT_TRUE(has(why([](dtg_optimizer& o) { o.amsgrad = 1; }), "amsgrad is 1 and would do nothing"));
  EXPECT_TRUE(has(why([](dtg_optimizer& o) { o.rate = 1e300; }), "rate is 1e+300"));
  dtg_variable kernel = DTG_VARIABLE_INIT;
  OK(dtg_model_variable(lab.model, 1, &kernel));
  const dtg_value twice[] = {kernel.handle, kernel.handle};
  EXPECT_TRUE(has(why([&](dtg_optimizer& o) { o.variables = twice; }), "`variables` is given with 0 of them"));
  EXPECT_TRUE(
      has(why([&](dtg_optimizer& o) { o.variables = twice, o.num_variables = 2; }), "variables[0] and variables[1] are one variable"));
}

TEST_F(Mistakes, GradientsOfOnesOwnAreTakenAsTheyAre) {
  Lab lab(false);
  dtg_variable kernel = DTG_VARIABLE_INIT;
  OK(dtg_model_variable(lab.model, 1, &kernel));
  dtg_gradient gradients[2];
  OK(dtg_graph_add_gradients(lab.graph, &lab.loss, 1, &kernel.handle, 1, nullptr, gradients));
  gradients[1] = gradients[0];
  dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
  dtg_value train;
  const auto why = [&](const std::vector<dtg_value>& handles) {
    return refused(dtg_nn_apply_gradients(lab.model, &sgd, handles.data(), gradients, handles.size(), &train), DTG_INVALID_ARGUMENT,
                   "handles");
  };
  EXPECT_TRUE(has(why({kernel.handle, kernel.handle}), "handles[0] and handles[1] are one variable"));
  EXPECT_TRUE(has(why({kernel.read}), "handles[0] is no variable of this model: it is what reads \"")) << why({kernel.read});
  EXPECT_TRUE(has(why({lab.loss}), "give the `handle` of its dtg_variable"));
  sgd.clip_norm = 1;
  EXPECT_TRUE(has(why({kernel.handle}), "clip_norm is 1 and would do nothing: gradients are applied as they are given"));
  sgd.clip_norm = 0;
  OK(dtg_nn_apply_gradients(lab.model, &sgd, &kernel.handle, gradients, 1, &train));
}

TEST_F(Mistakes, TextsAreNotCutAndListsNotEmpty) {
  Lab lab;
  dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  stopping.monitor = "loss\0x";
  stopping.monitor_len = 6;
  dtg_fit how = DTG_FIT_INIT;
  how.early_stopping = &stopping;
  std::string why = refused(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how), DTG_INVALID_ARGUMENT, "a NUL");
  EXPECT_TRUE(has(why, "dtg_early_stopping: monitor is \"loss\\0x\", with a NUL inside")) << why;
  std::ofstream(csv_) << rows_;
  dtg_csv_options options = DTG_CSV_OPTIONS_INIT;
  options.label = "a\0b";
  options.label_len = 3;
  dtg_dataset* data = nullptr;
  why = refused(dtg_dataset_csv(nullptr, csv_.c_str(), DTG_STRLEN, &options, &data), DTG_INVALID_ARGUMENT, "a NUL");
  EXPECT_TRUE(has(why, "label is \"a\\0b\", with a NUL inside")) << why;
  options = DTG_CSV_OPTIONS_INIT;
  const char* const columns[] = {"a"};
  options.columns = columns;
  why = refused(dtg_dataset_csv(nullptr, csv_.c_str(), DTG_STRLEN, &options, &data), DTG_INVALID_ARGUMENT, "no columns");
  EXPECT_TRUE(has(why, "columns is given with 0 of them; name those to read, or give NULL for all")) << why;
  // "" is a string that is not given.
  how = DTG_FIT_INIT;
  how.directory = how.best = "";
  OK(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how));
  OK(dtg_trainer_give_up(lab.trainer));
  how.keep = 2;
  refused(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how), DTG_INVALID_ARGUMENT, "without a directory");
}

TEST_F(Mistakes, OneFeedTakesOneComponent) {
  Lab lab(false);
  dtg_trainer_options what = lab.what();
  const dtg_value same[] = {lab.feeds[0], lab.feeds[0]};
  what.feeds = same;
  dtg_trainer* trainer = nullptr;
  EXPECT_TRUE(has(refused(dtg_trainer_create(lab.model, &what, &trainer), DTG_INVALID_ARGUMENT, "x twice"), "feeds 0 and 1 are both \"x"));
}

TEST_F(Mistakes, AScaleIsANumber) {
  for (const double divisor : {0.0, std::nan(""), static_cast<double>(INFINITY), 1e300, 1e-300}) {
    Lab lab(false);
    EXPECT_TRUE(has(refused(dtg_dataset_scale(lab.train, 0, divisor), DTG_INVALID_ARGUMENT, "a divisor"), "give a number that is not 0"));
  }
}

TEST_F(Mistakes, MessagesSayWhatToDo) {
  Lab lab;
  const auto fit = [&](dtg_dataset* data, dtg_dataset* validation, const dtg_fit* how) {
    return refused(dtg_trainer_begin(lab.trainer, data, validation, how), DTG_INVALID_ARGUMENT, "a fit");
  };
  dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  stopping.monitor = "val_loss";
  dtg_fit how = DTG_FIT_INIT;
  how.early_stopping = &stopping;
  EXPECT_TRUE(has(fit(lab.train, nullptr, &how), "give the fit data to validate with"));
  dtg_dataset* const two = read("a,b,kind\n1,2,0\n4,5,1\n", "kind");
  std::string why = fit(two, nullptr, nullptr);
  EXPECT_TRUE(has(
      why, "component 0 of the data set is float32[?,2], and \"x:0\" which it is fed to is float32[?,3]; its features are the 2 columns "
           "\"a\", \"b\": read the columns"))
      << why;
  dtg_dataset* const single = read(rows_, "kind", nullptr, nullptr, 0, 0);
  EXPECT_TRUE(has(fit(single, nullptr, nullptr), "a batch has one dimension more: add batch() to the data set"));
  dtg_dataset* const data = read(rows_, "kind");
  dtg_string* schema = nullptr;
  OK(dtg_dataset_schema(data, &schema));
  dtg_dataset* const unlabelled = read("a,b,c\n1,2,3\n", nullptr, dtg_string_data(schema, nullptr));
  why = fit(data, unlabelled, nullptr);
  EXPECT_TRUE(has(why, "features alone come from a table that lacks the column of the label")) << why;
  dtg_string_release(schema);
  for (dtg_dataset* each : {two, single, data, unlabelled}) dtg_dataset_release(each);
  dtg_value loss, doubled;
  OK(dtg_add1(lab.graph, "Square", lab.feeds[0], &doubled));
  why = refused(dtg_nn_mean_squared_error(lab.model, lab.feeds[1], doubled, &loss), DTG_INVALID_ARGUMENT, "labels of classes");
  EXPECT_TRUE(has(why, "Reshape one of them to the shape of the other, and Cast the labels to float32")) << why;
  dtg_trainer_options what = lab.what();
  what.num_outputs = 0;
  what.outputs = nullptr;
  dtg_trainer* blind = nullptr;
  OK(dtg_trainer_create(lab.model, &what, &blind));
  dtg_tensor* scores = nullptr;
  why = refused(dtg_trainer_predict(blind, lab.test, nullptr, &scores, 1), DTG_INVALID_ARGUMENT, "no outputs");
  EXPECT_TRUE(has(why, "set `outputs` where it is made")) << why;
  dtg_trainer_release(blind);
}

// A directory where a file is asked for, and one kind of file where another is.
TEST_F(Mistakes, FilesOfAnotherKindAreToldApart) {
  std::ofstream(csv_) << rows_;
  const std::string directory = testing::TempDir();
  dtg_dataset* data = nullptr;
  dtg_model* model = nullptr;
  dtg_weights* weights = nullptr;
  for (const std::string& why :
       {refused(dtg_dataset_csv(nullptr, directory.c_str(), DTG_STRLEN, nullptr, &data), DTG_INVALID_ARGUMENT, "a table"),
        refused(dtg_model_load(nullptr, directory.c_str(), DTG_STRLEN, nullptr, &model), DTG_INVALID_ARGUMENT, "a model"),
        refused(dtg_weights_load(nullptr, directory.c_str(), DTG_STRLEN, &weights), DTG_INVALID_ARGUMENT, "weights")})
    EXPECT_TRUE(has(why, "s a directory; name a file in it")) << why;
  const std::string why = refused(dtg_model_load(nullptr, csv_.c_str(), DTG_STRLEN, nullptr, &model), DTG_DATA_LOSS, "a table");
  EXPECT_TRUE(has(why, "it begins with \"a,b,c,ki\", so it is text, as of a table; weights and models are files of safetensors")) << why;
}

TEST_F(Mistakes, ATrainingThatIsOverIsTold) {
  Told lines;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_fit how = DTG_FIT_INIT;
    how.directory = run_.c_str();
    how.epochs = 3;
    OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
    how.epochs = 2;
    OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  }
  const std::string told = lines.end();
  EXPECT_TRUE(has(told, "has 3 epochs, and this fit asks for 2 in all, so it makes no step; ask for more, or give it another directory"))
      << told;
}

TEST_F(Mistakes, OtherStagesThanInTrainingAreTold) {
  Told lines;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_dataset* const data = read(rows_, "kind", nullptr, nullptr, 0, 0);
    dtg_string* numbers = nullptr;
    OK(dtg_dataset_fit_normalization(data, 0, DTG_NORMALIZE_STANDARD, &numbers));
    OK(dtg_dataset_normalize(data, 0, dtg_string_data(numbers, nullptr), DTG_STRLEN));
    dtg_string_release(numbers);
    OK(dtg_dataset_batch(data, 2, 0));
    OK(dtg_trainer_fit(lab.trainer, data, nullptr, nullptr, nullptr));
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    OK(dtg_trainer_evaluate(lab.trainer, data, 0, nullptr, &event));
    dtg_dataset* const plain = read(rows_, "kind");
    OK(dtg_trainer_evaluate(lab.trainer, plain, 0, nullptr, &event));
    dtg_dataset_release(plain);
    dtg_dataset_release(data);
  }
  const std::string told = lines.end();
  EXPECT_EQ(count(told, "), and these data did not; do the same to both"), 1) << told;
  EXPECT_EQ(count(told, "evaluate: the data trained on went through normalize(0, "), 1) << told;
}

// Of two tables that become one: names with other numbers, columns in another order, names where the other has numbers.
TEST_F(Mistakes, TablesAreMixedOnlyWhereTheyMeanTheSame) {
  const std::string three = "a,b,c,kind\n1,2,3,lily\n4,5,6,rose\n7,8,9,tulip\n";
  const std::pair<const char*, const char*> others[] = {
      {"a,b,c,kind\n1,2,3,rose\n4,5,6,tulip\n",
       "number 1 is another table: \"rose\" of column \"kind\" is 0 in it, and is 1 in the schema of number 0; read it with that schema"},
      {"b,a,c,kind\n1,2,3,lily\n4,5,6,rose\n", "column \"b\" stands in it where \"a\" stands in the schema of number 0"},
      {"a,b,c,kind\n1,2,3,0\n4,5,6,1\n",
       "column \"kind\" holds numbers (kind \"whole\") in it, and names (kind \"names\") in the schema of number 0"}};
  dtg_dataset* const first = read(three, "kind", nullptr, nullptr, 0, 0);
  for (const auto& [text, difference] : others) {
    dtg_dataset* other = read(text, "kind", nullptr, nullptr, 0, 0);
    for (const bool turns : {false, true}) {
      dtg_error* const error = turns ? dtg_dataset_interleave(first, &other, 1, 1) : dtg_dataset_concatenate(first, &other, 1);
      const std::string why = refused(error, DTG_INVALID_ARGUMENT, difference);
      EXPECT_TRUE(has(why, turns ? "interleave data sets: " : "concatenate data sets: ") && has(why, difference)) << why;
    }
    OK(dtg_dataset_restart(other));  // as it was
    dtg_dataset_release(other);
  }
  dtg_string* schema = nullptr;
  OK(dtg_dataset_schema(first, &schema));
  dtg_dataset* same = read(others[0].first, nullptr, dtg_string_data(schema, nullptr), nullptr, 0, 0);
  OK(dtg_dataset_concatenate(first, &same, 1));
  OK(dtg_dataset_batch(first, 5, 0));
  dtg_tensor* tensors[2] = {};
  int32_t more = 0;
  OK(dtg_dataset_next(first, tensors, 2, &more));
  const auto* const labels = static_cast<const int64_t*>(dtg_tensor_data(tensors[1], nullptr));
  EXPECT_EQ(std::vector<int64_t>(labels, labels + 5), (std::vector<int64_t>{0, 1, 2, 1, 2}));
  for (dtg_tensor* each : tensors) dtg_tensor_release(each);
  dtg_string_release(schema);
  dtg_dataset_release(first);
  dtg_dataset_release(same);
}

// It may have made the same of both.
TEST_F(Mistakes, BehindAFunctionTablesThatDifferAreToldAndMixed) {
  Told lines;
  dtg_dataset* const first = read("a,b,c,kind\n1,2,3,lily\n4,5,6,rose\n", "kind", nullptr, lines.runtime, 0, 0);
  dtg_dataset* other = read("a,b,c,kind\n1,2,3,rose\n4,5,6,tulip\n", "kind", nullptr, lines.runtime, 0, 0);
  const int64_t three = 3;
  const dtg_component components[] = {{DTG_F32, 1, &three}, {DTG_I64, 0, nullptr}};
  const dtg_element_fn same = [](void*, dtg_tensor* const* arguments, size_t count, dtg_tensor** results, size_t) -> dtg_error* {
    for (size_t i = 0; i < count; ++i) results[i] = dtg_tensor_retain(arguments[i]);
    return nullptr;
  };
  OK(dtg_dataset_map_host(other, same, nullptr, nullptr, components, 2));
  OK(dtg_dataset_concatenate(first, &other, 1));
  dtg_dataset_release(first);
  dtg_dataset_release(other);
  const std::string told = lines.end();
  EXPECT_EQ(count(told, "data: concatenate data sets: number 1 is another table: \"rose\" of column \"kind\" is 0 in it, and is 1 in"), 1)
      << told;
}

// Rows that were left out of any of them are not in the predictions either.
TEST_F(Mistakes, RowsLeftOutOfAPartAreToldOfTheWhole) {
  dtg_dataset* const first = read(rows_, "kind");
  dtg_dataset* other = read("a,b,c,kind\n1,2,3,0\n,5,6,1\n7,8,9,0\n", "kind", nullptr, nullptr, DTG_MISSING_DROP);
  OK(dtg_dataset_concatenate(first, &other, 1));
  int64_t count = 0;
  OK(dtg_dataset_bad_rows(first, &count, nullptr));
  EXPECT_EQ(count, 1);
  dtg_dataset_release(first);
  dtg_dataset_release(other);
}

TEST_F(Mistakes, NamesAreNoNumbers) {
  const std::string named = "a,b,c,kind\n1,2,3,dog\n4,5,6,cat\n", numbered = "a,b,c,kind\n1,2,3,0\n4,5,6,1\n";
  const std::string by_name = "a,b,c,kind\nx,2,3,0\ny,5,6,1\n";
  const std::tuple<std::string, std::string, const char*> pairs[] = {
      {named, numbered, "column \"kind\" holds numbers (kind \"whole\") in it, and names (kind \"names\") in the schema"},
      {numbered, named, "column \"kind\" holds names (kind \"names\") in it, and numbers (kind \"whole\") in the schema"},
      {by_name, numbered, "column \"a\" holds numbers (kind \"real\") in it, and names (kind \"names\") in the schema"},
      {numbered, by_name, "column \"a\" holds names (kind \"names\") in it, and numbers (kind \"real\") in the schema"}};
  for (const auto& [trained, other, difference] : pairs) {
    Lab lab;
    dtg_dataset *const data = read(trained, "kind"), *const wrong = read(other, "kind");
    std::string why = refused(dtg_trainer_fit(lab.trainer, data, wrong, nullptr, nullptr), DTG_INVALID_ARGUMENT, difference);
    EXPECT_TRUE(has(why, "fit, data to validate with: ") && has(why, difference)) << why;
    OK(dtg_trainer_fit(lab.trainer, data, nullptr, nullptr, nullptr));
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    why = refused(dtg_trainer_evaluate(lab.trainer, wrong, 0, nullptr, &event), DTG_INVALID_ARGUMENT, difference);
    EXPECT_TRUE(has(why, "evaluate: ") && has(why, difference)) << why;
    dtg_tensor* scores = nullptr;
    why = refused(dtg_trainer_predict(lab.trainer, wrong, nullptr, &scores, 1), DTG_INVALID_ARGUMENT, difference);
    EXPECT_TRUE(has(why, "predict: ") && has(why, difference)) << why;
    dtg_dataset_release(data);
    dtg_dataset_release(wrong);
  }
}

// By the batch this time, and not where the data were read.
TEST_F(Mistakes, RowsTooFewForABatchAreToldWherePredictionsAreFewer) {
  Told lines;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_tensor* scores = nullptr;
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    for (const int32_t whole : {0, 1}) {
      dtg_dataset *const data = read(rows_, "kind", nullptr, nullptr, 0, 0), *const tested = read(rows_, "kind", nullptr, nullptr, 0, 0);
      for (dtg_dataset* each : {data, tested}) OK(dtg_dataset_batch(each, 3, whole));
      OK(dtg_dataset_prefetch(data, 2));
      OK(dtg_trainer_predict(lab.trainer, data, nullptr, &scores, 1));
      EXPECT_EQ(dtg_tensor_dim(scores, 0), whole ? 3 : 4);
      dtg_tensor_release(scores);
      OK(dtg_trainer_evaluate(lab.trainer, data, 0, nullptr, &event));
      OK(dtg_trainer_evaluate(lab.trainer, data, 1, nullptr, &event));  // all that was asked for
      dtg_fit how = DTG_FIT_INIT;
      how.epochs = 3;
      OK(dtg_trainer_fit(lab.trainer, data, tested, &how, nullptr));
      for (dtg_dataset* each : {data, tested}) dtg_dataset_release(each);
    }
  }
  const std::string told = lines.end(), why = ": batch(3, whole) hands out whole batches only, and it was too few for one; let it keep the "
                                              "remainder, by batch(n, false)\n";
  EXPECT_EQ(count(told, ("trainer: predict: 1 row of the data have no prediction" + why).c_str()), 1) << told;
  EXPECT_EQ(count(told, ("trainer: evaluate: 1 row of the data count for nothing" + why).c_str()), 1) << told;
  EXPECT_EQ(count(told, ("fit: validation: 1 row of the data count for nothing" + why).c_str()), 1) << told;
}

TEST_F(Mistakes, WhatIsWrongWithTheShapeOfATableIsTold) {
  Lab lab;
  const auto fit = [&](dtg_dataset* data) {
    const std::string why = refused(dtg_trainer_begin(lab.trainer, data, nullptr, nullptr), DTG_INVALID_ARGUMENT, "another shape");
    dtg_dataset_release(data);
    return why;
  };
  for (const char* const text : {"a,kind\n1.5,0\n2.5,1\n", "a,kind\n1,0\n2,1\n"}) {
    for (const int64_t batch : {0, 2}) {
      const std::string why = fit(read(text, nullptr, nullptr, nullptr, 0, batch));
      EXPECT_TRUE(has(why,
                      "the table was read without a label, so each of its 2 columns, \"a\", \"kind\", is a component of its own: name the "
                      "column of the label by the option `label`, or read by the schema of training"))
          << why;
      EXPECT_FALSE(has(why, "add batch()")) << why;
    }
  }
  dtg_dataset* const twice = read(rows_, "kind");
  OK(dtg_dataset_batch(twice, 4, 0));
  const std::string why = fit(twice);
  EXPECT_TRUE(has(why, "the data set is batched twice, its stages are ") && has(why, ", batch(2), batch(4): leave one of the batches out"))
      << why;
}

}  // namespace
