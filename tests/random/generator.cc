// How a scene comes about: nodes in phases, runs after each phase.
#include "random/generator.h"

#include <algorithm>
#include <set>

#include "graph/gradient.h"
#include "random/ask.h"
#include "random/calls.h"
#include "random/huge.h"

namespace dtg::random {
namespace {

class Maker {
 public:
  Maker(const Tables& tables, uint64_t seed, const Wishes& wishes, Tally& tally)
      : tables_(tables), w_(*tables.ops, *tables.kernels, *tables.pool, tally, wishes, seed), draw_(w_.draw) {
    for (const OpDef* op : public_ops(*tables.ops)) {
      if (!wishes.only.empty() && std::ranges::find(wishes.only, op->name()) == wishes.only.end()) continue;
      all_.push_back(op);
      if (op->is_stateful()) stateful_.push_back(op);
      if (tables.kernels->find_element(op->name(), DType::f32)) elements_.push_back(op);
    }
  }

  Scene make() {
    static constexpr int kLow[] = {5, 15, 60}, kHigh[] = {15, 60, 300};
    const int size = draw_.chance(45) ? 0 : draw_.chance(70) ? 1 : 2;
    const auto total = static_cast<size_t>(draw_.between(kLow[size], kHigh[size]));
    theme_ = static_cast<int>(draw_.below(4));
    const int64_t phases = draw_.chance(25) ? 2 : 1;
    for (int64_t phase = 1; phase <= phases; ++phase) {
      const size_t goal = total * static_cast<size_t>(phase) / static_cast<size_t>(phases);
      for (int attempts = 0; w_.scene.nodes.size() < goal && attempts < 2000; ++attempts) step();
      if (w_.wishes.functions) functions();
      if (phase > 1) w_.count("growth");
      add_runs();
    }
    if (draw_.chance(8)) add_huge(w_);
    return std::move(w_.scene);
  }

 private:
  void step() {
    const int64_t kind = draw_.below(1000);
    if (kind < 12) return chain();
    if (kind < 22) return sum_of_many();
    if (kind < (theme_ == 2 ? 60 : 32)) return gradients();
    if (kind < 40) return towers();
    if (kind < 60) return beside();
    if (kind < 70) return many_of_one();
    if (kind < 82) return behind_a_check();
    if (kind < (theme_ == 2 ? 220 : 100) && w_.wishes.only.empty()) return Calls(w_).make();
    const std::vector<const OpDef*>& from = theme_ == 0 && !elements_.empty() && draw_.chance(70)   ? elements_
                                            : theme_ == 1 && !stateful_.empty() && draw_.chance(60) ? stateful_
                                                                                                    : all_;
    for (int attempt = 0; attempt < 3; ++attempt) {
      if (Ask(w_, *draw_.pick(from)).propose() >= 0) return;
    }
  }

  bool has(std::string_view op) const {
    return std::ranges::any_of(w_.scene.nodes, [&](const NodeRecord& node) { return node.op.ends_with(op); });
  }

  // A condition and a loop at least, where what is there gives parts for them, and more that may have these inside.
  void functions() {
    for (int attempts = 0; attempts < 60 && !(has("While") && has("If")); ++attempts) {
      if (attempts % 4 == 3 && !elements_.empty()) Ask(w_, *draw_.pick(elements_)).propose();
      if (draw_.chance(25) && w_.wishes.only.empty()) Ask(w_, *w_.ops.find("QueueDequeueV2")).propose();
      Calls(w_).make();
    }
    for (int64_t more = draw_.between(1, 5); more > 0; --more) {
      if (draw_.chance(30)) gradients();
      else Calls(w_).make();
    }
  }

  Port element_of(Port value) {
    const OpDef& op = *draw_.pick(elements_);
    NodeRecord record;
    record.op = op.name();
    if (op.find_attr("T")) record.attrs.emplace_back("T", DType::f32);
    record.inputs.push_back(value);
    while (record.inputs.size() < op.inputs().size()) {
      record.inputs.push_back(draw_.chance(25)     ? value
                              : !partners_.empty() ? draw_.pick(partners_)
                                                   : w_.wanted(DType::f32, w_.tensor(value).shape()));
    }
    if (draw_.chance(50)) std::ranges::reverse(record.inputs);
    const int node = w_.add(std::move(record));
    return node < 0 ? value : Port{node, 0};
  }

  // Longer than any group that a planner may want to make of it.
  void chain() {
    if (elements_.empty()) return;
    w_.count("long_chain");
    Port value = w_.any(DType::f32, 0, 3);
    // With partners that are there before, the chain is one piece; with others it has branches.
    partners_.clear();
    for (int64_t i = draw_.chance(50) && value.node >= 0 ? 4 : 0; i > 0; --i)
      partners_.push_back(w_.wanted(DType::f32, w_.tensor(value).shape()));
    for (int64_t length = draw_.chance(70) ? draw_.between(17, 40) : draw_.between(60, 140); length > 0 && value.node >= 0; --length)
      value = element_of(value);
    if (value.node >= 0) ends_.push_back(value);
    partners_.clear();
  }

  // 20 values or many more, or a loss and its 20 penalties; what is added is there before, so that nobody else uses the sums.
  void sum_of_many() {
    w_.count("sum_of_20");
    const bool penalties = draw_.chance(40), fresh = draw_.chance(50);
    const Shape shape = w_.shape(0, 2);
    const int count = draw_.chance(60) ? 21 : static_cast<int>(draw_.between(30, 90));
    std::vector<Port> terms;
    for (int i = 0; i < count; ++i) {
      Port term = fresh ? w_.source(DType::f32, shape) : w_.wanted(DType::f32, draw_.chance(10) ? Shape() : shape);
      if (penalties) term = {w_.add({"L2Loss", -1, {term}, {}, {}}), 0};
      if (term.node < 0) return;
      terms.push_back(draw_.chance(5) ? terms.empty() ? term : draw_.pick(terms) : term);
    }
    Port sum = terms[0];
    for (int i = 1; i < count; ++i) {
      const Port term = terms[static_cast<size_t>(i)];
      sum = {w_.add({"AddV2", -1, draw_.chance(50) ? std::vector<Port>{sum, term} : std::vector<Port>{term, sum}, {}, {}}), 0};
      if (sum.node < 0) return;
    }
    ends_.push_back(sum);
  }

  // x of several variables; the loss may be anything that floats.
  void gradients() {
    std::vector<Value> ys, xs;
    const DType dtype = draw_.chance(80) ? DType::f32 : DType::f64;
    for (int64_t i = draw_.between(1, 2); i > 0; --i) {
      if (const auto y = w_.find(dtype)) ys.push_back(w_.value(y->port));
    }
    for (int64_t i = draw_.between(1, 3); i > 0; --i) {
      if (const auto x = w_.find(dtype)) xs.push_back(w_.value(x->port));
    }
    for (const Resident& var : w_.variables) {
      if (var.dtype == dtype && draw_.chance(40)) xs.push_back(w_.value(var.handle));
    }
    std::ranges::sort(xs, {}, &Value::id);
    xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
    if (ys.empty() || xs.empty()) return;
    const uint32_t before = w_.graph().node_count();
    if (add_gradients(w_.graph(), ys, xs, {}).ok() && w_.adopt(before)) w_.count("gradients");
  }

  // What was made of a read is fetched while the variable changes; it must be what was there before.
  void beside() {
    const DType dtype = draw_.chance(75) ? DType::f32 : draw_.chance(50) ? DType::f64 : DType::i32;
    Resident& var = w_.variable(dtype, w_.shape(0, 3));
    const int read = w_.add({"ReadVariableOp", -1, {var.handle}, w_.controls_for(var, false), {{"dtype", dtype}}});
    if (read < 0) return;
    w_.done(var, read, false);
    Port made = {read, 0};
    for (int64_t i = draw_.between(1, 3); i > 0; --i) {
      w_.favourite = made;
      const OpDef* op = draw_.pick(all_);
      for (int attempt = 0; attempt < 6 && op->is_stateful(); ++attempt) op = draw_.pick(all_);
      const int node = op->is_stateful() ? -1 : Ask(w_, *op).propose();
      if (node >= 0 && uses(node, made) && w_.has_output(node)) made = {node, 0};
    }
    w_.favourite = {};
    std::vector<int> controls = w_.wishes.ordered && var.last_write >= 0 ? std::vector<int>{var.last_write} : std::vector<int>();
    const int update = w_.add({"AssignAddVariableOp", -1, {var.handle, w_.wanted(dtype, var.shape)}, controls, {{"dtype", dtype}}});
    if (update < 0) return;
    w_.done(var, update, true);
    w_.count("beside_update");
    pairs_.emplace_back(made, update);
  }

  bool uses(int node, const Port& port) const {
    const std::vector<Port>& inputs = w_.scene.nodes[static_cast<size_t>(node)].inputs;
    return std::ranges::find(inputs, port) != inputs.end();
  }

  // A list in which values stand several times.
  void many_of_one() {
    w_.count("many_of_one");
    const Shape shape = w_.shape(0, 2);
    std::vector<Port> some, terms;
    for (int64_t i = draw_.between(1, 12); i > 0; --i)
      some.push_back(draw_.chance(50) ? w_.wanted(DType::f32, shape) : w_.source(DType::f32, shape));
    // The values are to be in memory that may be written to.
    for (Port& port : some) {
      if (draw_.chance(60)) port = {w_.add({"Neg", -1, {port}, {}, {}}), 0};
      if (port.node < 0) return;
    }
    for (int64_t i = draw_.between(2, 20); i > 0; --i) terms.push_back(draw_.pick(some));
    const int node = w_.add({"AddN", -1, terms, {}, {}});
    if (node >= 0) ends_.push_back({node, 0});
  }

  // A division that fails in some runs, by a control edge before something that a planner may leave out, merge or turn into something else.
  void behind_a_check() {
    w_.defaults[-1] = Tensor::scalar<int32_t>(1).take();
    const int divisor = w_.add({"Placeholder", -1, {}, {}, {{"dtype", DType::i32}, {"shape", PartialShape::scalar()}}});
    const Port one = w_.constant(w_.defaults[-1]);
    const int check = divisor < 0 || one.node < 0 ? -1 : w_.add({"FloorDiv", -1, {one, {divisor, 0}}, {}, {}});
    if (check < 0) return;
    w_.exact[static_cast<size_t>(divisor)] = true;
    divisors_.push_back(divisor);
    w_.count("behind_a_check");
    const Port x = w_.wanted(DType::f32, w_.shape(1, 3));
    if (x.node < 0) return;
    const int64_t rank = w_.tensor(x).shape().rank();
    const auto behind = [&](const Tensor& value) {
      return Port{w_.add({"Const", -1, {}, {check}, {{"value", value}, {"dtype", value.dtype()}}}), 0};
    };
    const auto numbers = [&](int64_t from, int64_t step) {
      std::vector<int64_t> list;
      for (int64_t i = 0; i < rank; ++i) list.push_back(from + i * step);
      return Tensor::ints(DType::i32, list).take();
    };
    Port y;
    switch (draw_.below(6)) {
      case 0: y = {w_.add({"Mul", -1, {x, behind(Tensor::scalar<float>(1).take())}, {}, {}}), 0}; break;
      case 1: y = {w_.add({"Transpose", -1, {x, behind(numbers(0, 1))}, {}, {}}), 0}; break;
      case 2: {
        const Port turned = {w_.add({"Transpose", -1, {x, w_.constant(numbers(rank - 1, -1))}, {check}, {}}), 0};
        y = {turned.node < 0 ? -1 : w_.add({"Transpose", -1, {turned, w_.constant(numbers(rank - 1, -1))}, {}, {}}), 0};
        break;
      }
      case 3: {
        const Port square = {w_.add({"Mul", -1, {x, x}, {}, {}}), 0};
        y = {square.node < 0 ? -1 : w_.add({"Sum", -1, {square, behind(numbers(0, 1))}, {}, {}}), 0};
        break;
      }
      case 4: {
        Port same = {w_.add({"Identity", -1, {x}, {check}, {}}), 0};
        if (draw_.chance(50) && same.node >= 0) same = {w_.add({"Neg", -1, {same}, {}, {}}), 0};
        y = {same.node < 0 ? -1 : w_.add({draw_.chance(50) ? "Shape" : "Size", -1, {same}, {}, {}}), 0};
        break;
      }
      default: {
        const Port two = w_.constant(Tensor::scalar<float>(2).take());
        const Port first = {w_.add({"Mul", -1, {x, two}, {}, {}}), 0};
        y = {first.node < 0 ? -1 : w_.add({"Mul", -1, {x, behind(Tensor::scalar<float>(2).take())}, {}, {}}), 0};
      }
    }
    if (y.node >= 0) checked_.push_back(y);
  }

  // One read, worked on in two places, and two updates that nothing orders. Whole numbers add up in any order.
  void towers() {
    const DType dtype = w_.wishes.ordered || draw_.chance(60) ? DType::i32 : DType::f32;
    Resident& var = w_.variable(dtype, w_.shape(0, 2));
    const std::vector<int> controls = w_.wishes.ordered && var.last_write >= 0 ? std::vector<int>{var.last_write} : std::vector<int>();
    const int read = w_.add({"ReadVariableOp", -1, {var.handle}, controls, {{"dtype", dtype}}});
    if (read < 0) return;
    w_.count("towers");
    // Each update waits for something of its own from the other device, so that both may begin at the same time. All of it is
    // there before the first update, because it may read the variable, too.
    int values[2];
    for (int tower = 0; tower < 2; ++tower) {
      const int product = w_.add({"Mul", tower, {{read, 0}, w_.wanted(dtype, var.shape)}, {}, {}});
      const int own = w_.add({"Neg", 1, {w_.wanted(dtype, var.shape)}, {}, {}});
      values[tower] = product < 0 || own < 0 ? -1 : w_.add({"AddV2", 0, {{product, 0}, {own, 0}}, {}, {}});
      if (values[tower] < 0) return;
    }
    for (int value : values) {
      const char* op = draw_.chance(50) ? "AssignAddVariableOp" : "AssignSubVariableOp";
      const int update = w_.add({op, -1, {var.handle, {value, 0}}, {}, {{"dtype", dtype}}});
      if (update < 0) return;
      towers_.push_back(update);
      // A later read must see both; one of them is enough to wait for only where creation orders.
      if (!w_.wishes.ordered) var.last_write = update;
    }
    if (w_.wishes.ordered) var.last_write = w_.add({"NoOp", -1, {}, {towers_.end()[-2], towers_.back()}, {}});
  }

  // --- runs ---

  void add_runs() {
    RunRecord first;
    first.nodes = static_cast<int>(w_.scene.nodes.size());
    for (; initialized_ < w_.variables.size(); ++initialized_) {
      if (w_.variables[initialized_].assign >= 0) first.targets.push_back(w_.variables[initialized_].assign);
    }
    if (!first.targets.empty()) w_.scene.runs.push_back(std::move(first));
    for (int64_t i = draw_.between(1, 4); i > 0; --i) {
      if (draw_.chance(25) && !w_.scene.runs.empty() && !w_.scene.runs.back().fetches.empty()) {
        w_.count("repeated_run");
        w_.scene.runs.push_back(w_.scene.runs.back());
      } else {
        add_run();
      }
    }
    // Two writers of one variable meet by chance only.
    for (int64_t i = towers_.empty() ? 0 : 3; i > 0; --i) {
      RunRecord run;
      run.times = 40;
      run.nodes = static_cast<int>(w_.scene.nodes.size());
      run.targets = towers_;
      feed_placeholders(run, false);
      w_.scene.runs.push_back(std::move(run));
    }
    read_everything();
  }

  void read_everything() {
    RunRecord last;
    for (const Resident& var : w_.variables) {
      const int node = w_.add({"ReadVariableOp", -1, {var.handle}, {}, {{"dtype", var.dtype}}});
      if (node < 0) continue;
      last.fetches.push_back({node, 0});
      // Beside an update in the same run it has no order but that of creation.
      if (w_.wishes.ordered) w_.known.pop_back();
    }
    last.nodes = static_cast<int>(w_.scene.nodes.size());
    if (!last.fetches.empty()) w_.scene.runs.push_back(std::move(last));
  }

  void add_run() {
    RunRecord run;
    run.nodes = static_cast<int>(w_.scene.nodes.size());
    interior_feeds(run);
    std::vector<Port> unused = leaves();
    for (int64_t i = draw_.between(0, 6); i > 0; --i) {
      Port port = draw_.chance(50) && !unused.empty() ? draw_.pick(unused) : w_.known.empty() ? Port() : draw_.pick(w_.known).port;
      if (!ends_.empty() && draw_.chance(15)) port = draw_.pick(ends_);
      if (draw_.chance(8) && !run.fetches.empty()) {
        port = draw_.pick(run.fetches);
        w_.count("fetched_twice");
      }
      if (port.node >= 0 && !is_fed(run, port) && !w_.fed(port.node)) run.fetches.push_back(port);
    }
    for (int64_t i = draw_.between(0, 3); i > 0; --i) {
      if (const int target = effect(); target >= 0) run.targets.push_back(target);
    }
    for (const auto& [made, update] : pairs_) {
      if (!draw_.chance(30) || is_fed(run, made)) continue;
      run.fetches.push_back(made);
      run.targets.push_back(update);
    }
    for (const Port& port : checked_) {
      if (draw_.chance(50) && !is_fed(run, port)) run.fetches.push_back(port);
    }
    if (draw_.chance(40)) {
      for (int update : towers_) run.targets.push_back(update);
    }
    if (run.fetches.empty() && run.targets.empty()) return;
    feed_placeholders(run);
    w_.scene.runs.push_back(std::move(run));
  }

  int effect() {
    for (int attempt = 0; attempt < 12; ++attempt) {
      const auto n = static_cast<int>(draw_.below(static_cast<int64_t>(w_.scene.nodes.size())));
      const bool first = std::ranges::any_of(w_.variables, [n](const Resident& var) { return var.assign == n; });
      const bool read = w_.scene.nodes[static_cast<size_t>(n)].op == "ReadVariableOp";
      if (w_.wishes.ordered && (first || read)) continue;
      if (attempt == 11 || w_.ops.find(w_.scene.nodes[static_cast<size_t>(n)].op)->is_stateful()) return n;
    }
    return -1;
  }

  std::vector<Port> leaves() const {
    std::set<int> used;
    for (const NodeRecord& node : w_.scene.nodes) {
      for (const Port& input : node.inputs) used.insert(input.node);
    }
    std::vector<Port> list;
    for (const Known& known : w_.known) {
      if (!used.count(known.port.node)) list.push_back(known.port);
    }
    return list;
  }

  static bool is_fed(const RunRecord& run, const Port& port) {
    return std::ranges::any_of(run.feeds, [&](const auto& feed) { return feed.first == port; });
  }

  void interior_feeds(RunRecord& run) {
    if (!draw_.chance(15) || w_.known.empty()) return;
    const Known& one = draw_.pick(w_.known);
    if (w_.fed(one.port.node)) return;
    w_.count("interior_feed");
    const bool same = !dtype_is_floating(one.tensor.dtype());
    run.feeds.emplace_back(one.port, same ? one.tensor : w_.random_tensor(one.tensor.dtype(), one.tensor.shape()));
  }

  void feed_placeholders(RunRecord& run, bool others = true) {
    const std::vector<bool> needed = needed_nodes(w_.scene, run);
    for (size_t n = 0; n < needed.size(); ++n) {
      const int node = static_cast<int>(n);
      if (!w_.fed(node) || (!needed[n] && !draw_.chance(3)) || is_fed(run, {node, 0})) continue;
      const Tensor& usual = w_.defaults[node];
      Tensor fed = usual;
      if (others && draw_.chance(25) && std::ranges::find(divisors_, node) != divisors_.end()) fed = Tensor::scalar<int32_t>(0).take();
      if (others && !w_.exact[n] && draw_.chance(50)) fed = w_.random_tensor(usual.dtype(), usual.shape());
      if (others && !w_.exact[n] && draw_.chance(2)) {
        const Shape other = w_.shape();
        if (w_.info({node, 0}).shape.admits(other)) {
          fed = w_.random_tensor(usual.dtype(), other);
          w_.count("other_shape_fed");
        }
      }
      run.feeds.emplace_back(Port{node, 0}, fed);
    }
  }

  const Tables tables_;
  Workshop w_;
  Draw& draw_;
  int theme_ = 0;
  std::vector<const OpDef*> all_, stateful_, elements_;
  std::vector<int> towers_;
  std::vector<std::pair<Port, int>> pairs_;  // to fetch, and the update beside
  std::vector<int> divisors_;                // placeholders that must not be fed zero
  std::vector<Port> checked_;                // what comes after a check of one
  std::vector<Port> ends_;                   // of chains
  std::vector<Port> partners_;               // of the chain in the making
  size_t initialized_ = 0;
};

}  // namespace

std::vector<const OpDef*> public_ops(const OpTable& ops) {
  std::vector<const OpDef*> list = ops.list();
  // What has to do with functions and lists is made by calls.cc.
  const auto is_list = [](const ArgDef& arg) { return arg.dtype == DType::variant; };
  const auto is_function = [](const AttrDef& attr) { return attr.kind == AttrKind::function || attr.kind == AttrKind::list_function; };
  std::erase_if(list, [&](const OpDef* op) {
    return left_out(op->name()) != nullptr || std::ranges::any_of(op->inputs(), is_list) || std::ranges::any_of(op->outputs(), is_list) ||
           std::ranges::any_of(op->attrs(), is_function);
  });
  return list;
}

Truth truth_of(const Tables& tables, const Scene& scene) {
  Truth truth;
  auto graph = Graph::create(tables.ops);
  if (!graph.ok()) return truth;
  Interpreter interpreter(*tables.kernels, *tables.pool);
  for (const RunRecord& run : scene.runs) {
    const Status grown = replay(scene, run.nodes, Places::none, *graph.value());
    truth.push_back(grown.ok() ? interpreter.run(*graph.value(), scene, run)
                               : Outcome{Verdict::error, grown.with_context("replay"), {}, 1});
    for (int time = 1; time < run.times && truth.back().verdict == Verdict::ok; ++time) {
      truth.back() = interpreter.run(*graph.value(), scene, run);
      truth.back().times = time + 1;
    }
    if (truth.back().verdict != Verdict::ok) break;
  }
  return truth;
}

Scene make_scene(const Tables& tables, uint64_t seed, const Wishes& wishes, Tally& tally) {
  Scene scene = Maker(tables, seed, wishes, tally).make();
  const Truth truth = truth_of(tables, scene);
  // What follows an error is not determined. Most errors are left out, but for what is too large, and what would wait for ever always.
  const bool bad = !truth.empty() && truth.back().verdict != Verdict::ok;
  const Code code = bad ? truth.back().status.code() : Code::ok;
  const bool keep = bad && code != Code::unavailable && (seed % 4 == 0 || code == Code::resource_exhausted);
  scene.runs.resize(truth.size() - (bad && !keep ? 1 : 0));
  tally.features["runs"] += static_cast<int64_t>(scene.runs.size());
  tally.features["nodes"] += static_cast<int64_t>(scene.nodes.size());
  if (keep) ++tally.features["failing_run"];
  return scene;
}

}  // namespace dtg::random
