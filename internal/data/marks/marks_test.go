package marks

import (
	"encoding/json"
	"errors"
	"os"
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
	w := Window{T0: &t1, T1: 5, Ended: 6, GaveUp: true, Gone: &t1, Until: &Until{Spec: "p99 ttft +-5%", HalfWidthPercent: &rate, Looks: 2}}
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
	for _, typ := range []reflect.Type{reflect.TypeFor[Point](), reflect.TypeFor[Price](), reflect.TypeFor[Load](), reflect.TypeFor[Arrivals](), reflect.TypeFor[Window](), reflect.TypeFor[Until](), reflect.TypeFor[Alone](), reflect.TypeFor[End]()} {
		for f := range typ.Fields() {
			if !plain.MatchString(f.Tag.Get("json")) {
				t.Errorf("%s.%s is %q", typ, f.Name, f.Tag.Get("json"))
			}
		}
	}
}

// Marks of version 1 say the same.
func TestVersion1(t *testing.T) {
	data, err := os.ReadFile("../testdata/v1/find/marks.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name, Data string
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, m := range list {
		data := []byte(m.Data)
		switch seen[m.Name]++; m.Name {
		case NameRun:
			run, err := DecodeRun(data)
			if err != nil || run.Seed != 7 || run.Schema != result.Schema || run.Target.Kind != "sim" {
				t.Errorf("%+v, %v", run, err)
			}
		case NameAlone:
			if a, err := DecodeAlone(data); err != nil || a.Took != 123301094 {
				t.Errorf("%+v, %v", a, err)
			}
		case NamePoint:
			rate := 8.11
			want := Point{Version: Version, T0: 1233000000, Load: Load{Loop: "open", Rate: &rate, Arrival: "poisson"}, SLO: "p90 ttft<60ms",
				GPUs: 1, GPUPrice: 3.99, Stamps: "virtual", Requests: 50, Cold: true, Stage: "light", Residence: 123301094}
			p, err := DecodePoint(data)
			if err != nil || p.SLO != want.SLO || seen[m.Name] == 1 && cmp.Diff(want, p) != "" {
				t.Errorf("%v\n%s", err, cmp.Diff(want, p))
			}
		case NameWindow:
			if w, err := DecodeWindow(data); err != nil || w.T1 == 0 || seen[m.Name] == 1 && (w.T1 != 9038992565 || w.Ended != 9172107307) {
				t.Errorf("%+v, %v", w, err)
			}
		case NameEnd:
			if e, err := DecodeEnd(data); err != nil || e.Ended == "" || e.Interrupted {
				t.Errorf("%+v, %v", e, err)
			}
		default:
			t.Errorf("mark %s", m.Name)
		}
	}
	if len(seen) != 5 {
		t.Error(seen)
	}
	joint := `{"T1": 5, "SLO": {"Limits": [{"Metric": "ttft", "Max": 200000000}, {"Metric": "errors", "MaxPercent": 1}], "SharePercent": 99}}`
	if p, err := DecodePoint([]byte(joint)); err != nil || p.SLO != "ttft<200ms @99%, errors<1%" || *p.T1 != 5 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNewerMarks(t *testing.T) {
	later := []byte(`{"version": 3, "t0_ns": "another type"}`)
	_, p := DecodePoint(later)
	_, w := DecodeWindow(later)
	_, a := DecodeAlone(later)
	_, e := DecodeEnd(later)
	_, r := DecodeRun([]byte(`{"schema": "pitot.run/v9"}`))
	for _, err := range []error{p, w, a, e, r} {
		if !errors.Is(err, ErrNewer) {
			t.Error(err)
		}
	}
}

func FuzzMarks(f *testing.F) {
	f.Add([]byte(`{"version": 2, "load": {"loop": "open", "rate": 3}}`))
	f.Add([]byte(`{"T1": 5, "SLO": {"Limits": [{"Metric": "ttft", "Max": 200000000}]}}`))
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
