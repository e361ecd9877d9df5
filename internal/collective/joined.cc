// Inputs are put one behind the other by rank; reductions keep them apart, as the order of additions is over all devices.
#include "collective/joined.h"

#include <algorithm>
#include <cstring>

namespace dtg {
namespace {

using Parts = std::span<JoinedPart* const>;

Status do_not_fit(const JoinedPart& a, const JoinedPart& b) {
  return invalid_argument("devices of one task call different things together: %s called %s, %s called %s", a.who.c_str(),
                          a.call.terms.text().c_str(), b.who.c_str(), b.call.terms.text().c_str());
}

char* bytes_at(const Tensor& tensor, int64_t at) { return static_cast<char*>(tensor.data()) + at; }

void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

Result<Shape> with_rows(const Shape& shape, int64_t rows) {
  PartialShape changed(shape);
  changed.set_dim(0, rows);
  return changed.to_shape();
}

Status gather(Parts parts, CollectiveCall* joined) {
  int64_t rows = 0;
  for (const JoinedPart* part : parts) {
    const Shape& shape = part->call.in.shape();
    if (shape.rank() == 0) return invalid_argument("%s of %s: a scalar has no rows", part->call.terms.text().c_str(), part->who.c_str());
    if (__builtin_add_overflow(rows, shape.dim(0), &rows))
      return invalid_argument("%s of %s: the devices bring more rows together than a tensor can have", part->call.terms.text().c_str(),
                              part->who.c_str());
  }
  DTG_ASSIGN(joined->terms.shape, with_rows(joined->terms.shape, rows));
  DTG_ASSIGN(joined->in, Tensor::allocate(joined->terms.dtype, joined->terms.shape));
  int64_t at = 0;
  for (const JoinedPart* part : parts) {
    copy(bytes_at(joined->in, at), part->call.in.data(), part->call.in.bytes());
    at += part->call.in.bytes();
  }
  return {};
}

// Every device has a share for every device. What goes to one task stands together there: by its devices, and of each by ours.
Status exchange(Parts parts, int members, CollectiveCall* joined) {
  const auto here = static_cast<int64_t>(parts.size()), ranks = here * members;
  const Shape& shape = parts[0]->call.in.shape();
  for (const JoinedPart* part : parts) {
    if (!(part->call.in.shape() == shape) || shape.rank() == 0 || shape.dim(0) % ranks != 0)
      return invalid_argument("%s of %s: all members need the same number of rows, a multiple of %lld", part->call.terms.text().c_str(),
                              part->who.c_str(), static_cast<long long>(ranks));
  }
  DTG_ASSIGN(joined->terms.shape, with_rows(shape, shape.dim(0) * here));
  DTG_ASSIGN(joined->in, Tensor::allocate(joined->terms.dtype, joined->terms.shape));
  const int64_t share = parts[0]->call.in.bytes() / ranks;
  int64_t at = 0;
  for (int64_t to = 0; to < ranks; ++to) {
    for (const JoinedPart* part : parts) {
      copy(bytes_at(joined->in, at), bytes_at(part->call.in, to * share), share);
      at += share;
    }
  }
  return {};
}

Status broadcast(Parts parts, CollectiveCall* joined) {
  const JoinedPart* sender = nullptr;
  for (const JoinedPart* part : parts) {
    if (part->call.terms.open) continue;
    if (sender) return invalid_argument("a broadcast has two senders: %s and %s", sender->who.c_str(), part->who.c_str());
    sender = part;
  }
  if (sender) joined->terms = sender->call.terms;
  if (sender) joined->in = sender->call.in;
  return {};
}

Status put(JoinedPart& part, DType dtype, const Shape& shape, const void* from) {
  Tensor& out = part.call.out;
  if (!out.valid()) {
    DTG_ASSIGN(out, Tensor::allocate(dtype, shape));
  } else if (out.dtype() != dtype || out.count() != shape.count()) {
    return invalid_argument("%s: the result for %s is %s%s, and %s is what it was planned for", part.call.terms.text().c_str(),
                            part.who.c_str(), dtype_name(dtype), shape.text().c_str(), out.text().c_str());
  }
  if (out.data() != from) copy(out.data(), from, out.bytes());
  return {};
}

}  // namespace

Result<CollectiveCall> join_calls(Parts parts, int members) {
  CollectiveCall joined;
  joined.terms = parts[0]->call.terms;
  joined.in = parts[0]->call.in;
  for (const JoinedPart* part : parts) {
    if (!part->call.terms.agrees(parts[0]->call.terms)) return do_not_fit(*parts[0], *part);
  }
  if (parts.size() == 1) {
    joined.out = parts[0]->call.out;
    // A broadcast's elements travel as one row of them.
    if (joined.out.valid() && joined.terms.kind == Collective::broadcast) joined.out = joined.out.reshaped(Shape::of({joined.out.count()}));
    return joined;
  }
  switch (joined.terms.kind) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      joined.terms.parts = static_cast<uint32_t>(parts.size());
      for (size_t i = 1; i < parts.size(); ++i) joined.more.push_back(parts[i]->call.in);
      // The first device's result is where the others copy theirs from.
      if (joined.terms.kind == Collective::all_reduce) joined.out = parts[0]->call.out;
      break;
    case Collective::all_gather: DTG_TRY(gather(parts, &joined)); break;
    case Collective::all_to_all: DTG_TRY(exchange(parts, members, &joined)); break;
    case Collective::broadcast: DTG_TRY(broadcast(parts, &joined)); break;
    case Collective::barrier: break;
  }
  return joined;
}

Status hand_out(Parts parts, int members, const Tensor& result) {
  const Collective kind = parts[0]->call.terms.kind;
  if (kind == Collective::barrier) return {};
  if (!result.valid()) return internal_error("a collective ended without its result");
  const auto here = static_cast<int64_t>(parts.size());
  if (here == 1 && !parts[0]->call.out.valid()) {
    parts[0]->call.out = result;
    return {};
  }
  if (kind == Collective::reduce_scatter && here > 1) {
    DTG_ASSIGN(const Shape share, with_rows(result.shape(), result.shape().dim(0) / here));
    int64_t at = 0;
    for (JoinedPart* part : parts) {
      DTG_TRY(put(*part, result.dtype(), share, bytes_at(result, at)));
      at += result.bytes() / here;
    }
    return {};
  }
  if (kind == Collective::all_to_all && here > 1) {
    // Task by task there are, for each of our devices, the shares of each of theirs.
    const int64_t share = result.bytes() / (here * here * members);
    for (int64_t to = 0; to < here; ++to) {
      DTG_ASSIGN(const Shape mine, with_rows(result.shape(), result.shape().dim(0) / here));
      DTG_ASSIGN(Tensor rows, Tensor::allocate(result.dtype(), mine));
      for (int64_t from = 0; from < members; ++from)
        copy(bytes_at(rows, from * here * share), bytes_at(result, (from * here + to) * here * share), here * share);
      DTG_TRY(put(*parts[static_cast<size_t>(to)], result.dtype(), mine, rows.data()));
    }
    return {};
  }
  for (JoinedPart* part : parts) DTG_TRY(put(*part, result.dtype(), result.shape(), result.data()));
  return {};
}

}  // namespace dtg
