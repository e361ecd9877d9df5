// saver: saves sets as a training run would, for faults_test.py, which kills it and makes its system calls fail.
//
//   saver save DIR STEP     one set of two shards, then pruning to one and tidying; says "published STEP" when that is so
//   saver loop DIR STEP     the same for STEP, STEP + 1, ... until killed
//   saver check DIR         the newest set's step, "none", or an error and exit code 1; the set's content must be that of its step
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "checkpoint/sample_set.h"

namespace {

using namespace dtg;

// Straight to the reader: what is said must have happened, and nothing may be said later.
void say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

int fail(const Status& status) {
  std::fprintf(stderr, "%s: %s\n", code_name(status.code()), status.message().c_str());
  return 1;
}

Status save(CheckpointDirectory& sets, int64_t step) {
  DTG_TRY(save_sample(sets, step, static_cast<float>(step)).status());
  say("published " + std::to_string(step));
  DTG_TRY(sets.prune(1));
  return sets.remove_leftovers(system_clock(), {.live = {}, .older_than_s = 0});
}

int check(CheckpointDirectory& sets) {
  const auto newest = restore_newest(system_disk(), sets, OnDamage::fail);
  if (newest.status().code() == Code::not_found) return say("none"), 0;
  if (!newest.ok()) return fail(newest.status());
  const int64_t step = newest.value().manifest.id.step;
  if (sample_value(newest.value()) != static_cast<float>(step))
    return fail(data_loss("step %lld is not of one piece", static_cast<long long>(step)));
  return say(std::to_string(step)), 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string what = argv[1];
  CheckpointDirectory sets(system_disk(), system_random(), argv[2]);
  if (what == "check") return check(sets);
  int64_t step = argc > 3 ? std::atoll(argv[3]) : 1;
  do {
    const Status status = save(sets, step++);
    if (!status.ok()) return fail(status);
  } while (what == "loop");
  return 0;
}
