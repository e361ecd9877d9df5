// DatasetObject: the pipeline behind a dtg_dataset, owned by its handle. Shared by data.cc, which builds and reads, map.cc, which adds
// functions, arrow.cc, and checkpoint.cc, which keeps positions. One thread at a time uses it.
#pragma once

#include <atomic>
#include <string>

#include "capi/guard.h"
#include "capi/objects.h"
#include "capi/owner.h"
#include "data/dealt.h"
#include "data/json_lines.h"
#include "data/position.h"
#include "dtg/data.h"

namespace dtg::capi {

// A pipeline and the runtime it was made for. After a failed transform there is no pipeline any more, only why.
class DatasetObject final : public RefCounted {
 public:
  DatasetObject(Ref<Runtime> r, DatasetPtr d) : runtime(std::move(r)), reading(std::move(d)) {}
  const Ref<Runtime> runtime;
  std::vector<Ref<Runtime>> lent;  // of the data sets that it is made of, whose disks and budgets it goes on using
  Reading reading;
  Status broken;
  LeftOut left_out;            // rows of its source
  bool warned = false;         // that it has handed out nothing
  bool warned_of_end = false;  // that it was asked for more than there is
  Owner owner;
  const Dealt* dealt = nullptr;  // its last stage, where its elements are dealt to this worker
  // The trainer whose fit reads it, until that is over; null: none.
  std::atomic<const void*> fit{nullptr};

  // A transform failed and took the pipeline with it.
  Status give_up(Status why) {
    reading.lose();
    return broken = std::move(why);
  }
  Status check_undealt(const char* attempted) const {
    if (!dealt) return {};
    return failed_precondition("%s: its elements are dealt to this worker, one after the other as they are trained with, so it may only be "
                               "read and restarted; change it before it is dealt, and make a second one for anything else",
                               attempted);
  }
  // Nobody else may read or change it then: the fit would go on with other elements than it thinks.
  Status check_apart(const char* attempted) const {
    DTG_TRY(check_undealt(attempted));
    return check_unread(attempted);
  }
  Status check_unread(const char* attempted) const {
    if (!fit.load(std::memory_order_relaxed)) return {};
    return failed_precondition("%s: the data set is read by the fit that is under way; make a second one, it may share the same tensors",
                               attempted);
  }
  // Why it cannot be used. A transform that ran out of memory may have left neither pipeline nor reason.
  Status usable() const {
    if (reading.valid() || !broken.ok()) return broken;
    return failed_precondition("the data set was lost: an earlier transform ran out of memory; make it anew");
  }
};

// What a source found out about its data.
struct Found {
  std::string schema;
  LeftOut left_out;
};

template <class Fn>
dtg_error* make_source(dtg_runtime* runtime, dtg_dataset** out, Fn&& fn) {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Ref<Runtime> held, runtime_of(runtime));
    Found found;
    DTG_ASSIGN(DatasetPtr source, fn(held->seams(), found));
    auto object = make_ref<DatasetObject>(std::move(held), std::move(source));
    object->reading.set_schema(std::move(found.schema));
    object->left_out = std::move(found.left_out);
    return give(HandleType::dataset, std::move(object), out);
  });
}

// fn may look, and no more.
template <class Fn>
dtg_error* look_at_dataset(const dtg_dataset* handle, Fn&& fn) {
  return guard([&]() -> Status {
    const Held<DatasetObject> held(handle, HandleType::dataset);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, Owner::Use::change);
    DTG_TRY(turn.status("data set"));
    DTG_TRY(held->usable());
    return fn(*held);
  });
}

// fn may read on in it.
template <class Fn>
dtg_error* read_dataset(const dtg_dataset* handle, Fn&& fn) {
  return look_at_dataset(handle, [&](DatasetObject& object) -> Status {
    DTG_TRY(object.check_unread("use a data set"));
    return fn(object);
  });
}

// fn may read it and change it.
template <class Fn>
dtg_error* with_dataset(const dtg_dataset* handle, Fn&& fn) {
  return look_at_dataset(handle, [&](DatasetObject& object) -> Status {
    DTG_TRY(object.check_apart("use a data set"));
    return fn(object);
  });
}

// fn takes the pipeline over and gives the longer one.
template <class Fn>
dtg_error* transform(dtg_dataset* handle, Fn&& fn) {
  return with_dataset(handle, [&](DatasetObject& object) -> Status {
    auto longer = fn(object.reading.take());
    if (!longer.ok()) return object.give_up(longer.status());
    object.reading.put(longer.take());
    return {};
  });
}

// Texts that end with NUL; the names are those of the arguments.
Result<std::vector<std::string>> read_texts(const char* const* texts, size_t count, const char* all, const char* one);
// Those to read of a table; NULL: all, which none are not.
Result<std::vector<std::string>> read_columns(const char* const* columns, size_t count);
// A number of an options struct, from 0 to `most`. `field` names struct and field.
Status check_field(const char* field, int32_t value, int32_t most);
// Of a DTG_MISSING_ constant.
CsvMissing missing_of(int32_t number);
// Handles for the tensors of an element: all or none.
Status give_tensors(const Element& element, dtg_tensor** tensors);

}  // namespace dtg::capi
