package marks

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/result"
)

// What is written is read back.
func TestMarksComeBack(t *testing.T) {
	t1, percent := int64(7e9), 2.5
	w := Window{T0: &t1, T1: 5, Ended: 6, GaveUp: true, Gone: &t1, Until: &result.Until{Spec: "p99 ttft +-5%", HalfWidthPercent: &percent, Looks: 2}}
	var gotWindow Window
	if err := Decode(NameWindow, Encode(w), &gotWindow); err != nil || cmp.Diff(w, gotWindow) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(w, gotWindow))
	}
	a, e := Alone{Took: 9}, End{Ended: "2026-11-20T23:48:00Z", Interrupted: true}
	var gotAlone Alone
	if err := Decode(NameAlone, Encode(a), &gotAlone); err != nil || gotAlone != a {
		t.Errorf("%v, %v", gotAlone, err)
	}
	var gotEnd End
	if err := Decode(NameEnd, Encode(&e), &gotEnd); err != nil || gotEnd != e {
		t.Errorf("%v, %v", gotEnd, err)
	}
	c := &result.Capacity{Over: "rate", SLO: "chat", Load: &percent}
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
	for _, typ := range []reflect.Type{reflect.TypeFor[Window](), reflect.TypeFor[Crew](), reflect.TypeFor[PrefixCache](), reflect.TypeFor[CachePart](), reflect.TypeFor[Alone](), reflect.TypeFor[End]()} {
		for f := range typ.Fields() {
			if !plain.MatchString(f.Tag.Get("json")) {
				t.Errorf("%s.%s is %q", typ, f.Name, f.Tag.Get("json"))
			}
		}
	}
}

func TestOtherVersion(t *testing.T) {
	for _, other := range []string{`{"version": 3, "t0_ns": "another type"}`, `{"T0": 3}`} {
		if err := Decode(NameWindow, []byte(other), new(Window)); !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
	}
	if _, err := DecodeRun([]byte(`{"schema": "pitot.run/v9"}`)); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
}

func FuzzMarks(f *testing.F) {
	f.Add([]byte(`{"version": 1, "t1_ns": 3}`))
	f.Add([]byte(`17`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var w, again Window
		if Decode(NameWindow, data, &w) == nil {
			if err := Decode(NameWindow, Encode(w), &again); err != nil || cmp.Diff(w, again) != "" {
				t.Errorf("%v\n%s", err, cmp.Diff(w, again))
			}
		}
		_, _ = DecodeRun(data)
	})
}
