package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/sim"
	"pitot/internal/sim/vllm"
)

// drawChanges draws what may happen to engines, and what does.
func drawChanges(t *rapid.T, engines int) []Change {
	var list []string
	for range rapid.IntRange(0, 6).Draw(t, "changes") {
		list = append(list, fmt.Sprintf("%dns:%s:%d", rapid.IntRange(0, 60_000).Draw(t, "at"),
			[]What{Die, Drain, Add}[rapid.IntRange(0, 2).Draw(t, "what")], rapid.IntRange(0, engines-1).Draw(t, "engine")))
		if _, err := ParseChanges(strings.Join(list, ","), engines); err != nil {
			list = list[:len(list)-1]
		}
	}
	if len(list) == 0 {
		return nil
	}
	changes, err := ParseChanges(strings.Join(list, ","), engines)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// Whoever comes and goes, each job ends once: well, or lost when its engine dies or none
// is there; and an engine that does not take jobs gets none.
func TestChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 4)
		s.config.Changes = drawChanges(t, s.n)
		s.config.Again = s.engine
		var engines []sim.Model
		for i := range s.n {
			engines = append(engines, s.engine(i))
		}
		f := New(s.config, engines)
		spy := spying{f, map[int64]int{}}
		out := s.play(spy)
		ends, gone := map[int64]sim.Emission{}, map[int64]bool{}
		for i, o := range out {
			if _, again := ends[o.ID]; again || i > 0 && o.At < out[i-1].At {
				t.Fatalf("%+v after %+v", o, out[max(i-1, 0)])
			}
			if o.Finish != "" {
				ends[o.ID] = o
			}
		}
		for _, e := range s.events {
			gone[e.job.ID] = gone[e.job.ID] || e.abort
		}
		for _, e := range s.events {
			if e.abort {
				continue
			}
			end, ended := ends[e.job.ID]
			if !ended && !gone[e.job.ID] {
				t.Fatalf("job %d never ended", e.job.ID)
			}
			engine, sent := spy.where[e.job.ID]
			if sent && !slices.Contains(takingAt(s.config.Changes, s.n, e.at), engine) {
				t.Fatalf("job %d came at %d and was sent to engine %d: %v", e.job.ID, e.at, engine, s.config.Changes)
			}
			died := slices.ContainsFunc(s.config.Changes, func(c Change) bool { return c.What == Die && c.Engine == engine && c.At == end.At })
			if ended && end.Finish == Lost && sent && !died || ended && !sent && end.Finish != Lost {
				t.Fatalf("job %d ended as %+v, sent: %v", e.job.ID, end, sent)
			}
		}
		if len(f.where) != 0 {
			t.Fatalf("jobs are left in the books: %v", f.where)
		}
	})
}

// Lost is what ends a job whose engine has gone.
const Lost = sim.Lost

// takingAt are the engines that take jobs at a time.
func takingAt(list []Change, engines int, at int64) (open []int) {
	for i := range engines {
		takes := takesFromStart(list, i)
		for _, c := range list {
			if c.Engine == i && c.At <= at {
				takes = c.What == Add
			}
		}
		if takes {
			open = append(open, i)
		}
	}
	return open
}

func TestParseChanges(t *testing.T) {
	got, err := ParseChanges("90s:drain:0, 30s:die:2,60s:add:2", 4)
	want := []Change{{30e9, Die, 2}, {60e9, Add, 2}, {90e9, Drain, 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, problem := range map[string]string{
		"": "is not TIME:WHAT:ENGINE", "30s:die": "is not TIME:WHAT:ENGINE", "30:die:1": "is not a time", "-1s:die:1": "is not a time",
		"1s:kill:1": "neither die nor drain nor add", "1s:die:4": "there is no engine", "1s:die:1,2s:die:1": "is to die at 2s, and is not there",
		"1s:drain:1,2s:add:1,3s:add:1": "is there already", "0s:add:0,0s:add:1,0s:add:2,0s:add:3": "no engine is there at the beginning",
	} {
		if _, err := ParseChanges(text, 4); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, want %q", text, err, problem)
		}
	}
	for text, want := range map[string][][2]int64{
		"1s:die:0,2s:drain:1": {{2e9, math.MaxInt64}}, "1s:drain:0,2s:die:0,3s:add:0": nil, "0s:add:1,5s:die:0": nil,
		"1s:die:0,2s:die:1,3s:add:0": {{2e9, 3e9}}, "1s:die:0,2s:die:1,2s:add:0": nil, "1s:die:0,1s:die:1,2s:add:1,3s:drain:1": {{1e9, 2e9}, {3e9, math.MaxInt64}},
	} {
		list, err := ParseChanges(text, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := SpansWithoutEngines(list, 2); !slices.Equal(got, want) {
			t.Errorf("%q: deserted in %v, want %v", text, got, want)
		}
	}
}

func FuzzParseChanges(f *testing.F) {
	f.Add("90s:drain:0,30s:die:2,60s:add:2", 4)
	f.Add("1s:die:0", 1)
	f.Fuzz(func(t *testing.T, s string, engines int) {
		engines = 1 + int(uint(engines)%64)
		if list, err := ParseChanges(s, engines); err == nil {
			SpansWithoutEngines(list, engines)
		}
	})
}

// What an engine holds when it dies is not handed on as another's, to which its job went
// then.
func TestDiesHolding(t *testing.T) {
	s := scene{n: 2, config: Defaults(1), set: vllm.Default(), blocks: true}
	s.config.Router = "round_robin"
	s.set.NumGPUBlocks, s.set.MaxModelLen = 100, 400
	f := New(s.config, []sim.Model{s.engine(0), s.engine(1)})
	job := sim.Job{ID: 1, Prompt: 10, Output: 1}
	f.Add(0, job)
	now, next := int64(0), int64(0)
	for ; now < 1e6 && len(f.of[0].held) == 0; now = next {
		next = f.Step(now).End
	}
	if f.where[1] != 0 || !f.of[0].busy {
		t.Fatalf("%v, %+v", f.where, f.of[0])
	}
	died := now - 1 // next is when the step ends
	f.coming = []Change{{died, Die, 0}}
	if out := f.Step(died).Out; len(out) != 1 || out[0].Finish != Lost {
		t.Fatalf("%+v", out)
	}
	f.Add(died, job)
	ended := 0
	for ; now < 1e7; now += 100 {
		for _, e := range f.Step(now).Out {
			if ended++; e.Engine != 1 {
				t.Errorf("at %d %+v", now, e)
			}
		}
	}
	if ended != 1 {
		t.Errorf("it ended %d times", ended)
	}
}
