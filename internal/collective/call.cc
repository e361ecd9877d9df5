// When two calls are the same, and how they read.
#include "collective/call.h"

#include <iterator>

namespace dtg {

const char* collective_name(Collective kind) {
  switch (kind) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::all_gather: return "all_gather";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::broadcast: return "broadcast";
    case Collective::all_to_all: return "all_to_all";
    case Collective::barrier: return "barrier";
  }
  return "unknown";
}

namespace {

constexpr const char* kAlgorithms[] = {"auto", "direct", "shared", "ring", "any", "halving", "doubling", "tree", "hierarchy"};
static_assert(std::size(kAlgorithms) == kAlgorithmMax + 1);

}  // namespace

const char* algorithm_name(Algorithm algorithm) { return kAlgorithms[static_cast<size_t>(algorithm)]; }

std::optional<Algorithm> algorithm_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kAlgorithms); ++i) {
    if (name == kAlgorithms[i]) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

namespace {

bool same_rows(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int d = 1; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) return false;
  }
  return true;
}

bool is_reduction(Collective kind) { return kind == Collective::all_reduce || kind == Collective::reduce_scatter; }

}  // namespace

bool CallTerms::agrees(const CallTerms& other) const {
  if (kind != other.kind || (purpose && other.purpose && *purpose != *other.purpose)) return false;
  if (kind == Collective::barrier) return true;
  if (kind == Collective::broadcast) {
    const bool known = !open && !other.open;
    if (root == kAnyRoot && dtype != other.dtype) return false;
    return root == other.root && (open || other.open || dtype == other.dtype) && (!known || shape == other.shape);
  }
  if (dtype != other.dtype) return false;
  if (is_reduction(kind))
    return reduction == other.reduction && bucket == other.bucket && parts == other.parts && algorithm == other.algorithm &&
           shape == other.shape;
  return same_rows(shape, other.shape);  // ranks may bring different numbers of rows
}

std::string CallTerms::text() const {
  std::string text = std::string(collective_name(kind)) + "(";
  const std::string end = purpose ? ", for the " + *purpose + ")" : ")";
  if (kind == Collective::barrier) return text + ")";
  if (open) text += root == kAnyRoot ? std::string(dtype_name(dtype)) + ", receives" : "any tensor";
  else text += dtype_name(dtype) + shape.text();
  if (is_reduction(kind)) text += std::string(", ") + reduction_name(reduction);
  if (is_reduction(kind) && bucket != 0) text += ", bucket " + std::to_string(bucket);
  if (is_reduction(kind) && algorithm != Algorithm::automatic) text += std::string(", algorithm ") + algorithm_name(algorithm);
  if (is_reduction(kind) && parts != 1) text += ", from " + std::to_string(parts) + " devices of each member";
  if (kind == Collective::broadcast && root != kAnyRoot) text += ", root " + std::to_string(root);
  return text + end;
}

}  // namespace dtg
