// Rewriter: the plan in the making as a rewrite rule sees it. A rule belongs to an op's definition (OpDef::simplify, OpDef::fuse); it is
// shown a node of that op, looks at what feeds it, and says what stands in its place. Nodes and values are numbers of the plan;
// the graph itself never changes.
//
// Implemented by plan/; lives for one pass, one thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace dtg {

class Rewriter {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;
  virtual ~Rewriter() = default;

  // The op, name and attributes of a node. Its inputs are asked for with operand().
  virtual const Node& node(uint32_t n) const = 0;
  virtual size_t operand_count(uint32_t n) const = 0;
  virtual uint32_t operand(uint32_t n, size_t input) const = 0;
  virtual uint32_t result(uint32_t n, size_t output) const = 0;
  virtual const ValueInfo& info(uint32_t value) const = 0;
  // A value that needs no run, or an invalid tensor.
  virtual Tensor known(uint32_t value) const = 0;

  // Who makes a value, whoever reads it; kNobody for a feed and for what is known.
  virtual uint32_t producer(uint32_t value) const = 0;
  // The same, where `reader` alone reads the value, on the same device, and nothing else would see the difference if it were never
  // written to memory: not fetched, fed, waited for, or of open shape.
  virtual uint32_t sole_producer(uint32_t value, uint32_t reader) const = 0;
  // The only node that reads a value, or kNobody.
  virtual uint32_t sole_reader(uint32_t value) const = 0;

  // `n` becomes a node of `op` with these operands and attributes; the absorbed nodes go.
  virtual void replace(uint32_t n, const OpDef& op, std::span<const uint32_t> operands, std::vector<Attr> attrs,
                       std::span<const uint32_t> absorbed) = 0;
  // Output 0 of `n` is `value`, which has its type and shape. False where something waits for the node itself.
  virtual bool forward(uint32_t n, uint32_t value) = 0;
  virtual const OpTable& ops() const = 0;

  // The attributes that `op` declares, as node `n` has them, or their defaults.
  std::vector<Attr> attrs_for(const OpDef& op, uint32_t n) const;
};

}  // namespace dtg
