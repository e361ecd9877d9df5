// CollectiveCall: what one member asks of its group in one collective: the operation, and the tensors. A value; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collective/combine.h"
#include "tensor/tensor.h"

namespace dtg {

// The numbers are part of the C ABI and of the wire.
enum class Collective : uint8_t { all_reduce = 0, all_gather = 1, reduce_scatter = 2, broadcast = 3, all_to_all = 4, barrier = 5 };
inline constexpr uint8_t kCollectiveMax = 5;
const char* collective_name(Collective kind);

// How an all-reduce moves its bytes. Up to the ring the bits are those of the one order of additions, whatever is taken; behind it, all
// ranks have the same bits, but additions are in the order that the algorithm brings: whoever names one of those takes any order.
enum class Algorithm : uint8_t {
  automatic = 0,  // by the table
  direct = 1,     // everybody sends everything to everybody: one way long
  shared = 2,     // every rank adds its share of the elements and sends the sums: the fewest bytes
  ring = 3,       // sums go up the ring and results back down: only neighbours talk
  any = 4,        // by the table for any order
  halving = 5,    // halves of halves are added by pairs of ranks, then doubled again: few rounds and few bytes
  doubling = 6,   // whole tensors are added by pairs of ranks: the fewest rounds
  tree = 7,       // sums go up a binary tree and results down again
  hierarchy = 8,  // inside each host to one rank, then between those by a tree, and back
};
inline constexpr uint8_t kAlgorithmMax = 8;
inline bool takes_any_order(Algorithm algorithm) { return algorithm > Algorithm::ring; }
// By their names, as communication_hint has them; nothing: there is none of that name.
std::optional<Algorithm> algorithm_of(std::string_view name);
const char* algorithm_name(Algorithm algorithm);

// What all members have to agree on; it travels ahead of a call's first bytes.
struct CallTerms {
  Collective kind = Collective::barrier;
  Reduction reduction = Reduction::sum;
  Algorithm algorithm = Algorithm::automatic;
  DType dtype = DType::invalid;
  uint32_t root = 0;  // kAnyRoot: whoever says so by bringing a tensor, which one does
  uint32_t bucket = 0;
  uint32_t parts = 1;  // of a reduction: tensors that each rank contributes, one after the other in the order of additions
  Shape shape;         // of the input; of a broadcast's receiver: nothing
  bool open = false;   // a broadcast's receiver, who takes whatever shape comes
  int64_t rows = 0;    // that one stream brings; no part of what the call means
  // What a strategy calls for, in words: tensors of one shape can mean a sum here and a mean there. Nothing: the caller's affair.
  std::shared_ptr<const std::string> purpose;
  static constexpr uint32_t kAnyRoot = UINT32_MAX;
  static constexpr uint32_t kPartsMax = 128;
  static constexpr size_t kPurposeMax = 256;

  // Do both mean the same call? What may differ between ranks is left out.
  bool agrees(const CallTerms& other) const;
  std::string text() const;  // "all_reduce(float32[8], sum)"
};

struct CollectiveCall {
  CallTerms terms;
  std::vector<int64_t> splits;  // all-to-all: rows for each rank; empty: as many for each
  Tensor in;                    // nothing: a barrier, or a broadcast's receiver
  std::vector<Tensor> more;     // of a reduction: the other parts
  Tensor out;                   // where the result goes; nothing: into memory of its own
  std::vector<int> hosts;       // by rank: on which host it is, counted from 0; nothing: all are on one
};

}  // namespace dtg
