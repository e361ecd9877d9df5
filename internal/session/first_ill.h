// What made a loss no finite number: the values that it is computed from, in the order of the graph, and how one that is not finite is
// named. Whoever runs them once more, and waits (Session::with_first_ill) or does not (AsyncRun), finds the first of them by an IllSearch.
// Nothing with an effect is among them: neither what writes, nor what takes from a queue, nor what draws from a state, nor what depends on
// those. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace dtg {

// The value that was judged where `failed`, a node that judges, has said that a loss is not finite; invalid where none is known. A token
// only tells of it: then it is what is judged on behalf of the targets.
Value judged_value(const Graph& graph, NodeId failed, std::span<const NodeId> targets);
// Floating-point values, by the order in which they are computed. What is fed is not looked through.
std::vector<Value> suspects(const Graph& graph, Value loss, std::span<const Value> feeds);
// "nan at element 3 of [2,4]"; empty where all are finite.
std::string not_finite(const Tensor& tensor);
// ""dense/MatMul" (MatMul, made at train.c:31)".
std::string described_node(const Graph& graph, Value value);

// The way to the first of them: what is wanted is run with the feeds of the run that failed, its values are taken, and so on until nothing
// is wanted. One thread at a time.
class IllSearch {
 public:
  // How long it may take, beside what is left of the run's own time.
  static constexpr int64_t kTimeNs = int64_t{30} * 1'000'000'000;
  // For a run that has failed so; none where it was not for a loss. Feeds and tensors outlive the search.
  static std::optional<IllSearch> of(const Graph& graph, const Status& failure, std::span<const Value> feeds,
                                     std::span<const Tensor* const> tensors, std::span<const NodeId> targets);

  // To be fetched together; empty: it is over.
  std::span<const Value> wanted() const;
  void take(std::span<const Tensor> values);
  void give_up() { is_over_ = true; }
  // The failure, and what was found.
  Status answer() const;

 private:
  IllSearch(const Graph& graph, const Status& failure, Value loss, std::span<const Value> feeds, std::span<const Tensor* const> tensors);
  void look_at_feeds();
  bool is_batch_empty() const;
  void found(std::string what);

  const Graph* graph_;
  Status failure_;
  Value loss_;
  std::span<const Value> feeds_;
  std::span<const Tensor* const> tensors_;
  std::vector<Value> suspects_;
  size_t next_ = 0;            // of the suspects
  bool is_confirmed_ = false;  // that the loss is ill when it is computed once more
  bool is_over_ = false;
  std::string found_;
  bool is_empty_ = false;  // what was fed has no rows
};

}  // namespace dtg
