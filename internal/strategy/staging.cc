// Adds the nodes that keep, wait for all, apply and note. Called by the thread that builds the model.
#include "strategy/staging.h"

#include <algorithm>

#include "graph/device_name.h"
#include "nn/scope.h"

namespace dtg {
namespace {

// The task that a node asks for, "" where it leaves that open.
std::string task_of(const Graph& graph, NodeId id) {
  const Node* node = &graph.node(id);
  while (node->device.empty() && !node->colocate.empty()) node = &graph.node(node->colocate.front());
  Result<DeviceName> name = DeviceName::parse(node->device);
  if (!name.ok()) return std::string(node->device);
  name.value().drop_type_and_id();
  return name.value().text();
}

}  // namespace

bool Staging::is_needed(const Model& model, std::span<const VariableGradient> gradients, const NamedVariable& step) {
  const std::string first = task_of(model.graph(), step.handle.node());
  return std::ranges::any_of(gradients, [&](const VariableGradient& each) {
    return each.gradient.any() && task_of(model.graph(), each.variable.handle.node()) != first;
  });
}

Value Staging::variable(NodeId beside, std::string_view name, DType dtype, const PartialShape& shape) {
  const NameScope root(graph_, "");
  const ColocationScope there(graph_, beside);
  const std::string full = graph_.unique_name("sync/" + std::string(name));
  return build_.op("VarHandleOp", {}, {{"dtype", dtype}, {"shape", shape}, {"shared_name", full}}, full);
}

NodeId Staging::assign(NodeId beside, Value handle, Value value) {
  const ColocationScope there(graph_, beside);
  return build_.node("AssignVariableOp", std::array{handle, value});
}

Value Staging::read(NodeId beside, Value handle, DType dtype, std::span<const NodeId> after) {
  const ColocationScope there(graph_, beside);
  return build_.op("ReadVariableOp", std::array{handle}, std::array{Attr{"dtype", dtype}}, {}, after);
}

Staging::Note& Staging::note(const std::string& what, NodeId beside) {
  Note& note = notes_[what];
  if (note.beside != kNoNode) return note;
  note.beside = beside;
  note.handle = variable(beside, "applied/" + std::to_string(notes_.size() - 1), DType::i64, PartialShape::scalar());
  note.begin.push_back(assign(beside, note.handle, read(step_.handle.node(), step_.handle, DType::i64)));
  return note;
}

Status Staging::keep(NodeId beside, Value value) {
  // What is the same in every update needs no keeping.
  if (graph_.node(value.node()).op->role() == Role::constant) return {};
  const std::string task = task_of(graph_, beside);
  Kept& kept = kept_[{task, value.id}];
  if (kept.handle.valid()) return {};
  const ValueInfo& info = graph_.info(value);
  kept.handle = variable(beside, "kept/" + std::string(graph_.node(value.node()).name), info.dtype, info.shape);
  keeping_.push_back(assign(beside, kept.handle, value));
  return build_.status();
}

Status Staging::all_kept() {
  std::map<std::string, NodeId> places;
  for (const auto& [key, kept] : kept_) places.emplace(key.first, kept.handle.node());
  const Value now = read(step_.handle.node(), step_.handle, DType::i64);
  for (const auto& [task, beside] : places) {
    Note& there = note(task, beside);
    there.kept = variable(beside, "kept_step", DType::i64, PartialShape::scalar());
    keeping_.push_back(assign(beside, there.kept, now));
    there.begin.push_back(assign(beside, there.kept, build_.integer(-1, DType::i64)));
  }
  const ColocationScope there(graph_, step_.handle.node());
  barrier_ = build_.node("NoOp", {}, {}, "all_kept", keeping_);
  return build_.status();
}

Result<Value> Staging::kept(NodeId beside, Value value) {
  const auto found = kept_.find({task_of(graph_, beside), value.id});
  if (found == kept_.end()) return value;
  Value& reading = following_ ? found->second.later : found->second.now;
  if (!reading.valid()) {
    const std::span<const NodeId> after(&barrier_, following_ ? 0 : 1);
    reading = read(beside, found->second.handle, graph_.info(value).dtype, after);
  }
  DTG_TRY(build_.status());
  return reading;
}

Status Staging::applied(std::span<const NodeId> besides, std::span<const NodeId> writes) {
  std::map<std::string, std::pair<NodeId, std::vector<NodeId>>> places;
  for (size_t i = 0; i < besides.size(); ++i) {
    auto& place = places[task_of(graph_, besides[i])];
    place.first = besides[i];
    place.second.push_back(writes[i]);
  }
  for (const auto& [task, place] : places) DTG_TRY(wrote(task, place.first, place.second));
  return {};
}

Status Staging::went_on(NodeId beside, std::span<const NodeId> writes, std::string_view what) {
  return wrote(std::string(what) + " at " + task_of(graph_, beside), beside, writes);
}

// Counted with the writes: what is written on one task and needs nothing from another in between is one commit.
Status Staging::wrote(const std::string& what, NodeId beside, std::span<const NodeId> writes) {
  Note& there = note(what, beside);
  const ColocationScope colocated(graph_, there.beside);
  const std::span<const NodeId> after = following_ ? std::span<const NodeId>() : writes;
  const Value inputs[] = {there.handle, build_.integer(1, DType::i64)};
  const NodeId counted = build_.node("AssignAddVariableOp", inputs, {}, {}, after);
  if (!following_) {
    counted_.push_back(counted);
    return build_.status();
  }
  std::vector<NodeId> all(writes.begin(), writes.end());
  all.push_back(counted);
  there.follow = build_.node("NoOp", {}, {}, {}, all);
  return build_.status();
}

Result<std::vector<UpdateUnit>> Staging::finish(NodeId* begin) {
  std::vector<UpdateUnit> units;
  std::vector<NodeId> begins;
  const auto has_value = [&](const Note& note) {
    const ColocationScope there(graph_, note.beside);
    return build_.op("VarIsInitializedOp", {note.handle});
  };
  for (const auto& [what, note] : notes_) {
    UpdateUnit unit{what, has_value(note), read(note.beside, note.handle, DType::i64), {}, note.follow};
    if (note.kept.valid()) unit.kept = read(note.beside, note.kept, DType::i64);
    units.push_back(std::move(unit));
    begins.insert(begins.end(), note.begin.begin(), note.begin.end());
  }
  const ColocationScope there(graph_, step_.handle.node());
  const Value inputs[] = {step_.handle, build_.integer(1, DType::i64)};
  units.push_back(
      {"the count of steps", {}, read(step_.handle.node(), step_.handle, DType::i64), {}, build_.node("AssignAddVariableOp", inputs)});
  *begin = build_.node("NoOp", {}, {}, "begin_notes", begins);
  DTG_TRY(build_.status());
  return units;
}

}  // namespace dtg
