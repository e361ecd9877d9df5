// Runtimes, and what the library says of itself.

package dtg_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestRuntime(t *testing.T) {
	leaves(t)
	r := closing(t, get(dtg.NewRuntime(dtg.RuntimeOptions{ComputeThreads: 1, Spin: time.Microsecond, MemoryLimit: 1 << 30}))(t))
	if r.Threads() != 1 {
		t.Errorf("%d threads", r.Threads())
	}
	g := closing(t, r.NewGraph())
	y := g.Neg(g.ConstF32(1))
	want(t, r.StartTrace())
	s := connect(t, g)
	var value float32
	want(t, s.Run(background, dtg.Fetch(y, &value), dtg.Target(g.NoOp())))
	trace := get(r.StopTrace())(t)
	if !json.Valid([]byte(trace)) || !strings.Contains(trace, "trace") {
		t.Error(trace)
	}
	if metrics := get(r.Metrics())(t); !strings.Contains(metrics, "# TYPE") {
		t.Error(metrics)
	}
	var ops []struct{ Name string }
	want(t, json.Unmarshal([]byte(get(r.OpsJSON())(t)), &ops))
	if len(ops) < 100 {
		t.Errorf("%d ops", len(ops))
	}
	_, err := dtg.NewRuntime(dtg.RuntimeOptions{ComputeThreads: -1})
	refused(t, err, dtg.InvalidArgument)
}

func TestVersion(t *testing.T) {
	if !strings.HasPrefix(dtg.Version(), "0.") || dtg.ABIVersion() == 0 {
		t.Error(dtg.Version(), dtg.ABIVersion())
	}
	if !dtg.HasFeature("cpu") || dtg.HasFeature("no such thing") {
		t.Error("features")
	}
	if dtg.NotFound.String() != "NOT_FOUND" || dtg.Code(99).Error() != "UNKNOWN" {
		t.Error("codes")
	}
}
