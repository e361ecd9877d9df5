// Adds the nodes of one worker's share: accumulators, tokens and steps. What belongs to a variable stands beside it,
// tokens beside the global step, the rest with the worker. Called by the thread that builds the model.
#include "strategy/replicas.h"

#include <algorithm>
#include <optional>

#include "nn/clipping.h"
#include "nn/scope.h"
#include "strategy/bounded.h"
#include "strategy/elastic.h"
#include "strategy/remedy.h"
#include "strategy/towers.h"

namespace dtg {
namespace {

constexpr int32_t kReplicasMax = 4096;              // handles are made for all of them
constexpr int64_t kElementsMax = int64_t{1} << 22;  // an update looks at the number of each

Status check_replication(const Replication& r) {
  if (r.mode < SyncMode::async || r.mode > SyncMode::elastic)
    return invalid_argument("replication: mode %d is unknown", static_cast<int>(r.mode));
  if (r.total < 1 || r.total > kReplicasMax) return invalid_argument("replication: %d replicas; give 1 to %d", r.total, kReplicasMax);
  if (r.worker < 0 || r.worker >= r.total)
    return invalid_argument("replication: worker %d of %d; give 0 to %d", r.worker, r.total, r.total - 1);
  if (r.to_aggregate < 0 || r.to_aggregate > kReplicasMax) {
    return invalid_argument("replication: %d gradients per update; give 1 to %d, or 0 for as many as replicas", r.to_aggregate,
                            kReplicasMax);
  }
  if (r.to_aggregate != 0 && r.mode != SyncMode::replicas) {
    return invalid_argument("replication: gradients per update can be chosen for sync-replicas only; leave it 0");
  }
  if (r.staleness < 0) return invalid_argument("replication: a staleness of %d steps; give 0 or more", r.staleness);
  if (r.staleness != 0 && r.mode != SyncMode::ssp)
    return invalid_argument("replication: a staleness can be chosen for ssp only; leave it 0");
  if (r.min_workers < 0 || r.min_workers > r.total)
    return invalid_argument("replication: %d workers at least, of %d; give 1 to %d, or 0 for 1", r.min_workers, r.total, r.total);
  if (r.min_workers != 0 && r.mode != SyncMode::elastic)
    return invalid_argument("replication: workers at least can be chosen for elastic only; leave it 0");
  if (r.elements < 0 || r.elements > kElementsMax) {
    return invalid_argument("replication: %lld elements of an epoch; give 1 to %lld, or 0 where none are dealt",
                            static_cast<long long>(r.elements), static_cast<long long>(kElementsMax));
  }
  if (r.elements != 0 && r.mode != SyncMode::elastic)
    return invalid_argument("replication: elements can be dealt in the elastic mode only; leave it 0");
  return {};
}

// What is added inside comes after the node.
class ControlScope {
 public:
  ControlScope(Graph& graph, NodeId node) : graph_(graph) { graph_.push_controls({&node, 1}); }
  ~ControlScope() { (void)graph_.pop_controls(); }
  ControlScope(const ControlScope&) = delete;
  ControlScope& operator=(const ControlScope&) = delete;

 private:
  Graph& graph_;
};

// The nodes of one worker, and of the chief's update.
class Replicas {
 public:
  // Without a loss (invalid) none is checked.
  Replicas(Model& model, const Optimizer& optimizer, const Replication& replication, NodeId home, Value loss)
      : model_(model),
        graph_(model.graph()),
        build_(model.graph()),
        optimizer_(optimizer),
        replication_(replication),
        home_(home),
        loss_(optimizer.check_loss ? loss : Value()) {}

  Result<Replicated> run(std::span<const VariableGradient> gradients) {
    DTG_ASSIGN(step_, model_.global_step());
    out_.global_step = step_.read;
    if (!optimizer_.learning_rate.valid()) optimizer_.learning_rate = build_.scalar(DType::f32, optimizer_.rate, "learning_rate");
    out_.learning_rate = optimizer_.learning_rate;
    DTG_TRY(build_.status());
    std::vector<VariableGradient> own(gradients.begin(), gradients.end());
    DTG_ASSIGN(out_.gradient_norm, global_norm(model_, own));
    own.assign(gradients.begin(), gradients.end());
    std::erase_if(own, [](const VariableGradient& each) { return !each.gradient.any(); });
    DTG_TRY(replication_.mode == SyncMode::async ? apply_at_once(own)
            : replication_.mode == SyncMode::ssp ? apply_in_bounds(own)
                                                 : contribute(own));
    DTG_TRY(build_.status());
    return out_;
  }

 private:
  bool strict() const { return replication_.mode == SyncMode::strict; }
  bool elastic() const { return replication_.mode == SyncMode::elastic; }
  bool by_worker() const { return strict() || elastic(); }  // each has accumulators of its own
  int32_t required() const { return replication_.to_aggregate != 0 ? replication_.to_aggregate : replication_.total; }

  // --- async ---

  Status apply_at_once(std::vector<VariableGradient>& own) {
    // Made before the update, so it reads what was there before it.
    out_.local_step = read_step({}, "step_before");
    DTG_TRY(check_loss(own));
    DTG_ASSIGN(out_.train, apply_clipped(model_, optimizer_, own));
    out_.next_step = read_step({&out_.train, 1}, "step_after");
    const ColocationScope at_home(graph_, home_);
    out_.local_init = build_.node("NoOp", {}, {}, "local_init");
    return {};
  }

  // --- ssp ---

  // The wait for the next step comes last, so that its reads are newer; the one before anything is applied passes, unless that was cut
  // short.
  Status apply_in_bounds(std::vector<VariableGradient>& own) {
    out_.local_step = read_step({}, "step_before");
    DTG_TRY(check_loss(own));
    BoundedSteps bounds(model_, step_, replication_);
    DTG_ASSIGN(const NodeId may_begin, bounds.add(&out_.leave));
    {
      const ColocationScope at_home(graph_, home_);
      out_.local_init = build_.node("NoOp", {}, {}, "local_init", {&may_begin, 1});
    }
    const Value may_apply = bounds.await({}, "may_apply");
    DTG_TRY(bounds.status().with_context("replicate"));
    NodeId applied = kNoNode;
    {
      const ControlScope after(graph_, may_apply.node());
      DTG_ASSIGN(applied, apply_clipped(model_, optimizer_, own));
    }
    out_.next_step = read_step({&applied, 1}, "step_after");
    // Others take it that all updates of a clock below this one's are in the variables.
    const NodeId counted = bounds.count({&applied, 1});
    out_.clock = bounds.await({&counted, 1}, "may_go_on");
    DTG_TRY(bounds.status().with_context("replicate"));
    const ColocationScope at_home(graph_, home_);
    out_.train = build_.node("NoOp", {}, {}, "train", std::array{out_.clock.node()});
    return build_.status().with_context("replicate");
  }

  // --- the loss ---

  // No gradient leaves this worker before its loss is known to be a finite number.
  Status check_loss(std::vector<VariableGradient>& own) {
    if (!loss_.valid() || !build_.ok()) return build_.status();
    NodeId checked = kNoNode;
    {
      const ColocationScope at_home(graph_, home_);
      const Attr who{"who", " of worker " + number(replication_.worker)};
      checked = build_.node("_CheckFinite", std::array{loss_, out_.local_step}, {&who, 1}, "check_loss");
    }
    for (VariableGradient& each : own) {
      Value& values = each.gradient.is_rows() ? each.gradient.values : each.gradient.dense;
      if (!build_.ok()) break;
      const ColocationScope beside(graph_, values.node());
      values = build_.op("Identity", std::array{values}, {}, "checked_" + each.variable.name, {&checked, 1});
    }
    return build_.status();
  }

  // Strict: nobody would bring the contribution that the others wait for, so all are told by their tokens. Fills `told` with what does
  // that. The worker itself goes on as if nothing were wrong, with a contribution that is dropped, until it takes its own token.
  Status judge_loss(std::vector<NodeId>* told) {
    if (!loss_.valid() || !build_.ok()) return build_.status();
    const ColocationScope at_home(graph_, home_);
    const Attr worker{"worker", int64_t{replication_.worker}};
    contributed_step_ = build_.op("_LossVerdict", std::array{loss_, out_.local_step}, std::array{worker}, "judge_loss");
    if (!build_.ok()) return build_.status();
    const Value poison = contributed_step_.sibling(1);
    for (int32_t w = 0; w < replication_.total; ++w) {
      all_tokens_.push_back(w == replication_.worker ? tokens_[0] : token_queue(w));
      if (!build_.ok()) break;
      const ColocationScope beside(graph_, step_.handle.node());
      told->push_back(build_.node("_PoisonQueue", std::array{all_tokens_.back(), poison}, {}, "tell_" + number(w)));
    }
    return build_.status();
  }

  // --- a worker's step ---

  Status contribute(std::vector<VariableGradient>& own) {
    add_local_step();
    if (elastic()) DTG_TRY(add_members(own));
    else tokens_.push_back(strict() ? token_queue(replication_.worker) : token_queue(-1));
    DTG_TRY(build_.status());
    contributed_step_ = out_.local_step;
    std::vector<NodeId> pushed;
    DTG_TRY(strict() ? judge_loss(&pushed) : check_loss(own));
    for (VariableGradient& each : own) {
      DTG_TRY(prepare(each));
      pushed.push_back(push(each, accumulator(each, replication_.worker)));
    }
    const NodeId taken = elastic() ? arrive(pushed) : take_token(pushed);
    add_local_init();
    DTG_TRY(built().with_context("replicate"));
    if (strict()) DTG_TRY(add_repetition(std::move(pushed), taken));
    if (elastic()) DTG_TRY(add_elastic_repetition(std::move(pushed)));
    return replication_.worker == 0 ? direct(own) : Status();
  }

  // Whose contributions were applied how often counts a variable, in the update itself and as what is counted with a moving mean is.
  Status add_members(std::span<const VariableGradient> own) {
    DTG_ASSIGN(contributions_, counting_variable(model_, "sync/contributions", replication_.total, own[0].variable.handle.node()));
    // It is read with the count of steps, so it counts in the commit of that.
    if (replication_.elements > 0) {
      DTG_ASSIGN(ledger_, counting_variable(model_, "sync/dealt", replication_.elements, step_.handle.node()));
    }
    steps_.emplace(graph_, step_, replication_, ledger_ ? &*ledger_ : nullptr, home_);
    return steps_->status();
  }

  // A step that was cut short may be made once more: an accumulator takes the last of a worker's contributions to a step and none to one
  // that was made, and a token of a step that was made says no more than that. Only a token may have got lost on the way, where the step
  // has been made meanwhile, so the worker gives itself another. Where it had looked at that one, it goes back to the step before first,
  // or it would make the next.
  Status add_repetition(std::vector<NodeId> effects, NodeId taken) {
    Remedy remedy;
    const Value now = read_step({}, "step_after_loss");
    {
      const ColocationScope beside(graph_, step_.handle.node());
      const Value count = build_.cast(build_.op("Greater", {now, out_.local_step}), DType::i32);
      const Value tokens = build_.op("Fill", {build_.reshape(count, build_.ints({1})), now});
      remedy.first = build_.node("QueueEnqueueManyV2", std::array{tokens_[0], tokens}, {}, "give_token_again");
    }
    DTG_TRY(build_.status().with_context("replicate"));
    NodeId back = kNoNode;
    {
      const ColocationScope at_home(graph_, home_);
      const Value before = build_.op("Sub", {now, build_.integer(1, DType::i64)});
      if (build_.ok()) back = build_.node("AssignVariableOp", std::array{local_step_, before}, {}, "step_back");
    }
    DTG_TRY(build_.status().with_context("replicate"));
    {
      const ColocationScope beside(graph_, step_.handle.node());
      remedy.first_if_made = build_.node("QueueEnqueueV2", std::array{tokens_[0], now}, {}, "give_token_of_step", {&back, 1});
    }
    DTG_TRY(build_.status().with_context("replicate"));
    effects.push_back(taken);
    effects.push_back(out_.train);
    remedy.effects = std::move(effects);
    return add_remedy(graph_, out_.train, remedy);
  }

  // Nobody gives an elastic worker anything that could get lost: one that arrives is told what step it is. Where its own was made it goes
  // back to before that, so that what it contributes is of no account and it does not make the next one.
  Status add_elastic_repetition(std::vector<NodeId> effects) {
    Remedy remedy;
    remedy.first = steps_->look_again();
    const Value before = steps_->step_before();
    out_.leave = steps_->leave();
    if (ledger_) DTG_TRY(add_deal(remedy.first));
    DTG_TRY(built().with_context("replicate"));
    {
      const ColocationScope at_home(graph_, home_);
      remedy.first_if_made = build_.node("AssignVariableOp", std::array{local_step_, before}, {}, "step_back");
    }
    DTG_TRY(build_.status().with_context("replicate"));
    effects.push_back(out_.train);
    remedy.effects = std::move(effects);
    return add_remedy(graph_, out_.train, remedy);
  }

  // Who asks again is given the same.
  Status add_deal(NodeId first) {
    Remedy remedy;
    out_.elements = replication_.elements;
    out_.deal = steps_->deal(&out_.epoch_to_deal, &out_.dealt);
    remedy.first = remedy.first_if_made = first;
    remedy.effects.push_back(out_.deal);
    DTG_TRY(built().with_context("replicate"));
    return add_remedy(graph_, out_.deal, remedy);
  }

  // The step of the variables that the next gradients are computed from. A variable of this worker alone, so the model,
  // which is what all workers share, does not know it.
  void add_local_step() {
    const NameScope root(graph_, "");
    const ColocationScope at_home(graph_, home_);
    const std::string name = graph_.unique_name("sync/local_step");
    local_step_ =
        build_.op("VarHandleOp", {},
                  {{"dtype", DType::i64}, {"shape", Shape()}, {"shared_name", "sync/local_step/" + number(replication_.worker)}}, name);
    out_.local_step = build_.op("ReadVariableOp", {local_step_}, {{"dtype", DType::i64}}, name + "/Read");
  }

  // `worker` negative: the queue that all share.
  Value token_queue(int32_t worker) {
    const NameScope root(graph_, "");
    const ColocationScope beside(graph_, step_.handle.node());
    const std::string name = worker < 0 ? "sync_token_q" : "sync/token/" + number(worker);
    return build_.op("FIFOQueueV2", {},
                     {{"component_types", std::vector<DType>{DType::i64}},
                      {"shapes", std::vector<PartialShape>{PartialShape::scalar()}},
                      {"shared_name", name}},
                     graph_.unique_name(name));
  }

  // Strict: for whoever waits too long for a token.
  Value token_roll() {
    const NameScope root(graph_, "");
    return build_.op("_TokenRoll", {}, {{"workers", int64_t{replication_.total}}, {"shared_name", "sync/tokens"}},
                     graph_.unique_name("sync/tokens"));
  }

  // What the worker's device can do to a gradient before it travels. Strict: equal rows are merged here, so that what
  // the accumulator hands out has each row once, as it came.
  Status prepare(VariableGradient& each) {
    if (!dtype_is_floating(each.variable.dtype)) {
      return invalid_argument("replicate: \"%s\" is %s; accumulators hold floating-point gradients", each.variable.name.c_str(),
                              dtype_name(each.variable.dtype));
    }
    if (!each.gradient.is_rows()) return {};
    const ColocationScope at_home(graph_, home_);
    if (by_worker()) merge_rows(build_, each.gradient);
    if (build_.ok()) each.gradient.indices = build_.cast(each.gradient.indices, DType::i64);
    return build_.status();
  }

  Value accumulator(const VariableGradient& each, int32_t worker) {
    const NameScope root(graph_, "");
    const ColocationScope beside(graph_, each.variable.handle.node());
    std::string name = each.variable.name + "/grad_accum";
    if (by_worker()) name += "/" + number(worker);
    return build_.op(each.gradient.is_rows() ? "SparseConditionalAccumulator" : "ResourceConditionalAccumulator", {},
                     {{"dtype", each.variable.dtype},
                      {"shape", each.variable.shape},
                      {"shared_name", name},
                      {"reduction_type", std::string(by_worker() ? "LAST" : "MEAN")}},
                     graph_.unique_name(name));
  }

  NodeId push(const VariableGradient& each, Value into) {
    if (!build_.ok()) return kNoNode;
    const ColocationScope beside(graph_, into.node());
    const Attr dtype{"dtype", each.variable.dtype};
    if (!each.gradient.is_rows()) {
      const Value inputs[] = {into, contributed_step_, each.gradient.dense};
      return build_.node("ResourceAccumulatorApplyGradient", inputs, std::array{dtype}, "push_" + each.variable.name);
    }
    const Value inputs[] = {into, contributed_step_, each.gradient.indices, each.gradient.values,
                            build_.ints(each.variable.shape.dims(), DType::i64)};
    return build_.node("SparseAccumulatorApplyGradient", inputs, std::array{dtype, Attr{"has_known_shape", true}},
                       "push_" + each.variable.name);
  }

  // The node that takes it.
  NodeId take_token(std::span<const NodeId> pushed) {
    if (!build_.ok()) return kNoNode;
    {
      const ColocationScope beside(graph_, step_.handle.node());
      const Attr worker{"worker", int64_t{replication_.worker}}, types{"component_types", std::vector<DType>{DType::i64}};
      out_.next_step = strict() ? build_.op("_TakeToken", std::array{tokens_[0], token_roll()}, std::array{worker}, "take_token", pushed)
                                : build_.op("QueueDequeueV2", std::array{tokens_[0]}, std::array{types}, "take_token", pushed);
    }
    return build_.ok() ? go_on() : kNoNode;
  }

  // The same where nothing is taken: it waits until the step is made.
  NodeId arrive(std::span<const NodeId> pushed) {
    if (!build_.ok()) return kNoNode;
    out_.next_step = steps_->arrive(contributed_step_, pushed);
    return steps_->status().ok() ? go_on() : kNoNode;
  }

  NodeId go_on() {
    const NodeId taken = out_.next_step.node();
    const ColocationScope at_home(graph_, home_);
    if (by_worker()) out_.next_step = build_.op("_CheckToken", {out_.next_step, out_.local_step}, {}, "look_at_token");
    if (build_.ok()) out_.train = build_.node("AssignVariableOp", std::array{local_step_, out_.next_step}, {}, "train");
    return taken;
  }

  // Strict: tokens that a former life of this worker was given are no longer of use. They go first and the step is read
  // after that; a token that arrives in between costs one contribution that is dropped.
  void add_local_init() {
    std::vector<NodeId> drained;
    if (strict() && build_.ok()) {
      const ColocationScope beside(graph_, step_.handle.node());
      const Value old = build_.op("QueueDequeueManyV2", {tokens_[0], build_.op("QueueSizeV2", {tokens_[0]})},
                                  {{"component_types", std::vector<DType>{DType::i64}}}, "old_tokens");
      if (build_.ok()) drained.push_back(old.node());
    }
    const Value now = read_step(drained, "step_at_start");
    const ColocationScope at_home(graph_, home_);
    out_.local_init = build_.node("AssignVariableOp", std::array{local_step_, now}, {}, "local_init");
  }

  // --- the chief ---

  Status direct(std::span<const VariableGradient> own) {
    for (int32_t w = 1; strict() && w < replication_.total; ++w)
      tokens_.push_back(all_tokens_.empty() ? token_queue(w) : all_tokens_[static_cast<size_t>(w)]);
    std::vector<NodeId> moved;
    const int32_t sources = by_worker() ? replication_.total : 1;
    std::vector<Value> accumulators;  // by variable, then worker
    const Value now = read_step({}, "step_at_resume");
    for (const VariableGradient& each : own) {
      for (int32_t w = 0; w < sources; ++w) {
        accumulators.push_back(accumulator(each, w));
        moved.push_back(set_step(each, accumulators.back(), now));
      }
    }
    DTG_TRY(build_.status().with_context("replicate, chief"));
    out_.resume = elastic() ? steps_->begin(now, "again", moved, "resume")
                            : give_tokens(now, std::max(required(), replication_.total), moved, "resume");
    if (elastic()) out_.members = steps_->gather();
    DTG_TRY(built().with_context("replicate, chief"));
    DTG_ASSIGN(std::vector<VariableGradient> means, take_all(own, accumulators));
    if (elastic()) means.push_back({contributions_, steps_->counting(contributions_), 1});
    if (ledger_) means.push_back({*ledger_, steps_->entering(), 1});
    DTG_TRY(apply_means(means, moved));
    DTG_TRY(add_remedy(graph_, out_.update, {.first = out_.resume, .effects = {}, .units = out_.units, .begin_units = out_.begin_units}));
    out_.chief_init = strict()    ? together(moved, "chief_init")
                      : elastic() ? steps_->begin(now, "first", moved, "chief_init")
                                  : give_tokens(now, required(), moved, "chief_init");
    return built().with_context("replicate, chief");
  }

  // Strict: on all tasks that hold variables, or on none; `begun` receives what that needs before the first update.
  Status apply_means(std::span<const VariableGradient> means, std::vector<NodeId>& begun) {
    const int32_t tokens = std::max(required(), replication_.total);
    std::optional<Staging> stages;
    if (by_worker() && Staging::is_needed(model_, means, step_)) stages.emplace(model_, step_);
    DTG_ASSIGN(const NodeId counted, apply_clipped(model_, optimizer_, {means.begin(), means.end()}, stages ? &*stages : nullptr));
    std::vector<NodeId> noted;
    if (stages) {
      noted = stages->counted();
      DTG_ASSIGN(out_.units, stages->finish(&out_.begin_units));
      begun.push_back(out_.begin_units);
    }
    const Value after = read_step({&counted, 1}, "step_after");
    out_.update = elastic() ? steps_->begin(after, "next", noted, "update") : give_tokens(after, tokens, noted, "update");
    return built();
  }

  NodeId set_step(const VariableGradient& each, Value accumulator, Value step) {
    if (!build_.ok()) return kNoNode;
    const ColocationScope beside(graph_, accumulator.node());
    return build_.node(each.gradient.is_rows() ? "AccumulatorSetGlobalStep" : "ResourceAccumulatorSetGlobalStep",
                       std::array{accumulator, step});
  }

  // Everything is taken before anything is applied: all devices, or none.
  Result<std::vector<VariableGradient>> take_all(std::span<const VariableGradient> own, std::span<const Value> accumulators) {
    const size_t sources = accumulators.size() / own.size();
    std::vector<std::vector<Gradient>> taken;
    std::vector<NodeId> nodes;
    for (size_t v = 0; v < own.size(); ++v) {
      taken.emplace_back();
      for (size_t w = 0; w < sources; ++w) {
        const Value from = accumulators[v * sources + w];
        taken.back().push_back(elastic() ? steps_->take(own[v], from, static_cast<int32_t>(w))
                                         : take(own[v], from, own[v].variable.name + "_" + std::to_string(w)));
        DTG_TRY(built().with_context("replicate, chief"));
        nodes.push_back((own[v].gradient.is_rows() ? taken.back().back().values : taken.back().back().dense).node());
      }
    }
    const NodeId complete = together(nodes, "complete");
    DTG_TRY(build_.status());
    std::vector<VariableGradient> means;
    for (size_t v = 0; v < own.size(); ++v) {
      const Value count = elastic() ? steps_->count() : Value();
      DTG_ASSIGN(Gradient mean, mean_of(model_, own[v].variable, taken[v], {&complete, 1}, count));
      means.push_back({own[v].variable, mean, own[v].share});
    }
    return means;
  }

  Gradient take(const VariableGradient& each, Value from, const std::string& name) {
    const ColocationScope beside(graph_, from.node());
    const Value required_here = build_.integer(strict() ? 1 : required());
    const Attr dtype{"dtype", each.variable.dtype};
    const char* const op = each.gradient.is_rows() ? "SparseAccumulatorTakeGradient" : "ResourceAccumulatorTakeGradient";
    const Value first = build_.op(op, std::array{from, required_here}, std::array{dtype}, "take_" + name);
    if (!build_.ok()) return {};
    if (!each.gradient.is_rows()) return {.dense = first, .values = {}, .indices = {}, .dense_shape = {}};
    return {.dense = {}, .values = first.sibling(1), .indices = first, .dense_shape = first.sibling(2)};
  }

  // Strict: one to each worker. Otherwise `count` for whoever comes.
  NodeId give_tokens(Value step, int32_t count, std::span<const NodeId> after, std::string_view name) {
    if (!build_.ok()) return kNoNode;
    const ColocationScope beside(graph_, step_.handle.node());
    if (!strict()) {
      const Value many = build_.op("Fill", {build_.ints({count}), step});
      return build_.node("QueueEnqueueManyV2", std::array{tokens_[0], many}, {}, name, after);
    }
    std::vector<NodeId> given;
    for (const Value queue : tokens_) given.push_back(build_.node("QueueEnqueueV2", std::array{queue, step}, {}, {}, after));
    return together(given, name);
  }

  NodeId together(std::span<const NodeId> nodes, std::string_view name) {
    const ColocationScope beside(graph_, step_.handle.node());
    return build_.node("NoOp", {}, {}, name, nodes);
  }

  // --- both ---

  Value read_step(std::span<const NodeId> after, std::string_view name) {
    if (!build_.ok()) return {};
    const ColocationScope beside(graph_, step_.handle.node());
    return build_.op("ReadVariableOp", std::array{step_.handle}, std::array{Attr{"dtype", DType::i64}}, name, after);
  }

  Status built() const { return steps_ && !steps_->status().ok() ? steps_->status() : build_.status(); }
  static std::string number(int32_t worker) { return std::to_string(worker); }

  Model& model_;
  Graph& graph_;
  Build build_;
  Optimizer optimizer_;
  const Replication& replication_;
  const NodeId home_;  // a node on the worker
  const Value loss_;   // to be checked; invalid where none is
  NamedVariable step_;
  Value local_step_;
  std::optional<ElasticSteps> steps_;
  NamedVariable contributions_;          // elastic: by worker, how many of its have been applied
  std::optional<NamedVariable> ledger_;  // elastic: by element of the data, how often it has been in an update
  std::vector<Value> tokens_;            // of this worker; the chief: of all
  std::vector<Value> all_tokens_;        // strict, with a loss to be checked: of all, by worker
  Value contributed_step_;               // that contributions are said to be of
  Replicated out_;
};

}  // namespace

namespace {

Status check_share(const Model& model, const Optimizer& optimizer, const Replication& replication) {
  DTG_TRY(check_replication(replication));
  DTG_TRY(check_optimizer(model, optimizer));
  if (optimizer.accumulation_steps <= 1) return {};
  return unimplemented("replicate: accumulation_steps is %lld, which replicas do not have; let more of them contribute to an update",
                       static_cast<long long>(optimizer.accumulation_steps));
}

}  // namespace

Result<Replicated> apply_replicated(Model& model, std::span<const VariableGradient> gradients, const Optimizer& optimizer,
                                    const Replication& replication) {
  DTG_TRY(check_share(model, optimizer, replication));
  for (const VariableGradient& each : gradients) {
    for (const Value part : {each.gradient.dense, each.gradient.values, each.gradient.indices}) {
      if (part.valid()) DTG_TRY(model.graph().check(part).with_context("replicate, gradient of \"" + each.variable.name + "\""));
    }
  }
  for (const VariableGradient& each : gradients) {
    if (!each.gradient.any()) continue;
    const NameScope scope(model.graph(), "train");
    const Value first = each.gradient.is_rows() ? each.gradient.values : each.gradient.dense;
    return Replicas(model, optimizer, replication, first.node(), {}).run(gradients);
  }
  return invalid_argument("replicate: no variable has a gradient (of %zu)", gradients.size());
}

Result<Replicated> minimize_replicated(Model& model, Value loss, const Optimizer& optimizer, const Replication& replication) {
  DTG_TRY(check_share(model, optimizer, replication));
  const NameScope scope(model.graph(), "train");
  DTG_ASSIGN(const std::vector<VariableGradient> gradients, compute_gradients(model, loss, 0, optimizer.variables));
  return Replicas(model, optimizer, replication, loss.node(), loss).run(gradients);
}

Result<std::vector<Value>> ready_flags(Model& model) {
  const NameScope root(model.graph(), "");
  Build build(model.graph());
  std::vector<Value> flags;
  for (const NamedVariable& variable : model.variables()) {
    const std::string name = variable.name + "/IsReady";
    const NodeId known = model.graph().find(name);
    const ColocationScope beside(model.graph(), variable.handle.node());
    flags.push_back(known != kNoNode ? model.graph().value(known) : build.op("VarIsInitializedOp", {variable.handle}, {}, name));
  }
  DTG_TRY(build.status().with_context("ask whether the variables are ready"));
  return flags;
}

}  // namespace dtg
