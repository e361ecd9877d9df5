// The model behind a handle, shared by nn.cc (what is built) and model.cc (what is kept).
#pragma once

#include <cstring>

#include "dtg/base.h"
#include "capi/objects.h"
#include "nn/model.h"

namespace dtg::capi {

// Keeps the graph's handle object too: it holds the runtime whose op table the graph uses.
class ModelObject final : public RefCounted {
 public:
  ModelObject(Ref<GraphObject> g, Ref<Model> m) : graph(std::move(g)), model(std::move(m)) {}
  const Ref<GraphObject> graph;
  const Ref<Model> model;
};

// Answers a struct of the host as far as its size goes; read_struct has checked it.
template <class T>
void write_struct(const T& answer, T* out) {
  const size_t size = answer.struct_size < sizeof(T) ? answer.struct_size : sizeof(T);
  std::memcpy(static_cast<void*>(out), &answer, size);
}

}  // namespace dtg::capi
