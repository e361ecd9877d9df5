// Dealt: a data set that several workers have in common, each of which hands out those elements that somebody deals to it. All have the
// same stages, seeds and sources, so that an element is known by the number of its epoch and its own in that; going there reads no data
// where elements are rows.
//
// One thread at a time, as the pipeline.
#pragma once

#include <functional>

#include "data/dataset.h"

namespace dtg {

struct DealtElement {
  int64_t epoch = -1;  // where there is no element: the one that is now
  int64_t index = -1;  // of the element in its epoch; -1: the epoch that was asked for is over
};
// Says which element comes next, of an epoch; of whichever is now where that is -1. May wait.
using Dealer = std::function<Result<DealtElement>(int64_t epoch)>;

class Dealt : public Dataset {
 public:
  // What was handed out last, or at the end of an epoch: no element, and the epoch that is now.
  virtual DealtElement last() const = 0;
};

// Takes the source over, which must know how many elements an epoch of it has. Where it stands is where epoch 0 begins. restart() is for
// the next epoch, where this one has begun; what the dealer says is over is at its end. `task`: whose session it asks through, for errors.
Result<std::unique_ptr<Dealt>> make_dealt(DatasetPtr source, Dealer dealer, std::string task = {});

}  // namespace dtg
