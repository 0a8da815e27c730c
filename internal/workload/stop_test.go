package workload

import "testing"

func TestStop(t *testing.T) {
	for text, want := range map[string]Stop{"forced": {}, " Natural ": {Natural: true}, "natural(2048)": {true, 2048}} {
		got, err := ParseStop(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseStop(got.String()); err != nil || again != got {
			t.Errorf("%q: %+v, %v", got.String(), again, err)
		}
	}
	for _, text := range []string{"", "never", "natural(", "natural()", "natural(0)", "natural(x)", "natural(99999999999)", "forced(3)"} {
		if got, err := ParseStop(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// What ends by itself is asked without its length; a simulated model knows it.
func TestStopped(t *testing.T) {
	r := random(t, RandomConfig{Input: FixedLength(64), Output: FixedLength(100), Seed: 1})
	for stop, output := range map[Stop]int{{}: 100, {Natural: true}: Unknown, {Natural: true, Most: 30}: 30} {
		src := stop.Of(r)
		q, err := src.At(3)
		if err != nil || q.Output != output || q.Exact == stop.Natural || stop.Natural && q.Ends != 100 || WithoutAnswerEnds(src) != Source(r) {
			t.Errorf("%s: %+v, %v", stop, q, err)
		}
	}
	talks, ok := Stop{Natural: true}.Of(talk{}).(Sessions)
	if !ok || len(talks.Follow(5, true)) != 1 {
		t.Error("nothing follows what ends by itself")
	}
	if q, err := (Stop{Natural: true}).Of(numbered{}).At(1); err != nil || q.Ends != 0 {
		t.Errorf("%+v, %v", q, err)
	}
}

func FuzzParseStop(f *testing.F) {
	f.Add("natural(20)")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseStop(text)
		if err != nil {
			return
		}
		if again, err := ParseStop(s.String()); err != nil || again != s {
			t.Errorf("%+v, %+v, %v", s, again, err)
		}
	})
}
