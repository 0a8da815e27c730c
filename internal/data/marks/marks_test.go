package marks

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/data/result"
)

// What is written is read back.
func TestMarksComeBack(t *testing.T) {
	t1, rate, users := int64(7e9), 2.5, 4
	p := Point{T0: 1e9, T1: &t1, Load: Load{Loop: "open", Rate: &rate, Arrival: "poisson", MaxInFlight: &users}, SLO: "p99 ttft<200ms", Stage: "curve", Requests: 3}
	gotPoint, err := DecodePoint(p.Encode())
	if p.Version = Version; err != nil || cmp.Diff(p, gotPoint) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(p, gotPoint))
	}
	w := Window{T0: &t1, T1: 5, Ended: 6, GaveUp: true, Gone: &t1, Until: &result.Until{Spec: "p99 ttft +-5%", HalfWidthPercent: &rate, Looks: 2}}
	gotWindow, err := DecodeWindow(w.Encode())
	if w.Version = Version; err != nil || cmp.Diff(w, gotWindow) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(w, gotWindow))
	}
	if a, err := DecodeAlone(Alone{Took: 9}.Encode()); err != nil || a != (Alone{Version, 9}) {
		t.Errorf("%v, %v", a, err)
	}
	if e, err := DecodeEnd(End{Ended: "2026-11-20T23:48:00Z", Interrupted: true}.Encode()); err != nil || e != (End{Version, "2026-11-20T23:48:00Z", true}) {
		t.Errorf("%v, %v", e, err)
	}
	c := &result.Capacity{Over: "rate", SLO: "chat", Load: &rate}
	if run, err := DecodeRun(EncodeCapacity(c)); err != nil || cmp.Diff(c, run.Capacity) != "" {
		t.Errorf("%v, %v", run, err)
	}
	if run, err := DecodeRun(EncodeHead(&result.Run{Schema: result.Schema, Seed: 7, Workload: json.RawMessage(`{}`)})); err != nil || run.Seed != 7 {
		t.Errorf("%v, %v", run, err)
	}
}

// Every field has a name of its own in JSON, and is always there.
func TestNamesInJSON(t *testing.T) {
	plain := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)
	for _, typ := range []reflect.Type{reflect.TypeFor[Point](), reflect.TypeFor[Price](), reflect.TypeFor[Load](), reflect.TypeFor[Arrivals](), reflect.TypeFor[Window](), reflect.TypeFor[Alone](), reflect.TypeFor[End]()} {
		for f := range typ.Fields() {
			if !plain.MatchString(f.Tag.Get("json")) {
				t.Errorf("%s.%s is %q", typ, f.Name, f.Tag.Get("json"))
			}
		}
	}
}

func TestOtherVersion(t *testing.T) {
	for _, other := range []string{`{"version": 3, "t0_ns": "another type"}`, `{"T0": 3}`} {
		_, p := DecodePoint([]byte(other))
		_, w := DecodeWindow([]byte(other))
		_, a := DecodeAlone([]byte(other))
		_, e := DecodeEnd([]byte(other))
		_, c := DecodeCrew([]byte(other))
		_, r := DecodeRun([]byte(`{"schema": "pitot.run/v9"}`))
		for _, err := range []error{p, w, a, e, c, r} {
			if !errors.Is(err, ErrVersion) {
				t.Error(err)
			}
		}
	}
}

func FuzzMarks(f *testing.F) {
	f.Add([]byte(`{"version": 1, "load": {"loop": "open", "rate": 3}}`))
	f.Add([]byte(`17`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := DecodePoint(data); err == nil {
			if again, err := DecodePoint(p.Encode()); err != nil || cmp.Diff(p, again) != "" {
				t.Errorf("%v\n%s", err, cmp.Diff(p, again))
			}
		}
		_, _ = DecodeWindow(data)
		_, _ = DecodeAlone(data)
		_, _ = DecodeEnd(data)
		_, _ = DecodeRun(data)
	})
}
