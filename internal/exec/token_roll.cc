// See token_roll.h for threads.
#include "exec/token_roll.h"

namespace dtg {

void TokenRoll::destroy(const Status&) {
  const std::lock_guard hold(mutex_);
  has_asked_.assign(has_asked_.size(), false);
}

void TokenRoll::asks(int64_t worker) {
  const std::lock_guard hold(mutex_);
  has_asked_[static_cast<size_t>(worker)] = true;
}

void TokenRoll::served(int64_t worker) {
  const std::lock_guard hold(mutex_);
  has_asked_[static_cast<size_t>(worker)] = false;
}

Status TokenRoll::lateness(int64_t worker) const {
  constexpr size_t kNamed = 8;
  std::vector<size_t> missing;
  {
    const std::lock_guard hold(mutex_);
    for (size_t w = 0; w < has_asked_.size(); ++w) {
      if (!has_asked_[w] && w != static_cast<size_t>(worker)) missing.push_back(w);
    }
  }
  if (missing.empty()) {
    return deadline_exceeded("worker %lld has contributed to its step, as all %lld have, and no update was made of it; does the chief run "
                             "`update`?",
                             static_cast<long long>(worker), static_cast<long long>(workers()));
  }
  std::string names = missing.size() == 1 ? "worker " : "workers ";
  for (size_t i = 0; i < missing.size() && i < kNamed; ++i)
    names += (i == 0 ? "" : i + 1 == missing.size() ? " and " : ", ") + std::to_string(missing[i]);
  if (missing.size() > kNamed) names += format(" and %zu more", missing.size() - kNamed);
  return deadline_exceeded("worker %lld has contributed to its step, which waits for %s of %lld", static_cast<long long>(worker),
                           names.c_str(), static_cast<long long>(workers()));
}

}  // namespace dtg
