// What all simulated jobs have in common: where their tasks are, how they come to an end, and what is told of a seed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "process.h"

namespace dtg::sim {

struct Outcome {
  std::string wrong;  // empty: nothing
  int64_t done = 0, failed = 0;
  int faults = 0;
  uint64_t events = 0;
  uint64_t history = 0;
};

// "ps=...;worker=..." of processes that are named ps0, ps1, ... and worker0, worker1, ...; a job without servers has workers only.
std::string spec_of(int servers, int workers);

// Lets the world go on until all of them are gone, and says of each that is not after a minute that it is wrong; and of an error that did
// not tell a host what it should.
void run_out(World& world, const std::vector<std::unique_ptr<Process>>& processes, const std::function<void(const std::string&)>& wrong);

}  // namespace dtg::sim
