// Reducing: what all reductions over ranks do, however they travel: the contributions of a range are brought together as they come.
// The schedules that add in the one order of a bucket are in reducing.cc, those for which any order will do in any_order.cc.
//
// Owner: the maker's, as an Exchange. Belongs to the loop's thread.
#pragma once

#include <algorithm>
#include <vector>

#include "collective/exchange.h"

namespace dtg {

class Reducing : public Exchange {
 public:
  Reducing(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget, const Combine& combine)
      : Exchange(std::move(call), rank, size, carrier, budget), combine_(combine) {}

 protected:
  int parts() const { return static_cast<int>(call_.terms.parts); }
  int contributions() const { return size_ * parts(); }
  // Of all contributions: those of a rank stand one behind the other.
  int first() const { return first_in_order(call_.terms.bucket, contributions()); }
  const char* part(int p) const { return static_cast<const char*>(p == 0 ? input() : call_.more[static_cast<size_t>(p) - 1].data()); }
  uint64_t bytes_of(int64_t elements) const { return static_cast<uint64_t>(elements * combine_.element_bytes()); }
  int64_t elements_of(uint64_t bytes) const { return static_cast<int64_t>(bytes) / combine_.element_bytes(); }

  // One of the inputs of a gather-and-add over `ins` (by contribution; null for the own ones), from `added` to as far as all have come.
  struct Adding {
    std::vector<In*> ins;           // by contribution
    std::vector<const char*> owns;  // by part
    char* out = nullptr;
    uint64_t total = 0, added = 0;
    uint64_t free_upto = UINT64_MAX;  // of `out`, which may still be on its way to others
  };
  void add_up(Adding& adding) {
    uint64_t upto = std::min(adding.total, adding.free_upto);
    for (const In* in : adding.ins) upto = in ? std::min(upto, in->arrived) : upto;
    upto -= upto % static_cast<uint64_t>(combine_.element_bytes());
    const auto own_from = static_cast<size_t>(rank_ * parts());
    std::vector<const void*> from_all(static_cast<size_t>(contributions()));
    while (adding.added < upto) {
      // Within a piece, so within a window.
      const uint64_t from = adding.added, to = std::min(upto, (from / kPieceBytes + 1) * kPieceBytes);
      for (int i = 0; i < contributions(); ++i) {
        const auto which = static_cast<size_t>((first() + i) % contributions());
        from_all[static_cast<size_t>(i)] = adding.ins[which] ? adding.ins[which]->at(from) : adding.owns[which - own_from] + from;
      }
      combine_.fold(from_all, adding.out + from, elements_of(to - from));
      combine_.finish(adding.out + from, elements_of(to - from));
      adding.added = to;
    }
    for (In* in : adding.ins) {
      if (in && in->consumed < adding.added) consume(*in, adding.added);
    }
  }

  const Combine combine_;
};

// Any order of additions will do: all ranks get the same bits, but not those of a fold in the order of the ranks. For algorithms that
// say so by their name. Nothing: by the table an algorithm with the one order is the better one here.
Result<Ref<Exchange>> make_any_order(CollectiveCall call, int rank, int size, Exchange::Carrier& carrier, MemoryBudget& budget,
                                     const Combine& combine);

}  // namespace dtg
