// Strategies: one model trained on several devices, or by several workers, behind one interface. One goroutine, the one that builds the
// model, uses a strategy; functions given to Run are called on it, once per replica.

package dtg

// #include "shim.h"
import "C"

import (
	"math"
	"runtime"
	"time"
	"unsafe"
)

var strategyKind = &kind{"strategy", "Model.NewStrategy", func(p unsafe.Pointer) { C.dtg_strategy_release((*C.dtg_strategy)(p)) }}

// StrategyKind is what a strategy does with variables and gradients.
type StrategyKind int32

// The kinds.
const (
	OneDevice       StrategyKind = 0 // one replica, variables there
	Mirrored        StrategyKind = 1 // a replica per device, each with copies of the variables, which stay equal to the bit
	CentralStorage  StrategyKind = 2 // a replica per device, one copy of each variable in between
	ParameterServer StrategyKind = 3 // one replica in a process, variables on parameter servers: Replication says how
	// MultiWorkerMirrored is Mirrored over the devices of all tasks of a Group, each of which builds the same graph. Reduce, Gather, a step
	// and the target of Model.Init are then collectives, which all of them run.
	MultiWorkerMirrored StrategyKind = 5
)

// CrossDevice is the order in which a sum over replicas is made, and where.
type CrossDevice int32

// The orders.
const (
	ReduceToOneDevice  CrossDevice = 0 // in the order of the replicas, on the device of the variable's first copy
	ReduceHierarchical CrossDevice = 1 // two halves of neighbours, each on its first device, then both; each worker's, then the workers'
)

// ReduceAlgorithm is how sums of workers travel; the bits are the same.
type ReduceAlgorithm int32

// The algorithms.
const (
	AlgorithmAuto   ReduceAlgorithm = 0 // by number of workers and bytes
	AlgorithmDirect ReduceAlgorithm = 1 // everybody sends everything to everybody
	AlgorithmShared ReduceAlgorithm = 2 // every worker adds its share of the elements: the fewest bytes
	AlgorithmRing   ReduceAlgorithm = 3 // every worker talks to two others only
)

// StrategyOptions is a strategy to make. Zero is the default of every field.
type StrategyOptions struct {
	Kind           StrategyKind
	CrossDevice    CrossDevice
	Devices        []string     // of the replicas: "/device:EMU:0"; ParameterServer may leave it out
	VariableDevice string       // CentralStorage: "" takes the device if there is one, else "/device:CPU:0"
	Replication    *Replication // ParameterServer: this worker's place
	// MultiWorkerMirrored: its workers, kept as long as the strategy. Devices are then those of this worker; none: one replica at its task.
	Group     *Group
	Algorithm ReduceAlgorithm // MultiWorkerMirrored: how sums travel
	PackBytes int64           // MultiWorkerMirrored: smaller gradients travel together, so many bytes at most; 0: 4 MiB
	Timeout   time.Duration   // MultiWorkerMirrored: of a collective; 0: the group's
}

// NoAxis makes Strategy.Reduce go over replicas only.
const NoAxis = math.MinInt32

// PerReplica is one value for each replica of one strategy; the zero PerReplica is none.
type PerReplica struct{ id uint64 }

func (v PerReplica) c() C.dtg_per_replica { return C.dtg_per_replica{id: C.uint64_t(v.id)} }

// Strategy is one model's. The first error sticks in the graph, as with everything that builds: see Graph.Err.
type Strategy struct {
	handle
	m *Model
}

// NewStrategy is a strategy for m. Errors, which stick: InvalidArgument (a kind or device that is none, a device twice).
func (m *Model) NewStrategy(options StrategyOptions) *Strategy {
	s := &Strategy{m: m}
	var group *C.dtg_group
	if options.Group != nil {
		var err error
		if group, err = options.Group.c(); m.fail(err) {
			return s
		}
		defer runtime.KeepAlive(options.Group)
	}
	m.build(func(p *C.dtg_model) *C.dtg_error {
		c := (*C.dtg_strategy_options)(C.calloc(1, C.sizeof_dtg_strategy_options))
		defer C.free(unsafe.Pointer(c))
		c.struct_size = C.sizeof_dtg_strategy_options
		c.kind = C.dtg_strategy_kind(options.Kind)
		c.cross_device = C.dtg_cross_device(options.CrossDevice)
		c.group, c.algorithm = group, C.dtg_reduce_algorithm(options.Algorithm)
		c.pack_bytes, c.timeout_ns = C.int64_t(options.PackBytes), nanoseconds(options.Timeout)
		names, free := cStrings(options.Devices)
		defer free()
		c.devices, c.num_devices = names, C.size_t(len(options.Devices))
		if options.VariableDevice != "" {
			c.variable_device = C.CString(options.VariableDevice)
			defer C.free(unsafe.Pointer(c.variable_device))
		}
		if options.Replication != nil {
			replication := (*C.dtg_replication)(C.calloc(1, C.sizeof_dtg_replication))
			defer C.free(unsafe.Pointer(replication))
			*replication = *options.Replication.c()
			c.replication = replication
		}
		var out *C.dtg_strategy
		failed := C.dtg_strategy_create(p, c, &out)
		if failed == nil {
			s.open(strategyKind, unsafe.Pointer(out))
		}
		return failed
	})
	return s
}

// cStrings is a list of strings in C's memory, and what frees it.
func cStrings(list []string) (**C.char, func()) {
	if len(list) == 0 {
		return nil, func() {}
	}
	memory := C.calloc(C.size_t(len(list)), C.size_t(unsafe.Sizeof((*C.char)(nil))))
	entries := unsafe.Slice((**C.char)(memory), len(list))
	for i, each := range list {
		entries[i] = C.CString(each)
	}
	return (**C.char)(memory), func() {
		for _, each := range entries {
			C.free(unsafe.Pointer(each))
		}
		C.free(memory)
	}
}

// Close drops the strategy; what it added stays. Closing twice is fine.
func (s *Strategy) Close() error {
	if s != nil {
		s.close(strategyKind)
	}
	return nil
}

// model is the model of s, nil where s is nil.
func (s *Strategy) model() *Model {
	if s == nil {
		return nil
	}
	return s.m
}

func (s *Strategy) build(call func(*C.dtg_strategy) *C.dtg_error) bool {
	if s == nil {
		return false
	}
	g := s.m.Graph()
	if g.Err() != nil {
		return false
	}
	p, err := s.get(strategyKind)
	if g.fail(err) {
		return false
	}
	err = failure(call((*C.dtg_strategy)(p)))
	runtime.KeepAlive(s)
	runtime.KeepAlive(s.m)
	return !g.fail(err)
}

func (s *Strategy) value(call func(p *C.dtg_strategy, out *C.dtg_value) *C.dtg_error) (v Value) {
	s.build(func(p *C.dtg_strategy) *C.dtg_error { return call(p, v.out()) })
	return v
}

func (s *Strategy) perReplica(call func(p *C.dtg_strategy, out *C.dtg_per_replica) *C.dtg_error) (v PerReplica) {
	s.build(func(p *C.dtg_strategy) *C.dtg_error {
		var out C.dtg_per_replica
		failed := call(p, &out)
		v.id = uint64(out.id)
		return failed
	})
	return v
}

// Replicas is how many this process builds, and how many make one update together.
func (s *Strategy) Replicas() (local, inSync int) {
	s.build(func(p *C.dtg_strategy) *C.dtg_error {
		info := C.dtg_strategy_info{struct_size: C.sizeof_dtg_strategy_info}
		failed := C.dtg_strategy_describe(p, &info)
		local, inSync = int(info.num_replicas), int(info.num_replicas_in_sync)
		return failed
	})
	return local, inSync
}

// Scope makes the variables that build adds, by whatever layer, the strategy's. Errors, which stick: FailedPrecondition (the scope of
// another strategy is open).
func (s *Strategy) Scope(build func()) {
	if build == nil {
		s.model().fail(invalid("what a scope is to build is nil; give a function"))
		return
	}
	if !s.build(func(p *C.dtg_strategy) *C.dtg_error { return C.dtg_strategy_enter(p) }) {
		return
	}
	defer s.always(func(p *C.dtg_strategy) *C.dtg_error { return C.dtg_strategy_exit(p) })
	build()
}

// always is a call that is made whatever stuck before.
func (s *Strategy) always(call func(*C.dtg_strategy) *C.dtg_error) {
	if s == nil {
		return
	}
	if p, err := s.get(strategyKind); err == nil {
		s.m.fail(failure(call((*C.dtg_strategy)(p))))
	}
	runtime.KeepAlive(s)
}

// Run calls fn once per replica, in order, each time in its replica context, with the replica's values of inputs, and gives its results as
// per-replica values. It runs nothing: sessions do. After an error, or a panic of fn, the model is as before.
func (s *Strategy) Run(fn func(replica int, inputs []Value) []Value, inputs ...PerReplica) (results []PerReplica) {
	if fn == nil {
		s.model().fail(invalid("what each replica is to build is nil; give a function"))
		return nil
	}
	replicas, _ := s.Replicas()
	done := false
	defer func() {
		if !done {
			s.always(func(p *C.dtg_strategy) *C.dtg_error { return C.dtg_strategy_abandon_run(p) })
		}
	}()
	for r := range replicas {
		if !s.build(func(p *C.dtg_strategy) *C.dtg_error { return C.dtg_strategy_begin_replica(p, C.int32_t(r)) }) {
			return nil
		}
		own := make([]Value, len(inputs))
		for i, input := range inputs {
			own[i] = s.value(func(p *C.dtg_strategy, out *C.dtg_value) *C.dtg_error { return C.dtg_strategy_local(p, input.c(), out) })
		}
		made := fn(r, own)
		results = make([]PerReplica, len(made))
		ended := s.build(func(p *C.dtg_strategy) *C.dtg_error {
			list, count := valuesOf(made)
			return C.dtg_strategy_end_replica(p, list, count, (*C.dtg_per_replica)(unsafe.Pointer(unsafe.SliceData(results))))
		})
		if !ended {
			return nil
		}
	}
	done = true
	return results
}

// Reduce is the sum ([Sum]) or mean ([Mean]) over replicas; with an axis other than NoAxis each is added up along it as well, and
// the mean is over all elements.
func (s *Strategy) Reduce(op Reduction, value PerReplica, axis int) Value {
	return s.value(func(p *C.dtg_strategy, out *C.dtg_value) *C.dtg_error {
		return C.dtg_strategy_reduce(p, C.dtg_reduction(op), value.c(), clamped(axis), out)
	})
}

// Gather is the replicas' values one behind the other along axis.
func (s *Strategy) Gather(value PerReplica, axis int) Value {
	return s.value(func(p *C.dtg_strategy, out *C.dtg_value) *C.dtg_error {
		return C.dtg_strategy_gather(p, value.c(), clamped(axis), out)
	})
}

// Distribute makes values[r] the value of replica r.
func (s *Strategy) Distribute(values []Value) PerReplica {
	return s.perReplica(func(p *C.dtg_strategy, out *C.dtg_per_replica) *C.dtg_error {
		list, count := valuesOf(values)
		return C.dtg_strategy_distribute(p, list, count, out)
	})
}

// Broadcast is the same value for every replica.
func (s *Strategy) Broadcast(value Value) PerReplica {
	return s.perReplica(func(p *C.dtg_strategy, out *C.dtg_per_replica) *C.dtg_error {
		return C.dtg_strategy_broadcast(p, value.c(), out)
	})
}

// Split is a batch cut along its first axis as evenly as can be: the first replicas have a row more.
func (s *Strategy) Split(batch Value) PerReplica {
	return s.perReplica(func(p *C.dtg_strategy, out *C.dtg_per_replica) *C.dtg_error {
		return C.dtg_strategy_split(p, batch.c(), out)
	})
}

// LocalResults is the values of all replicas of this process.
func (s *Strategy) LocalResults(value PerReplica) (values []Value) {
	s.build(func(p *C.dtg_strategy) *C.dtg_error {
		var count C.size_t
		if failed := C.dtg_strategy_local_results(p, value.c(), nil, 0, &count); failed != nil {
			return failed
		}
		values = make([]Value, count)
		list, capacity := valuesOf(values)
		return C.dtg_strategy_local_results(p, value.c(), list, capacity, &count)
	})
	return values
}

// Minimize adds the gradients of each replica's loss, reduces them and applies the result to every copy of the variables. The mean is right
// for losses that are means over equal shares; where shares differ, let losses be sums divided by the rows of the whole batch, and add them
// up. ParameterServer: this worker's share; the other targets are Replicated's. Errors, which stick, as those of Model.Minimize.
func (s *Strategy) Minimize(losses PerReplica, op Reduction, optimizer Optimizer) (t Training) {
	s.build(func(p *C.dtg_strategy) *C.dtg_error {
		c := C.dtg_training{struct_size: C.sizeof_dtg_training}
		var held pins
		defer held.Unpin()
		failed := C.dtg_strategy_minimize(p, losses.c(), C.dtg_reduction(op), optimizer.c(&held), &c)
		t = Training{Value{uint64(c.train.id)}, Value{uint64(c.global_step.id)}, Value{uint64(c.learning_rate.id)},
			Value{uint64(c.gradient_norm.id)}}
		return failed
	})
	return t
}

// Replicated is what Minimize added for a ParameterServer.
func (s *Strategy) Replicated() Replicated {
	return s.model().replicated(func(_ *C.dtg_model, out *C.dtg_replicated) *C.dtg_error {
		p, err := s.get(strategyKind)
		if s.m.fail(err) {
			return nil
		}
		defer runtime.KeepAlive(s)
		return C.dtg_strategy_replicated((*C.dtg_strategy)(p), out)
	})
}

// AssignOp is how a value changes a variable.
type AssignOp int32

// The ways.
const (
	AssignSet AssignOp = 0
	AssignAdd AssignOp = 1
	AssignSub AssignOp = 2
)

// Assign writes to a variable: outside of a run to all copies, and the answer is the target; in a run what the replicas give is combined by
// the variable's Aggregation and written to all copies (VariableOnRead: to the replica's own), and Updates is the target.
func (s *Strategy) Assign(variable Variable, op AssignOp, value Value) Value {
	return s.value(func(p *C.dtg_strategy, out *C.dtg_value) *C.dtg_error {
		return C.dtg_strategy_assign(p, variable.Handle.c(), C.dtg_assign_op(op), value.c(), out)
	})
}

// Updates is the target of everything that the last run assigned in its replicas.
func (s *Strategy) Updates() Value {
	return s.value(func(p *C.dtg_strategy, out *C.dtg_value) *C.dtg_error { return C.dtg_strategy_updates(p, out) })
}

// Level is the target that gives every worker what the one has that has made the most steps: after Group.Reform, and when one of them has
// restored what it saved. A process that begins runs that of Model.Init meanwhile. Other kinds: a target that does nothing.
func (s *Strategy) Level() Value {
	return s.value(func(p *C.dtg_strategy, out *C.dtg_value) *C.dtg_error { return C.dtg_strategy_level(p, out) })
}
