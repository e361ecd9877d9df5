// Staging: an update of variables on several tasks that takes effect on all of them or on none, whoever dies in between.
//
// Each task first keeps what its part of the update is made from (gradients, the rate, Adam's powers) in variables of its own, with
// the step it belongs to. When all have, each applies its part and counts it in a note, which is one commit. Whoever takes over later
// compares the notes: a task that is a step behind the others has all it needs to follow them, as nobody applies before all have
// kept; and while nobody has applied, what was kept is of no account.
// A model whose variables stand on one task needs none of this: its update is one commit anyway.
//
// Used while one thread builds the model.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/optimizer.h"

namespace dtg {

// One part of an update, for whoever compares and follows up.
struct UpdateUnit {
  std::string what;         // for messages
  Value has_note;           // bool: the note has a value
  Value applied;            // int64, the note: the step that its variables are at
  Value kept;               // int64: the step whose update it can apply; invalid: any
  NodeId follow = kNoNode;  // target: applies it and counts it
};

class Staging final : public ApplyStages {
 public:
  Staging(Model& model, const NamedVariable& step) : graph_(model.graph()), build_(model.graph()), step_(step) {}

  // Whether the variables and the count of steps stand on several tasks.
  static bool is_needed(const Model& model, std::span<const VariableGradient> gradients, const NamedVariable& step);

  Status keep(NodeId beside, Value value) override;
  Status all_kept() override;
  Result<Value> kept(NodeId beside, Value value) override;
  Status applied(std::span<const NodeId> besides, std::span<const NodeId> writes) override;
  Status went_on(NodeId beside, std::span<const NodeId> writes, std::string_view what) override;
  void follow_up() override { following_ = true; }

  // The notes' counting, which the update consists of too.
  const std::vector<NodeId>& counted() const { return counted_; }
  // All parts, the count of steps last, and the target that lets their notes begin at the step that is counted now.
  Result<std::vector<UpdateUnit>> finish(NodeId* begin);

 private:
  struct Kept {
    Value handle, now, later;  // as the update reads it, and whoever follows up
  };
  struct Note {
    NodeId beside = kNoNode;
    Value handle;
    Value kept;  // handle: the step of what is kept
    std::vector<NodeId> begin;
    NodeId follow = kNoNode;
  };

  Value variable(NodeId beside, std::string_view name, DType dtype, const PartialShape& shape);
  NodeId assign(NodeId beside, Value handle, Value value);
  Value read(NodeId beside, Value handle, DType dtype, std::span<const NodeId> after = {});
  Note& note(const std::string& what, NodeId beside);
  Status wrote(const std::string& what, NodeId beside, std::span<const NodeId> writes);

  Graph& graph_;
  Build build_;
  const NamedVariable step_;
  std::map<std::pair<std::string, uint64_t>, Kept> kept_;  // by task and value
  std::map<std::string, Note> notes_;                      // by task, or by what else it is
  std::vector<NodeId> keeping_, counted_;
  NodeId barrier_ = kNoNode;
  bool following_ = false;
};

}  // namespace dtg
