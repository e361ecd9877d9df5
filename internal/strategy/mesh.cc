// Building over a mesh: the grid, steps and their scopes, and the ways back. Training is in mesh_training.cc. See mesh.h for threads.
#include "strategy/mesh.h"

#include <algorithm>
#include <atomic>

#include "base/or_undo.h"
#include "graph/device_name.h"
#include "nn/scope.h"
#include "strategy/on_device.h"

namespace dtg {
namespace {

constexpr int64_t kDevicesMost = 4096;
constexpr int64_t kMicroBatchesMost = 4096;
// Below what strategies have (strategy.cc).
constexpr uint32_t kTagBase = 0x40000000u;
constinit std::atomic<uint32_t> tags_given{0};

Status check_grid(const Mesh::Options& options) {
  const int64_t axes[] = {options.data, options.model, options.pipe};
  const char* const names[] = {"data", "model", "pipe"};
  int64_t all = 1;
  for (size_t i = 0; i < std::size(axes); ++i) {
    if (axes[i] < 1 || axes[i] > kDevicesMost) {
      return invalid_argument("create a mesh: the axis %s is %lld long; it is from 1 to %lld", names[i], static_cast<long long>(axes[i]),
                              static_cast<long long>(kDevicesMost));
    }
    all *= axes[i];
  }
  if (all > kDevicesMost || static_cast<size_t>(all) != options.devices.size()) {
    return invalid_argument("create a mesh of %lld x %lld x %lld: it needs %lld devices (at most %lld), and %zu were given",
                            static_cast<long long>(axes[0]), static_cast<long long>(axes[1]), static_cast<long long>(axes[2]),
                            static_cast<long long>(all), static_cast<long long>(kDevicesMost), options.devices.size());
  }
  return {};
}

Status check_devices(const Mesh::Options& options) {
  std::vector<std::string> known;
  for (const std::string& device : options.devices) {
    DTG_ASSIGN(DeviceName name, DeviceName::parse_given(device));
    if (name.job && !name.replica) name.replica = 0;
    known.push_back(name.text());
    if (std::ranges::count(known, known.back()) > 1) {
      return invalid_argument("create a mesh: the device \"%s\" is given twice; each place of the mesh has its own", device.c_str());
    }
  }
  return {};
}

}  // namespace

Mesh::Mesh(Ref<Model> model, Options options)
    : model_(std::move(model)), options_(std::move(options)), tag_(kTagBase + tags_given.fetch_add(1) % kTagBase) {}

Result<Ref<Mesh>> Mesh::create(Ref<Model> model, Options options) {
  DTG_TRY(check_grid(options));
  DTG_TRY(check_devices(options));
  return Ref<Mesh>::adopt(new Mesh(std::move(model), std::move(options)));
}

Mesh::~Mesh() {
  if (course_ && course_->open) abandon();
}

const std::string& Mesh::device(int64_t data, int64_t model, int64_t pipe) const {
  return options_.devices[static_cast<size_t>((data * options_.model + model) * options_.pipe + pipe)];
}

// A copy for each rank of the data axis, where the step that makes it stands on the others.
Result<std::vector<std::string>> Mesh::place(VariableSpec& spec) {
  if (spec.sync == Sync::on_read) {
    return unimplemented("add the variable \"%s\": a mesh has no variables that are synchronised on read", std::string(spec.name).c_str());
  }
  std::vector<std::string> devices;
  for (int64_t d = 0; d < options_.data; ++d) devices.push_back(device(d, rank_, stage_));
  return devices;
}

Result<Value> Mesh::read_of(const NamedVariable& variable, std::span<const Value>) {
  return internal_error("\"%s\" of a mesh is not synchronised on read", variable.name.c_str());
}

Mesh::OnRank::OnRank(Mesh& mesh, int64_t rank) : mesh_(mesh), before_(mesh.rank_) {
  mesh_.rank_ = rank;
  mesh_.graph().push_device(mesh_.device(mesh_.course_->data, rank, mesh_.stage_));
}
Mesh::OnRank::~OnRank() {
  mesh_.rank_ = before_;
  (void)mesh_.graph().pop_device();
}

Status Mesh::in_step(const char* what) const {
  if (course_ && course_->open) return {};
  return failed_precondition("%s: no step of the mesh is open; it belongs between the step that is told and what is given for it", what);
}

// --- a course of steps ---

size_t Mesh::place_of(int64_t stage, int64_t data, int64_t micro) const {
  return static_cast<size_t>((stage * options_.data + data) * course_->micro + micro);
}

// Where the batch is fed: devices get their parts only.
Status Mesh::cut(std::span<const Value> batch) {
  const int64_t parts = options_.data * course_->micro;
  const OnDevice host(graph(), "/device:CPU:0");
  const NameScope scope(graph(), "micro_batches");
  Build build(graph());
  for (const Value value : batch) {
    DTG_TRY(graph().check(value).with_context("build over a mesh, a value of the batch"));
    const PartialShape& shape = graph().info(value).shape;
    const int64_t rows = shape.has_rank() && shape.rank() > 0 ? shape.dim(0) : 0;
    if (!shape.has_rank() || shape.rank() == 0 || (rows >= 0 && rows % parts != 0)) {
      return invalid_argument("build over a mesh: \"%s\" of %s is to be cut into %lld x %lld equal parts along its first dimension, which "
                              "must be a multiple of that",
                              graph().value_name(value).c_str(), shape.text().c_str(), static_cast<long long>(options_.data),
                              static_cast<long long>(course_->micro));
    }
    std::vector<Value> made = {value};
    if (parts > 1) {
      const Value first = build.op("Split", {build.integer(0), value}, {{"num_split", parts}});
      DTG_TRY(build.status());
      made.clear();
      for (int64_t i = 0; i < parts; ++i) made.push_back(first.sibling(static_cast<uint32_t>(i)));
    }
    course_->parts.push_back(std::move(made));
  }
  return {};
}

Status Mesh::begin(std::span<const Value> batch, int64_t micro_batches, bool forward_only) {
  if (course_ && (course_->open || course_->move < course_->moves.size())) {
    return failed_precondition("build over a mesh: the build before is not over; go on until there are no more steps, or abandon it");
  }
  if (micro_batches < 1 || micro_batches > kMicroBatchesMost || options_.data * micro_batches > 65535) {
    return invalid_argument("build over a mesh: %lld micro-batches; there can be 1 to %lld", static_cast<long long>(micro_batches),
                            static_cast<long long>(kMicroBatchesMost));
  }
  if (model_->policy()) return failed_precondition("build over a mesh: the scope of a strategy is open on the model; leave it first");
  const Status status = or_undo([&] { return begin_course(batch, micro_batches, forward_only); }, [&] { course_.reset(); });
  if (!status.ok()) course_.reset();
  return status;
}

Status Mesh::begin_course(std::span<const Value> batch, int64_t micro_batches, bool forward_only) {
  course_ = std::make_unique<Course>();
  Course& c = *course_;
  c.before = model_->mark();
  c.of_stage = of_stage_;
  c.micro = micro_batches;
  c.forward_only = forward_only;
  DTG_TRY(cut(batch));
  c.made.resize(static_cast<size_t>(options_.pipe * options_.data * micro_batches));
  of_stage_.resize(static_cast<size_t>(options_.pipe));
  c.first_tower = model_->take_towers(static_cast<size_t>(options_.data * micro_batches));
  c.moves = pipeline_moves(options_.pipe, micro_batches, forward_only);
  return {};
}

// What a stage computes hangs on what it is given, so a step waits there for the way back that makes room for it. Gradients stop there too:
// the way back goes stage by stage.
Result<Value> Mesh::gate(Value value, NodeId after) {
  const NameScope scope(graph(), "stage_input");
  Build build(graph());
  const std::vector<NodeId> controls(after == kNoNode ? 0 : 1, after);
  const Value inputs[] = {value};
  const Value made = build.op("StopGradient", inputs, {}, {}, controls);
  DTG_TRY(build.status());
  return made;
}

Status Mesh::enter(Step* step) {
  Course& c = *course_;
  const PipelineMove move = c.moves[c.move];
  stage_ = move.stage;
  rank_ = 0;
  *step = {move.stage, c.data, move.micro, {}, {}};
  const OnDevice here(graph(), device(c.data, 0, stage_));
  const int64_t before = pipeline_waits_for(options_.pipe, move.stage, move.micro);
  const bool waits = !c.forward_only && before >= 0;
  const NodeId after = waits ? c.made[place_of(move.stage, c.data, before)].over : kNoNode;
  for (const auto& parts : c.parts) {
    DTG_ASSIGN(const Value part, gate(parts[static_cast<size_t>(c.data * c.micro + move.micro)], after));
    step->batch.push_back(part);
  }
  if (move.stage > 0) {
    for (const Value output : c.made[place_of(move.stage - 1, c.data, move.micro)].outputs) {
      DTG_ASSIGN(const Value input, gate(output, after));
      step->inputs.push_back(input);
    }
  }
  Made& made = c.made[place_of(move.stage, c.data, move.micro)];
  made.batch = step->batch;
  made.inputs = step->inputs;
  return {};
}

bool Mesh::is_again(const Step& step) const {
  return step.data > 0 || step.micro > 0 || static_cast<size_t>(step.stage) < course_->of_stage.size();
}

Result<bool> Mesh::next(Step* step) {
  if (!course_) return failed_precondition("the next step of a mesh: no build has begun");
  Course& c = *course_;
  if (c.open) return failed_precondition("the next step of a mesh: give what the step before makes first");
  if (c.move == c.moves.size()) return false;
  const Status opened = or_undo([&] { return open(step); }, [&] { abandon(); });
  if (!opened.ok()) {
    abandon();
    return opened;
  }
  return true;
}

Status Mesh::open(Step* step) {
  Course& c = *course_;
  DTG_TRY(enter(step));
  c.open = true;
  c.placed = c.again = false;
  c.variables = model_->variables().size();
  const auto tower = c.first_tower + static_cast<size_t>(c.data * c.micro + step->micro);
  model_->begin_visit(static_cast<size_t>(c.data), tower, of_stage_[static_cast<size_t>(stage_)]);
  model_->set_policy(this);
  graph().push_device(device(c.data, 0, stage_));
  c.placed = true;
  // What is built again takes no names from the stages behind it, which have those that they would have on one device.
  if (!is_again(*step)) return {};
  graph().push_name_scope("again");
  c.again = true;
  return {};
}

void Mesh::close_scopes() {
  if (!course_->open) return;
  course_->open = false;
  if (course_->again) (void)graph().pop_name_scope();
  if (course_->placed) (void)graph().pop_device();
  model_->set_policy(nullptr);
}

void Mesh::abandon() {
  if (!course_) return;
  if (course_->open) (void)model_->end_visit();
  close_scopes();
  model_->go_back(course_->before);
  of_stage_ = std::move(course_->of_stage);
  course_.reset();
}

Status Mesh::check_outputs(std::span<const Value> outputs) const {
  const Course& c = *course_;
  const PipelineMove move = c.moves[c.move];
  if (outputs.empty()) return invalid_argument("stage %lld of a mesh: it gives nothing", static_cast<long long>(move.stage));
  for (const Value output : outputs) DTG_TRY(graph().check(output).with_context("what a stage of a mesh gives"));
  const Made& first = c.made[place_of(move.stage, 0, 0)];
  if (!first.outputs.empty() && first.outputs.size() != outputs.size()) {
    return invalid_argument("stage %lld of a mesh: it gives %zu values, and gave %zu the first time", static_cast<long long>(move.stage),
                            outputs.size(), first.outputs.size());
  }
  const ValueInfo& loss = graph().info(outputs[0]);
  const bool is_last = move.stage + 1 == options_.pipe;
  if (c.forward_only || !is_last || (dtype_is_floating(loss.dtype) && (!loss.shape.has_rank() || loss.shape.rank() == 0))) return {};
  return invalid_argument("the last stage of a mesh gives its loss first, a floating-point scalar; \"%s\" is %s%s",
                          graph().value_name(outputs[0]).c_str(), dtype_name(loss.dtype), loss.shape.text().c_str());
}

Status Mesh::leave(std::span<const Value> outputs) {
  Course& c = *course_;
  const Status visited = model_->end_visit();
  close_scopes();
  DTG_TRY(visited);
  DTG_TRY(check_outputs(outputs));
  const PipelineMove move = c.moves[c.move];
  c.made[place_of(move.stage, c.data, move.micro)].outputs.assign(outputs.begin(), outputs.end());
  const bool is_first = !c.again;
  const auto variables = model_->variables();
  for (size_t i = c.variables; i < variables.size(); ++i) {
    if (variables[i].absolute) continue;
    if (!is_first) {
      return failed_precondition(
          "stage %lld of a mesh made the variable \"%s\", which it did not make the first time; build the same layers "
          "in the same order",
          static_cast<long long>(move.stage), variables[i].name.c_str());
    }
    of_stage_[static_cast<size_t>(move.stage)].push_back(i);
  }
  if (++c.data < options_.data) return {};
  c.data = 0;
  ++c.move;
  return go_on();
}

Status Mesh::give(std::span<const Value> outputs) {
  DTG_TRY(in_step("give what a step of a mesh makes"));
  const Status left = or_undo([&] { return leave(outputs); }, [&] { abandon(); });
  if (!left.ok()) abandon();
  return left;
}

// --- the ways back ---

Status Mesh::go_on() {
  Course& c = *course_;
  for (; c.move < c.moves.size() && c.moves[c.move].backward; ++c.move) {
    for (int64_t d = 0; d < options_.data; ++d) DTG_TRY(go_back(c.moves[c.move], d));
  }
  return {};
}

Status Mesh::go_back(const PipelineMove& move, int64_t data) {
  Course& c = *course_;
  Made& made = c.made[place_of(move.stage, data, move.micro)];
  made.back.assign(made.inputs.size(), Value());
  std::vector<Value> ys, weights, xs;
  if (move.stage + 1 == options_.pipe) {
    ys.push_back(made.outputs[0]);
    weights.emplace_back();
  } else {
    const Made& behind = c.made[place_of(move.stage + 1, data, move.micro)];
    for (size_t i = 0; i < behind.back.size(); ++i) {
      if (!behind.back[i].valid()) continue;
      ys.push_back(made.outputs[i]);
      weights.push_back(behind.back[i]);
    }
  }
  if (ys.empty()) return {};
  const OnDevice here(graph(), device(data, 0, move.stage));
  const NameScope scope(graph(), "backward");
  for (const Value input : made.inputs) xs.push_back(input);
  std::vector<size_t> numbers;
  for (size_t v = 0; v < model_->variables().size(); ++v) {
    const NamedVariable& variable = model_->variables()[v];
    if (!variable.trainable) continue;
    numbers.push_back(v);
    xs.push_back(variable.at_replica(static_cast<size_t>(data)).handle);
  }
  DTG_ASSIGN(const std::vector<Gradient> gradients, add_gradients(graph(), ys, xs, weights));
  Build build(graph());
  std::vector<NodeId> ends;
  for (size_t i = 0; i < made.inputs.size(); ++i) {
    if (!gradients[i].any()) continue;
    made.back[i] = densify(build, gradients[i]);
    ends.push_back(made.back[i].node());
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Gradient& gradient = gradients[made.inputs.size() + i];
    if (!gradient.any()) continue;
    DTG_TRY(add_up(numbers[i], data, gradient));
    const Sum& sum = c.sums[numbers[i]][static_cast<size_t>(data)];
    ends.push_back(gradient.is_rows() ? gradient.values.node() : sum.dense.node());
  }
  made.over = build.node("NoOp", {}, {}, "over", ends);
  return build.status();
}

// One after the other, so that no more than the sum is kept; rows stay rows.
Status Mesh::add_up(size_t variable, int64_t data, const Gradient& gradient) {
  auto& sums = course_->sums;
  if (sums.size() < model_->variables().size()) sums.resize(model_->variables().size());
  if (sums[variable].empty()) sums[variable].resize(static_cast<size_t>(options_.data));
  Sum& sum = sums[variable][static_cast<size_t>(data)];
  if (gradient.is_rows()) {
    sum.rows.push_back(gradient);
    return {};
  }
  const NamedVariable here = model_->variables()[variable].at_replica(static_cast<size_t>(data));
  const ColocationScope beside(graph(), here.handle.node());
  Build build(graph());
  sum.dense = sum.dense.valid() ? build.add(sum.dense, gradient.dense) : gradient.dense;
  return build.status();
}

}  // namespace dtg
