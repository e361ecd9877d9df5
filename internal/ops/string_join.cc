// Strings from strings, and pieces of strings: StringJoin, ReduceJoin, StringSplitV2, ShardedFilename and ShardedFilespec.
#include <algorithm>
#include <cstdio>

#include "base/watched.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

using Long = long long;

// ---- StringJoin --------------------------------------------------------------------------------------------

// Scalars go with each element of the others, which have one shape.
Status join_shape(InferContext& c) {
  PartialShape all = PartialShape::scalar();
  bool open = false, found = false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& in = c.input(i);
    open = open || !in.has_rank();
    if (!in.has_rank() || in.rank() == 0) continue;
    if (!found) all = in;
    auto merged = PartialShape::merge(all, in, "the inputs, where they are no scalars,");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
    all = merged.take();
    found = true;
  }
  c.output(0, open && !found ? PartialShape::unknown() : all);
  return {};
}

struct JoinArgs {
  int64_t count = 0;
  std::string separator;
  std::vector<bool> scalar;
};

Status join_run(RunContext& c) {
  const auto& a = c.args<JoinArgs>();
  const auto inputs = static_cast<int>(a.scalar.size());
  const auto piece = [&](int k, int64_t i) { return c.in<Text>(k)[a.scalar[static_cast<size_t>(k)] ? 0 : i].view(); };
  TextSpace space;
  for (const int64_t i : watched(a.count, 20)) {
    for (int k = 0; k < inputs; ++k) space.want(piece(k, i).size() + (k > 0 ? a.separator.size() : 0));
  }
  DTG_TRY(space.take(c));
  for (const int64_t i : watched(a.count, 20)) {
    const char* const from = space.here();
    for (int k = 0; k < inputs; ++k) {
      if (k > 0) space.put(a.separator);
      space.put(piece(k, i));
    }
    c.out<Text>(0)[i] = space.since(from);
  }
  return {};
}

Status join_prepare(PrepareContext& c) {
  auto* const a = c.args<JoinArgs>();
  a->count = c.output(0).shape.count();
  a->separator = c.attr<std::string>("separator");
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& in = c.input(i).shape;
    a->scalar.push_back(in.is_scalar());
    if (!in.is_scalar() && !(in == c.output(0).shape)) {
      return c.error("input %d has shape %s, others %s; all that are no scalars have one shape", i, in.text().c_str(),
                     c.output(0).shape.text().c_str());
    }
  }
  return c.sync(join_run);
}

// ---- ReduceJoin --------------------------------------------------------------------------------------------

// Which dimensions are joined, in the order that was asked for, the first one the fastest.
struct Joined {
  int axes[kRankMax] = {};
  int count = 0;
  bool has(int axis) const { return std::find(axes, axes + count, axis) != axes + count; }
};

Result<Joined> resolve_joined(std::span<const int64_t> asked, int rank) {
  Joined joined;
  for (int64_t one : asked) {
    DTG_ASSIGN(const int axis, resolve_axis(one, rank));
    if (joined.has(axis)) return invalid_argument("axis %d is asked for twice", axis);
    joined.axes[joined.count++] = axis;
  }
  return joined;
}

PartialShape joined_shape(const PartialShape& in, const Joined& joined, bool keep) {
  PartialShape out = PartialShape::of_rank(0);
  for (int d = 0; d < in.rank(); ++d) {
    if (!joined.has(d)) (void)out.append(in.dim(d));
    else if (keep) (void)out.append(1);
  }
  return out;
}

Status reduce_join_shape(InferContext& c) {
  if (c.input(1).has_rank() && c.input(1).rank() > 1)
    return c.error("reduction_indices must be a scalar or a vector, but have shape %s", c.input(1).text().c_str());
  const PartialShape& in = c.input(0);
  const KnownIntegers asked = known_integers(c, 1);
  if (!in.has_rank()) return {};
  if (!asked.known) {
    if (c.boolean("keep_dims")) c.output(0, PartialShape::of_rank(in.rank()));
    return {};
  }
  const auto joined = resolve_joined(asked.span(), in.rank());
  if (!joined.ok()) return c.error("%s", joined.status().message().c_str());
  c.output(0, joined_shape(in, joined.value(), c.boolean("keep_dims")));
  return {};
}

struct ReduceJoinArgs {
  Shape in;
  std::string separator;
  bool keep = false;
  Integers asked;
  OutputSpec out;
};

// Calls fn with the place of each element that is joined to output number `at`.
template <class Fn>
void walk_joined(const Shape& in, const Joined& joined, int64_t at, Fn&& fn) {
  int64_t base = 0, pieces = 1;
  for (int d = in.rank(); d-- > 0;) {
    if (joined.has(d)) continue;
    base += at % in.dim(d) * in.count(d + 1, in.rank());
    at /= in.dim(d);
  }
  for (int k = 0; k < joined.count; ++k) pieces *= in.dim(joined.axes[k]);
  for (int64_t piece = 0; piece < pieces; ++piece) {
    int64_t place = base, rest = piece;
    for (int k = 0; k < joined.count; ++k) {
      const int axis = joined.axes[k];
      place += rest % in.dim(axis) * in.count(axis + 1, in.rank());
      rest /= in.dim(axis);
    }
    fn(piece, place);
  }
}

Status reduce_join_run(RunContext& c) {
  const auto& a = c.args<ReduceJoinArgs>();
  Integers::Buffer buffer;
  const auto resolved = resolve_joined(a.asked.get(c, buffer), a.in.rank());
  if (!resolved.ok()) return c.error("%s", resolved.status().message().c_str());
  const Joined& joined = resolved.value();
  DTG_ASSIGN(const Shape shape, joined_shape(a.in, joined, a.keep).to_shape());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape));
  auto* const out = reinterpret_cast<Text*>(memory);
  TextSpace space;
  for (int64_t i = 0; i < shape.count(); ++i) {
    walk_joined(a.in, joined, i,
                [&](int64_t piece, int64_t at) { space.want(c.in<Text>(0)[at].bytes + (piece > 0 ? a.separator.size() : 0)); });
  }
  DTG_TRY(space.take(c));
  for (int64_t i = 0; i < shape.count(); ++i) {
    const char* const from = space.here();
    walk_joined(a.in, joined, i, [&](int64_t piece, int64_t at) {
      if (piece > 0) space.put(a.separator);
      space.put(c.in<Text>(0)[at].view());
    });
    out[i] = space.since(from);
  }
  return {};
}

Status reduce_join_prepare(PrepareContext& c) {
  auto* const a = c.args<ReduceJoinArgs>();
  a->in = c.input(0).shape;
  a->separator = c.attr<std::string>("separator");
  a->keep = c.boolean("keep_dims");
  DTG_TRY(a->asked.prepare(c, 1));
  a->out.prepare(c, 0);
  return c.sync(reduce_join_run);
}

// ---- StringSplitV2 -----------------------------------------------------------------------------------------

Status split_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  DTG_TRY(c.require_rank(1, 0));
  PartialShape indices = PartialShape::of_rank(2);
  indices.set_dim(1, 2);
  c.output(0, indices);
  c.output(1, PartialShape::vector(-1));
  c.output(2, PartialShape::vector(2));
  return {};
}

struct SplitArgs {
  int64_t count = 0, most = -1;
  OutputSpec indices, values;
};

// Calls fn with each piece. Without a separator runs of white space part the pieces, and none is empty but the rest behind the last
// cut that is allowed.
template <class Fn>
void for_pieces(std::string_view text, std::string_view separator, int64_t most, Fn&& fn) {
  if (most == 0) return fn(text);
  int64_t cuts = 0;
  const auto skip_space = [&] {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  };
  if (separator.empty()) {
    for (skip_space(); !text.empty();) {
      const auto end = static_cast<size_t>(std::ranges::find_if(text, is_space) - text.begin());
      fn(text.substr(0, end));
      text.remove_prefix(end);
      skip_space();
      if (++cuts == most) return fn(text);
    }
    return;
  }
  for (size_t at = text.find(separator); at != text.npos; at = text.find(separator)) {
    fn(text.substr(0, at));
    text.remove_prefix(at + separator.size());
    if (++cuts == most) break;
  }
  fn(text);
}

Status split_run(RunContext& c) {
  const auto& a = c.args<SplitArgs>();
  const std::string_view separator = c.in<Text>(1)->view();
  int64_t total = 0, widest = 0;
  for (const int64_t i : watched(a.count, 20)) {
    int64_t pieces = 0;
    for_pieces(c.in<Text>(0)[i].view(), separator, a.most, [&](std::string_view) { ++pieces; });
    total += pieces;
    widest = std::max(widest, pieces);
  }
  DTG_ASSIGN(char* places, a.indices.memory(c, Shape::of({total, 2})));
  DTG_ASSIGN(char* cells, a.values.memory(c, Shape::of({total})));
  auto* place = reinterpret_cast<int64_t*>(places);
  auto* value = reinterpret_cast<Text*>(cells);
  for (const int64_t i : watched(a.count, 20)) {
    int64_t column = 0;
    for_pieces(c.in<Text>(0)[i].view(), separator, a.most, [&](std::string_view piece) {
      *place++ = i;
      *place++ = column++;
      *value++ = piece;
    });
  }
  c.out<int64_t>(2)[0] = a.count;
  c.out<int64_t>(2)[1] = widest;
  return {};
}

Status split_prepare(PrepareContext& c) {
  auto* const a = c.args<SplitArgs>();
  a->count = c.input(0).shape.count();
  a->most = c.integer("maxsplit");
  a->indices.prepare(c, 0);
  a->values.prepare(c, 1);
  return c.sync(split_run);
}

// ---- ShardedFilename, ShardedFilespec ----------------------------------------------------------------------

Status sharded_shape(InferContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) DTG_TRY(c.require_rank(i, 0));
  c.output(0, PartialShape::scalar());
  return {};
}

Status sharded_run(RunContext& c) {
  const std::string_view base = c.in<Text>(0)->view();
  char tail[48];
  const bool spec = c.node().inputs.size() == 2;
  if (spec)
    snprintf(tail, sizeof tail,
             "-????"
             "?-of-%05d",
             *c.in<int32_t>(1));
  else snprintf(tail, sizeof tail, "-%05d-of-%05d", *c.in<int32_t>(1), *c.in<int32_t>(2));
  const std::string_view rest = tail;
  TextSpace space;
  space.want(base.size() + rest.size());
  DTG_TRY(space.take(c));
  const char* const from = space.here();
  space.put(base);
  space.put(rest);
  *c.out<Text>(0) = space.since(from);
  return {};
}

Status sharded_prepare(PrepareContext& c) { return c.sync(sharded_run); }

}  // namespace

void register_string_join(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("StringJoin")
              .input("inputs: N * string")
              .output("output: string")
              .attr("N: int >= 0")
              .attr("separator: string = ''")
              .shape(join_shape)
              .no_gradient()
              .doc("The strings of all inputs at one place, one after the other; scalars go with each place."));
  kernels.add({.op = "StringJoin", .prepare = join_prepare});
  ops.add(OpDef::make("ReduceJoin")
              .input("inputs: string")
              .input("reduction_indices: int32")
              .output("output: string")
              .attr("keep_dims: bool = false")
              .attr("separator: string = ''")
              .shape(reduce_join_shape)
              .no_gradient()
              .doc("The strings along the given dimensions joined, the first of these the fastest; without any, the input."));
  kernels.add({.op = "ReduceJoin", .prepare = reduce_join_prepare});
  ops.add(OpDef::make("StringSplitV2")
              .input("input: string", {.rank = 1})
              .input("sep: string", {.rank = 0})
              .output("indices: int64")
              .output("values: string")
              .output("shape: int64")
              .attr("maxsplit: int = -1")
              .shape(split_shape)
              .no_gradient()
              .doc("The pieces of each string between separators, or between runs of white space where sep is empty, as a sparse "
                   "tensor with a row for each string; at most maxsplit cuts each."));
  kernels.add({.op = "StringSplitV2", .prepare = split_prepare});
  ops.add(OpDef::make("ShardedFilename")
              .input("basename: string", {.rank = 0})
              .input("shard: int32", {.rank = 0})
              .input("num_shards: int32", {.rank = 0})
              .output("filename: string")
              .shape(sharded_shape)
              .no_gradient()
              .doc("basename-00003-of-00010: the name of one shard."));
  ops.add(OpDef::make("ShardedFilespec")
              .input("basename: string", {.rank = 0})
              .input("num_shards: int32", {.rank = 0})
              .output("filename: string")
              .shape(sharded_shape)
              .no_gradient()
              .doc("basename, a question mark for each digit, and of-00010: what the names of all shards match."));
  for (const char* op : {"ShardedFilename", "ShardedFilespec"}) kernels.add({.op = op, .prepare = sharded_prepare});
}

}  // namespace dtg::ops
