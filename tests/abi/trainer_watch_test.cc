// What is shown of a fit while it goes on: curves, as TensorBoard's own reader finds them, and the line of its progress, on a terminal and
// elsewhere.
#include <pty.h>
#include <unistd.h>

#include <mutex>

#include "../judge.h"
#include "trainer_lab.h"

namespace {

using namespace fits;

// Two processes, the first of which went three steps further than its last checkpoint: readers see each step once.
TEST_F(Trainer, DrawsCurvesForTensorBoard) {
  dtg_plateau plateau = DTG_PLATEAU_INIT;
  plateau.monitor = "loss";
  plateau.min_delta = 1000;
  plateau.patience = 1;
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 4;
  how.directory = run_.c_str();
  how.plateau = &plateau;
  how.tensorboard_steps = 1;
  how.histogram_epochs = 2;
  how.checkpoint_steps = 5;
  how.checkpoint_epochs = 100;
  {
    Lab lab;
    OK(dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how));
    lab.pull([](const dtg_fit_event& event) { return event.step == 8; });
    OK(dtg_trainer_give_up(lab.trainer));
  }
  Lab lab;
  OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, nullptr));
  const dtg::Verdict verdict = dtg::judge("tests/train/board_check.py", run_);
  if (verdict == dtg::Verdict::absent) GTEST_SKIP() << "no TensorBoard here";
  EXPECT_EQ(verdict, dtg::Verdict::fine);
}

TEST_F(Trainer, LeavesAPageThatNeedsNoNetwork) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 4;
  const std::string directory = run_ + "/<script>";  // its name stands in the page
  how.directory = directory.c_str();
  OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, nullptr));
  const dtg::Verdict verdict = dtg::judge("tests/train/report_check.py", "'" + directory + "'");
  if (verdict == dtg::Verdict::absent) GTEST_SKIP() << "no node here";
  EXPECT_EQ(verdict, dtg::Verdict::fine);
}

TEST_F(Trainer, DrawsNoCurvesWhereNobodyWantsThem) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  how.no_tensorboard = 1;
  OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  EXPECT_FALSE(std::ifstream(run_ + "/tensorboard").good());
  // A disk that refuses costs the curves alone.
  how.no_tensorboard = 0;
  how.epochs = 2;
  EXPECT_EQ(std::system(("touch '" + run_ + "/tensorboard'").c_str()), 0);
  OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  how.tensorboard_steps = -1;
  refused(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how), DTG_INVALID_ARGUMENT, "steps below 0");
  how.tensorboard_steps = 0;
  how.progress = 3;
  refused(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how), DTG_INVALID_ARGUMENT, "progress that is shown nowhere");
}

// What reaches a terminal that stands in for stderr. A little at a time, as a terminal keeps little.
class Onlooker {
 public:
  explicit Onlooker(int columns) {
    winsize size = {};
    size.ws_col = static_cast<unsigned short>(columns);
    EXPECT_EQ(openpty(&here_, &there_, nullptr, nullptr, &size), 0);
    before_ = dup(STDERR_FILENO);
    EXPECT_GE(dup2(there_, STDERR_FILENO), 0);
  }
  // All that was written; stderr is what it was.
  std::string look() {
    const std::string_view end = "<end>";
    EXPECT_EQ(write(there_, end.data(), end.size()), static_cast<ssize_t>(end.size()));
    EXPECT_GE(dup2(before_, STDERR_FILENO), 0);
    std::string seen;
    char some[256];
    while (seen.find(end) == std::string::npos) {
      const ssize_t got = read(here_, some, sizeof some);
      if (got <= 0) break;
      seen.append(some, static_cast<size_t>(got));
    }
    for (const int fd : {here_, there_, before_}) close(fd);
    return seen;
  }

 private:
  int here_ = -1, there_ = -1, before_ = -1;
};

TEST_F(Trainer, ShowsItsProgressOnATerminal) {
  for (const int columns : {200, 30}) {
    Lab lab;
    dtg_fit how = DTG_FIT_INIT;
    how.epochs = 2;
    Onlooker onlooker(columns);
    OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, nullptr));
    const std::string seen = onlooker.look();
    EXPECT_NE(seen.find("epoch 1/2 ["), std::string::npos) << seen;
    EXPECT_NE(seen.find("epoch 2/2  loss "), std::string::npos) << seen;
    EXPECT_NE(seen.find("val_accuracy"), std::string::npos) << seen;
    EXPECT_EQ(seen.find("left  loss") != std::string::npos, columns == 200) << seen;
    // What is drawn over is no longer than the terminal is wide.
    for (size_t at = seen.find('\r'); at != std::string::npos; at = seen.find('\r', at + 1)) {
      const size_t end = seen.find_first_of("\x1b\n\r", at + 1);
      EXPECT_LT(std::min(end, seen.size()) - at, static_cast<size_t>(columns) + 1) << seen;
    }
  }
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  for (const dtg_progress progress : {DTG_PROGRESS_LINES, DTG_PROGRESS_OFF}) {
    how.progress = progress;
    Onlooker onlooker(80);
    OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
    EXPECT_EQ(onlooker.look(), "<end>") << "stderr gets warnings only";
  }
}

struct Lines {
  std::mutex guard;
  std::string all;
};

// Where the host takes the log, it gets a line per epoch, and the terminal nothing.
TEST_F(Trainer, TellsItsProgressToTheLog) {
  Lines lines;
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.log_user = &lines;
  options.log_level = DTG_LOG_INFO;
  options.log = [](void* user, dtg_log_level, const char*, const char* message) {
    Lines& told = *static_cast<Lines*>(user);
    const std::lock_guard<std::mutex> lock(told.guard);
    told.all += std::string(message) + "\n";
  };
  dtg_runtime* runtime = nullptr;
  OK(dtg_runtime_create(&options, &runtime));
  Onlooker onlooker(80);
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, runtime);
    dtg_fit how = DTG_FIT_INIT;
    how.epochs = 3;
    OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
    how.progress = DTG_PROGRESS_OFF;
    OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  }
  dtg_runtime_release(runtime);  // the last lines are handed on
  EXPECT_EQ(onlooker.look(), "<end>");
  const std::lock_guard<std::mutex> lock(lines.guard);
  EXPECT_EQ(std::count(lines.all.begin(), lines.all.end(), '\n'), 3) << lines.all;
  EXPECT_NE(lines.all.find("epoch 3/3  loss "), std::string::npos) << lines.all;
}

}  // namespace
