// Strided slices: what begin, end, strides and the masks of TensorFlow's strided ops mean for a tensor of some shape. One
// function resolves them, from whatever is known of the three; then a walk copies between the whole and the part. Values;
// any thread.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/integers.h"

namespace dtg::ops {

// Bytes from one index of dimension i to the next, in a plain tensor.
inline int64_t stride_of(const Shape& shape, int i, int64_t size) { return shape.count(i + 1, shape.rank()) * size; }

struct Masks {
  uint64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
  Masks() = default;
  explicit Masks(const Node& node);
};

// begin, end and strides as far as they are known.
struct Entries {
  int count = 0;
  std::optional<std::span<const int64_t>> begin, end, strides;
};

// One dimension of the input: which indices are taken.
struct Range {
  int64_t begin = 0;
  int64_t step = 1;
  int64_t count = -1;  // -1: not known
  int place = -1;      // the dimension of the part that it becomes; -1: none, one index is taken
};

struct StridedGeometry {
  std::array<Range, kRankMax> ranges{};  // per dimension of the input
  PartialShape out = PartialShape::of_rank(0);
};

// Walks the entries along the dimensions of the input; the ellipsis, or the end, stands for those left over.
Result<StridedGeometry> resolve_strided(const PartialShape& in, const Entries& e, const Masks& masks);

// Begin, end and strides are inputs [first, first + 3). The number of entries, or -1.
Result<int> entry_count(const InferContext& c, int first);

// The masks of this node as attributes of another.
std::vector<Attr> mask_attrs(const GradContext& c);

// The three inputs 1 to 3 of a kernel with their masks.
struct StridedEntries {
  Masks masks;
  Integers begin, end, strides;

  Status prepare_entries(PrepareContext& c);
  Result<StridedGeometry> geometry(RunContext& c, const PartialShape& in) const;
};

// The part of `whole` that the ranges take, walked beside a tensor that holds just them.
struct PartWalk {
  cpu::Walk walk;
  int64_t offset = 0;  // of the part in the whole
};
PartWalk walk_part(const Shape& whole, const StridedGeometry& g, int64_t size, bool into_whole);
// The same towards the whole, for a value that is broadcast to the part; does it fit?
bool broadcasts_to_part(const Shape& value, const StridedGeometry& g);
PartWalk walk_broadcast(const Shape& whole, const StridedGeometry& g, int64_t size, const Shape& value);

}  // namespace dtg::ops
