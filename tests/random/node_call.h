// NodeCall: one node alone: shapes for these inputs, prepare, run, every value in memory of its own. The only file of these
// tests that knows how a kernel is called. One thread.
#pragma once

#include <span>
#include <vector>

#include "exec/kernel.h"
#include "exec/resource.h"
#include "graph/graph.h"

namespace dtg::random {

// What an output holds: a tensor, or a resource or a list.
struct Datum {
  Tensor tensor;
  Ref<RefCounted> resource;
  ValueInfo info;
};

// Of every runtime here, and of the truth: a value that takes more bytes is an error.
inline constexpr int64_t kMemoryLimit = int64_t{1} << 30;

struct Machine {
  const KernelTable* kernels = nullptr;
  Pool* pool = nullptr;
  ResourceStore* store = nullptr;
};

// What the shape function says of the outputs when it knows the inputs.
Status infer(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs);

// Outputs are filled when it succeeds. Kernels that would wait do not belong here.
Status call_node(const Machine& machine, const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs);

// Whatever the interpreter knows of a value is the truth, so a copy of its own.
Tensor copy_of(const Tensor& tensor);

}  // namespace dtg::random
