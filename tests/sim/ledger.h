// Ledger: what the workers of a simulated cluster have asked for and been told, against what the variables hold in the end. Each step
// of each worker owns one cell on every parameter server and adds 1 to it: what was lost or done twice shows one by one.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace dtg::sim {

class Ledger final {
 public:
  static constexpr int kSteps = 1024;  // of one worker

  Ledger(int servers, int workers)
      : lives_(static_cast<size_t>(servers)), rows_(static_cast<size_t>(workers * kSteps)), workers_(workers) {}

  int cells() const { return workers_ * kSteps; }
  static int cell(int worker, int step) { return worker * kSteps + step; }
  // A parameter server has begun anew: what its cells held is gone.
  void begin_life(size_t server) { ++lives_[server]; }
  int life(size_t server) const { return lives_[server]; }
  void began(int cell) { row(cell) = {Row::State::begun, lives_}; }
  void ended(int cell, const Status& status) {
    row(cell).state = status.ok() ? Row::State::done : Row::State::unknown;
    ++(status.ok() ? done_ : failed_);
    if (status.ok()) row(cell).ended_in = lives_;
  }
  void count_done() { ++done_; }
  int64_t done() const { return done_; }
  int64_t failed() const { return failed_; }

  // What is wrong with the cells that a server holds; empty: nothing.
  std::string judge(size_t server, const Tensor& cells) const;

 private:
  struct Row {
    enum class State : uint8_t { none, begun, done, unknown };
    State state = State::none;
    std::vector<int> begun_in;  // lives of the servers
    std::vector<int> ended_in;
  };
  Row& row(int cell) { return rows_[static_cast<size_t>(cell)]; }

  std::vector<int> lives_;
  std::vector<Row> rows_;
  const int workers_;
  int64_t done_ = 0, failed_ = 0;
};

}  // namespace dtg::sim
