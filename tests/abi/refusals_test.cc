// Small things of one function each that are refused, or let go of, and that no other file is about.
#include "world.h"

namespace outside {
namespace {

class Refusals : public World {
 protected:
  dtg_value filled(dtg_dtype dtype, std::vector<int64_t> dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    std::vector<int64_t> zeros(static_cast<size_t>(count));  // as wide as any
    dtg_value made{};
    OK(dtg_const_of(h.graph, dtype, dims.data(), dims.size(), zeros.data(), static_cast<size_t>(count) * dtg_dtype_size(dtype), &made));
    return made;
  }
};

// A number of eight bytes is not the float that its first four look like, nor a vector its first element.
TEST_F(Refusals, AStepGivesOneFloat) {
  float number = 7;
  OK(dtg_step_f32(h.session, nullptr, nullptr, 0, filled(DTG_F32, {}), dtg_value{}, &number));
  EXPECT_EQ(number, 0);
  number = 7;
  refused(dtg_step_f32(h.session, nullptr, nullptr, 0, filled(DTG_I64, {}), dtg_value{}, &number), DTG_INVALID_ARGUMENT, "an int64");
  refused(dtg_step_f32(h.session, nullptr, nullptr, 0, filled(DTG_F32, {1}), dtg_value{}, &number), DTG_INVALID_ARGUMENT, "a vector");
  EXPECT_EQ(number, 7) << "nothing is written of what was refused";
}

TEST_F(Refusals, TagsAreUtf8) {
  EXPECT_NE(refused(dtg_event_writer_scalar(h.writer, "a\xff", 2, 1, 1.0), DTG_INVALID_ARGUMENT, "no UTF-8").find("UTF-8"),
            std::string::npos);
  OK(dtg_event_writer_scalar(h.writer, "a\xc3\xa4", 3, 1, 1.0));
}

TEST_F(Refusals, WhatALogWouldHaveUsedIsFreedWithoutOne) {
  int freed = 0;
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.log_user = &freed;
  options.log_user_free = [](void* user) { ++*static_cast<int*>(user); };
  dtg_runtime* runtime = nullptr;
  OK(dtg_runtime_create(&options, &runtime));
  dtg_runtime_release(runtime);
  EXPECT_EQ(freed, 1);
}

// A struct that was cleared, and not made by its macro, has the length 0 beside each string: none of them may be passed over.
TEST_F(Refusals, StringsWhoseLengthWasForgotten) {
  const auto tells = [](dtg_error* error, const char* what, const std::string& field) {
    const std::string message = refused(error, DTG_INVALID_ARGUMENT, field.c_str());
    EXPECT_EQ(message.rfind(what + (": " + field) + " is given with length 0", 0), 0u) << message;
    EXPECT_NE(message.find("DTG_STRLEN"), std::string::npos) << message;
  };
  dtg_server* server = nullptr;
  const std::pair<const char*, const char * dtg_server_options::*> fields[] = {
      {"job", &dtg_server_options::job}, {"key_file", &dtg_server_options::key_file}, {"state_dir", &dtg_server_options::state_dir}};
  for (const auto& [name, field] : fields) {
    dtg_server_options options{};
    options.struct_size = sizeof options;
    options.*field = "given";
    tells(dtg_server_start(h.runtime, h.cluster, &options, &server), "dtg_server_options", name);
  }
  dtg_csv_options csv{};
  csv.struct_size = sizeof csv;
  csv.label = "c64";
  dtg_dataset* data = nullptr;
  tells(dtg_dataset_csv(h.runtime, "/none.csv", DTG_STRLEN, &csv, &data), "dtg_csv_options", "label");
  dtg_dense dense{};
  dense.struct_size = sizeof dense;
  dense.units = 2;
  dense.weights_of = "other";
  dtg_value out{};
  tells(dtg_nn_dense(h.model, filled(DTG_F32, {2, 3}), &dense, &out), "dtg_dense", "weights_of");
  dtg_variable_spec variable{};
  variable.struct_size = sizeof variable;
  variable.name = "v";
  dtg_variable made = DTG_VARIABLE_INIT;
  tells(dtg_model_add_variable(h.model, &variable, &made), "dtg_variable_spec", "name");
  // What is not given needs no length, and an empty string that ends with NUL is not given.
  dense.weights_of = nullptr;
  OK(dtg_nn_dense(h.model, filled(DTG_F32, {2, 3}), &dense, &out));
  dense.name = "";
  dense.name_len = DTG_STRLEN;
  OK(dtg_nn_dense(h.model, filled(DTG_F32, {2, 3}), &dense, &out));
}

TEST_F(Refusals, PlacesWhereNothingCanBeMade) {
  const auto says = [](dtg_error* error, dtg_code code, const char* part) {
    const std::string message = refused(error, code, part);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  dtg_string* list = nullptr;
  says(dtg_checkpoint_list(h.runtime, "/etc/passwd", DTG_STRLEN, &list), DTG_FAILED_PRECONDITION, "\"/etc/passwd\" is no directory");
  dtg_variable w = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(h.model, "w", 0, &w));
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  const std::pair<const char*, dtg_code> places[] = {{"/etc/passwd", DTG_FAILED_PRECONDITION},
                                                     {"/etc/passwd/sets", DTG_FAILED_PRECONDITION}};
  for (const auto& [place, code] : places) {
    options.directory = place;
    dtg_checkpoint* sets = nullptr;
    OK(dtg_checkpoint_open(h.model, h.session, &options, &sets));
    says(dtg_checkpoint_resume(sets, nullptr, nullptr), code, "\"/etc/passwd\" is no directory");
    dtg_checkpoint_release(sets);
  }
}

// Nothing of a name is left out: what goes on after a NUL is another name.
TEST_F(Refusals, NamesWithANulInside) {
  const auto tells = [](dtg_error* error, const char* words) {
    const std::string message = refused(error, DTG_INVALID_ARGUMENT, words);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("a\\0b\", with a NUL inside"), std::string::npos) << message;
  };
  const char* const name = "a\0b";
  dtg_value value{};
  dtg_variable variable = DTG_VARIABLE_INIT;
  dtg_string* text = nullptr;
  tells(dtg_graph_find(h.graph, name, 3, &value), "name is \"a");
  tells(dtg_graph_push_name_scope(h.graph, name, 3), "name is \"a");
  tells(dtg_graph_push_device(h.graph, name, 3), "device is \"a");
  tells(dtg_model_find_variable(h.model, name, 3, &variable), "name is \"a");
  tells(dtg_model_set_metadata(h.model, name, 3, "x", 1), "key is \"a");
  tells(dtg_model_metadata(h.model, name, 3, &text), "key is \"a");
  const char* const classes[] = {"x", "y"};
  tells(dtg_model_set_classes(h.model, name, 3, classes, 2), "output is \"a");
  tells(dtg_weights_set(h.weights, name, 3, h.tensor), "name is \"a");
  tells(dtg_event_writer_scalar(h.writer, name, 3, 1, 1), "tag is \"a");
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = "NoOp", spec.name = name, spec.name_len = 3;
  tells(dtg_graph_add_op(h.graph, &spec, &value, 1), "dtg_op_spec: name is \"a");
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT;
  csv.label = name, csv.label_len = 3;
  dtg_dataset* data = nullptr;
  tells(dtg_dataset_csv(h.runtime, "x", 1, &csv, &data), "dtg_csv_options: label is \"a");
  dtg_metric_values metric = DTG_METRIC_VALUES_INIT;
  tells(dtg_trainer_add_metric(h.trainer, name, 3, &metric), "the name of the metric is \"a");
}

// Each says what was wrong, and what to do.
TEST_F(Refusals, InWordsThatLeadOn) {
  const auto says = [](dtg_error* error, dtg_code code, const char* part) {
    const std::string message = refused(error, code, part);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  dtg_value out{}, init{};
  OK(dtg_model_init(h.model, &init));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_tensor* fetched = nullptr;
  args.fetches = &init, args.fetched = &fetched, args.num_fetches = 1;
  says(dtg_session_run(h.session, &args), DTG_INVALID_ARGUMENT, "is a target: a NoOp has no outputs, and so no value; it can be run");
  says(dtg_add2(h.graph, "AddV2", filled(DTG_F32, {2}), filled(DTG_I64, {2}), &out), DTG_INVALID_ARGUMENT, "is int64; add a Cast");
  dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
  sgd.rate = 1e300;
  dtg_training training = DTG_TRAINING_INIT;
  says(dtg_nn_minimize(h.model, filled(DTG_F32, {}), &sgd, &training), DTG_INVALID_ARGUMENT,
       "rate is 1e+300; it must be a number from 0 up to the largest float32");
  sgd.rate = 0.1;
  says(dtg_nn_apply_gradients(h.model, &sgd, nullptr, nullptr, 0, &out), DTG_INVALID_ARGUMENT, "apply gradients: there are none");
  const int64_t below[] = {-3, 0};
  says(dtg_dataset_move_to(h.dataset, below, 2), DTG_INVALID_ARGUMENT, "number 0 of the position is -3");
  // TensorFlow's code, in words that say whose fault it is.
  const int32_t seven = 7;
  dtg_value x{};
  OK(dtg_const_of(h.graph, DTG_I32, nullptr, 0, &seven, sizeof seven, &x));
  const int64_t open[] = {-1};
  dtg_value y{}, quotient{};
  OK(dtg_placeholder(h.graph, "divisors", DTG_I32, open, 1, &y));
  OK(dtg_add2(h.graph, "TruncateDiv", x, y, &quotient));
  int32_t zeros[] = {2, 0};
  const int64_t two[] = {2};
  dtg_tensor* divisors = nullptr;
  OK(dtg_tensor_create(DTG_I32, two, 1, zeros, sizeof zeros, nullptr, nullptr, &divisors));
  args.feeds = &y, args.feed_tensors = &divisors, args.num_feeds = 1, args.fetches = &quotient;
  says(dtg_session_run(h.session, &args), DTG_INTERNAL, "TruncateDiv: division by zero: an element of y is 0");
  dtg_error* again = dtg_session_run(h.session, &args);
  EXPECT_STREQ(dtg_error_node(again), "TruncateDiv");
  dtg_error_release(again);
  dtg_tensor_release(divisors);
  // A feed that is there twice.
  const dtg_value twice[] = {y, y};
  dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
  options.feeds = twice, options.num_feeds = 2, options.loss = filled(DTG_F32, {});
  dtg_trainer* trainer = nullptr;
  says(dtg_trainer_create(h.model, &options, &trainer), DTG_INVALID_ARGUMENT, "feeds 0 and 1 are both \"divisors:0\"");
}

}  // namespace
}  // namespace outside
