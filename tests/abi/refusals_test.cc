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

}  // namespace
}  // namespace outside
