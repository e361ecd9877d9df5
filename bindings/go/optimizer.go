// Optimizers and learning rates. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

import "unsafe"

// OptimizerKind is a rule for v, a variable, and g, its gradient.
type OptimizerKind int32

// The rules.
const (
	SGD      OptimizerKind = 0 // v -= rate * g
	Momentum OptimizerKind = 1 // a = momentum * a + g; v -= rate * a, with Nesterov v -= rate * (g + momentum * a)
	Adam     OptimizerKind = 2 // moving means m of g and s of g²; v -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(s) + epsilon)
	Adagrad  OptimizerKind = 3 // a += g²; v -= rate * g / sqrt(a)
	RMSProp  OptimizerKind = 4 // s = decay * s + (1 - decay) * g²; a = momentum * a + rate * g / sqrt(s + epsilon); v -= a
)

// Optimizer is a rule and its numbers. Zero: SGD with rate 0.01.
type Optimizer struct {
	Kind               OptimizerKind
	Nesterov           bool
	LearningRate       Value   // a floating-point scalar, such as a placeholder or a schedule; invalid: Rate
	Rate               float64 // 0: 0.01
	Momentum           float64 // of Momentum and RMSProp
	Beta1              float64 // 0: 0.9
	Beta2              float64 // 0: 0.999
	Epsilon            float64 // 0: 1e-8
	Decay              float64 // 0: 0.9
	InitialAccumulator float64 // of Adagrad; 0: 0.1
	ClipNorm           float64 // gradients whose norm over all variables is greater are scaled down to it; 0: never
}

func (o *Optimizer) c() *C.dtg_optimizer {
	return &C.dtg_optimizer{struct_size: C.sizeof_dtg_optimizer, kind: C.dtg_optimizer_kind(o.Kind), nesterov: flag(o.Nesterov),
		learning_rate: o.LearningRate.c(), rate: C.double(o.Rate), momentum: C.double(o.Momentum), beta1: C.double(o.Beta1),
		beta2: C.double(o.Beta2), epsilon: C.double(o.Epsilon), decay: C.double(o.Decay),
		initial_accumulator: C.double(o.InitialAccumulator), clip_norm: C.double(o.ClipNorm)}
}

// Training is what Minimize adds.
type Training struct {
	Train        Value // the target that makes one step: all updates, then the global step + 1
	GlobalStep   Value // int64 scalar. Within a step it is read before or after the count, so fetch it by itself
	LearningRate Value // floating-point scalar
	GradientNorm Value // float32: the norm over all variables, before clipping. Computed only if fetched or clipped by
}

// Minimize adds the gradients of loss with respect to every trainable variable so far, and the updates. The model gets new
// variables, so ask Init afterwards. Semantics: tf.train.Optimizer.minimize.
func (m *Model) Minimize(loss Value, optimizer Optimizer) Training {
	return m.training(func(p *C.dtg_model, out *C.dtg_training) *C.dtg_error {
		return C.dtg_nn_minimize(p, loss.c(), optimizer.c(), out)
	})
}

// MinimizeTowers is Minimize over the mean of the losses of several towers. Gradients are added up in the order of losses, so
// that the result is, bit for bit, that of as many workers under SyncStrict.
func (m *Model) MinimizeTowers(losses []Value, optimizer Optimizer) Training {
	return m.training(func(p *C.dtg_model, out *C.dtg_training) *C.dtg_error {
		data, count := valuesOf(losses)
		return C.dtg_nn_minimize_towers(p, data, count, optimizer.c(), out)
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
		m.g.fail(invalid("apply gradients: %d variables, but %d gradients", len(variables), len(gradients)))
	}
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		handles, _ := valuesOf(handlesOf(variables))
		data, count := gradientsOf(gradients)
		return C.dtg_nn_apply_gradients(p, optimizer.c(), handles, data, count, out)
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

var _ = [1]struct{}{}[unsafe.Sizeof(Gradient{})-unsafe.Sizeof(C.dtg_gradient{})] // a Gradient is a dtg_gradient
