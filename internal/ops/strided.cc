// Resolving strided slices; see strided.h.
#include "ops/strided.h"

#include <algorithm>

namespace dtg::ops {
namespace {

bool has_bit(uint64_t mask, int i) { return (mask >> i & 1u) != 0; }

// The indices begin, begin + step, ... before end, after negative and open bounds are made sense of.
Range resolve_range(int64_t dim, int64_t begin, int64_t end, int64_t step, bool begin_open, bool end_open) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
  const auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + dim : at, low, high); };
  begin = begin_open ? (step > 0 ? low : high) : bound(begin);
  end = end_open ? (step > 0 ? high : low) : bound(end);
  const int64_t distance = end - begin;
  if (distance == 0 || (distance < 0) != (step < 0)) return {begin, step, 0, -1};
  return {begin, step, distance / step + (distance % step != 0), -1};
}

// Entry i picks from a dimension of extent `dim` (-1: not known).
Result<Range> resolve_entry(const Entries& e, const Masks& masks, int i, int64_t dim) {
  const auto at = static_cast<size_t>(i);
  const bool shrink = has_bit(masks.shrink, i);
  if (e.strides && (*e.strides)[at] == 0) return invalid_argument("stride %d is 0", i);
  if (shrink && e.strides && (*e.strides)[at] < 0) return invalid_argument("stride %d is negative where one index is taken", i);
  if (dim < 0 || (shrink && !e.begin)) return Range{0, 1, shrink ? 1 : -1, -1};
  if (shrink) {
    const int64_t begin = (*e.begin)[at], index = begin < 0 ? begin + dim : begin;
    if (index < 0 || index >= dim) {
      return invalid_argument("index %lld is outside a dimension of %lld", static_cast<long long>(begin), static_cast<long long>(dim));
    }
    return Range{index, 1, 1, -1};
  }
  const bool begin_open = has_bit(masks.begin, i), end_open = has_bit(masks.end, i);
  if (!e.strides || (!begin_open && !e.begin) || (!end_open && !e.end)) return Range{0, 1, -1, -1};
  return resolve_range(dim, begin_open ? 0 : (*e.begin)[at], end_open ? 0 : (*e.end)[at], (*e.strides)[at], begin_open, end_open);
}

uint64_t mask_of(const Node& node, std::string_view name) { return static_cast<uint64_t>(node.attr<int64_t>(name)); }

}  // namespace

Masks::Masks(const Node& node)
    : begin(mask_of(node, "begin_mask")),
      end(mask_of(node, "end_mask")),
      ellipsis(mask_of(node, "ellipsis_mask")),
      new_axis(mask_of(node, "new_axis_mask")),
      shrink(mask_of(node, "shrink_axis_mask")) {}

Result<StridedGeometry> resolve_strided(const PartialShape& in, const Entries& e, const Masks& masks) {
  StridedGeometry g;
  const int ellipses = __builtin_popcountll(masks.ellipsis & ((uint64_t{1} << e.count) - 1));
  if (ellipses > 1) return invalid_argument("only one ellipsis is allowed");
  int used = 0;  // dimensions that entries take
  for (int i = 0; i < e.count; ++i) used += !has_bit(masks.ellipsis, i) && !has_bit(masks.new_axis, i);
  if (used > in.rank()) return invalid_argument("%d entries index into shape %s", used, in.text().c_str());
  int dim = 0;
  const auto keep = [&](int count) -> Status {
    for (int k = 0; k < count; ++k, ++dim) {
      g.ranges[static_cast<size_t>(dim)] = {0, 1, in.dim(dim), g.out.rank()};
      DTG_TRY(g.out.append(in.dim(dim)));
    }
    return {};
  };
  for (int i = 0; i < e.count; ++i) {
    if (has_bit(masks.ellipsis, i)) {
      DTG_TRY(keep(in.rank() - used));
    } else if (has_bit(masks.new_axis, i)) {
      DTG_TRY(g.out.append(1));
    } else {
      DTG_ASSIGN(Range range, resolve_entry(e, masks, i, in.dim(dim)));
      if (!has_bit(masks.shrink, i)) {
        range.place = g.out.rank();
        DTG_TRY(g.out.append(range.count));
      }
      g.ranges[static_cast<size_t>(dim++)] = range;
    }
  }
  DTG_TRY(keep(in.rank() - dim));
  return g;
}

Result<int> entry_count(const InferContext& c, int first) {
  int64_t count = -1;
  for (int i = first; i < first + 3; ++i) {
    DTG_TRY(c.require_rank(i, 1));
    const int64_t own = c.input(i).has_rank() ? c.input(i).dim(0) : -1;
    if (own < 0) continue;
    if (count >= 0 && own != count)
      return c.error("begin, end and strides must have the same length, but have %lld and %lld", static_cast<long long>(count),
                     static_cast<long long>(own));
    count = own;
  }
  if (count > Integers::kMax)
    return c.error("%lld entries; at most %lld are supported", static_cast<long long>(count), static_cast<long long>(Integers::kMax));
  return static_cast<int>(count);
}

std::vector<Attr> mask_attrs(const GradContext& c) {
  std::vector<Attr> attrs;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    attrs.push_back({name, c.attr<int64_t>(name)});
  }
  return attrs;
}

Status StridedEntries::prepare_entries(PrepareContext& c) {
  masks = Masks(c.node());
  DTG_TRY(begin.prepare(c, 1));
  DTG_TRY(end.prepare(c, 2));
  DTG_TRY(strides.prepare(c, 3));
  return {};
}

Result<StridedGeometry> StridedEntries::geometry(RunContext& c, const PartialShape& in) const {
  Integers::Buffer begins, ends, steps;
  const Entries e{begin.count(), begin.get(c, begins), end.get(c, ends), strides.get(c, steps)};
  auto g = resolve_strided(in, e, masks);
  if (!g.ok()) return c.error("%s", g.status().message().c_str());
  return g;
}

bool broadcasts_to_part(const Shape& value, const StridedGeometry& g) {
  const int more = g.out.rank() - value.rank();
  if (more < 0) return false;
  for (int i = 0; i < value.rank(); ++i) {
    if (value.dim(i) != 1 && value.dim(i) != g.out.dim(more + i)) return false;
  }
  return true;
}

PartWalk walk_broadcast(const Shape& whole, const StridedGeometry& g, int64_t size, const Shape& value) {
  PartWalk result{cpu::Walk(size), 0};
  const int more = g.out.rank() - value.rank();
  for (int i = 0; i < whole.rank(); ++i) {
    if (g.ranges[static_cast<size_t>(i)].count == 0) return {};
  }
  for (int i = 0; i < whole.rank(); ++i) {
    const Range& range = g.ranges[static_cast<size_t>(i)];
    const int64_t stride = stride_of(whole, i, size);
    const int at = range.place - more;
    const bool stands = range.place < 0 || at < 0 || value.dim(at) == 1;
    result.offset += range.begin * stride;
    result.walk.add(range.count, stands ? 0 : stride_of(value, at, size), range.count == 1 ? 0 : range.step * stride);
  }
  result.walk.finish();
  return result;
}

PartWalk walk_part(const Shape& whole, const StridedGeometry& g, int64_t size, bool into_whole) {
  PartWalk result{cpu::Walk(size), 0};
  int64_t counts[kRankMax], step = size;
  int64_t steps[kRankMax];
  for (int i = whole.rank(); i-- > 0;) {
    counts[i] = g.ranges[static_cast<size_t>(i)].count;
    steps[i] = step;
    step *= counts[i];
  }
  for (int i = 0; i < whole.rank(); ++i) {
    if (counts[i] == 0) return {};  // nothing is taken, and offsets could point outside
  }
  for (int i = 0; i < whole.rank(); ++i) {
    const Range& range = g.ranges[static_cast<size_t>(i)];
    const int64_t stride = stride_of(whole, i, size);
    result.offset += range.begin * stride;
    // One index has no step, which may be any number.
    const int64_t stepped = counts[i] == 1 ? 0 : range.step * stride;
    result.walk.add(counts[i], into_whole ? steps[i] : stepped, into_whole ? stepped : steps[i]);
  }
  result.walk.finish();
  return result;
}

}  // namespace dtg::ops
