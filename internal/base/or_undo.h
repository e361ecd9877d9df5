// or_undo: calls a function, and undoes what was begun for it where an exception leaves: how inner code says that memory ran out. What a
// Status tells is the caller's to look at. Any thread.
#pragma once

#include <utility>

namespace dtg {

// `undo` must not throw.
template <class Fn, class Undo>
decltype(auto) or_undo(Fn&& fn, Undo&& undo) {
  try {
    return std::forward<Fn>(fn)();
  } catch (...) {
    std::forward<Undo>(undo)();
    throw;
  }
}

}  // namespace dtg
