// What a fit is told of its data and its options before its first step: other data than a training began with, names that do not fit an
// output, what will not be kept, what would do nothing; and what becomes of texts. One thread.
#include <mutex>

#include "trainer_lab.h"

namespace {

using namespace fits;

struct Lines {
  std::mutex guard;
  std::string all;
  dtg_runtime* runtime = nullptr;
  Lines() {
    dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
    options.log_level = DTG_LOG_INFO;
    options.log_user = this;
    options.log = [](void* user, dtg_log_level level, const char* place, const char* message) {
      Lines& told = *static_cast<Lines*>(user);
      const std::lock_guard<std::mutex> lock(told.guard);
      told.all += (level == DTG_LOG_WARN ? "W " : "I ") + std::string(place) + ": " + message + "\n";
    };
    OK(dtg_runtime_create(&options, &runtime));
  }
  // The last lines are handed on.
  std::string end() {
    dtg_runtime_release(runtime);
    const std::lock_guard<std::mutex> lock(guard);
    return all;
  }
};

bool has(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

class TrainerData : public Trainer {
 protected:
  void TearDown() override {
    std::remove(csv_.c_str());
    Trainer::TearDown();
  }
  dtg_dataset* read(const std::string& text, const char* schema = nullptr, dtg_runtime* runtime = nullptr) {
    std::ofstream(csv_) << text;
    dtg_csv_options options = DTG_CSV_OPTIONS_INIT;
    options.label = schema ? nullptr : "kind";
    options.schema = schema;
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_csv(runtime, csv_.c_str(), DTG_STRLEN, &options, &data));
    OK(dtg_dataset_batch(data, 2, 0));
    return data;
  }
  const std::string csv_ = folder("data.csv");
  const std::string rows_ = "a,b,c,kind\n1,2,3,dog\n4,5,6,cat\n7,8,9,dog\n1,0,2,cat\n";
};

// As many rows of the same types: nothing but the schema tells them apart.
TEST_F(TrainerData, AFitGoesOnWithItsOwnDataOnly) {
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  {
    Lab lab;
    dtg_dataset* const data = read(rows_);
    OK(dtg_trainer_fit(lab.trainer, data, nullptr, &how, nullptr));
    dtg_dataset_release(data);
  }
  how.epochs = 2;
  const std::pair<const char*, const char*> others[] = {
      {"a,b,d,kind\n1,2,3,dog\n4,5,6,cat\n7,8,9,dog\n1,0,2,cat\n", "column 3 was \"c\" and is \"d\""},
      {"b,a,c,kind\n1,2,3,dog\n4,5,6,cat\n7,8,9,dog\n1,0,2,cat\n", "column 1 was \"a\" and is \"b\""},
      {"a,b,c,kind\n1,2,3,dog\n4,5,6,ape\n7,8,9,dog\n1,0,2,ape\n",
       "column 4, \"kind\", had 2 names and has 2; the first that differs has the number 0 and was \"cat\", and is \"ape\""},
      {"a,b,c,kind\nx,2,3,dog\ny,5,6,cat\nx,8,9,dog\ny,0,2,cat\n", "column 1, \"a\", was of kind real and is of kind names"},
      {"a,b,c,d,kind\n1,2,3,4,dog\n4,5,6,4,cat\n7,8,9,4,dog\n1,0,2,4,cat\n", "it had 4 columns and has 5; new is \"d\""}};
  for (const auto& [text, difference] : others) {
    Lab lab;
    dtg_dataset* const data = read(text);
    if (dtg_dataset_component_count(data) == 2 && !has(text, "c,d,")) {
      const std::string why = refused(dtg_trainer_begin(lab.trainer, data, nullptr, &how), DTG_FAILED_PRECONDITION, difference);
      EXPECT_TRUE(has(why, "it is other data than training had: ") && has(why, difference)) << why;
      EXPECT_TRUE(has(why, "a new training takes a directory of its own")) << why;
    }
    dtg_dataset_release(data);
  }
  Lab lab;
  dtg_dataset* const data = read(rows_);
  OK(dtg_trainer_fit(lab.trainer, data, nullptr, &how, nullptr));
  EXPECT_TRUE(has(lab.summary(), "\"resumed\":true")) << lab.summary();
  dtg_dataset_release(data);
}

// The same elements without a schema, as sets of older days have none.
TEST_F(TrainerData, ASetWithoutASchemaIsGoneOnFrom) {
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 2};
  const int64_t y[] = {1, 0, 1, 0}, dims[] = {4, 3};
  dtg_tensor* tensors[2] = {};
  OK(dtg_tensor_create(DTG_F32, dims, 2, const_cast<float*>(x), sizeof x, nullptr, nullptr, &tensors[0]));
  OK(dtg_tensor_create(DTG_I64, dims, 1, const_cast<int64_t*>(y), sizeof y, nullptr, nullptr, &tensors[1]));
  {
    Lab lab;
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_tensors(nullptr, tensors, 2, &data));
    OK(dtg_dataset_batch(data, 2, 0));
    OK(dtg_trainer_fit(lab.trainer, data, nullptr, &how, nullptr));
    dtg_dataset_release(data);
  }
  for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
  Lab lab;
  how.epochs = 2;
  dtg_dataset* const data = read(rows_);
  OK(dtg_trainer_fit(lab.trainer, data, nullptr, &how, nullptr));
  EXPECT_TRUE(has(lab.summary(), "\"resumed\":true")) << lab.summary();
  dtg_dataset_release(data);
}

TEST_F(TrainerData, OfALongSchemaTheHashIsKept) {
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  const std::string name(1 << 20, 'n');
  const auto text = [&](const char* other) { return "a,b,c,kind\n1,2,3," + name + "\n4,5,6," + other + "\n"; };
  for (int life = 0; life < 3; ++life) {
    Lab lab;
    how.epochs = 1 + life;
    dtg_dataset* const data = read(text(life == 2 ? "cow" : "cat"));
    if (life < 2) OK(dtg_trainer_fit(lab.trainer, data, nullptr, &how, nullptr));
    else
      EXPECT_TRUE(has(refused(dtg_trainer_begin(lab.trainer, data, nullptr, &how), DTG_FAILED_PRECONDITION, "another name"),
                      "its schema is another one, which is too long to be kept"));
    dtg_dataset_release(data);
  }
  EXPECT_LT(text_of(run_ + "/summary.json").size(), size_t{1} << 18);
}

// Rather than by whoever loads the model.
TEST_F(TrainerData, NamesAreAsManyAsAnOutputTellsApart) {
  const char* const names[] = {"a", "b", "c"};
  Lab lab;
  const std::string why = refused(dtg_model_set_classes(lab.model, "output", DTG_STRLEN, names, 3), DTG_INVALID_ARGUMENT, "three for two");
  EXPECT_TRUE(has(why, "name classes: 3 names for the output \"output\", which is float32[?,2]; give one name for each class")) << why;
  refused(dtg_model_set_classes(lab.model, "x", DTG_STRLEN, names, 2), DTG_INVALID_ARGUMENT, "an input");
  refused(dtg_model_set_classes(lab.model, nullptr, 0, names, 3), DTG_INVALID_ARGUMENT, "three for none");
  OK(dtg_model_set_classes(lab.model, nullptr, 0, names, 2));
  OK(dtg_model_set_classes(lab.model, "output", DTG_STRLEN, names, 2));
  OK(dtg_model_set_classes(lab.model, "another", DTG_STRLEN, names, 3));
  OK(dtg_trainer_export(lab.trainer, run_.c_str(), DTG_STRLEN));
  dtg_model* served = nullptr;
  OK(dtg_model_load(nullptr, run_.c_str(), DTG_STRLEN, nullptr, &served));
  refused(dtg_model_set_classes(served, "output", DTG_STRLEN, names, 3), DTG_INVALID_ARGUMENT, "of a file");
  dtg_model_release(served);
  // Said before the trainer was there.
  Lab early(false);
  OK(dtg_model_set_classes(early.model, "output", DTG_STRLEN, names, 3));
  dtg_trainer_options what = early.what();
  dtg_trainer* trainer = nullptr;
  OK(dtg_trainer_create(early.model, &what, &trainer));
  EXPECT_TRUE(
      has(refused(dtg_trainer_begin(trainer, early.train, nullptr, nullptr), DTG_INVALID_ARGUMENT, "at the fit"), "fit: name classes"));
  EXPECT_TRUE(has(refused(dtg_trainer_export(trainer, run_.c_str(), DTG_STRLEN), DTG_INVALID_ARGUMENT, "at the export"), "3 names for"));
  OK(dtg_model_set_classes(early.model, "output", DTG_STRLEN, names, 2));
  OK(dtg_trainer_begin(trainer, early.train, nullptr, nullptr));
  dtg_trainer_release(trainer);
}

TEST_F(TrainerData, WhatWillNotBeKeptIsSaidBeforeTheFirstStep) {
  Lines lines;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_trainer_options what = lab.what();
    const dtg_value outputs[] = {lab.loss};
    what.outputs = outputs;
    what.num_outputs = 1;
    dtg_trainer* trainer = nullptr;
    OK(dtg_trainer_create(lab.model, &what, &trainer));
    dtg_fit how = DTG_FIT_INIT;
    how.directory = run_.c_str();
    OK(dtg_trainer_begin(trainer, lab.train, nullptr, &how));
    dtg_trainer_release(trainer);
  }
  const std::string told = lines.end();
  EXPECT_TRUE(has(told, "W fit: this fit will not write model.dtg at its end, only weights: export a model: the outputs need \"y\""))
      << told;
}

TEST_F(TrainerData, WhatWouldDoNothingIsRefused) {
  Lab lab;
  const auto why = [&](const std::function<void(dtg_fit&)>& set, bool validated = true) {
    dtg_fit how = DTG_FIT_INIT;
    set(how);
    return refused(dtg_trainer_begin(lab.trainer, lab.train, validated ? lab.test : nullptr, &how), DTG_INVALID_ARGUMENT, "an option");
  };
  EXPECT_EQ(
      why([](dtg_fit& how) { how.checkpoint_steps = 100; }),
      "fit: checkpoint_steps is 100 and would do nothing: it needs a directory, in which a fit keeps what it writes; give the fit that, "
      "or leave this option out");
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.checkpoint_ns = 1'500'000'000; }), "the time between checkpoints is 1.5 and would"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.checkpoint_epochs = 2; }), "needs a directory"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.keep = 2; }), "needs a directory"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.fresh = 1; }), "needs a directory"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.tensorboard_steps = 5; }), "needs a directory"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.histogram_epochs = 5; }), "needs a directory"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.best_better = DTG_BETTER_LESS; }), "needs the name of the value"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.validation_steps = 5; }, false), "needs data to validate with"));
  EXPECT_TRUE(has(why([](dtg_fit& how) { how.validation_every = 5; }, false), "needs data to validate with"));
  EXPECT_TRUE(has(why([this](dtg_fit& how) {
                    how.directory = run_.c_str();
                    how.no_tensorboard = 1;
                    how.histogram_epochs = 1;
                  }),
                  "which are switched off"));
  dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  stopping.baseline = 0.5;
  EXPECT_TRUE(has(why([&](dtg_fit& how) { how.early_stopping = &stopping; }), "`has_baseline`"));
  dtg_trainer_options what = lab.what();
  const char* const names[] = {"scores"};
  what.num_outputs = 0;
  what.output_names = names;
  dtg_trainer* trainer = nullptr;
  refused(dtg_trainer_create(lab.model, &what, &trainer), DTG_INVALID_ARGUMENT, "names of nothing");
}

TEST_F(TrainerData, TextsThatBecomeNumbersAreTold) {
  Lines lines;
  const std::string rows = "city,a,kind\nbonn,1,x\naachen,2,y\nbonn,3,x\n";
  dtg_dataset* const data = read(rows, nullptr, lines.runtime);
  dtg_string* schema = nullptr;
  OK(dtg_dataset_schema(data, &schema));
  // By a schema it is meant.
  dtg_dataset* const again = read(rows, dtg_string_data(schema, nullptr), lines.runtime);
  dtg_dataset* columns = nullptr;
  OK(dtg_dataset_csv(lines.runtime, csv_.c_str(), DTG_STRLEN, nullptr, &columns));
  dtg_string_release(schema);
  for (dtg_dataset* each : {data, again, columns}) dtg_dataset_release(each);
  const std::string told = lines.end();
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 2) << told;
  EXPECT_TRUE(has(told, ("W data: read \"" + csv_ +
                         "\": texts became numbers, by the order of the names in their columns: \"city\" (2). As features they would")
                            .c_str()))
      << told;
  EXPECT_TRUE(has(told, "one-hot, or, where it is meant, say so in the schema: {\"rules\": [{\"name\": \"city\", \"kind\": \"names\"}]}"))
      << told;
  EXPECT_TRUE(has(told, "I data: read \"")) << told;
  EXPECT_TRUE(has(told, "\"city\" (2), \"kind\" (2)\n")) << told;
}

// Of the options, not of the weights: what is there is not even read.
TEST_F(TrainerData, AFreshFitIsRefusedWhereAnotherModelHasTrained) {
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  Lab lab;
  OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  Lab other(false);
  dtg_dense more = DTG_DENSE_INIT;
  more.units = 2;
  dtg_value layer;
  OK(dtg_nn_dense(other.model, other.logits, &more, &layer));
  dtg_trainer_options what = other.what();
  dtg_trainer* trainer = nullptr;
  OK(dtg_trainer_create(other.model, &what, &trainer));
  how.fresh = 1;
  std::string why = refused(dtg_trainer_begin(trainer, other.train, nullptr, &how), DTG_ALREADY_EXISTS, "a training");
  EXPECT_TRUE(has(why, "has a training already, which stands at step 3; go on with it, or give the fit another directory")) << why;
  how.fresh = 0;
  why = refused(dtg_trainer_begin(trainer, other.train, nullptr, &how), DTG_FAILED_PRECONDITION, "of another model");
  EXPECT_TRUE(has(why, "it is not of this model")) << why;
  dtg_trainer_release(trainer);
}

TEST_F(TrainerData, AModelIsNoTable) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  const std::pair<const char*, const char*> files[] = {{"/model.dtg", "but a model that was exported, as model.dtg is"},
                                                       {"/model.safetensors", "but a file of safetensors, as weights are kept in"}};
  for (const auto& [name, what] : files) {
    const std::string path = run_ + name;
    dtg_dataset* data = nullptr;
    std::string why = refused(dtg_dataset_csv(nullptr, path.c_str(), DTG_STRLEN, nullptr, &data), DTG_INVALID_ARGUMENT, name);
    EXPECT_TRUE(has(why, what)) << why;
    why = refused(dtg_dataset_json_lines(nullptr, path.c_str(), DTG_STRLEN, nullptr, &data), DTG_INVALID_ARGUMENT, name);
    EXPECT_TRUE(has(why, what)) << why;
  }
}

}  // namespace
