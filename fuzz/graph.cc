// Graph bytes from anywhere, with a checksum that fits: decoding must refuse or build, and what it built can be written again.
#include <cstddef>
#include <cstdint>

#include "ops/all.h"
#include "wire/flatbuffers_assert.h"
#include "wire/graph_codec.h"

namespace {

struct Tables {
  dtg::OpTable ops;
  dtg::KernelTable kernels;
  Tables() { dtg::ops::register_all(ops, kernels); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tables* const tables = new Tables;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  dtg::seal_graph(bytes);
  // A process has a million graphs in it, so they are kept for bytes that get that far.
  if (!dtg::graph_memory(bytes).ok()) return 0;
  auto graph = dtg::Graph::create(&tables->ops);
  if (!graph.ok()) return 0;
  dtg::MemoryBudget budget(int64_t{64} << 20);
  if (dtg::decode_graph(bytes, *graph.value(), budget).ok() && !dtg::encode_graph(*graph.value()).ok()) __builtin_trap();
  if (budget.used() != 0 || dtg::wire::failed_assertions() != 0) __builtin_trap();
  return 0;
}
