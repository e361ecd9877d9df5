// post_parting: what an object does last on its loop, also where there is no memory to ask for it: releases and ends cannot fail. Any
// thread.
#pragma once

#include <new>

#include "base/ref.h"
#include "net/loop.h"

namespace dtg {

// `Fn` takes the object and captures nothing. A function of one plain pointer needs no memory of its own, and the loop keeps room for
// some; but a loop that has stopped could not give such a reference back, so it comes second. Where both fail, nothing happens: what
// there is ends with its connection or with the loop.
template <class T, class Fn>
void post_parting(Loop& loop, T* self, Fn fn) noexcept {
  try {
    return loop.post([held = Ref<T>::share(self), fn] { fn(*held); });
  } catch (const std::bad_alloc&) {
  }
  self->retain();
  try {
    loop.post([self] {
      const Ref<T> held = Ref<T>::adopt(self);
      Fn()(*held);
    });
  } catch (const std::bad_alloc&) {
    self->release();
  }
}

}  // namespace dtg
