// HeldCancellation: what may end a call from another thread, held for the length of that call where the host gave any. One thread.
#pragma once

#include <optional>

#include "base/cancellation.h"
#include "capi/guard.h"

namespace dtg::capi {

class HeldCancellation {
 public:
  explicit HeldCancellation(dtg_cancellation* handle) {
    if (handle) held_.emplace(handle, HandleType::cancellation);
  }
  Status status() const { return held_ ? held_->status() : Status(); }
  Cancellation* get() const { return held_ ? held_->get() : nullptr; }

 private:
  std::optional<Held<Cancellation>> held_;
};

}  // namespace dtg::capi
