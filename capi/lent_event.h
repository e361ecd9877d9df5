// What an event of a fit points at. Of the thread that was given the event: another one that is in the trainer next, which is against the
// header, has its own, and the release of the trainer beside it takes nothing away from whoever is just reading. Filled by the thread that
// is inside the trainer, read by the thread that it was given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ref.h"
#include "dtg/trainer.h"
#include "train/record.h"

namespace dtg::capi {

class LentEvent final : public RefCounted {
 public:
  explicit LentEvent(int32_t thread) : thread_(thread) {}
  int32_t thread() const { return thread_; }
  // Copies, without asking for memory where the event before had the same names.
  void fill(const Record& values, std::string_view text, dtg_fit_event& event);

 private:
  const int32_t thread_;
  std::vector<std::string> names_;
  std::vector<const char*> c_names_;
  std::vector<double> values_;
  std::string text_;
};

// A trainer's, one for each of the threads that have used it last.
class LentEvents {
 public:
  void fill(const Record& values, std::string_view text, dtg_fit_event& event);

 private:
  static constexpr size_t kThreads = 16;
  LentEvent& here();
  std::vector<Ref<LentEvent>> lent_;
  size_t next_ = 0;  // where a new thread's goes when all places are taken
};

}  // namespace dtg::capi
