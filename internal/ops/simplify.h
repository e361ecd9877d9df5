// Simplification rules: forms that compute the same bits with less work. Declared by the ops whose nodes they look at; called by the
// planner's simplify pass, one thread. A rule that could change a bit (x + 0 for a floating x, which may be -0) is none.
#pragma once

#include <string_view>

#include "graph/rewriter.h"

namespace dtg::ops {

bool simplify_identity(Rewriter& r, uint32_t n);   // its input
bool simplify_reshape(Rewriter& r, uint32_t n);    // reshape of a reshape
bool simplify_ensured(Rewriter& r, uint32_t n);    // a shape that is known anyway
bool simplify_transpose(Rewriter& r, uint32_t n);  // transpose of a transpose, and of nothing
// x*1, x/1, x-0, x+0 where that is exact; null for other ops.
RewriteFn simplify_binary(std::string_view op);

}  // namespace dtg::ops
