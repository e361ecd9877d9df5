// Mesh: one model over a grid of devices with three named axes, any of which may be 1.
//
//   data   Each rank computes a share of the batch on copies of the variables of its own; gradients meet (zero.h: and may be applied by
//   one). model  Layers are cut: each rank has a part of the weights and computes with it (tensor_parallel.h). pipe   The model is a row of
//   stages, one behind the other on ranks of their own; a share is cut into micro-batches, which follow each
//          other through the stages (pipeline.h).
//
// All of it is nodes of one graph, which any session with the devices runs, in one process or driving tasks. The host builds a stage for a
// micro-batch of a data rank at a time, in the order that next() says, and hands over what comes out of it; the ways back are built in
// between, as soon as their micro-batch has come through, by the reverse mode over that stage alone. Values that go from stage to stage, or
// from the first device of a group to the others and back, are edges between devices.
//
// The same layers give the same first values and the same checkpoints whatever the mesh: weights that are cut are parts of a whole
// (NamedVariable::part), and each micro-batch builds over the variables of the first.
//
// Owner: the handle, by count. One thread builds.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/optimizer.h"
#include "strategy/pipeline.h"

namespace dtg {

class Mesh final : public RefCounted, private VariablePolicy {
 public:
  // How states of optimizers stand on the ranks of the data axis.
  enum class Zero : int32_t {
    none,       // each rank has all of them and applies every gradient
    states,     // each variable's are on one rank, which applies its gradient and gives the others what it became (ZeRO-1)
    gradients,  // and its gradient is added up there (ZeRO-2)
  };
  struct Options {
    int64_t data = 1, model = 1, pipe = 1;
    std::vector<std::string> devices;  // of (d, m, p): number (d * model + m) * pipe + p
    Zero zero = Zero::none;
  };
  static Result<Ref<Mesh>> create(Ref<Model> model, Options options);
  ~Mesh() override;

  const Options& options() const { return options_; }
  Model& model() const { return *model_; }
  const std::string& device(int64_t data, int64_t model, int64_t pipe) const;

  // --- building ---
  struct Step {
    int64_t stage = 0, data = 0, micro = 0;
    std::vector<Value> batch;   // this micro-batch's part of each value of the batch
    std::vector<Value> inputs;  // what the stage before gave for it
  };
  // The first dimension of each is cut into data x micro_batches equal parts.
  Status begin(std::span<const Value> batch, int64_t micro_batches, bool forward_only);
  // False: all is built. Otherwise the device scope of the step is open, until give().
  Result<bool> next(Step* step);
  // The stage's results for the step; of the last stage the first is its loss, unless only forward is built.
  Status give(std::span<const Value> outputs);
  // The model is as it was before begin().
  void abandon();

  // Of a build that is over: the mean of a scalar that the last stage gave over all micro-batches, or its rows one behind the other.
  Result<Value> result(size_t k);
  // One step over the mean of the losses.
  Result<Training> minimize(const Optimizer& optimizer);

  // --- for layers that are cut ---
  // While it lives, variables and nodes are those of that rank of the model axis.
  class OnRank {
   public:
    OnRank(Mesh& mesh, int64_t rank);
    ~OnRank();
    OnRank(const OnRank&) = delete;
    OnRank& operator=(const OnRank&) = delete;

   private:
    Mesh& mesh_;
    const int64_t before_;
  };
  Status in_step(const char* what) const;

 private:
  // What one stage made of one micro-batch on one data rank.
  struct Made {
    std::vector<Value> batch, inputs;  // as the stage saw them
    std::vector<Value> outputs;
    std::vector<Value> back;  // gradients of `inputs`; invalid where there is none
    NodeId over = kNoNode;    // comes behind the way back
  };
  // The gradients of one variable on one data rank so far.
  struct Sum {
    Value dense;
    std::vector<Gradient> rows;
  };
  struct Course {
    Model::Mark before;
    int64_t micro = 0;
    bool forward_only = false;
    std::vector<PipelineMove> moves;
    size_t move = 0;
    int64_t data = 0;
    bool open = false;
    bool placed = false;  // the device scope of the open step is open
    bool again = false;   // the open step is over variables that are there, under a name scope
    size_t first_tower = 0;
    size_t variables = 0;                       // when the step began
    std::vector<std::vector<Value>> parts;      // by value of the batch, then by data rank and micro-batch
    std::vector<Made> made;                     // by place_of()
    std::vector<std::vector<Sum>> sums;         // by variable, then by data rank
    std::vector<std::vector<size_t>> of_stage;  // before
  };

  Mesh(Ref<Model> model, Options options);
  Graph& graph() const { return model_->graph(); }
  uint32_t tag() const override { return tag_; }
  Result<std::vector<std::string>> place(VariableSpec& spec) override;
  Result<Value> read_of(const NamedVariable& variable, std::span<const Value> reads) override;

  Status begin_course(std::span<const Value> batch, int64_t micro_batches, bool forward_only);
  Status cut(std::span<const Value> batch);
  size_t place_of(int64_t stage, int64_t data, int64_t micro) const;
  Result<Value> gate(Value value, NodeId after);
  Status enter(Step* step);
  Status open(Step* step);
  bool is_again(const Step& step) const;
  Status leave(std::span<const Value> outputs);
  Status check_outputs(std::span<const Value> outputs) const;
  void close_scopes();
  Status go_on();
  Status go_back(const PipelineMove& move, int64_t data);
  Status add_up(size_t variable, int64_t data, const Gradient& gradient);
  std::vector<Value> losses() const;
  Result<std::vector<VariableGradient>> gradients(const Optimizer& optimizer);
  Result<Gradient> mean_of(size_t variable, NodeId beside);
  Result<std::vector<size_t>> owners() const;
  Result<NodeId> spread(std::span<const VariableGradient> gradients, NodeId after);
  Status follow(std::vector<VariableGradient>* gradients);

  const Ref<Model> model_;
  const Options options_;
  const uint32_t tag_;
  std::unique_ptr<Course> course_;
  std::vector<std::vector<size_t>> of_stage_;  // numbers of the variables that each stage made
  int64_t stage_ = 0, rank_ = 0;               // of the step that is open
};

}  // namespace dtg
