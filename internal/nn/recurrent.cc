// Adds the nodes of recurrent layers. An LSTM is one node, BlockLSTMV2; the others are loops over the steps, with the product of the input
// made before for all of them at once. Inside, time comes first. Called by the thread that builds the model.
#include "nn/recurrent.h"

#include <array>

#include "graph/closure.h"
#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
namespace {

using Kind = RecurrentLayer::Kind;
using Direction = RecurrentLayer::Direction;

constexpr const char* kNames[] = {"lstm", "gru", "simple_rnn"};
constexpr int64_t kGates[] = {4, 3, 1};

const char* what(const RecurrentLayer& layer) { return kNames[static_cast<int>(layer.kind)]; }

// The steps of one direction, all [time, batch, ...]; `hidden` and `cell` are [batch, units].
struct Steps {
  Value outputs, cells;
};

// One direction over x[time, batch, in], which starts at its first step.
class OneWay {
 public:
  OneWay(Model& model, const RecurrentLayer& layer, Value x, int64_t in)
      : model_(model), layer_(layer), build_(model.graph()), x_(x), in_(in) {}

  Status make_weights() {
    const int64_t units = layer_.units, gates = kGates[static_cast<int>(layer_.kind)] * units;
    const DType dtype = build_.info(x_).dtype;
    DTG_ASSIGN(const Shape kernel, Shape::make(std::array{in_, gates}));
    DTG_ASSIGN(const Shape square, Shape::make(std::array{units, gates}));
    DTG_ASSIGN(kernel_, weight("kernel", dtype, kernel, layer_.kernel));
    DTG_ASSIGN(recurrent_, weight("recurrent_kernel", dtype, square, layer_.recurrent));
    if (!layer_.use_bias) return {};
    // What is multiplied by the reset gate has a bias of its own.
    const Shape shape = layer_.kind == Kind::gru ? Shape::of({2, gates}) : Shape::of({gates});
    Initializer bias = layer_.bias;
    if (layer_.kind == Kind::lstm && layer_.forget_bias) bias.ones_from = units, bias.ones_end = 2 * units;
    DTG_ASSIGN(bias_, weight("bias", dtype, shape, bias));
    return {};
  }

  Result<Steps> run(Value hidden, Value cell) {
    switch (layer_.kind) {
      case Kind::lstm: return lstm(hidden, cell);
      case Kind::gru: return loop(hidden);
      case Kind::simple: return loop(hidden);
    }
    return invalid_argument("recurrent layer: kind %d is unknown", static_cast<int>(layer_.kind));
  }

 private:
  Result<Value> weight(std::string_view name, DType dtype, const Shape& shape, const Initializer& initializer) {
    DTG_ASSIGN(const NamedVariable made,
               variable_of(model_, layer_.weights_of, {.name = name, .dtype = dtype, .shape = shape, .initializer = initializer}));
    return made.read;
  }

  Result<Steps> lstm(Value hidden, Value cell) {
    const DType dtype = build_.info(x_).dtype;
    const int64_t units = layer_.units;
    const Value steps = build_.cast(steps_of(x_), DType::i64);
    const Value weights = build_.op("ConcatV2", {kernel_, recurrent_, build_.integer(0)});
    const Value none = build_.op("Fill", {build_.ints({units}), build_.scalar(dtype, 0)});
    const Value bias = bias_.valid() ? bias_ : build_.op("Fill", {build_.ints({4 * units}), build_.scalar(dtype, 0)});
    const Value outs = build_.op("BlockLSTMV2", {steps, x_, cell, hidden, weights, none, none, none, bias});
    DTG_TRY(build_.status());
    return Steps{outs.sibling(6), outs.sibling(1)};
  }

  Value steps_of(Value x) { return dimension(build_, build_.shape(x), 0); }

  // One output after the other, in a list.
  Result<Steps> loop(Value hidden) {
    const int64_t units = layer_.units, gates = kGates[static_cast<int>(layer_.kind)] * units;
    Value from_x = project(build_, x_, kernel_, in_, gates);
    const bool is_gru = layer_.kind == Kind::gru;
    if (bias_.valid()) from_x = build_.op("BiasAdd", {from_x, is_gru ? row(bias_, 0, gates) : bias_});
    bias_of_hidden_ = is_gru && bias_.valid() ? row(bias_, 1, gates) : Value();
    DTG_TRY(build_.status());
    const DType dtype = build_.info(x_).dtype;
    // A batch that is known lets the rounds be planned with it.
    batch_ = agreed_batch(hidden);
    inputs_ =
        build_.op("TensorListFromTensor", {from_x, build_.ints({batch_, gates})}, {{"element_dtype", dtype}, {"shape_type", DType::i32}});
    const Value steps = steps_of(x_);
    const Value list =
        build_.op("TensorListReserve", {build_.ints({batch_, units}), steps}, {{"element_dtype", dtype}, {"shape_type", DType::i32}});
    DTG_TRY(build_.status());
    const Value start[] = {build_.integer(0), hidden, list};
    DTG_ASSIGN(Closure condition, test(start, steps));
    DTG_ASSIGN(Closure body, round(start));
    DTG_ASSIGN(const std::vector<Value> outs, add_while(model_.graph(), start, std::move(condition), std::move(body)));
    const Value outputs = build_.op("TensorListStack", {outs[2], build_.ints({batch_, units})}, {{"element_dtype", dtype}});
    DTG_TRY(build_.status());
    return Steps{outputs, {}};
  }

  // -1 where the input and the state do not both tell the same one.
  int64_t agreed_batch(Value hidden) {
    const PartialShape x = build_.info(x_).shape, state = build_.info(hidden).shape;
    const bool agreed = x.has_rank() && state.has_rank() && x.dim(1) == state.dim(0);
    return agreed ? x.dim(1) : -1;
  }

  Value row(Value x, int64_t index, int64_t width) {
    return build_.reshape(build_.op("Slice", {x, build_.ints({index, 0}), build_.ints({1, width})}), build_.ints({width}));
  }

  // A body of the loop, with arguments for the number of the step, the state and the outputs so far.
  Result<std::array<Value, 3>> arguments(Graph& body, std::span<const Value> start) {
    std::array<Value, 3> made;
    for (size_t i = 0; i < 3; ++i) {
      ValueInfo info = model_.graph().info(start[i]);
      if (i == 1) {
        DTG_ASSIGN(info.shape, PartialShape::make(std::array<int64_t, 2>{batch_, layer_.units}));
      }
      DTG_ASSIGN(made[i], body.add_argument(info));
    }
    return made;
  }

  Result<Closure> test(std::span<const Value> start, Value steps) {
    DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&model_.graph())));
    DTG_ASSIGN(const auto state, arguments(*body, start));
    Build build(*body);
    const Value more = build.op("Less", {state[0], steps});
    DTG_TRY(build.status());
    return finish_function(std::move(body), "more", {more});
  }

  Result<Closure> round(std::span<const Value> start) {
    DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&model_.graph())));
    DTG_ASSIGN(const auto state, arguments(*body, start));
    Build build(*body);
    const DType dtype = model_.graph().info(x_).dtype;
    const int64_t gates = kGates[static_cast<int>(layer_.kind)] * layer_.units;
    const Value x = build.op("TensorListGetItem", {inputs_, state[0], build.ints({batch_, gates})}, {{"element_dtype", dtype}});
    Value h = build.op("MatMul", {state[1], recurrent_});
    if (bias_of_hidden_.valid()) h = build.op("BiasAdd", {h, bias_of_hidden_});
    const Value after = layer_.kind == Kind::gru ? gru_step(build, x, h, state[1]) : build.op("Tanh", {build.add(x, h)});
    const Value list = build.op("TensorListSetItem", {state[2], state[0], after}, {{"element_dtype", dtype}});
    const Value next = build.add(state[0], build.integer(1));
    DTG_TRY(build.status());
    return finish_function(std::move(body), "step", {next, after, list});
  }

  // The update gate, the reset gate and the candidate, in this order. Splits rather than slices, since the way back of one is a single
  // concatenation.
  Value gru_step(Build& build, Value x, Value h, Value before) const {
    const Value axis = build.integer(1), sizes = build.ints({2 * layer_.units, layer_.units}, DType::i64);
    const Value from_x = build.op("SplitV", {x, sizes, axis}, {{"num_split", int64_t{2}}});
    const Value from_h = build.op("SplitV", {h, sizes, axis}, {{"num_split", int64_t{2}}});
    if (!build.ok()) return {};
    const Value gates = build.op("Sigmoid", {build.add(from_x, from_h)});
    const Value update = build.op("Split", {axis, gates}, {{"num_split", int64_t{2}}});
    if (!build.ok()) return {};
    const Value reset = update.sibling(1);
    const Value candidate = build.op("Tanh", {build.add(from_x.sibling(1), build.mul(reset, from_h.sibling(1)))});
    return build.add(build.mul(update, before), build.mul(build.sub(build.like(update, 1), update), candidate));
  }

  Model& model_;
  const RecurrentLayer& layer_;
  Build build_;
  const Value x_;
  const int64_t in_;
  int64_t batch_ = -1;
  Value kernel_, recurrent_, bias_, bias_of_hidden_, inputs_;
};

// The input with time first, and what both directions ask of it.
class Sequence {
 public:
  Sequence(Model& model, const RecurrentLayer& layer, Value x, int64_t in) : model_(model), layer_(layer), build_(model.graph()), in_(in) {
    x_ = swap(x);
    const Value shape = build_.shape(x_);
    time_ = dimension(build_, shape, 0);
    batch_ = dimension(build_, shape, 1);
    if (layer.lengths.valid()) lengths_ = checked_lengths(build_, one_each(layer.lengths), time_);
  }

  Result<Recurrent> run() {
    if (layer_.direction != Direction::both) return one(layer_.direction == Direction::backward, layer_);
    RecurrentLayer half = layer_;
    const std::string there = std::string(layer_.weights_of) + "/forward", back = std::string(layer_.weights_of) + "/backward";
    if (!layer_.weights_of.empty()) half.weights_of = there;
    DTG_ASSIGN(const Recurrent forward, scoped("forward", false, half));
    if (!layer_.weights_of.empty()) half.weights_of = back;
    DTG_ASSIGN(const Recurrent backward, scoped("backward", true, half));
    Recurrent both;
    both.outputs = build_.op("ConcatV2", {forward.outputs, backward.outputs, build_.integer(2)});
    both.hidden = build_.op("ConcatV2", {forward.hidden, backward.hidden, build_.integer(1)});
    if (forward.cell.valid()) both.cell = build_.op("ConcatV2", {forward.cell, backward.cell, build_.integer(1)});
    DTG_TRY(build_.status());
    return both;
  }

 private:
  Result<Recurrent> scoped(std::string_view name, bool backward, const RecurrentLayer& layer) {
    const NameScope scope(model_.graph(), name);
    return one(backward, layer);
  }

  Result<Recurrent> one(bool backward, const RecurrentLayer& layer) {
    const Value hidden = layer.hidden.valid() ? layer.hidden : zeros();
    const Value cell = layer.kind != Kind::lstm ? Value() : layer.cell.valid() ? layer.cell : zeros();
    const Value x = backward ? turned(x_) : x_;
    DTG_TRY(build_.status());
    OneWay way(model_, layer, x, in_);
    DTG_TRY(way.make_weights());
    DTG_ASSIGN(const Steps steps, way.run(hidden, cell));
    Recurrent made;
    const Value all = with_start(hidden, steps.outputs);
    made.hidden = last(all);
    if (steps.cells.valid()) made.cell = last(with_start(cell, steps.cells));
    Value outputs = steps.outputs;
    if (backward) outputs = turned(outputs);
    // As in Keras a sequence of no steps has no last output, whatever state it began with.
    const bool held_back = !backward && layer.direction != Direction::both;
    if (lengths_.valid()) outputs = !held_back ? counted(outputs) : held(layer.hidden.valid() ? with_start(zeros(), outputs) : all);
    made.outputs = swap(outputs);
    DTG_TRY(build_.status());
    // The graph cannot see it through the lists of a loop, and layers such as flatten ask for it.
    const PartialShape& x_shape = build_.info(x_).shape;
    PartialShape shape = PartialShape::of_rank(3), state = PartialShape::of_rank(2);
    shape.set_dim(0, x_shape.dim(1));
    shape.set_dim(1, x_shape.dim(0));
    shape.set_dim(2, layer.units);
    state.set_dim(0, x_shape.dim(1));
    state.set_dim(1, layer.units);
    made.outputs = shaped(build_, made.outputs, shape);
    made.hidden = shaped(build_, made.hidden, state);
    DTG_TRY(build_.status());
    return made;
  }

  // Where the graph does not show whether there is one for each example, the run looks.
  Value one_each(Value lengths) {
    if (!build_.ok()) return {};
    const PartialShape &of = build_.info(lengths).shape, &x = build_.info(x_).shape;
    if (of.rank() == 1 && of.dim(0) >= 0 && of.dim(0) == x.dim(1)) return lengths;
    return build_.op("Reshape", {lengths, build_.op("Pack", {batch_})}, {}, "one_length_for_each_example");
  }

  Value swap(Value x) { return build_.op("Transpose", {x, build_.ints({1, 0, 2})}); }
  Value zeros() {
    const Value of[] = {batch_, build_.integer(layer_.units)};
    const Value shape = build_.op("Pack", of);
    return build_.ok() ? build_.op("Fill", {shape, build_.like(x_, 0)}) : Value();
  }
  // The steps that count in the opposite order, the others where they are.
  Value turned(Value x) {
    if (!lengths_.valid()) return build_.op("ReverseV2", {x, build_.ints({0})});
    return build_.op("ReverseSequence", {x, lengths_}, {{"seq_dim", 0}, {"batch_dim", 1}});
  }
  Value with_start(Value start, Value steps) {
    if (!lengths_.valid()) return steps;
    return build_.op("ConcatV2", {build_.op("ExpandDims", {start, build_.integer(0)}), steps, build_.integer(0)});
  }
  // The state after the last step that counts. With lengths, `all` begins with the first state, for sequences of no steps.
  Value last(Value all) {
    if (lengths_.valid()) {
      const Value pair[] = {lengths_, counting(build_, batch_)};
      return build_.op("GatherNd", {all, build_.op("Pack", pair, std::array{Attr{"axis", 1}})});
    }
    return build_.op("StridedSlice", {all, build_.ints({-1}), build_.ints({0}), build_.ints({1})},
                     {{"shrink_axis_mask", 1}, {"end_mask", 1}});
  }
  // Steps as a column and examples as a row.
  Value steps_column() { return build_.op("ExpandDims", {counting(build_, time_), build_.integer(1)}); }
  Value lengths_row() { return build_.op("ExpandDims", {lengths_, build_.integer(0)}); }

  // Beyond the end an example's last output stays.
  Value held(Value all) {
    const Value step = build_.op("Minimum", {build_.add(steps_column(), build_.integer(1)), lengths_row()});
    const Value example =
        build_.add(build_.op("ZerosLike", {step}), build_.op("ExpandDims", {counting(build_, batch_), build_.integer(0)}));
    const Value pair[] = {step, example};
    return build_.op("GatherNd", {all, build_.op("Pack", pair, std::array{Attr{"axis", 2}})});
  }
  // Beyond the end there was nothing yet when one comes from there; and two directions agree on it.
  Value counted(Value outputs) {
    const Value counts = build_.op("Less", {steps_column(), lengths_row()});
    if (!build_.ok()) return {};
    return build_.mul(outputs, build_.op("ExpandDims", {build_.cast(counts, build_.info(outputs).dtype), build_.integer(2)}));
  }

  Model& model_;
  const RecurrentLayer& layer_;
  Build build_;
  const int64_t in_;
  Value x_, time_, batch_, lengths_;
};

Status check_state(const Model& model, const RecurrentLayer& layer, Value state, const char* name, Value x) {
  const DType dtype = model.graph().info(x).dtype;
  if (!state.valid()) return {};
  if (layer.direction == Direction::both) return invalid_argument("%s: a first %s state is for one direction only", what(layer), name);
  DTG_TRY(model.graph().check(state).with_context(what(layer)));
  const ValueInfo& info = model.graph().info(state);
  const bool fits = !info.shape.has_rank() || (info.shape.rank() == 2 && (info.shape.dim(1) < 0 || info.shape.dim(1) == layer.units));
  if (info.dtype != dtype || !fits) {
    return invalid_argument("%s: the first %s state is %s; %s[batch,%lld] is needed", what(layer), name, described(model, state).c_str(),
                            dtype_name(dtype), static_cast<long long>(layer.units));
  }
  return check_one_each(model, what(layer), format("the first %s state is", name).c_str(), state, x);
}

Status check_layer(const Model& model, Value x, const RecurrentLayer& layer) {
  const ValueInfo& input = model.graph().info(x);
  if (layer.units < 1) return invalid_argument("%s: %lld units; at least 1 is needed", what(layer), static_cast<long long>(layer.units));
  if (layer.kind == Kind::lstm && input.dtype != DType::f32 && input.dtype != DType::f16) {
    return invalid_argument("lstm: the input is %s; float32 or float16 is needed", described(model, x).c_str());
  }
  if (layer.kind != Kind::lstm && layer.cell.valid()) return invalid_argument("%s: only an LSTM has a cell state", what(layer));
  DTG_TRY(check_state(model, layer, layer.hidden, "hidden", x));
  DTG_TRY(check_state(model, layer, layer.cell, "cell", x));
  if (!layer.lengths.valid()) return {};
  DTG_TRY(model.graph().check(layer.lengths).with_context(what(layer)));
  const ValueInfo& lengths = model.graph().info(layer.lengths);
  const bool counts = lengths.dtype == DType::i32 || lengths.dtype == DType::i64;
  if (!counts || (lengths.shape.has_rank() && lengths.shape.rank() != 1)) {
    return invalid_argument("%s: the lengths are %s; int32 or int64 of [batch] is needed", what(layer),
                            described(model, layer.lengths).c_str());
  }
  return check_one_each(model, what(layer), "the lengths are", layer.lengths, x);
}

}  // namespace

Result<Recurrent> recurrent(Model& model, Value x, const RecurrentLayer& layer) {
  DTG_ASSIGN(const int64_t in, channels_of(model, x, what(layer), 3, 3));
  DTG_TRY(check_layer(model, x, layer));
  const char* const fallback = layer.direction == Direction::both ? "bidirectional" : what(layer);
  const NameScope scope(model.graph(), layer.name.empty() ? std::string_view(fallback) : layer.name);
  return Sequence(model, layer, x, in).run();
}

}  // namespace dtg
