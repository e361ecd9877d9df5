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

}  // namespace
}  // namespace outside
