// The counted objects behind handles that have no class of their own in internal/: errors, strings, tensors (also
// around memory that the host lends), graphs. Owned by their handles; threads as the public headers say.
#pragma once

#include <span>
#include <string>

#include "base/ref.h"
#include "base/status.h"
#include "capi/owner.h"
#include "dtg/tensor.h"
#include "graph/closure.h"
#include "session/runtime.h"
#include "tensor/tensor.h"

namespace dtg::capi {

// An error that the host holds.
class ErrorObject final : public RefCounted {
 public:
  explicit ErrorObject(Status error) : status(std::move(error)) {}
  const Status status;
};

// Bytes that the host holds.
class StringObject final : public RefCounted {
 public:
  explicit StringObject(std::string bytes) : text(std::move(bytes)) {}
  const std::string text;
};

// A tensor that the host holds. Recycled: a run that returns one small tensor should not pay for malloc.
class TensorObject final : public RefCounted {
 public:
  static TensorObject* make(Tensor tensor);
  Tensor tensor;
  bool read_only = false;  // memory of the host that nobody may write

 protected:
  void last_release() override;

 private:
  explicit TensorObject(Tensor t) : tensor(std::move(t)) {}
  friend struct TensorPool;
  TensorObject* next_ = nullptr;
};

// Memory of the host for a tensor. `free_fn` is called once when it is not needed any more.
struct Lent {
  DType dtype;
  const Shape& shape;
  void* data;
  dtg_free_fn free_fn;
  void* user;
  bool read_only;
};
// A tensor around it, whose size must be right. `free_fn` is not called when this fails.
Status lend(const Lent& lent, dtg_tensor** out);

// A graph and the runtime whose op table it uses.
class GraphObject final : public RefCounted {
 public:
  GraphObject(Ref<Runtime> r, Ref<Graph> g) : runtime(std::move(r)), graph(std::move(g)) {}
  const Ref<Runtime> runtime;
  const Ref<Graph> graph;
  Owner owner;  // entered by whoever adds nodes or changes scopes
};

// A function that was finished, and what it captured on the way.
class FunctionObject final : public RefCounted {
 public:
  FunctionObject(Ref<Runtime> r, Closure c) : runtime(std::move(r)), closure(std::move(c)) {}
  const Ref<Runtime> runtime;
  Closure closure;
};

// The runtime behind a handle, or the default one for NULL.
Result<Ref<Runtime>> runtime_of(dtg_runtime* handle);

// The value belongs to this graph and its node exists; a node without outputs is named by its output 0.
Status check_owner(const Graph& graph, Value value);
// None of them is there twice: one that is would be taken for one whose data do not fit. `list` is their name, `what` who wants them.
Status check_apart(const Graph& graph, std::span<const Value> values, const char* what, const char* list);

inline Value value_of(dtg_value value) { return Value(value.id); }
inline dtg_value to_c(Value value) { return {value.id}; }

}  // namespace dtg::capi
