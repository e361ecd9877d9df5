// Metrics of decisions: how many of those that were said to be there are, and the other way round; at one threshold, at many (the area
// under a curve), by class (F1). Called by the thread that builds the model.
#include "nn/layer.h"
#include "nn/metric_parts.h"

namespace dtg {
namespace {

using Kind = Metric::Kind;

// Labels as float64 0 or 1, predictions and weights, all of one shape.
struct Decisions {
  Value yes, predictions, weights;
};

Result<Decisions> decisions(Tally& t) {
  Build& b = t.b;
  match_ranks(b, &t.predictions, &t.labels);
  DTG_TRY(b.status());
  DTG_TRY(check_alike(t.model(), metric_name(t.metric.kind), t.labels, t.predictions));
  const Value labels = t.wide(t.labels);
  const Value yes = t.wide(b.op("NotEqual", {labels, b.zeros_like(labels)}));
  return Decisions{yes, t.predictions, t.counted(yes)};
}

Value all_of(Build& b, Value x) { return b.sum(x, axes_from(b, x, 0)); }

// x[1:] and x[:-1] of a vector.
Value later(Build& b, Value x) { return b.op("StridedSlice", {x, b.ints({1}), b.ints({0}), b.ints({1})}, {{"end_mask", 1}}); }
Value sooner(Build& b, Value x) { return b.op("StridedSlice", {x, b.ints({0}), b.ints({-1}), b.ints({1})}, {{"begin_mask", 1}}); }
Value quotient(Build& b, Value x, Value y) { return b.op("DivNoNan", {x, y}); }

// The area under precision over recall, as Davis and Goadrich interpolate it: between two thresholds true positives grow in a straight
// line.
Value area_of_precision(Build& b, Value tp, Value fp, Value fn) {
  const Value p = b.add(tp, fp);
  const Value rise = b.sub(sooner(b, tp), later(b, tp)), run = b.sub(sooner(b, p), later(b, p));
  const Value slope = quotient(b, rise, at_least(b, run, 0));
  const Value start = b.sub(later(b, tp), b.mul(slope, later(b, p)));
  if (!b.ok()) return {};
  const Value zero = b.zeros_like(later(b, p));
  const Value both = b.op("LogicalAnd", {b.op("Greater", {sooner(b, p), zero}), b.op("Greater", {later(b, p), zero})});
  const Value ratio = b.op("SelectV2", {both, quotient(b, sooner(b, p), at_least(b, later(b, p), 0)), b.op("OnesLike", {zero})});
  const Value grown = b.mul(slope, b.add(rise, b.mul(start, b.op("Log", {ratio}))));
  return all_of(b, quotient(b, grown, at_least(b, b.add(later(b, tp), later(b, fn)), 0)));
}

Value area(Build& b, const Metric& metric, Value positives, Value negatives) {
  // A bucket counts at every threshold below it.
  const auto above = [&](Value x) { return b.op("Cumsum", {x, b.integer(0)}, {{"reverse", true}}); };
  const Value tp = above(positives), fp = above(negatives);
  const Value fn = b.sub(all_of(b, positives), tp), tn = b.sub(all_of(b, negatives), fp);
  const bool pr = metric.curve == Metric::Curve::pr;
  if (pr && metric.summation == Metric::Summation::interpolation) return area_of_precision(b, tp, fp, fn);
  const Value recall = quotient(b, tp, b.add(tp, fn));
  const Value x = pr ? recall : quotient(b, fp, b.add(fp, tn)), y = pr ? quotient(b, tp, b.add(tp, fp)) : recall;
  Value height;
  if (metric.summation == Metric::Summation::interpolation) {
    height = times(b, b.add(sooner(b, y), later(b, y)), 0.5);
  } else {
    height = b.op(metric.summation == Metric::Summation::minoring ? "Minimum" : "Maximum", {sooner(b, y), later(b, y)});
  }
  return all_of(b, b.mul(b.sub(sooner(b, x), later(b, x)), height));
}

}  // namespace

Result<Measured> decision_metric(Tally& t) {
  Build& b = t.b;
  DTG_ASSIGN(const Decisions d, decisions(t));
  DTG_TRY(b.status());
  const Value said = t.wide(b.op("Greater", {d.predictions, b.like(d.predictions, threshold_of(t.metric))}));
  const auto count = [&](bool there, bool as_said) {
    const Value labels = there ? d.yes : rest_of(b, 1, d.yes), says = as_said ? said : rest_of(b, 1, said);
    return all_of(b, b.mul(b.mul(labels, says), d.weights));
  };
  switch (t.metric.kind) {
    case Kind::true_positives:
    case Kind::false_positives:
    case Kind::true_negatives:
    case Kind::false_negatives: {
      const bool there = t.metric.kind == Kind::true_positives || t.metric.kind == Kind::false_negatives;
      const bool as_said = t.metric.kind == Kind::true_positives || t.metric.kind == Kind::false_positives;
      const size_t all = t.add("accumulator", {}, count(there, as_said));
      return t.finish([&] { return t.total(all); });
    }
    default: break;
  }
  const bool precision = t.metric.kind == Kind::precision;
  const size_t right = t.add("true_positives", {}, count(true, true));
  const size_t wrong = precision ? t.add("false_positives", {}, count(false, true)) : t.add("false_negatives", {}, count(true, false));
  return t.finish([&] { return quotient(b, t.total(right), b.add(t.total(right), t.total(wrong))); });
}

// Predictions are counted in buckets between thresholds that are evenly apart, which is all that the curves need.
Result<Measured> auc_metric(Tally& t) {
  Build& b = t.b;
  if (t.metric.from_logits) t.predictions = b.op("Sigmoid", {t.predictions});
  DTG_ASSIGN(const Decisions d, decisions(t));
  const int64_t n = t.metric.thresholds;
  const Value scores = clip(b, b.cast(d.predictions, DType::f32), 0, 1);
  const Value place = plus(b, b.op("Ceil", {times(b, scores, static_cast<double>(n - 1))}), -1);
  const Value bucket = b.reshape(b.cast(at_least(b, place, 0), DType::i32), b.ints({-1}));
  const auto counted = [&](Value x) {
    const Value flat = b.reshape(b.mul(x, d.weights), b.ints({-1}));
    return b.op("UnsortedSegmentSum", {flat, bucket, b.integer(n)});
  };
  const size_t positives = t.add("positives", Shape::of({n}), counted(d.yes));
  const size_t negatives = t.add("negatives", Shape::of({n}), counted(rest_of(b, 1, d.yes)));
  return t.finish([&] { return area(b, t.metric, t.total(positives), t.total(negatives)); });
}

// What the greatest of a row is, or what is above a threshold, by class.
Result<Measured> f1_metric(Tally& t) {
  Build& b = t.b;
  using Average = Metric::Average;
  const PartialShape& shape = b.info(t.predictions).shape;
  if (shape.rank() != 2 || shape.dim(1) < 1 || rank_of(b, t.labels) != 2) {
    return invalid_argument("the labels are %s and the predictions %s; [batch,classes] with classes known is needed",
                            described(t.model(), t.labels).c_str(), described(t.model(), t.predictions).c_str());
  }
  const Shape classes = t.metric.average == Average::micro ? Shape() : Shape::of({shape.dim(1)});
  Value said;
  if (t.metric.threshold < 0) {
    const Value most = b.op("Max", {t.predictions, last_axis(b)}, {{"keep_dims", true}});
    const Value size = b.op("Abs", {t.predictions});
    if (!b.ok()) return b.status();
    said = b.op("LogicalAnd", {b.op("GreaterEqual", {t.predictions, most}), b.op("Greater", {size, b.like(size, 1e-9)})});
  } else {
    said = b.op("Greater", {t.predictions, b.like(t.predictions, threshold_of(t.metric))});
  }
  const Value says = t.wide(said), labels = t.wide(t.labels), weights = t.counted(labels);
  const auto count = [&](Value x) {
    const Value weighted = b.mul(x, weights);
    return t.metric.average == Average::micro ? all_of(b, weighted) : b.sum(weighted, b.ints({0}));
  };
  const size_t tp = t.add("true_positives", classes, count(b.mul(says, labels)));
  const size_t fp = t.add("false_positives", classes, count(b.mul(says, rest_of(b, 1, labels))));
  const size_t fn = t.add("false_negatives", classes, count(b.mul(rest_of(b, 1, says), labels)));
  const size_t there = t.metric.average == Average::weighted ? t.add("intermediate_weights", classes, count(labels)) : 0;
  return t.finish([&] {
    const Value precision = b.div(t.total(tp), plus(b, b.add(t.total(tp), t.total(fp)), kFuzz));
    const Value recall = b.div(t.total(tp), plus(b, b.add(t.total(tp), t.total(fn)), kFuzz));
    const Value f1 = times(b, b.div(b.mul(precision, recall), plus(b, b.add(precision, recall), kFuzz)), 2);
    if (t.metric.average == Average::uniform) return mean_last(b, f1);
    if (t.metric.average != Average::weighted) return f1;
    return sum_last(b, b.mul(f1, b.div(t.total(there), plus(b, sum_last(b, t.total(there)), kFuzz))));
  });
}

}  // namespace dtg
