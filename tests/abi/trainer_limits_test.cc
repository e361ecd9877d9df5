// Fits at the edges of what a host may ask for, and of what a disk may do, through the public headers.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer_lab.h"

namespace {

using namespace fits;

dtg_error* fit(Lab& lab, const dtg_fit& how) { return dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, nullptr); }

// Every number of a fit, far below 0.
TEST_F(Trainer, TakesNoNumberBelowZero) {
  int64_t dtg_fit::*const numbers[] = {&dtg_fit::epochs,           &dtg_fit::steps_per_epoch,   &dtg_fit::validation_every,
                                       &dtg_fit::validation_steps, &dtg_fit::time_limit_ns,     &dtg_fit::checkpoint_steps,
                                       &dtg_fit::checkpoint_ns,    &dtg_fit::checkpoint_epochs, &dtg_fit::tensorboard_steps,
                                       &dtg_fit::histogram_epochs};
  Lab lab;
  for (const auto number : numbers) {
    for (const int64_t value : {int64_t{-1}, INT64_MIN + 1, INT64_MIN}) {
      dtg_fit how = DTG_FIT_INIT;
      how.*number = value;
      refused(fit(lab, how), DTG_INVALID_ARGUMENT, "a number below 0");
    }
  }
}

// The names end where a page does that nobody may read behind.
TEST_F(Trainer, ReadsNoMoreNamesThanThereAreFeeds) {
  Lab lab;
  dtg_trainer_options what = lab.what();
  const long page = sysconf(_SC_PAGESIZE);
  std::string path = folder("page");
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, page), 0);
  // Two pages of a file that has one: the second is there, and cannot be read.
  void* const room = mmap(nullptr, static_cast<size_t>(2 * page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(room, MAP_FAILED);
  const char** const names = reinterpret_cast<const char**>(static_cast<char*>(room) + page) - 2;
  names[0] = "first";
  names[1] = "second";
  what.input_names = names;
  dtg_trainer* trainer = nullptr;
  for (const size_t inputs : {size_t{3}, size_t{1} << 40, SIZE_MAX}) {
    what.num_inputs = inputs;
    refused(dtg_trainer_create(lab.model, &what, &trainer), DTG_INVALID_ARGUMENT, "more inputs than feeds");
  }
  munmap(room, static_cast<size_t>(2 * page));
  close(file);
  unlink(path.c_str());
}

// What became of a training is told where its weights cannot be written, too.
TEST_F(Trainer, TellsOfItsEndWhereWeightsCannotBeWritten) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  ASSERT_EQ(std::system(("mkdir -p '" + run_ + "/model.safetensors'").c_str()), 0);
  refused(fit(lab, how), DTG_FAILED_PRECONDITION, "a folder in the place of the weights");
  EXPECT_NE(file("summary.json").find("\"outcome\":\"failed\""), std::string::npos) << file("summary.json");
  EXPECT_FALSE(file("report.html").empty());
  EXPECT_FALSE(file("model.dtg").empty());
}

// The thread sanitizer follows descriptors by their numbers, and here a host writes to numbers that it does not own.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DTG_DESCRIPTORS_ARE_WATCHED
#endif
#endif
#ifndef DTG_DESCRIPTORS_ARE_WATCHED

// A host without stdin, stdout and stderr: what it writes there all the same must not come into a file of the fit.
void closed_host(const std::string& directory) {
  for (int i = 0; i < 3; ++i) close(i);
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.directory = directory.c_str();
  dtg_error* error = dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how);
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  while (!error && event.kind != DTG_FIT_DONE) {
    error = dtg_trainer_next(lab.trainer, &event);
    for (int i = 0; i < 3; ++i) {
      if (write(i, "of the host\n", 12) >= 0) _exit(2);
    }
  }
  const bool whole = !error && !text_of(directory + "/metrics.csv").empty();
  if (std::system(("rm -rf '" + directory + "'").c_str()) != 0) _exit(3);
  _exit(whole ? 0 : 1);
}

TEST_F(Trainer, PutsNoFileInThePlaceOfStderr) {
  // A child of its own program, as one that was forked may not use the library.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(closed_host(run_), testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
