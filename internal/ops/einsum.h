// An Einsum equation and what it means for operands of some shape. Values; any thread.
#pragma once

#include <string>
#include <vector>

#include "graph/infer.h"

namespace dtg::ops {

// "ij,jk->ik": letters per operand; '.' stands for an ellipsis.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};
Result<Equation> parse_equation(const std::string& text, int operands);

// One dimension that operands share. Those of an ellipsis are counted from the right, and broadcast.
struct EinsumLabel {
  int id = 0;  // a letter, or kEllipsisDim + its place from the right
  int64_t dim = -1;
};
inline constexpr int kEllipsisDim = 1000;

struct EinsumShapes {
  std::vector<std::vector<int>> inputs;  // ids per dimension
  std::vector<int> output;
  std::vector<EinsumLabel> labels;
  int64_t dim_of(int id) const {
    for (const EinsumLabel& label : labels) {
      if (label.id == id) return label.dim;
    }
    return -1;
  }
};
// All ranks must be known; dimensions may be open.
Result<EinsumShapes> resolve_equation(const Equation& equation, std::span<const PartialShape> inputs);

}  // namespace dtg::ops
