// CTC: how likely the labels are, whatever their times, when each step says a class or a blank. The forward sums over all alignments, in
// logarithms, one step after the other in a loop; the gradient is that of the loop. Called by the thread that builds the model.
#include <cmath>

#include "graph/closure.h"
#include "nn/layer.h"
#include "nn/loss_parts.h"

namespace dtg {
namespace {

// The logarithm of nothing. Finite, so that differences of two of them are numbers.
constexpr double kNever = -1e30;

// log(sum of exp) of values of one shape.
Value log_sum(Build& b, std::initializer_list<Value> all) {
  Value most;
  for (const Value each : all) most = most.valid() ? b.op("Maximum", {most, each}) : each;
  most = b.op("StopGradient", {most});
  Value sum;
  for (const Value each : all) {
    const Value part = b.op("Exp", {b.sub(each, most)});
    sum = sum.valid() ? b.add(sum, part) : part;
  }
  return b.add(most, b.op("Log", {sum}));
}

// x[batch, states] moved right by `by` states, and `fill` where nothing came from.
Value moved(Build& b, Value x, int64_t by, Value fill) {
  const int64_t amounts[] = {0, 0, by, 0};
  const Value wide = b.op("PadV2", {x, b.reshape(b.ints(amounts), b.ints({2, 2})), fill});
  return b.op("StridedSlice", {wide, b.ints({0, 0}), b.ints({0, -by}), b.ints({1, 1})}, {{"begin_mask", 3}, {"end_mask", 1}});
}

// A blank, then each label and a blank after it are the states; a step stays, goes on by one, or skips a blank between two labels that
// differ.
class Alignments {
 public:
  Alignments(Model& model, const LossInput& in) : model_(model), in_(in), b_(in.build) {}

  Value loss() {
    states();
    emissions();
    if (!b_.ok()) return {};
    auto after = loop();
    if (!after.ok()) b_.fail(after.status());
    return b_.ok() ? read(after.value()) : Value();
  }

 private:
  void states() {
    labels_ = b_.cast(in_.labels, DType::i64);
    if (!b_.ok()) return;
    const Value blanks = b_.zeros_like(labels_);
    const Value pair[] = {blanks, labels_};
    const Value both = b_.op("Pack", pair, std::array{Attr{"axis", 2}});
    batch_ = dimension(b_, b_.shape(in_.predictions), 0);
    // Said, since of no examples nobody could tell how many there are of each.
    const Value shape[] = {batch_, b_.mul(dimension(b_, b_.shape(labels_), 1), b_.integer(2))};
    const Value rows = b_.reshape(both, b_.op("Pack", shape));
    const Value ends[] = {batch_, b_.integer(1)};
    const Value last = b_.op("Fill", {b_.op("Pack", ends), b_.integer(0, DType::i64)});
    states_ = b_.op("ConcatV2", {rows, last, b_.integer(1)});
    const Value zero = b_.integer(0, DType::i64);
    skips_ = b_.op("NotEqual", {states_, moved(b_, states_, 2, zero)});
    const Value counted = b_.cast(b_.op("NotEqual", {labels_, zero}), DType::i64);
    count_ = b_.sum(counted, b_.ints({1}), /*keep_dims=*/true);
  }

  // log p of each state's class, [steps, batch, states].
  void emissions() {
    const Value x = in_.predictions;
    const Value rows = b_.op("LogSoftmax", {as_rows(b_, x)});
    const Value by_class = b_.op("Transpose", {b_.reshape(rows, b_.shape(x)), b_.ints({0, 2, 1})});
    const Value mine = b_.op("GatherV2", {by_class, states_, b_.integer(1)}, {{"batch_dims", 1}}, "labels");
    const Value by_step = b_.op("Transpose", {mine, b_.ints({2, 0, 1})});
    if (!b_.ok()) return;
    steps_ = dimension(b_, b_.shape(by_step), 0);
    list_ = b_.op("TensorListFromTensor", {by_step, b_.ints({-1, -1})}, {{"element_dtype", b_.info(x).dtype}, {"shape_type", DType::i32}});
    if (in_.loss.lengths.valid()) lengths_ = b_.op("ExpandDims", {checked_lengths(b_, in_.loss.lengths, steps_), b_.integer(1)});
  }

  // Before the first step all is at the first blank.
  Value start() {
    const DType dtype = b_.info(in_.predictions).dtype;
    const Value place = b_.op("Cumsum", {b_.op("OnesLike", {states_}), b_.integer(1)});
    const Value first = b_.op("Equal", {place, b_.integer(1, DType::i64)});
    return b_.op("SelectV2", {first, b_.scalar(dtype, 0), b_.scalar(dtype, kNever)});
  }

  Result<std::array<Value, 2>> arguments(Graph& body) {
    std::array<Value, 2> made;
    DTG_ASSIGN(made[0], body.add_argument({.dtype = DType::i32, .shape = PartialShape::of_rank(0)}));
    DTG_ASSIGN(made[1], body.add_argument({.dtype = b_.info(in_.predictions).dtype, .shape = PartialShape::of_rank(2)}));
    return made;
  }

  Result<Value> loop() {
    const Value begin[] = {b_.integer(0), shaped(b_, start(), PartialShape::of_rank(2))};
    DTG_TRY(b_.status());
    DTG_ASSIGN(Closure condition, more());
    DTG_ASSIGN(Closure body, round());
    DTG_ASSIGN(const std::vector<Value> outs, add_while(model_.graph(), begin, std::move(condition), std::move(body)));
    return outs[1];
  }

  Result<Closure> more() {
    DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&model_.graph())));
    DTG_ASSIGN(const auto state, arguments(*body));
    Build build(*body);
    const Value less = build.op("Less", {state[0], steps_});
    DTG_TRY(build.status());
    return finish_function(std::move(body), "more", {less});
  }

  Result<Closure> round() {
    DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&model_.graph())));
    DTG_ASSIGN(const auto state, arguments(*body));
    Build build(*body);
    const DType dtype = b_.info(in_.predictions).dtype;
    const Value says = build.op("TensorListGetItem", {list_, state[0], build.ints({-1, -1})}, {{"element_dtype", dtype}});
    const Value never = build.scalar(dtype, kNever);
    const Value skipped = build.op("SelectV2", {skips_, moved(build, state[1], 2, never), never});
    Value after = build.add(log_sum(build, {state[1], moved(build, state[1], 1, never), skipped}), says);
    if (lengths_.valid()) after = build.op("SelectV2", {build.op("Less", {state[0], lengths_}), after, state[1]});
    const Value next = build.add(state[0], build.integer(1));
    after = shaped(build, after, PartialShape::of_rank(2));
    DTG_TRY(build.status());
    return finish_function(std::move(body), "step", {next, after});
  }

  // All labels were said: it ends at the last of them or at the blank after it.
  Value read(Value after) {
    const auto at = [&](Value place) { return b_.op("GatherV2", {after, place, b_.integer(1)}, {{"batch_dims", 1}}); };
    const Value zero = b_.integer(0, DType::i64), one = b_.integer(1, DType::i64);
    const Value blank = b_.add(count_, count_);
    const Value ends = at(blank), label = at(b_.op("Maximum", {b_.sub(blank, one), zero}));
    if (!b_.ok()) return {};
    const Value said = b_.op("SelectV2", {b_.op("Greater", {count_, zero}), label, b_.like(after, kNever)});
    const Value rows = b_.neg(log_sum(b_, {ends, said}));
    return b_.op("Squeeze", {rows}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  }

  Model& model_;
  const LossInput& in_;
  Build& b_;
  Value labels_, states_, skips_, count_, batch_, steps_, list_, lengths_;
};

}  // namespace

Value ctc_loss(Model& model, const LossInput& in) {
  Build& b = in.build;
  const ValueInfo& labels = b.info(in.labels);
  const bool ints = labels.dtype == DType::i32 || labels.dtype == DType::i64;
  if (rank_of(b, in.labels) == 3 && rank_of(b, in.predictions) == 2) {
    b.fail(looks_swapped(model.graph(), "ctc", in.labels, in.predictions));
  } else if (!ints || rank_of(b, in.labels) != 2 || rank_of(b, in.predictions) != 3) {
    b.fail(
        invalid_argument("ctc: the labels are %s and the predictions %s; int32 or int64[batch,labels] and [batch,steps,classes] are needed",
                         described(model, in.labels).c_str(), described(model, in.predictions).c_str()));
  }
  return b.ok() ? Alignments(model, in).loss() : Value();
}

}  // namespace dtg
