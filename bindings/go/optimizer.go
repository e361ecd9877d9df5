// Optimizers and learning rates. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

import (
	"strings"
	"unsafe"
)

// OptimizerKind is a rule for v, a variable, and g, its gradient. dtg/optimizers.h has all formulas, and the names of what each keeps.
type OptimizerKind int32

// The rules.
const (
	SGD       OptimizerKind = 0  // v -= rate * g
	Momentum  OptimizerKind = 1  // a = momentum * a + g; v -= rate * a, with Nesterov v -= rate * (g + momentum * a)
	Adam      OptimizerKind = 2  // moving means m of g and s of g²; v -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(s) + epsilon)
	Adagrad   OptimizerKind = 3  // a += g²; v -= rate * g / sqrt(a)
	RMSProp   OptimizerKind = 4  // s = decay * s + (1 - decay) * g²; a = momentum * a + rate * g / sqrt(s + epsilon); v -= a
	AdamW     OptimizerKind = 5  // v -= rate * weight decay * v, then Adam
	Adadelta  OptimizerKind = 6  // steps as long as those before, by the squares of both
	Adamax    OptimizerKind = 7  // Adam with the greatest gradient in place of the mean square
	Nadam     OptimizerKind = 8  // Adam with Nesterov's momentum
	FTRL      OptimizerKind = 9  // follow the regularized leader, with L1, L2, L2Shrinkage
	Lion      OptimizerKind = 10 // v -= rate * sign(beta1 * m + (1 - beta1) * g)
	LAMB      OptimizerKind = 11 // Adam's step times |v| / |step|
	LARS      OptimizerKind = 12 // Momentum with a rate by |v| / |g|
	Adafactor OptimizerKind = 13 // squares of gradients by rows and columns only
)

// Optimizer is a rule, its numbers, and what stands around it. Zero: SGD with rate 0.01.
type Optimizer struct {
	Kind               OptimizerKind
	Nesterov           bool    // of Momentum and LARS
	LearningRate       Value   // a floating-point scalar, such as a placeholder or a schedule, in place of Rate; invalid: Rate
	Rate               float64 // 0: 0.01
	Momentum           float64 // of Momentum, RMSProp and LARS
	Beta1              float64 // 0: 0.9
	Beta2              float64 // 0: 0.999; Lion: 0.99
	Epsilon            float64 // 0: 1e-8; from Adadelta on 1e-7, LARS: none, Adafactor: 1e-30
	Decay              float64 // 0: 0.9; Adadelta: 0.95; Adafactor: -0.8, below 0
	InitialAccumulator float64 // of Adagrad and FTRL; 0: 0.1
	ClipNorm           float64 // gradients whose norm over all variables is greater are scaled down to it; 0: never
	// A step whose loss is no finite number fails with InvalidArgument, names the step, the worker or tower and the first value that is not
	// finite, and changes nothing, unless this is set.
	UncheckedLoss bool
	Lazy          bool    // Adam and AdamW, for gradients that are rows: only the rows that were used move and decay
	WeightDecay   float64 // share of each variable, times the rate, that goes each step; 0: none, AdamW: 0.004

	Amsgrad                                  bool     // Adam and AdamW: the largest mean square so far divides
	Centered                                 bool     // RMSProp: the variance of the gradient divides
	L1, L2, L2Shrinkage, FtrlBeta, RatePower float64  // of FTRL; RatePower below 0, 0: -0.5
	Trust                                    float64  // of LARS; 0: 0.001
	Epsilon2, ClipThreshold                  float64  // of Adafactor; 0: 0.001 and 1
	ClipValue                                float64  // each element of a gradient is cut to ±ClipValue; 0: never
	ClipEachNorm                             float64  // each gradient whose norm is greater is scaled down to it; 0: never
	UndecayedNames                           []string // variables whose names contain one of these words, each of some variable, are exempt from weight decay
	Undecayed                                []Variable
	Variables                                []Variable // what Minimize trains; nil: every trainable variable
	EMA                                      bool       // keeps a moving mean of each variable v, "v/ExponentialMovingAverage"
	EMAMomentum                              float64    // of EMA; 0: 0.99
	EMAOverwriteEvery                        int64      // steps after which v becomes its mean; 0: never
	AccumulationSteps                        int64      // 2 or more: each so manyth step applies the mean of the gradients since
	LookaheadSteps                           int64      // 1 or more: steps after which v goes back to its slow copy "v/Slow", which follows it
	LookaheadShare                           float64    // of LookaheadSteps; 0: 0.5
}

func (o *Optimizer) c(held *pins) *C.dtg_optimizer {
	c := &C.dtg_optimizer{struct_size: C.sizeof_dtg_optimizer, kind: C.dtg_optimizer_kind(o.Kind), nesterov: flag(o.Nesterov),
		learning_rate: o.LearningRate.c(), rate: C.double(o.Rate), momentum: C.double(o.Momentum), beta1: C.double(o.Beta1),
		beta2: C.double(o.Beta2), epsilon: C.double(o.Epsilon), decay: C.double(o.Decay),
		initial_accumulator: C.double(o.InitialAccumulator), clip_norm: C.double(o.ClipNorm),
		unchecked_loss: flag(o.UncheckedLoss), lazy: flag(o.Lazy), weight_decay: C.double(o.WeightDecay),
		amsgrad: flag(o.Amsgrad), centered: flag(o.Centered), l1: C.double(o.L1), l2: C.double(o.L2),
		l2_shrinkage: C.double(o.L2Shrinkage), ftrl_beta: C.double(o.FtrlBeta), rate_power: C.double(o.RatePower),
		trust: C.double(o.Trust), epsilon2: C.double(o.Epsilon2), clip_threshold: C.double(o.ClipThreshold),
		clip_value: C.double(o.ClipValue), clip_each_norm: C.double(o.ClipEachNorm), use_ema: flag(o.EMA),
		ema_momentum: C.double(o.EMAMomentum), ema_overwrite_every: C.int64_t(o.EMAOverwriteEvery),
		accumulation_steps: C.int64_t(o.AccumulationSteps), lookahead_steps: C.int64_t(o.LookaheadSteps),
		lookahead_share: C.double(o.LookaheadShare)}
	c.undecayed_names, c.undecayed_names_len = held.text(strings.Join(o.UndecayedNames, ","))
	c.undecayed, c.num_undecayed = held.values(handlesOf(o.Undecayed))
	c.variables, c.num_variables = held.values(handlesOf(o.Variables))
	return c
}

// Training is what Minimize adds.
type Training struct {
	Train        Value // the target that makes one step: all updates, then the global step + 1
	GlobalStep   Value // int64 scalar. Within a step it is read before or after the count, so fetch it by itself
	LearningRate Value // floating-point scalar
	GradientNorm Value // float32: the norm over all variables, before clipping. Computed only if fetched or clipped by
}

// Minimize adds the gradients of loss, one number, with respect to every trainable variable so far, and the updates. The model gets new
// variables, so ask Init afterwards. Errors: InvalidArgument (a loss of many numbers, which takes a mean first; or one that depends on no
// variable), FailedPrecondition (no trainable variable), Unimplemented (an op without gradient). Semantics: tf.train.Optimizer.minimize, which
// takes the sum of a loss of many numbers.
func (m *Model) Minimize(loss Value, optimizer Optimizer) Training {
	return m.training(func(p *C.dtg_model, out *C.dtg_training) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_minimize(p, loss.c(), optimizer.c(&held), out)
	})
}

// MinimizeTowers is Minimize over the mean of the losses of several towers. Gradients are added up in the order of losses, so
// that the result is, bit for bit, that of as many workers under SyncStrict.
func (m *Model) MinimizeTowers(losses []Value, optimizer Optimizer) Training {
	return m.training(func(p *C.dtg_model, out *C.dtg_training) *C.dtg_error {
		data, count := valuesOf(losses)
		var held pins
		defer held.Unpin()
		return C.dtg_nn_minimize_towers(p, data, count, optimizer.c(&held), out)
	})
}

func (m *Model) training(add func(*C.dtg_model, *C.dtg_training) *C.dtg_error) (t Training) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		c := C.dtg_training{struct_size: C.sizeof_dtg_training}
		failed := add(p, &c)
		if failed == nil {
			t = Training{Value{uint64(c.train.id)}, Value{uint64(c.global_step.id)}, Value{uint64(c.learning_rate.id)},
				Value{uint64(c.gradient_norm.id)}}
		}
		return failed
	})
	return t
}

// ApplyGradients is the second half of Minimize, for gradients of one's own: gradients[i] is that of variables[i] (all invalid:
// left out). ClipNorm is not applied. The answer is the target that makes one step. Semantics:
// tf.train.Optimizer.apply_gradients.
func (m *Model) ApplyGradients(optimizer Optimizer, variables []Variable, gradients []Gradient) Value {
	if len(variables) != len(gradients) {
		m.fail(invalid("apply gradients: %d variables, but %d gradients", len(variables), len(gradients)))
	}
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		handles, _ := valuesOf(handlesOf(variables))
		data, count := gradientsOf(gradients)
		var held pins
		defer held.Unpin()
		return C.dtg_nn_apply_gradients(p, optimizer.c(&held), handles, data, count, out)
	})
}

// ExponentialDecay is rate * factor^(step / every), the exponent rounded down with staircase; step an int64 scalar. float32
// scalar. Semantics: tf.keras.optimizers.schedules.ExponentialDecay.
func (m *Model) ExponentialDecay(step Value, rate, every, factor float64, staircase bool) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_exponential_decay(p, step.c(), C.double(rate), C.double(every), C.double(factor), flag(staircase), out)
	})
}

// CosineDecay goes from 0 up to rate over the first warmup steps, then down to rate * floor along half a cosine until step steps,
// and stays there. float32 scalar. Semantics: tf.keras.optimizers.schedules.CosineDecay.
func (m *Model) CosineDecay(step Value, rate, steps, floor, warmup float64) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_cosine_decay(p, step.c(), C.double(rate), C.double(steps), C.double(floor), C.double(warmup), out)
	})
}

// ScheduleKind is a formula for a learning rate that follows n, the count of steps from 0.
type ScheduleKind int32

// The schedules of tf.keras.optimizers.schedules.
const (
	ExponentialDecay    ScheduleKind = 0 // Rate * DecayRate^(n / Steps); with Staircase the exponent is rounded down
	InverseTimeDecay    ScheduleKind = 1 // Rate / (1 + DecayRate * n / Steps); with Staircase n / Steps is rounded down
	PolynomialDecay     ScheduleKind = 2 // (Rate - EndRate) * (1 - n / Steps)^Power + EndRate; with Cycle again and again
	PiecewiseConstant   ScheduleKind = 3 // Values[i] while n <= Boundaries[i], the last one after that
	CosineDecay         ScheduleKind = 4 // down to Rate * Alpha along half a cosine over Steps, after a warm-up to WarmupTarget
	CosineDecayRestarts ScheduleKind = 5 // again and again, each TMul times as long, from MMul times the rate
)

// Schedule is a schedule and its numbers.
type Schedule struct {
	Kind                      ScheduleKind
	Staircase, Cycle          bool
	WarmsUp                   bool    // of CosineDecay: from Rate to WarmupTarget over WarmupSteps first
	Rate                      float64 // at first
	Steps                     float64 // above 0, without the warm-up
	DecayRate, EndRate        float64
	Power                     float64 // 0: 1
	Alpha                     float64 // share of the rate that remains
	WarmupTarget, WarmupSteps float64
	TMul, MMul                float64 // 0: 2 and 1
	Boundaries                []int64
	Values                    []float64 // one more than Boundaries
}

// Schedule adds the nodes of a learning rate that follows step, an integer scalar. float32 scalar. Semantics:
// tf.keras.optimizers.schedules.
func (m *Model) Schedule(step Value, schedule Schedule) Value {
	if len(schedule.Values) != len(schedule.Boundaries)+1 && schedule.Kind == PiecewiseConstant {
		m.fail(invalid("schedule: %d boundaries need %d values, %d were given", len(schedule.Boundaries), len(schedule.Boundaries)+1,
			len(schedule.Values)))
		return Value{}
	}
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_schedule{struct_size: C.sizeof_dtg_schedule, kind: C.dtg_schedule_kind(schedule.Kind), staircase: flag(schedule.Staircase),
			cycle: flag(schedule.Cycle), warms_up: flag(schedule.WarmsUp), rate: C.double(schedule.Rate), steps: C.double(schedule.Steps),
			decay_rate: C.double(schedule.DecayRate), end_rate: C.double(schedule.EndRate), power: C.double(schedule.Power),
			alpha: C.double(schedule.Alpha), warmup_target: C.double(schedule.WarmupTarget), warmup_steps: C.double(schedule.WarmupSteps),
			t_mul: C.double(schedule.TMul), m_mul: C.double(schedule.MMul)}
		c.boundaries, c.num_boundaries = held.ints(schedule.Boundaries)
		values, _ := pinned(&held, schedule.Values)
		c.values = (*C.double)(values)
		return C.dtg_nn_schedule(p, step.c(), c, out)
	})
}

var _ = [1]struct{}{}[unsafe.Sizeof(Gradient{})-unsafe.Sizeof(C.dtg_gradient{})] // a Gradient is a dtg_gradient
