// What the host does for a data set, as the stages of data/ see it: functions of elements, and a source. Each asks the host by the thread
// of its pipeline, no lock held, and checks whatever comes back. Shared by map.cc, which reads the arguments, and host_data.cc.
#pragma once

#include "capi/data.h"
#include "data/element_function.h"
#include "dtg/map.h"

namespace dtg::capi {

// The pointer that the host's functions get. The host has it back when nobody can call them any more, unless it was disowned: what it was
// for was not made.
class HostUser final : public RefCounted {
 public:
  HostUser(void* user, dtg_user_free_fn free) : user_(user), free_(free) {}
  ~HostUser() override {
    if (free_) free_(user_);
  }
  void* get() const { return user_; }
  void disown() { free_ = nullptr; }

 private:
  void* const user_;
  dtg_user_free_fn free_;
};

Ref<ElementFunction> host_map(dtg_element_fn fn, Ref<HostUser> user, std::vector<ComponentSpec> results);
Ref<ElementFunction> host_filter(dtg_predicate_fn fn, Ref<HostUser> user);
// Of `source` its functions and its cardinality count.
DatasetPtr host_source(const dtg_host_source& source, Ref<HostUser> user, std::string name, std::vector<ComponentSpec> spec);

}  // namespace dtg::capi
