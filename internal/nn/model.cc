// Adds the nodes of variables and keeps the model's list of them. The names follow TensorFlow: "dense/kernel" is the
// handle, "dense/kernel/Initializer/..." makes the first value, "dense/kernel/Assign" and "dense/kernel/Read" use it.
// One thread builds a model.
#include "nn/model.h"

#include <algorithm>

#include "nn/scope.h"

namespace dtg {

NamedVariable NamedVariable::at_replica(size_t i) const {
  NamedVariable view = *this;
  if (i >= copies.size()) return view;
  view.handle = copies[i].handle;
  view.read = copies[i].read;
  view.copy = i;
  return view;
}

bool NamedVariable::has_handle(Value other) const {
  return handle == other || std::ranges::any_of(copies, [&](const VariableCopy& each) { return each.handle == other; });
}

Result<Ref<Model>> Model::inside(Ref<Model> around, Ref<Graph> body) {
  const Graph* outer = body.get();
  while (outer->tag() != around->graph().tag() && outer->outer()) outer = outer->outer();
  if (outer == body.get() || outer->tag() != around->graph().tag()) {
    if (body->tag() == around->graph().tag() && around->is_inside())
      return invalid_argument("a model inside of a body: this is the model inside of that body already");
    if (body->is_closed()) return failed_precondition("a model inside of a body: the function was ended");
    return invalid_argument(
        "a model inside of a body: the graph is no body of a function in the graph of the model; dtg_function_begin makes "
        "one");
  }
  auto model = make_ref<Model>(std::move(body), around->seed());
  model->around_ = std::move(around);
  return model;
}

NamedVariable Model::here(const NamedVariable& variable) const {
  if (!around_) return replica_ == kNoReplica ? variable : variable.at_replica(replica_);
  NamedVariable view = around_->here(variable);
  view.read = here(view.read);
  return view;
}

Value Model::here(Value value) const {
  if (!around_ || !value.valid()) return value;
  const Result<Value> captured = graph_->capture(value);
  return captured.ok() ? captured.value() : value;
}

namespace {

// What can be a scope of it; a function may be called anything.
std::string scope_of(const std::string& function) {
  std::string scope;
  for (const char c : function) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    const bool may_follow = c == '-' || c == '_' || (c == '/' && !scope.ends_with('/'));
    if (is_plain || (may_follow && !scope.empty())) scope += c;
    else if (!scope.empty()) scope += '_';
  }
  while (scope.ends_with('/')) scope.pop_back();
  return scope.empty() ? "function" : scope;
}

using BodyScope = std::pair<uint32_t, std::string>;  // the body's tag, and the scope's name there

// What stands for it already; null: nothing.
const std::string* scope_for(std::span<const std::pair<BodyScope, std::string>> scopes, const BodyScope& wanted) {
  const auto at = std::ranges::find(scopes, wanted, &std::pair<BodyScope, std::string>::first);
  return at == scopes.end() ? nullptr : &at->second;
}

// The scope of this name that comes next.
std::string next_scope(Graph& graph, const std::string& name) {
  const NameScope scope(graph, name);
  const std::string inside = graph.unique_name("variable");
  return inside.substr(0, inside.rfind('/'));
}

}  // namespace

// As a scope of its own among those that are open around the body, so that two functions of one name do not share it.
std::string Model::name_of_body(const Graph& body) {
  if (&body == graph_.get() || !body.outer()) return {};
  const BodyScope key{body.tag(), ""};
  if (const std::string* const known = scope_for(bodies_, key)) return *known;
  const std::string name = name_of_body(*body.outer()) + next_scope(*body.outer(), scope_of(body.function_name())) + "/";
  bodies_.emplace_back(key, name);
  return name;
}

// The scope of the outermost graph that a layer's scope in a body stands for: one that nobody else has.
std::string Model::path_outside(const Graph& body, const std::string& path) {
  const std::string full = name_of_body(body) + path;
  if (path.empty()) return full;
  const BodyScope key{body.tag(), path};
  if (const std::string* const known = scope_for(bodies_, key)) return *known;
  const NameScope root(*graph_, "");
  bodies_.emplace_back(key, next_scope(*graph_, full.substr(0, full.size() - 1)) + "/");
  return bodies_.back().second;
}

Result<NamedVariable> Model::variable_outside(const VariableSpec& given) {
  Model& model = outermost();
  VariableSpec spec = given;
  std::string name(given.name);
  if (!given.absolute) {
    name = graph_->unique_name(name);
    const size_t last = name.rfind('/') + 1;
    name = model.path_outside(*graph_, name.substr(0, last)) + name.substr(last);
  }
  spec.name = name;
  const NameScope root(model.graph(), "");
  DTG_ASSIGN(const NamedVariable made, model.add_variable(spec));
  return here(made);
}

Result<NamedVariable> Model::add_variable(const VariableSpec& given) {
  if (given.name.empty()) return invalid_argument("add a variable: it has no name");
  if (around_) return variable_outside(given);
  if (!shared_.empty() && !given.absolute) return shared_variable(given);
  VariableSpec spec = given;
  NamedVariable variable;
  DTG_ASSIGN(const std::vector<Place> places, places_of(spec, &variable.strategy));
  variable.dtype = spec.dtype;
  variable.shape = spec.shape;
  variable.trainable = spec.trainable;
  variable.absolute = spec.absolute;
  variable.of = spec.of;
  variable.slot = spec.slot;
  variable.sync = spec.sync;
  variable.aggregation = spec.aggregation;
  if (spec.absolute) {
    const NameScope root(*graph_, "");
    variable.name = graph_->unique_name(spec.name);
  } else {
    variable.name = graph_->unique_name(spec.name);
  }
  variable.part = spec.part;
  if (spec.part.any() && spec.part.whole.empty()) variable.part.whole = variable.name.substr(0, variable.name.rfind('/'));
  DTG_TRY(add_nodes(spec, places, variable).with_context("add the variable \"" + variable.name + "\""));
  variables_.push_back(variable);
  return here(variable);
}

// One number for each whole, so that first values do not depend on how many parts there are.
uint64_t Model::stream_of(const WholePart& part) const {
  uint64_t number = 0;
  for (const NamedVariable& variable : variables_) {
    if (part.number > 0 && variable.part.any() && variable.part.whole == part.whole) return number;
    number += variable.part.number == 0 ? 1 : 0;
  }
  return number;
}

// What an optimizer keeps has as many copies as its variable, each beside one of them.
Result<std::vector<Model::Place>> Model::places_of(VariableSpec& spec, uint32_t* strategy) {
  std::vector<Place> places;
  if (spec.colocate != kNoNode) {
    for (const NamedVariable& variable : variables_) {
      if (variable.handle.node() != spec.colocate) continue;
      *strategy = variable.strategy;
      for (const VariableCopy& copy : variable.copies) {
        if (!spec.alone) places.push_back({{}, copy.handle.node()});
      }
    }
    if (places.empty()) places.push_back({{}, spec.colocate});
    return places;
  }
  if (policy_ && !spec.absolute) {
    DTG_ASSIGN(std::vector<std::string> devices, policy_->place(spec));
    *strategy = policy_->tag();
    for (std::string& device : devices) places.push_back({std::move(device), kNoNode});
  }
  if (places.empty()) places.emplace_back();
  return places;
}

Result<Value> Model::add_handle(const VariableSpec& spec, const std::string& name, const Place& place) {
  Build build(*graph_);
  const ColocationScope beside(*graph_, place.beside);
  if (!place.device.empty()) graph_->push_device(place.device);
  // The name is also the shared name: every task that builds this model means the same variable.
  const Value handle = build.op("VarHandleOp", {}, {{"dtype", spec.dtype}, {"shape", spec.shape}, {"shared_name", name}}, name);
  if (!place.device.empty()) DTG_TRY(graph_->pop_device());
  DTG_TRY(build.status());
  return handle;
}

// Handles and reads of all copies, one first value, and the assignments: that of the first copy comes last, so that who runs it has
// given a value to all, also a value that he feeds in place of the first.
Status Model::add_nodes(const VariableSpec& spec, std::span<const Place> places, NamedVariable& variable) {
  const NameScope root(*graph_, "");
  // Its first value is made before any run that somebody orders.
  const NoControls outside(*graph_);
  Build build(*graph_);
  std::vector<VariableCopy> copies;
  std::vector<std::string> names;
  for (size_t i = 0; i < places.size(); ++i) {
    names.push_back(i == 0 ? variable.name : graph_->unique_name(variable.name + "/replica_" + std::to_string(i)));
    VariableCopy copy;
    DTG_ASSIGN(copy.handle, add_handle(spec, names[i], places[i]));
    copies.push_back(copy);
  }
  variable.handle = copies[0].handle;
  Value first;
  {
    const ColocationScope beside(*graph_, variable.handle.node());
    const NameScope scope(*graph_, variable.name + "/Initializer");
    // Of its own also where it is another's: whoever restores feeds it.
    const RandomStream stream = {seed_, stream_of(variable.part)};
    if (spec.first.valid()) first = build.op("Identity", {spec.first});
    else if (spec.part.any())
      first = initial_part(build, spec.initializer, spec.dtype, spec.part.shape, {spec.part.axis, spec.part.first, spec.shape}, stream);
    else first = initial_value(build, spec.initializer, spec.dtype, spec.shape, stream);
  }
  std::vector<NodeId> others;
  std::vector<Value> reads;
  for (size_t i = copies.size(); i-- > 0;) {
    const ColocationScope beside(*graph_, copies[i].handle.node());
    // Copies that are added up when they are read are together what was assigned.
    const bool is_first = i == 0 && !(policy_ && policy_->is_first_elsewhere());
    const bool is_share = !is_first && spec.sync == Sync::on_read && spec.aggregation == Aggregation::sum;
    const Value assigned[] = {copies[i].handle, is_share ? build.zeros_like(first) : first};
    const NodeId assign = build.node("AssignVariableOp", assigned, {}, names[i] + "/Assign", i == 0 ? others : std::vector<NodeId>());
    copies[i].read = build.op("ReadVariableOp", {copies[i].handle}, {{"dtype", spec.dtype}}, names[i] + "/Read");
    reads.insert(reads.begin(), copies[i].read);
    others.push_back(assign);
    variable.assign = assign;
  }
  variable.read = copies[0].read;
  DTG_TRY(build.status());
  const bool is_own = spec.sync == Sync::on_read && policy_ && policy_->has_elsewhere();
  if (copies.size() == 1 && !is_own) return {};
  variable.copies = std::move(copies);
  if (spec.sync == Sync::on_read && policy_) {
    DTG_ASSIGN(variable.read, policy_->read_of(variable, reads));
  }
  return {};
}

size_t Model::begin_replicas() {
  run_.tower = tower_;
  run_.additions.clear();
  continue_replicas();
  return run_.towers;
}

void Model::continue_replicas() {
  run_.variables = variables_.size();
  run_.shared = shared_;
  run_.first_stream = run_.next_stream = streams_;
}

void Model::begin_replica(size_t replica) {
  replica_ = replica;
  tower_ = run_.towers + replica;
  run_.next_stream = std::max(run_.next_stream, std::exchange(streams_, run_.first_stream));
  if (replica == 0) return;
  shared_.clear();
  for (size_t i = variables_.size(); i-- > run_.variables;) {
    if (!variables_[i].absolute) shared_.push_back(i);
  }
  shared_.insert(shared_.end(), run_.shared.begin(), run_.shared.end());
}

Status Model::end_replica() {
  if (replica_ == 0) run_.left = shared_.size();
  if (replica_ == kNoReplica || shared_.size() <= run_.left) return {};
  return failed_precondition(
      "replica %zu was built without the variable \"%s\", which replica 0 made; build the same layers in the same order", replica_,
      variables_[shared_.back()].name.c_str());
}

void Model::end_replicas() {
  run_.towers = std::max(run_.towers, tower_ + 1);
  tower_ = run_.tower;
  streams_ = std::max(run_.next_stream, streams_);
  replica_ = kNoReplica;
}

void Model::begin_visit(size_t replica, size_t tower, std::span<const size_t> again) {
  visit_ = {std::move(shared_), tower_};
  shared_.assign(again.rbegin(), again.rend());
  tower_ = tower;
  replica_ = replica;
}

Status Model::end_visit() {
  const size_t left = shared_.empty() ? SIZE_MAX : shared_.back();
  shared_ = std::move(visit_.shared);
  tower_ = visit_.tower;
  replica_ = kNoReplica;
  if (left == SIZE_MAX) return {};
  return failed_precondition("a stage was built without the variable \"%s\", which it made the first time; build the same layers in the "
                             "same order",
                             variables_[left].name.c_str());
}

size_t Model::take_towers(size_t count) {
  const size_t first = run_.towers;
  run_.towers += count;
  return first;
}

std::vector<NodeId> Model::additions(const NamedVariable& variable, NodeId add) {
  if (replica_ == kNoReplica) return {add};
  run_.additions.emplace_back(variable.name, add);
  std::vector<NodeId> all;
  for (const auto& [name, node] : run_.additions) {
    if (name == variable.name) all.push_back(node);
  }
  return all;
}

void Model::next_tower() {
  ++tower_;
  streams_ = 0;
  shared_.clear();
  for (size_t i = variables_.size(); i-- > 0;) {
    if (!variables_[i].absolute) shared_.push_back(i);
  }
}

// Scopes and names get numbers when they are taken, so only the last part is compared.
Result<NamedVariable> Model::shared_variable(const VariableSpec& spec) {
  const NamedVariable& there = variables_[shared_.back()];
  const std::string last = there.name.substr(there.name.rfind('/') + 1);
  const std::string wanted(spec.name.substr(spec.name.rfind('/') + 1));
  const bool named = last == wanted || last.starts_with(wanted + "_");
  if (!named || there.dtype != spec.dtype || !(there.shape == spec.shape) || there.trainable != spec.trainable) {
    return failed_precondition("a tower asks for the variable \"%s\" of %s%s where the first one made \"%s\" of %s%s; build the same "
                               "layers in the same order",
                               std::string(spec.name).c_str(), dtype_name(spec.dtype), spec.shape.text().c_str(), there.name.c_str(),
                               dtype_name(there.dtype), there.shape.text().c_str());
  }
  shared_.pop_back();
  return here(there);
}

void Model::take_over(NamedVariable variable) {
  const bool counts = variable.name == "global_step" && variable.dtype == DType::i64 && variable.shape.is_scalar();
  if (counts) global_step_ = variables_.size();
  variables_.push_back(std::move(variable));
}

const NamedVariable* Model::find(std::string_view name) const {
  for (const NamedVariable& variable : variables()) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

void Model::go_back(const Mark& mark, bool unnamed) {
  // Nothing here may ask for memory: the lack of it may be why.
  size_t left = mark.variables;
  // The count of steps stays, wherever it was first asked for, unless another one could have its name.
  if (unnamed && global_step_ != SIZE_MAX && global_step_ >= left) global_step_ = SIZE_MAX;
  if (global_step_ != SIZE_MAX && global_step_ >= left) {
    if (global_step_ != left) variables_[left] = std::move(variables_[global_step_]);
    global_step_ = left++;
  }
  variables_.erase(variables_.begin() + static_cast<ptrdiff_t>(left), variables_.end());
  streams_ = mark.streams;
  shared_ = mark.shared;
  following_ = mark.following;
  switched_.resize(std::min(switched_.size(), mark.switched));
  bodies_.resize(std::min(bodies_.size(), mark.bodies));
  // It would assign what is gone.
  if (init_covers_ > mark.variables) init_ = kNoNode;
}

void Model::note_switched(Value y, Value training) {
  if (!is_inside()) {
    switched_.push_back({y, training});
    return;
  }
  if (training.valid()) return;
  const std::string name(graph_->node(y.node()).name);
  const std::string layer = graph_->function_name() + "/" + name.substr(0, std::min(name.size(), name.rfind('/')));
  outermost().switched_.push_back({{}, {}, layer});
}

Status Model::follow(const NamedVariable& variable, Value target, double share) {
  if (around_) {
    return unimplemented(
        "\"%s\" follows what batches give, which the body of a function cannot tell it; make the layer outside, or give it "
        "a `training` that is a constant false",
        variable.name.c_str());
  }
  DTG_TRY(graph_->check(target).with_context("follow, for \"" + variable.name + "\""));
  for (Following& each : following_) {
    if (each.variable.handle != variable.handle || each.tower != tower_) continue;
    if (each.share != share) {
      return invalid_argument("\"%s\" already follows with a share of %g of each step; %g was asked for now", variable.name.c_str(),
                              each.share, share);
    }
    each.targets.push_back(target);
    return {};
  }
  following_.push_back({variable, {target}, share, tower_});
  return {};
}

Result<NamedVariable> Model::global_step() {
  if (around_) {
    DTG_ASSIGN(const NamedVariable step, outermost().global_step());
    return here(step);
  }
  if (global_step_ != SIZE_MAX) return variables_[global_step_];
  DTG_ASSIGN(NamedVariable step, add_variable({.name = "global_step", .dtype = DType::i64, .trainable = false, .absolute = true}));
  global_step_ = variables_.size() - 1;
  return step;
}

Result<NodeId> Model::init_target() {
  if (init_ != kNoNode && init_covers_ == variables_.size()) return init_;
  std::vector<NodeId> assignments;
  for (const NamedVariable& variable : variables_) assignments.push_back(variable.assign);
  const NameScope root(*graph_, "");
  if (after_init_) {
    DTG_ASSIGN(const NodeId after, after_init_(*this, assignments));
    assignments.push_back(after);
  }
  const std::string name = graph_->unique_name("init");
  DTG_ASSIGN(init_, graph_->add({.op = "NoOp", .name = name, .controls = assignments}));
  init_covers_ = variables_.size();
  return init_;
}

// The upper half of the numbers; variables use the lower one. The same layer of each copy of the computation has the same place in that
// copy's row, in whatever process it is built.
RandomStream Model::next_stream() {
  if (around_) return around_->next_stream();
  const size_t copy = replica_ == kNoReplica ? tower_ : first_replica_ + replica_;
  return {seed_, (uint64_t{1} << 63) + (static_cast<uint64_t>(copy) << 40) + streams_++};
}

}  // namespace dtg
