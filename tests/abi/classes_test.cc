// Names of classes: what a file of named classes was trained on is told by whoever loads the model, in another program; and that data which
// mean something else by the same numbers are refused, as is what would train alone or not at all without a word. One thread.
#include "told.h"
#include "trainer_lab.h"

namespace {

using namespace fits;
using outside::Told;
using Names = std::vector<std::string>;

// The names of an output's classes; the error, where there are none.
Names names_of(const dtg_model* model, const char* output) {
  dtg_tensor* names = nullptr;
  dtg_error* const error = dtg_model_classes(model, output, DTG_STRLEN, &names);
  if (error) return {refused(error, DTG_NOT_FOUND, "no names")};
  Names found;
  for (size_t i = 0; i < static_cast<size_t>(dtg_tensor_count(names)); ++i) {
    size_t bytes = 0;
    const char* const name = dtg_tensor_string(names, i, &bytes);
    found.emplace_back(name, bytes);
  }
  dtg_tensor_release(names);
  return found;
}

class Classes : public Trainer {
 protected:
  void TearDown() override {
    std::remove(csv_.c_str());
    Trainer::TearDown();
  }
  dtg_dataset* read(const std::string& text, const char* schema = nullptr, dtg_runtime* runtime = nullptr, int64_t whole = 0) {
    std::ofstream(csv_) << text;
    dtg_csv_options options = DTG_CSV_OPTIONS_INIT;
    options.label = schema ? nullptr : "kind";
    options.schema = schema;
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_csv(runtime, csv_.c_str(), DTG_STRLEN, &options, &data));
    OK(dtg_dataset_batch(data, whole ? whole : 2, whole != 0));
    return data;
  }
  const std::string csv_ = folder("kinds.csv");
  const std::string rows_ = "a,b,c,kind\n1,2,3,dog\n4,5,6,cat\n7,8,9,dog\n1,0,2,cat\n";
};

TEST_F(Classes, OfAFitAreToldByItsModel) {
  Lab lab;
  dtg_dataset* const data = read(rows_);
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  OK(dtg_trainer_fit(lab.trainer, data, nullptr, &how, nullptr));
  dtg_model* served = nullptr;
  OK(dtg_model_load(nullptr, (run_ + "/model.dtg").c_str(), DTG_STRLEN, nullptr, &served));
  EXPECT_EQ(names_of(served, "output"), (Names{"cat", "dog"}));
  EXPECT_EQ(names_of(served, nullptr), (Names{"cat", "dog"}));
  EXPECT_EQ(names_of(lab.model, nullptr), (Names{"cat", "dog"})) << "for an export of one's own";
  EXPECT_NE(names_of(served, "outptu")[0].find("did you mean \"output\""), std::string::npos);
  EXPECT_NE(names_of(served, "x")[0].find("\"x\" is an input"), std::string::npos);
  // The weights alone bring them along, too.
  Lab again;
  dtg_restore part = DTG_RESTORE_INIT;
  part.partial = 1;
  OK(dtg_model_restore_from(again.model, again.session, (run_ + "/model.safetensors").c_str(), DTG_STRLEN, &part, nullptr));
  EXPECT_EQ(names_of(again.model, nullptr), (Names{"cat", "dog"}));
  // By that schema rows without their label are read elsewhere.
  dtg_string* schema = nullptr;
  OK(dtg_model_metadata(served, "schema", DTG_STRLEN, &schema));
  dtg_dataset* const unseen = read("c,b,a\n3,2,1\n", dtg_string_data(schema, nullptr));
  EXPECT_EQ(dtg_dataset_component_count(unseen), 1u);
  dtg_tensor* scores = nullptr;
  OK(dtg_trainer_predict(lab.trainer, unseen, nullptr, &scores, 1));
  dtg_tensor_release(scores);
  dtg_string_release(schema);
  dtg_dataset_release(unseen);
  dtg_dataset_release(data);
  dtg_model_release(served);
}

// Scores, numbers, yes or no; and what is none of these.
TEST_F(Classes, AreOfOutputsThatTellThemApart) {
  Lab lab(false);
  EXPECT_NE(names_of(lab.model, nullptr)[0].find("nobody has named"), std::string::npos);
  dtg_value axis, number, positive, wide, one;
  const int32_t last = 1;
  const int64_t none = 0;
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_I32, &none, 0, const_cast<int32_t*>(&last), 4, nullptr, nullptr, &tensor));
  OK(dtg_const(lab.graph, tensor, &axis));
  dtg_tensor_release(tensor);
  OK(dtg_add2(lab.graph, "ArgMax", lab.logits, axis, &number));
  OK(dtg_add2(lab.graph, "Greater", lab.logits, lab.constant(0), &positive));
  dtg_dense dense = DTG_DENSE_INIT;
  dense.units = 5;
  OK(dtg_nn_dense(lab.model, lab.logits, &dense, &wide));
  dense.units = 1;
  OK(dtg_nn_dense(lab.model, lab.logits, &dense, &one));
  dtg_value init;
  OK(dtg_model_init(lab.model, &init));
  OK(dtg_run_target(lab.session, init));
  const char *const two[] = {"no", "yes"}, *const five[] = {"a", "b", "c", "d", "\xc3\xa9"}, *const twice[] = {"a", "a"};
  refused(dtg_model_set_classes(lab.model, nullptr, 0, nullptr, 0), DTG_INVALID_ARGUMENT, "no names");
  refused(dtg_model_set_classes(lab.model, nullptr, 0, twice, 2), DTG_INVALID_ARGUMENT, "a name twice");
  OK(dtg_model_set_classes(lab.model, nullptr, 0, two, 2));
  OK(dtg_model_set_classes(lab.model, "features", DTG_STRLEN, five, 5));
  const char *const in[] = {"x", "training"}, *const out[] = {"scores", "number", "positive", "wide", "one", "features"};
  const dtg_value outputs[] = {lab.logits, number, positive, wide, one, wide};
  dtg_export what = DTG_EXPORT_INIT;
  const dtg_value fed[] = {lab.feeds[0], lab.training};
  what.input_names = in, what.inputs = fed, what.num_inputs = 2;
  what.output_names = out, what.outputs = outputs, what.num_outputs = 6;
  OK(dtg_model_export(lab.model, lab.session, &what, run_.c_str(), DTG_STRLEN));
  dtg_model* served = nullptr;
  OK(dtg_model_load(nullptr, run_.c_str(), DTG_STRLEN, nullptr, &served));
  for (const char* const name : {"scores", "number", "positive", "one"}) EXPECT_EQ(names_of(served, name), (Names{"no", "yes"})) << name;
  EXPECT_EQ(names_of(served, "features"), (Names{"a", "b", "c", "d", "\xc3\xa9"}));
  EXPECT_NE(names_of(served, "wide")[0].find("has names for 2, and \"wide\" is float32[?,5]"), std::string::npos)
      << names_of(served, "wide")[0];
  dtg_model_release(served);
}

TEST_F(Classes, OtherDataMeanTheSame) {
  Told lines;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_dataset* const data = read(rows_, nullptr, lines.runtime);
    dtg_dataset* const others = read("a,b,c,kind\n1,2,3,ape\n4,5,6,dog\n", nullptr, lines.runtime);
    dtg_dataset* const swapped = read("b,a,c,kind\n1,2,3,dog\n4,5,6,cat\n", nullptr, lines.runtime);
    dtg_dataset* const fewer = read("a,b,c,kind\n1,2,3,cat\n4,5,6,cat\n", nullptr, lines.runtime);
    std::string why = refused(dtg_trainer_fit(lab.trainer, data, others, nullptr, nullptr), DTG_INVALID_ARGUMENT, "other names");
    EXPECT_NE(why.find("\"ape\" of column \"kind\" is 0 in it, and is none of the names in the schema of the data to train on"),
              std::string::npos)
        << why;
    why = refused(dtg_trainer_fit(lab.trainer, data, swapped, nullptr, nullptr), DTG_INVALID_ARGUMENT, "other columns");
    EXPECT_NE(why.find("column \"b\" stands in it where \"a\" stands in the schema"), std::string::npos) << why;
    OK(dtg_trainer_fit(lab.trainer, data, fewer, nullptr, nullptr));
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    why = refused(dtg_trainer_evaluate(lab.trainer, others, 0, nullptr, &event), DTG_INVALID_ARGUMENT, "other names");
    EXPECT_NE(why.find("the schema that the model has kept; read it with that schema"), std::string::npos) << why;
    dtg_tensor* scores = nullptr;
    refused(dtg_trainer_predict(lab.trainer, swapped, nullptr, &scores, 1), DTG_INVALID_ARGUMENT, "other columns");
    // A fit on them would leave a model whose names are not those of its numbers. Where that is meant, the host says what it means now.
    why = refused(dtg_trainer_fit(lab.trainer, others, nullptr, nullptr, nullptr), DTG_INVALID_ARGUMENT, "other names");
    EXPECT_NE(
        why.find(
            "fit, data to train on: \"ape\" of column \"kind\" is 0 in it, and is none of the names in the schema that the model has kept"),
        std::string::npos)
        << why;
    dtg_string* schema = nullptr;
    OK(dtg_dataset_schema(others, &schema));
    OK(dtg_model_set_metadata(lab.model, "schema", DTG_STRLEN, dtg_string_data(schema, nullptr), DTG_STRLEN));
    dtg_string_release(schema);
    OK(dtg_trainer_fit(lab.trainer, others, nullptr, nullptr, nullptr));
    for (dtg_dataset* each : {data, others, swapped, fewer}) dtg_dataset_release(each);
  }
  (void)lines.end();
}

// What a fit without a step was refused for says nothing of the model.
TEST_F(Classes, ARefusedFitLeavesNoSchema) {
  Lab lab(true);
  dtg_dataset* row = nullptr;
  std::ofstream(csv_) << "a,b,c,kind\n1,2,3,Cat\n4,5,6,Dog\n";
  dtg_csv_options options = DTG_CSV_OPTIONS_INIT;
  options.label = "kind";
  OK(dtg_dataset_csv(nullptr, csv_.c_str(), DTG_STRLEN, &options, &row));  // and no batch
  refused(dtg_trainer_fit(lab.trainer, row, nullptr, nullptr, nullptr), DTG_INVALID_ARGUMENT, "no batch");
  dtg_dataset* const data = read(rows_);
  OK(dtg_trainer_fit(lab.trainer, data, nullptr, nullptr, nullptr));
  dtg_dataset_release(row);
  dtg_dataset_release(data);
}

// A loop of the host's own would be over before its first step.
TEST_F(Classes, ABatchThatDropsAllIsTold) {
  Told lines;
  const auto drain = [&](auto add) {
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_range(lines.runtime, 0, 7, 1, &data));
    add(data);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int32_t more = 1; more;) {
        dtg_tensor* element = nullptr;
        OK(dtg_dataset_next(data, &element, 1, &more));
        dtg_tensor_release(element);
      }
      OK(dtg_dataset_restart(data));
    }
    dtg_dataset_release(data);
  };
  drain([](dtg_dataset* data) {
    OK(dtg_dataset_shuffle(data, 3, 1));
    OK(dtg_dataset_batch(data, 32, 1));
    OK(dtg_dataset_prefetch(data, 2));
    OK(dtg_dataset_repeat(data, 3));
  });
  drain([](dtg_dataset* data) { OK(dtg_dataset_padded_batch(data, 8, 1, 0)); });
  drain([](dtg_dataset* data) { OK(dtg_dataset_window(data, 9, 1, 1, 1)); });
  // These are as they are meant.
  drain([](dtg_dataset* data) { OK(dtg_dataset_batch(data, 7, 1)); });
  drain([](dtg_dataset* data) { OK(dtg_dataset_batch(data, 32, 0)); });
  drain([](dtg_dataset* data) {
    OK(dtg_dataset_batch(data, 4, 1));
    OK(dtg_dataset_skip(data, 1));
  });
  drain([](dtg_dataset* data) { OK(dtg_dataset_take(data, 0)); });
  const std::string told = lines.end();
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 3) << told;
  EXPECT_NE(
      told.find("data: the data ended without an element: batch(32, whole) hands out whole batches only, and 7 elements are too few for "
                "one; give it a smaller size, or let it keep the remainder\n"),
      std::string::npos)
      << told;
  Lab lab;
  dtg_dataset* const few = read(rows_, nullptr, nullptr, 32);
  EXPECT_NE(refused(dtg_trainer_fit(lab.trainer, few, nullptr, nullptr, nullptr), DTG_FAILED_PRECONDITION, "no elements")
                .find("batch(32, whole) hands out whole batches only, and 4 elements"),
            std::string::npos);
  dtg_dataset_release(few);
  dtg_dataset* columns = nullptr;
  OK(dtg_dataset_csv(nullptr, csv_.c_str(), DTG_STRLEN, nullptr, &columns));
  EXPECT_NE(refused(dtg_trainer_fit(lab.trainer, columns, nullptr, nullptr, nullptr), DTG_INVALID_ARGUMENT, "no label")
                .find("a table read without a label has a component for each column"),
            std::string::npos);
  dtg_dataset_release(columns);
}

// A loop that does not begin the next epoch trains with nothing from then on, as one behind a fit does, and looks like one that has
// trained.
TEST_F(Classes, AnEndThatIsAskedAgainIsTold) {
  Told lines;
  const auto pull = [](dtg_dataset* data) {
    dtg_tensor* element[2] = {};
    int32_t more = 0;
    OK(dtg_dataset_next(data, element, dtg_dataset_component_count(data), &more));
    for (dtg_tensor* tensor : element) dtg_tensor_release(tensor);
    return more != 0;
  };
  const auto epoch = [&](dtg_dataset* data) {
    int elements = 0;
    while (pull(data)) ++elements;
    return elements;
  };
  const auto numbers = [&] {
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_range(lines.runtime, 0, 3, 1, &data));
    return data;
  };
  // As they are meant: an end is told once an epoch, and what goes elsewhere, or is made longer, is not at its end any more.
  dtg_dataset* const good = numbers();
  int64_t begin[4];
  size_t count = 0;
  OK(dtg_dataset_position(good, begin, 4, &count));
  EXPECT_EQ(epoch(good), 3);
  OK(dtg_dataset_restart(good));
  EXPECT_EQ(epoch(good), 3);
  OK(dtg_dataset_move_to(good, begin, count));
  EXPECT_EQ(epoch(good), 3);
  OK(dtg_dataset_skip(good, 0));
  EXPECT_EQ(epoch(good), 0);
  dtg_dataset_release(good);
  dtg_dataset* const data = numbers();
  EXPECT_EQ(epoch(data), 3);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(epoch(data), 0);  // told once
  dtg_dataset_release(data);
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, lines.runtime);
    dtg_dataset* const fitted = read(rows_, nullptr, lines.runtime);
    OK(dtg_trainer_fit(lab.trainer, fitted, nullptr, nullptr, nullptr));
    EXPECT_EQ(epoch(fitted), 0);
    OK(dtg_dataset_restart(fitted));
    EXPECT_EQ(epoch(fitted), 2);
    dtg_dataset_release(fitted);
  }
  const std::string told = lines.end(),
                    rest = ") had come to its end before, and gives nothing until dtg_dataset_restart begins the next epoch\n";
  const std::string first = "data: next element: the data set (range(0, 1, 3)" + rest;
  EXPECT_EQ(told.find(first), 0u) << told;
  EXPECT_NE(told.find("data: next element: the data set (4 of float32[3] int64[], batch(2)" + rest), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 2) << told;
}

// Such as a variable of the environment that is not set: a program that was to train with others would train alone.
TEST_F(Classes, AnEmptyTargetIsNoCluster) {
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  OK(dtg_graph_create(nullptr, &graph));
  for (const size_t length : {size_t{0}, size_t{DTG_STRLEN}}) {
    const std::string why = refused(dtg_session_connect(nullptr, "", length, graph, nullptr, &session), DTG_INVALID_ARGUMENT, "nothing");
    EXPECT_NE(why.find("the target is empty; \"local\" is this process alone"), std::string::npos) << why;
  }
  OK(dtg_session_connect(nullptr, nullptr, 0, graph, nullptr, &session));
  dtg_session_release(session);
  dtg_graph_release(graph);
}

}  // namespace
