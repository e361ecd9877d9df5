// Group: collectives between the tasks of a cluster. Any goroutine; calls are numbered as they come in.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

var groupKind = &kind{"group", "Server.JoinGroup", func(p unsafe.Pointer) { C.dtg_group_release((*C.dtg_group)(p)) }}

// Reduction is what is made of the ranks' elements.
type Reduction int32

// The reductions. Mean divides the sum: whole numbers towards zero.
const (
	Sum     Reduction = C.DTG_REDUCE_SUM
	Mean    Reduction = C.DTG_REDUCE_MEAN
	Min     Reduction = C.DTG_REDUCE_MIN
	Max     Reduction = C.DTG_REDUCE_MAX
	Product Reduction = C.DTG_REDUCE_PRODUCT
)

// GroupOptions are those of Server.JoinGroup; every member says the same. Zero is the default of every field.
type GroupOptions struct {
	Name        string        // "": "default"
	Members     []string      // tasks in the order of their ranks, such as "/job:worker/task:0"; none: all tasks of the server's job
	JoinTimeout time.Duration // how long the others are waited for; 0: 60 s
	Timeout     time.Duration // of each collective; 0: 10 min
	Key         int           // by which graph ops and strategies name the group; 0: 1
}

// Group is one member's place in a group. All members make the same calls in the same order. The first member that is lost
// (Unavailable), or makes another call than the others (InvalidArgument), is named in the error that everything under way and everything
// after it gets on all members, until they have called Reform.
//
//	group, err := server.JoinGroup()
//	sum, err := group.AllReduce(gradient, dtg.Sum) // the same bits on every rank
type Group struct{ handle }

// JoinGroup takes part in a group as the task of s, and returns when all members do. Errors: InvalidArgument (members that are none),
// AlreadyExists, DeadlineExceeded (which are missing, and why).
func (s *Server) JoinGroup(options ...GroupOptions) (*Group, error) {
	server, err := s.c()
	if err != nil {
		return nil, err
	}
	o, err := only(options)
	if err != nil {
		return nil, err
	}
	var p pins
	defer p.Unpin()
	c := &C.dtg_group_options{struct_size: C.sizeof_dtg_group_options, join_timeout_ns: nanoseconds(o.JoinTimeout),
		default_timeout_ns: nanoseconds(o.Timeout), key: p.int32(o.Key, "Key")}
	if o.Name != "" {
		c.name, c.name_len = p.text(o.Name)
	}
	c.members, c.num_members = p.cstrings(o.Members)
	if p.err != nil {
		return nil, p.err
	}
	var out *C.dtg_group
	err = failure(C.dtg_group_join(server, c, &out))
	runtime.KeepAlive(s)
	if err != nil {
		return nil, err
	}
	g := &Group{}
	g.open(groupKind, unsafe.Pointer(out))
	return g, nil
}

// c is the handle for a call.
func (g *Group) c() (*C.dtg_group, error) {
	if g == nil {
		return nil, invalid("the group is nil; make one first")
	}
	p, err := g.get(groupKind)
	return (*C.dtg_group)(p), err
}

func (g *Group) call(call func(*C.dtg_group) *C.dtg_error) error {
	p, err := g.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(g)
	return failure(call(p))
}

// collect makes a new tensor of what a collective answers.
func (g *Group) collect(in *Tensor, root int, reduction Reduction, call func(*C.dtg_group, *C.dtg_tensor, *C.dtg_collective_args, **C.dtg_tensor) *C.dtg_error) (*Tensor, error) {
	var given *C.dtg_tensor
	if in != nil {
		var err error
		if given, err = in.c(); err != nil {
			return nil, err
		}
	}
	args := &C.dtg_collective_args{struct_size: C.sizeof_dtg_collective_args, reduction: C.dtg_reduction(reduction), root: clamped(root)}
	var out *C.dtg_tensor
	err := g.call(func(p *C.dtg_group) *C.dtg_error { return call(p, given, args, &out) })
	runtime.KeepAlive(in)
	if err != nil {
		return nil, err
	}
	return wrapTensor(out), nil
}

// AllReduce reduces the ranks' tensors, which have one shape, element by element; every rank gets the result, with the same bits.
func (g *Group) AllReduce(in *Tensor, reduction Reduction) (*Tensor, error) {
	return g.collect(in, 0, reduction, func(p *C.dtg_group, in *C.dtg_tensor, args *C.dtg_collective_args, out **C.dtg_tensor) *C.dtg_error {
		return C.dtg_group_all_reduce(p, in, args, out)
	})
}

// AllGather puts the ranks' rows one behind the other, in the order of the ranks. They may have different numbers of rows.
func (g *Group) AllGather(in *Tensor) (*Tensor, error) {
	return g.collect(in, 0, Sum, func(p *C.dtg_group, in *C.dtg_tensor, args *C.dtg_collective_args, out **C.dtg_tensor) *C.dtg_error {
		return C.dtg_group_all_gather(p, in, args, out)
	})
}

// ReduceScatter reduces like AllReduce, but every rank gets its share of the rows only.
func (g *Group) ReduceScatter(in *Tensor, reduction Reduction) (*Tensor, error) {
	return g.collect(in, 0, reduction, func(p *C.dtg_group, in *C.dtg_tensor, args *C.dtg_collective_args, out **C.dtg_tensor) *C.dtg_error {
		return C.dtg_group_reduce_scatter(p, in, args, out)
	})
}

// Broadcast gives every rank the tensor of rank root; the others give nil.
func (g *Group) Broadcast(in *Tensor, root int) (*Tensor, error) {
	return g.collect(in, root, Sum, func(p *C.dtg_group, in *C.dtg_tensor, args *C.dtg_collective_args, out **C.dtg_tensor) *C.dtg_error {
		return C.dtg_group_broadcast(p, in, args, out)
	})
}

// AllToAll sends rank r its part of the rows, splits[r] of them (none: as many to each), and puts what came one behind the other, in the
// order of the ranks.
func (g *Group) AllToAll(in *Tensor, splits ...int64) (*Tensor, error) {
	var held pins
	defer held.Unpin()
	return g.collect(in, 0, Sum, func(p *C.dtg_group, in *C.dtg_tensor, args *C.dtg_collective_args, out **C.dtg_tensor) *C.dtg_error {
		args.splits, args.num_splits = held.ints(splits)
		return C.dtg_group_all_to_all(p, in, args, out)
	})
}

// Barrier returns when all ranks have called it. timeout 0: the group's.
func (g *Group) Barrier(timeout time.Duration) error {
	return g.call(func(p *C.dtg_group) *C.dtg_error { return C.dtg_group_barrier(p, nanoseconds(timeout)) })
}

// Reform agrees on a next epoch with the members that are there, which all have to call it; least: how many there must be, 0: all that
// joined. timeout 0: 60 s. Errors: DeadlineExceeded (who is missing, and why).
func (g *Group) Reform(least int, timeout time.Duration) error {
	if least < 0 {
		return invalid("reform a group: least is %d", least)
	}
	return g.call(func(p *C.dtg_group) *C.dtg_error { return C.dtg_group_reform(p, C.size_t(least), nanoseconds(timeout)) })
}

// Leave ends this member's part. What the others can end without it they do.
func (g *Group) Leave() error {
	return g.call(func(p *C.dtg_group) *C.dtg_error { return C.dtg_group_leave(p) })
}

// Rank is this member's in the present epoch; -1 for a closed group.
func (g *Group) Rank() (rank int) {
	rank = -1
	_ = g.call(func(p *C.dtg_group) *C.dtg_error { rank = int(C.dtg_group_rank(p)); return nil })
	return rank
}

// Size is the number of members of the present epoch; 0 for a closed group.
func (g *Group) Size() (size int) {
	_ = g.call(func(p *C.dtg_group) *C.dtg_error { size = int(C.dtg_group_size(p)); return nil })
	return size
}

// Epoch is the number of the present epoch, from 1.
func (g *Group) Epoch() (epoch uint64) {
	_ = g.call(func(p *C.dtg_group) *C.dtg_error { epoch = uint64(C.dtg_group_epoch(p)); return nil })
	return epoch
}

// Member is the task with that rank in the present epoch; "" when out of range.
func (g *Group) Member(rank int) (task string) {
	_ = g.call(func(p *C.dtg_group) *C.dtg_error { task = C.GoString(C.dtg_group_member(p, clamped(rank))); return nil })
	return task
}

// Close leaves the group. Closing twice is fine.
func (g *Group) Close() error {
	if g != nil {
		g.close(groupKind)
	}
	return nil
}
