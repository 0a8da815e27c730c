package session

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/slo"
)

// Whatever a setup has of what was planned comes back from the journal.
func TestSetupComesBack(t *testing.T) {
	spec, err := slo.Parse("p99 ttft<200ms, tpot<50ms @99%, errors<1%")
	if err != nil {
		t.Fatal(err)
	}
	var s metrics.Setup
	v := reflect.ValueOf(&s).Elem()
	known := map[string]bool{"SLO": true, "Began": true, "Settling": true, "Pooled": true, "Metrics": true, "Signals": true, "Ended": true, "GaveUp": true, "Handed": true, "Gone": true, "Until": true, "PlannedHits": true, "Reuse": true, "Missing": true, "Workers": true} // what is found out later is in the mark of the window
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Float64:
			v.SetFloat(1.5)
		case reflect.Int, reflect.Int64:
			v.SetInt(3)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		case reflect.Map:
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key)
			fill(value)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, value)
		default:
			t.Fatalf("no value for %s", v.Type())
		}
	}
	for i := range v.NumField() {
		if !known[v.Type().Field(i).Name] {
			fill(v.Field(i))
		}
	}
	s.SLO, s.Began = spec, time.Date(2026, 11, 20, 12, 0, 0, 5, time.UTC)
	s.Price.GPU.Hour = 0 // a GPU is rented or owned
	got, err := readSetup(marks.Encode(s))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, got); d != "" {
		t.Errorf("planned (-), read (+):\n%s", d)
	}
}

func FuzzReadSetup(f *testing.F) {
	f.Add([]byte(`{"version": 1, "load": {"loop": "open", "rate": 3}, "slo": "p99 ttft<200ms", "price": {"gpu": "2.5"}}`))
	f.Add([]byte(`17`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readSetup(data)
		if err != nil {
			return
		}
		again, err := readSetup(marks.Encode(s))
		if err != nil || cmp.Diff(s, again) != "" {
			t.Errorf("%v\n%s", err, cmp.Diff(s, again))
		}
	})
}
