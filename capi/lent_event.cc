// See lent_event.h for threads.
#include "capi/lent_event.h"

#include <algorithm>

#include "capi/owner.h"

namespace dtg::capi {

void LentEvent::fill(const Record& values, std::string_view text, dtg_fit_event& event) {
  const size_t count = values.size();
  names_.resize(count);
  c_names_.resize(count);
  values_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    names_[i].assign(values.name(i));
    c_names_[i] = names_[i].c_str();
    values_[i] = values.value(i);
  }
  text_.assign(text);
  event.names = c_names_.data();
  event.values = values_.data();
  event.num_values = count;
  event.text = text_.c_str();
}

LentEvent& LentEvents::here() {
  const int32_t thread = this_thread();
  const auto at = std::ranges::find(lent_, thread, [](const Ref<LentEvent>& each) { return each->thread(); });
  if (at != lent_.end()) return **at;
  if (lent_.size() < kThreads) {
    lent_.push_back(make_ref<LentEvent>(thread));
    return *lent_.back();
  }
  Ref<LentEvent>& place = lent_[next_++ % kThreads];
  place = make_ref<LentEvent>(thread);
  return *place;
}

void LentEvents::fill(const Record& values, std::string_view text, dtg_fit_event& event) {
  // The last one that this thread was given, of whichever trainer, outlives that.
  static thread_local Ref<LentEvent> last;
  LentEvent& lent = here();
  if (last.get() != &lent) last = Ref<LentEvent>::share(&lent);
  lent.fill(values, text, event);
}

}  // namespace dtg::capi
