// Training one model by many workers, each a program of its own that builds the same model, or by many towers in one graph. One
// goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"time"
)

// SyncMode is what a worker's share of the training is.
type SyncMode int32

// The modes.
const (
	SyncAsync    SyncMode = 0 // a step applies its gradients at once and waits for nobody
	SyncStrict   SyncMode = 1 // one contribution per worker and step, added up in the order of the workers: equal runs give equal bits
	SyncReplicas SyncMode = 2 // TensorFlow's SyncReplicasOptimizer
	SyncSSP      SyncMode = 3 // as SyncAsync, but nobody is more than Staleness steps ahead of the slowest that is there
	SyncElastic  SyncMode = 4 // as SyncStrict, but with whoever is there: workers may come and go, MinWorkers at least
)

// Replication is which worker's share to add. Zero is the default of every field.
type Replication struct {
	Mode        SyncMode
	Worker      int // which replica this graph is, from 0; 0 is the chief
	Total       int // replicas; 0: 1
	ToAggregate int // SyncReplicas: gradients per update; 0: Total. Otherwise 0
	Staleness   int // SyncSSP: steps that a worker may be ahead of the slowest. Otherwise 0
	MinWorkers  int // SyncElastic: workers without whom no step is made; 0: 1. Otherwise 0
	Elements    int // SyncElastic: elements of an epoch of data, which are dealt ([Dataset.Deal]); 0: none are. Otherwise 0
}

func (r *Replication) c() *C.dtg_replication {
	return &C.dtg_replication{struct_size: C.sizeof_dtg_replication, mode: C.dtg_sync_mode(r.Mode), worker: clamped(r.Worker),
		total: clamped(r.Total), to_aggregate: clamped(r.ToAggregate), staleness: clamped(r.Staleness), min_workers: clamped(r.MinWorkers),
		elements: C.int64_t(r.Elements)}
}

// AllReduce is with whom MinimizeAllReduce averages gradients; every member says the same. Zero is the default of every field but
// GroupSize.
type AllReduce struct {
	GroupKey      int           // GroupOptions.Key of the group that the session's server has joined; 0: 1
	GroupSize     int           // members, at least 1
	FirstInstance int           // calls are told apart by numbers from here on: two trainings in one group need different ones; 0: 1
	PackBytes     int64         // small gradients travel together, so many bytes at most; 0: 4 MiB
	Timeout       time.Duration // of a call; 0: what the group has
}

// MinimizeAllReduce is training without parameter servers: every member of a group builds the same model with variables of its own,
// computes the gradients of its share of the batch, and applies the mean over the members, which all have to the bit: that of
// MinimizeTowers over the same losses in the order of the ranks. Join the group before the first step (Server.JoinGroup), and connect
// the session to the member's server.
func (m *Model) MinimizeAllReduce(loss Value, optimizer Optimizer, how AllReduce) Training {
	return m.training(func(p *C.dtg_model, out *C.dtg_training) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_all_reduce{struct_size: C.sizeof_dtg_all_reduce, group_key: held.int32(how.GroupKey, "GroupKey"),
			group_size: held.int32(how.GroupSize, "GroupSize"), first_instance: held.int32(how.FirstInstance, "FirstInstance"),
			pack_bytes: C.int64_t(how.PackBytes), timeout_ns: nanoseconds(how.Timeout)}
		if held.err != nil {
			return errorOf(held.err)
		}
		return C.dtg_nn_minimize_all_reduce(p, loss.c(), optimizer.c(&held), c, out)
	})
}

// Replicated is one worker's share. Targets that this worker does not have are invalid.
//
// The chief (worker 0) runs Model.Init's target, then ChiefInit once, then Update over and over (Session.RunRepeatedly). Every
// worker calls Model.WaitReady, then runs LocalInit once, then Train every step.
type Replicated struct {
	Train        Value // target: one step; push, then wait for the token
	LocalInit    Value // target: once, when the variables have values
	ChiefInit    Value // target: the chief, once, before any worker's first step
	Resume       Value // target: the chief, in place of ChiefInit, before updates go on
	Update       Value // target: the chief, over and over
	GlobalStep   Value // int64 scalar as it is now; fetch it in a run of its own
	LocalStep    Value // int64 scalar: the step whose variables the gradients of a run are computed from
	NextStep     Value // int64 scalar, part of Train: the step of its token; SyncAsync, SyncSSP: the count right after its own update
	LearningRate Value // floating-point scalar
	GradientNorm Value // float32: of this worker's own gradients. Computed only if fetched
	Leave        Value // target: SyncSSP and SyncElastic, a worker that makes no more steps but stays connected
	Clock        Value // int64 scalar, part of Train: SyncSSP, the worker's clock
	Members      Value // bool by worker, part of Update: SyncElastic, whose contributions made the step
}

// MinimizeReplicated adds one worker's share of training on loss: gradients with respect to every trainable variable so far, and
// what the mode does with them. Gradients are averaged over the replicas. Ask Init afterwards. Errors, which stick:
// InvalidArgument, FailedPrecondition (no trainable variable).
func (m *Model) MinimizeReplicated(loss Value, optimizer Optimizer, replication Replication) Replicated {
	return m.replicated(func(p *C.dtg_model, out *C.dtg_replicated) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_minimize_replicated(p, loss.c(), optimizer.c(&held), replication.c(), out)
	})
}

// ApplyReplicated is the same for gradients of one's own, as in ApplyGradients; the worker's state stands where the first of
// them stands.
func (m *Model) ApplyReplicated(variables []Variable, gradients []Gradient, optimizer Optimizer, replication Replication) Replicated {
	if len(variables) != len(gradients) {
		m.fail(invalid("apply gradients: %d variables, but %d gradients", len(variables), len(gradients)))
	}
	return m.replicated(func(p *C.dtg_model, out *C.dtg_replicated) *C.dtg_error {
		handles, _ := valuesOf(handlesOf(variables))
		data, count := gradientsOf(gradients)
		var held pins
		defer held.Unpin()
		return C.dtg_nn_apply_replicated(p, handles, data, count, optimizer.c(&held), replication.c(), out)
	})
}

func (m *Model) replicated(add func(*C.dtg_model, *C.dtg_replicated) *C.dtg_error) (r Replicated) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		c := C.dtg_replicated{struct_size: C.sizeof_dtg_replicated}
		failed := add(p, &c)
		if failed != nil {
			return failed
		}
		value := func(v C.dtg_value) Value { return Value{uint64(v.id)} }
		r = Replicated{Train: value(c.train), LocalInit: value(c.local_init), ChiefInit: value(c.chief_init), Resume: value(c.resume),
			Update: value(c.update), GlobalStep: value(c.global_step), LocalStep: value(c.local_step), NextStep: value(c.next_step),
			LearningRate: value(c.learning_rate), GradientNorm: value(c.gradient_norm), Leave: value(c.leave), Clock: value(c.clock),
			Members: value(c.members)}
		return nil
	})
	return r
}

// NextTower makes layers and AddVariable answer, from here on, the variables that the model has, from the first, in their order,
// until all have been asked for. Asking for another name, type or shape is FailedPrecondition.
func (m *Model) NextTower() {
	m.build(func(p *C.dtg_model) *C.dtg_error { return C.dtg_model_next_tower(p) })
}

// Deal makes the data set hand out, from now on, what is dealt to this worker of an epoch that all workers have in common (SyncElastic):
// each element (batch) is in exactly one update of each epoch, whoever comes, leaves or is killed. Every worker makes the same data set,
// with the same seeds and without a shard, says in Replication.Elements how many elements it has (Cardinality), and calls Deal when it is
// connected and before it reads; then it runs Train once with each element. Next waits near the end of an epoch while others have its last
// elements, for up to timeout (0: 10 minutes), and says io.EOF when the epoch is over for all; where nothing was trained with an element,
// it comes again. Restart is for the next epoch. Nothing else can be done with the data set from then on. Errors: InvalidArgument (another
// number of elements), FailedPrecondition (the training deals none; elements have been taken).
func (d *Dataset) Deal(m *Model, s *Session, timeout time.Duration) error {
	data, err := d.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(d)
	return m.withSession(s, func(p *C.dtg_model, session *C.dtg_session) *C.dtg_error {
		return C.dtg_dataset_deal(data, p, session, nanoseconds(timeout))
	})
}

// Dealt is the element that Next handed out last: its epoch and its number in that, from 0. Where the epoch is over the number is -1, and
// the epoch the one that is now; before the first Next both are -1. Errors: FailedPrecondition (the data set is not dealt).
func (d *Dataset) Dealt() (epoch, element int64, err error) {
	data, err := d.c()
	if err != nil {
		return -1, -1, err
	}
	defer runtime.KeepAlive(d)
	var e, number C.int64_t
	err = failure(C.dtg_dataset_dealt(data, &e, &number))
	return int64(e), int64(number), err
}
